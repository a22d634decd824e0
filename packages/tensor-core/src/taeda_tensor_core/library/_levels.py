"""Levels: layers that are in force for a while, one within another, with tensors that carry something for them."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core.library._layers import split
from taeda_tensor_core.library._table import Operator, op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from taeda_tensor_core._C import Tensor, device
    from taeda_tensor_core._C import dtype as DType


@cache
def _op_set(names: frozenset[str]) -> Any:
    return _C._op_set(names) if names else None


_examples: list[tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = []


def use_examples(whole: Callable[[Tensor], Tensor], apart: Callable[[Tensor], Tensor]) -> None:
    """Let `whole` and `apart` answer for levels whose tensors stand for many examples.

    Args:
        whole: Gives the tensor of all examples. apart: Gives one that each example has for itself, where random numbers
            differ between them.
    """
    _examples.append((whole, apart))


def any_example(mask: Tensor) -> bool:
    """Whether a mask is true at a place, of any example: asked by what draws anew until all have been accepted."""
    for whole, _ in _examples:
        mask = whole(mask)
    return bool(mask.any())


def for_each_example(tensor: Tensor) -> Tensor:
    """A tensor that each example has for itself where what is drawn by it shall differ; else the tensor."""
    for _, apart in _examples:
        tensor = apart(tensor)
    return tensor


class Level:
    """A layer with a depth: in force for a `with` block, within those that were in force before.

    Derive from it and write `__call__(op, args, kwargs)`: what an operator does at this level. A call gets there when
    one of its tensors carries something for this level and nothing for a deeper one. The rule runs below its
    level: the operators that it calls reach the levels outside, then autograd, then the kernels. So levels of one kind
    or of several nest by themselves. Tensors that carry something are made by `wrap` and `attach`.

    `op`, `args` and `kwargs` are those of `Layer`. Forms that write into an argument give None, and what that argument
    carries is the rule's to renew. Of composite operators the level gets what they consist of.

    Args:
        name: Stands in messages.
        every_call: See all calls of the thread, whatever their tensors carry.
        composites: Composite operators, by name, that the level gets as they are.
        element_wise: Operators, by name, that the level does not get where all that its tensors carry are tensors with
            a dimension more in front, that of a batch: they are computed of these, operands of fewer dimensions with
            sizes of 1 behind the batch's, and what they give is wrapped.

    Example:
        >>> class Counted(Level):
        ...     def __call__(self, op, args, kwargs):
        ...         result = op(*(self.payload(a, a) for a in args), **kwargs)
        ...         return self.wrap(result, result.shape, result.dtype)
        >>> with Counted("counted") as level:
        ...     x = level.wrap(taeda.ones(2), (2,), taeda.float32)
        ...     level.payload(x + 1)
        tensor([2., 2.])
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        every_call: bool = False,
        composites: Iterable[str] = (),
        element_wise: frozenset[str] = frozenset(),
    ) -> None:
        self.name = type(self).__name__ if name is None else name
        self._options = every_call, tuple(composites), _op_set(element_wise)
        self._level: Any = None

    def __call__(self, op: Operator, args: tuple, kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(op, args, kwargs)")

    def requires_grad(self, tensor: Tensor) -> Any:
        """What ``tensor.requires_grad`` says of a tensor of this level that has no memory: False, unless overridden.

        A tensor stands for its own history: ``requires_grad`` and ``is_leaf`` are its.
        """
        return False

    def _rule(self, name: str, arguments: tuple) -> Any:
        operator = op(name)
        return self(operator, *split(operator, arguments))

    def __enter__(self) -> Level:
        if self.depth:
            raise RuntimeError(f"level '{self.name}' is in force already")
        self._level = self._make()
        self._push()
        return self

    def _push(self) -> None:
        _C._push_level(self._level, self._rule, self.requires_grad)

    def _make(self) -> Any:
        """What tensors know the level by, one for each time that it is in force."""
        return _C._make_level(self.name, *self._options)

    def __exit__(self, *_: object) -> None:
        _C._pop_level(self._level)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """The level, the innermost in force, is not for a while: its tensors keep what they carry."""
        _C._pop_level(self._made())
        try:
            yield
        finally:
            self._push()

    @property
    def depth(self) -> int:
        """1 for the outermost level of the thread; 0 while this one is not in force."""
        return 0 if self._level is None else _C._level_depth(self._level)

    def _made(self) -> Any:
        if self._level is None:
            raise RuntimeError(f"level '{self.name}' has not been in force yet: use it in a 'with' block")
        return self._level

    def wrap(
        self, payload: object, shape: Sequence[int], dtype: DType, device: device | str = "cpu"
    ) -> Tensor:
        """A tensor that is nothing but what it carries: it has a shape, a dtype and a device, and no memory.

        Raises:
            RuntimeError: When its elements are asked for, or when it is used after its level has ended.
        """
        return _C._carrier(self._made(), payload, tuple(shape), dtype, device)

    def attach(self, tensor: Tensor, payload: object) -> Tensor:
        """Let `tensor` carry `payload`, in the place of what it carries for this level; gives the tensor itself.

        A tensor that has memory stays what it is: below this level, and after it, it counts without its payload.
        """
        _C._attach_payload(self._made(), tensor, payload)
        return tensor

    def drop(self, tensor: Tensor) -> Tensor:
        """Take away what `tensor` carries for this level; gives the tensor itself.

        Raises:
            RuntimeError: It has no memory, and would be nothing.
        """
        _C._drop_payload(self._made(), tensor)
        return tensor

    def payload(self, tensor: object, missing: Any = None) -> Any:
        """What `tensor` carries for this level; `missing` when nothing, or when it is no tensor."""
        return _C._payload(self._made(), tensor, missing)
