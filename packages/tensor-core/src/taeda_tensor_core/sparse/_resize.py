"""Sparse tensors that get another shape in place."""

from __future__ import annotations

from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core import _C
from taeda_tensor_core.sparse._tensor import SparseTensor, sparse


def _become(self: SparseTensor, name: str, size: Any, sparse_dim: int, dense_dim: int) -> tuple[int, ...]:
    shape = tuple(int(n) for n in size)
    if self._way != "sparse_coo":
        raise RuntimeError(f"{name}: expected a tensor of layout sparse_coo, found {self.layout}")
    if self._elements.requires_grad:
        raise RuntimeError(f"{name}: a sparse tensor that requires grad cannot be resized")
    if sparse_dim < 0 or dense_dim < 0 or sparse_dim + dense_dim != len(shape):
        raise RuntimeError(
            f"{name}: number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), found "
            f"{len(shape)}"
        )
    return shape


@sparse("sparse_resize_and_clear_")
def _cleared(self: SparseTensor, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Another shape, without elements."""
    shape = _become(self, "sparse_resize_and_clear_", size, sparse_dim, dense_dim)
    places = core.empty((sparse_dim, 0), dtype=core.int64, device=self.device)
    self._places, self._ordered = (places,), True
    self._elements = self._elements.new_empty((0, *shape[sparse_dim:]))
    self._size = _C.Size(shape)
    return self


@sparse("sparse_resize_")
def _resized(self: SparseTensor, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Another shape, in which all elements keep their places."""
    name = "sparse_resize_"
    shape = _become(self, name, size, sparse_dim, dense_dim)
    places, values = self._places[0], self._elements
    if not values.shape[0]:
        return _cleared(self, size, sparse_dim, dense_dim)
    for kind, found, wanted in (
        ("sparse", places.shape[0], sparse_dim),
        ("dense", values.ndim - 1, dense_dim),
    ):
        if found != wanted:
            raise RuntimeError(
                f"{name}: the number of {kind} dimensions of a tensor with elements stays {found}, found {wanted}"
            )
    if any(n < old for n, old in zip(shape, self._size, strict=True)):
        raise RuntimeError(
            f"{name}: a tensor with elements does not shrink, found {shape} for {tuple(self._size)}"
        )
    if tuple(values.shape[1:]) != shape[sparse_dim:]:
        wider = values.new_zeros((values.shape[0], *shape[sparse_dim:]))
        wider[tuple(slice(n) for n in values.shape)] = values
        self._elements = wider
    self._size = _C.Size(shape)
    return self
