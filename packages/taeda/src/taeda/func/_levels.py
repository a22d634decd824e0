"""The level of a vmap, and the way of tensors into the vmaps that are in force and out of them.

A tensor of a vmap carries the tensor of all its batch, whose first dimension is the batch's. Nested, that tensor
carries one for the vmap outside, so that under all of them lies a plain tensor, the outermost batch first.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from taeda_registry.slots import tensor

Tensor = tensor.Tensor
#: Composites that the level sees as a whole: those that make memory to be written to, which must have the batch, and
#: those that read elements, of which each example has its own.
_WHOLE = (
    "as_strided_scatter", "block_diag", "constant_pad_nd", "diag_embed", "diagonal_scatter", "empty_like", "fill",
    "full_like", "index_put", "new_empty", "new_full", "new_ones", "new_zeros", "ones_like", "put", "select_scatter",
    "slice_scatter", "zeros_like", "histogram", "histogramdd", "nonzero_static",
)  # fmt: skip


class _Thread(threading.local):
    """The vmaps of a thread: the innermost, which knows the one outside of it. No change needs memory.

    `transforms` has, for each transform that is running its program, the vmaps in force where it began.

    Programs keep tensors of a vmap for the next one that stands at the same depth, as PyTorch, where a tensor knows the
    number of its vmap alone, allows: `ended` has, by depth and kind, what tensors of the last such one know it by.
    """

    innermost: Batching | None = None

    def __init__(self) -> None:
        self.ended: dict[tuple, Any] = {}
        self.transforms: list[list[Batching]] = []
        self.watching: list[Any] = []  # told of each step of a vmap, its arguments and its result


_thread = _Thread()


def levels() -> list[Batching]:
    """The vmaps in force, the outermost first."""
    found: list[Batching] = []
    level = _thread.innermost
    while level is not None:
        found.append(level)
        level = level._outer
    return found[::-1]


@contextmanager
def transforming() -> Iterator[None]:
    """While a program runs whose derivatives are taken."""
    _thread.transforms.append(levels())
    try:
        yield
    finally:
        _thread.transforms.pop()


def depth() -> int:
    """How many programs run whose derivatives are taken, one inside of the other."""
    return len(_thread.transforms)


def is_transforming() -> bool:
    return bool(_thread.transforms)


def begun_inside(level: Batching) -> bool:
    """Whether a program runs whose derivatives are taken inside of that vmap."""
    return any(level.origin is each.origin for over in _thread.transforms for each in over)


class _Below:
    """A block in which `level` is the innermost one."""

    __slots__ = ("_before", "_level")

    def __init__(self, level: Batching | None) -> None:
        self._level = level

    def __enter__(self) -> None:
        self._before, _thread.innermost = _thread.innermost, self._level

    def __exit__(self, *_: object) -> None:
        _thread.innermost = self._before


class Batching(tensor.library.Level):
    """One vmap: operators of its tensors are computed for the whole batch at once.

    Args:
        size: Of the batch.
        randomness: "error", "different" or "same": what random operators do.
        origin: The vmap that this one stands for, where the backward of its program is run again in a level.
    """

    def __init__(self, size: int, randomness: str = "error", origin: Batching | None = None) -> None:
        own = (*_WHOLE, *tensor.library.batched_operators())
        # Random operators without a tensor of the batch are seen only if all calls are.
        from taeda.func._batching import call, without_rules

        super().__init__(
            "vmap", every_call=randomness != "same", composites=own, element_wise=without_rules()
        )
        self._call = call
        self.size, self.randomness = size, randomness
        self.origin: Batching = origin or self
        #: Arguments, the copies that stand for them, and the versions of these before the function was called.
        self.copies: list[tuple[Any, Any, int]] = []
        self._outer: Batching | None = None

    def _make(self) -> Any:
        self._kind = len(levels()), self._options
        return _thread.ended.pop(self._kind, None) or super()._make()

    def __enter__(self) -> Batching:
        super().__enter__()
        self._outer, _thread.innermost = _thread.innermost, self
        return self

    def __exit__(self, *error: object) -> None:
        _thread.innermost = self._outer
        super().__exit__(*error)
        _thread.ended[self._kind] = self._level

    def __call__(self, op: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        with _Below(self._outer):
            return self._call(self, op, args, kwargs)

    def requires_grad(self, tensor: Any) -> Any:
        """As in PyTorch, tensors show it to the program of a transform inside the vmap, not to that of the vmap."""
        over = levels()
        if not _thread.transforms:
            return False
        shows = [level.origin for level in _thread.transforms[-1]] == [level.origin for level in over]
        return shows and strip(tensor, over)

    def _below(self) -> _Below:
        """Rules run below their level, so the levels from it inwards are not in force meanwhile."""
        return _Below(self._outer)

    def batch(self, whole: Any) -> Any:
        """A tensor of this level, by the tensor of all its batch."""
        return tensor._C._batch(self._made(), whole)

    def whole(self, value: Any) -> Any:
        """The tensor of all the batch; None for what does not depend on the batch."""
        return self.payload(value)

    def turn(self, example: Any, whole: Any) -> None:
        """Let a tensor of the level show another tensor of all the batch, also one of another shape."""
        tensor._C._turn(self._made(), example, whole)

    def expanded(self, value: Any) -> Any:
        """The tensor of all the batch, also of what is the same for all of it."""
        found = self.payload(value)
        return value.unsqueeze(0).expand(self.size, *value.shape) if found is None else found


def strip(value: Any, over: Sequence[Batching]) -> Any:
    """The tensor without the levels `over`, their batches first, the outermost level's foremost."""
    if not over:
        return value
    whole = over[-1].expanded(value)
    batch, rest = whole.shape[0], len(over) - 1
    under = strip(whole, over[:-1])
    assert under.shape[rest] == batch
    return under


def dress(plain: Any, over: Sequence[Batching]) -> Any:
    """What `strip` takes apart."""
    for level in over:
        plain = level.batch(plain)
    return plain


def apart(value: Any) -> Any:
    """A tensor that each example has for itself, where all vmaps in force draw for each example."""
    over = levels()
    if not over or any(level.randomness != "different" for level in over):
        return value
    return dress(strip(value, over), over)


def swapped(plain: Any, first: int, second: int) -> Any:
    """`plain` with its first `first` dimensions behind the `second` dimensions that follow them."""
    if not first or not second:
        return plain
    rest = range(first + second, plain.dim())
    return plain.permute(*range(first, first + second), *range(first), *rest)
