"""Nested tensors in other shapes: dimensions of the parts divided, joined, added, taken away and picked from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from taeda_tensor_core._C import Tensor
from taeda_tensor_core._sizes import of_several
from taeda_tensor_core.nested._tensor import NestedTensor, nested


def _inside(name: str, self: NestedTensor, dim: int, extra: int = 0) -> int:
    """A dimension of the parts, from one of the whole.

    Raises:
        RuntimeError: It is that of the parts themselves.
        IndexError: There is no such dimension.
    """
    dims = self._rank + extra
    at = dim + dims if dim < 0 else dim
    if not 0 <= at < dims:
        raise IndexError(f"{name}: argument 'dim' is {dim}, expected {-dims} to {dims - 1}")
    if at == 0:
        raise RuntimeError(f"{name}: argument 'dim' is {dim}, the parts of a nested tensor stay as they are")
    return at - 1


def _like(
    self: NestedTensor, make: Callable[[Tensor], Tensor], by_lines: bool = False, at: int | None = None
) -> NestedTensor:
    """What is made of each part; of all lines at once where it does not touch their dimension (`by_lines`)."""
    if by_lines and self._whole is not None:
        return self.like(make(self._whole))
    return NestedTensor.around([make(p) for p in self._parts], self._way, at or self._at)


def _divided(name: str, function: Callable[..., Any]) -> None:
    def divide(self: NestedTensor, size: Any, dim: int = 0) -> tuple[NestedTensor, ...]:
        if dim in (0, -self._rank):
            runs, parts = function(_numbers(self), size, 0), self._parts
            return tuple(_some(self, [parts[int(i)] for i in run]) for run in runs)
        at = _inside(name, self, dim)
        if self._whole is not None and at:
            return tuple(self.like(column) for column in function(self._whole, size, at))
        rows = [function(p, size, at) for p in self._parts]
        if len({len(row) for row in rows}) > 1:
            raise RuntimeError(
                f"{name}: argument 'dim' is {dim}, along which the parts of the nested tensor are divided into "
                f"{[len(row) for row in rows]} pieces, expected as many of each"
            )
        columns = zip(*rows, strict=True)
        return tuple(NestedTensor.around(column, self._way, self._at) for column in columns)

    divide.__name__ = name
    nested(name)(divide)


def _numbers(self: NestedTensor) -> Tensor:
    from taeda_tensor_core import _C

    return _C.arange(self._count, device="cpu")


def _some(self: NestedTensor, parts: Sequence[Tensor]) -> NestedTensor:
    """A nested tensor of some of the parts."""
    if self._whole is not None:
        return NestedTensor.in_lines(parts)
    return NestedTensor.around(parts, self._way, self._at)


for _name in ("chunk", "split", "split_with_sizes", "tensor_split"):
    _divided(_name, getattr(Tensor, _name))


@nested("unflatten")
def _unflatten(self: NestedTensor, dim: int, sizes: Sequence[int]) -> NestedTensor:
    at = _inside("unflatten", self, dim)
    return _like(self, lambda p: p.unflatten(at, sizes), at > 0)


@nested("flatten")
def _flatten(self: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    start, end = (_inside("flatten", self, d) for d in (start_dim, end_dim))
    return _like(self, lambda p: p.flatten(start, end), start > 0)


@nested("unsqueeze")
def _unsqueeze(self: NestedTensor, dim: int) -> NestedTensor:
    at = _inside("unsqueeze", self, dim, extra=1)
    return _like(self, lambda p: p.unsqueeze(at), at > 0, self._at + (at < self._at))


@nested("squeeze")
def _squeeze(self: NestedTensor, dim: int | None = None) -> NestedTensor:
    if dim is None:
        raise RuntimeError("squeeze: argument 'dim' is needed for nested tensors")
    at = _inside("squeeze", self, dim)
    return _like(self, lambda p: p.squeeze(at), at > 0, self._at - (at < self._at - 1))


@nested("permute")
def _permute(self: NestedTensor, *dims: Any) -> NestedTensor:
    given = of_several(dims)
    if not given or given[0] != 0:
        raise RuntimeError("permute: the first dimension of a nested tensor stays where it is")
    inner = [_inside("permute", self, d) for d in given[1:]]
    if sorted(inner) != list(range(self._rank - 1)):
        raise RuntimeError(
            f"permute: argument 'dims' is {tuple(given)}, expected each of {self._rank} dimensions once"
        )
    return _like(
        self, lambda p: p.permute(inner), inner[:1] == [0], inner.index(self._at - 1) + 1 if inner else 1
    )


@nested("expand")
def _expand(self: NestedTensor, *shape: Any) -> NestedTensor:
    """Dimensions of one size repeated; that of the parts, and those in which they differ, stay: -1."""
    given = of_several(shape)
    if len(given) != self._rank or given[0] not in (self._count, -1):
        raise RuntimeError(
            f"expand: argument 'size' is {tuple(given)}, expected {self._count} parts and {self._rank - 1} sizes"
        )
    inner = [size if isinstance(size, int) else -1 for size in given[1:]]
    return _like(self, lambda p: p.expand(inner), inner[0] == -1)


@nested("reshape", "view", "_unsafe_view")
def _reshape(self: NestedTensor, *shape: Any) -> NestedTensor:
    """Sizes that differ are given by what `shape` of a jagged tensor has in their place, or by -1."""
    given = of_several(shape)
    count = self._count
    if not given or given[0] not in (count, -1):
        raise RuntimeError(
            f"reshape: argument 'shape' is {tuple(given)}, expected {count} parts, as there are"
        )
    inner = [size if isinstance(size, int) else -1 for size in given[1:]]

    def one(part: Tensor) -> Tensor:
        sizes = list(inner)
        if sizes.count(-1) > 1:  # the first is the one that differs
            sizes[sizes.index(-1)] = part.shape[0]
        return part.reshape(sizes)

    return _like(self, one, inner[:1] == [-1] and inner.count(-1) == 1)


@nested("__getitem__")
def _item(self: NestedTensor, index: Any) -> Any:
    """A part by its number; parts by a slice; of each part what follows a full slice or an ellipsis."""
    first, *rest = index if isinstance(index, tuple) else (index,)
    if isinstance(first, int):
        return self._parts[first][tuple(rest)] if rest else self._parts[first]
    if first is Ellipsis:
        return _like(self, lambda p: p[(Ellipsis, *rest)], len(rest) < self._rank - 1)
    if not isinstance(first, slice):
        raise NotImplementedError(
            f"__getitem__: parts of a nested tensor are picked by a number or a slice, found {type(first).__name__}; "
            "use unbind() for others"
        )
    if first == slice(None) and rest and rest[0] == slice(None):
        return _like(self, lambda p: p[tuple(rest)], True)
    kept = self._parts[first]
    return NestedTensor.around([p[tuple(rest)] for p in kept], self._way) if rest else _some(self, kept)


@nested("select")
def _select(self: NestedTensor, dim: int, index: int) -> Any:
    if dim in (0, -self._rank):
        return self._parts[index]
    at = _inside("select", self, dim)
    return _like(self, lambda p: p.select(at, index), at > 0)


@nested("narrow")
def _narrow(self: NestedTensor, dim: int, start: int, length: int) -> NestedTensor:
    if dim in (0, -self._rank):
        return _some(self, self._parts[start : start + length])
    at = _inside("narrow", self, dim)
    return _like(self, lambda p: p.narrow(at, start, length), at > 0)
