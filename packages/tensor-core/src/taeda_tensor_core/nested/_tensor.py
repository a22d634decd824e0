"""The tensor that wraps parts of several sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.overrides import resolve_name

#: What each function or method computes with nested arguments, by its name.
_table: dict[str, Callable[..., Any]] = {}


def nested(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: what functions of these names compute where a nested tensor is among their arguments."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        _table.update(dict.fromkeys(names, function))
        return function

    return put


class NestedTensor(Tensor):
    """Tensors of one dtype and number of dimensions as one. Made by `nested_tensor` and `as_nested_tensor`.

    Attributes:
        layout: "strided" or "jagged".
    """

    _parts: tuple[Tensor, ...]
    _way: Any

    @staticmethod
    def around(parts: Sequence[Tensor], way: Any) -> NestedTensor:
        """The nested tensor of parts that fit together."""
        sizes = [max(column) for column in zip(*(p.shape for p in parts), strict=True)] if parts else []
        first = parts[0] if parts else _C.empty((0,))
        made = Tensor._make_wrapper_subclass(
            NestedTensor, (len(parts), *sizes), dtype=first.dtype, device=first.device
        )
        made._parts, made._way = tuple(parts), way
        return made

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        with _C.DisableTorchFunctionSubclass():
            parts = (resolve_name(func) or getattr(func, "__name__", "?")).split(".")
        name = parts[-1]
        if name in ("__get__", "__set__"):
            name = parts[-2] if name == "__get__" else f"{parts[-2]}{name}"
        known = _table.get(name)
        if known is None:
            raise NotImplementedError(
                f"{name}: not defined for nested tensors; use unbind() or nested.to_padded_tensor first"
            )
        return known(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Operators that are met by another way than a public function: none reads memory that is not there."""
        raise NotImplementedError(f"{func.name()}: not defined for nested tensors; use unbind() first")

    def __repr__(self) -> str:
        inner = ",\n  ".join(repr(p).replace("\n", "\n  ") for p in self._parts)
        return f"nested_tensor([\n  {inner}\n])"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Any:
        return iter(self._parts)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return NestedTensor.around, (self._parts, self._way)

    __hash__ = Tensor.__hash__
