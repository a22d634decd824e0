"""Functions of each element that are zero at zero, so that the places of a sparse tensor stay."""

from __future__ import annotations

from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.sparse._making import coalesced
from taeda_tensor_core.sparse._sources import along
from taeda_tensor_core.sparse._tensor import SparseTensor, _table, _taken, _with, sparse

# Those that have no form in place: their results are of another dtype, or views.
_PLAIN_FORM_ALONE = (
    "angle", "conj", "isinf", "isnan", "isneginf", "isposinf", "positive", "real", "resolve_conj", "resolve_neg",
    "signbit",
)  # fmt: skip
_FORMS_IN_PLACE = (
    "abs", "absolute", "arcsin", "arcsinh", "arctan", "arctanh", "asin", "asinh", "atan", "atanh", "ceil",
    "conj_physical", "deg2rad", "erf", "erfinv", "expm1", "fix", "floor", "frac", "log1p", "nan_to_num", "neg",
    "negative", "rad2deg", "relu", "round", "sgn", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip
_LINEAR = frozenset(
    (
        "conj",
        "conj_physical",
        "deg2rad",
        "neg",
        "negative",
        "positive",
        "rad2deg",
        "resolve_conj",
        "resolve_neg",
    )
)


def _of_zero(name: str) -> None:
    @sparse(name)
    def apply(input: Any, *args: Any, **kwargs: Any) -> Any:
        x = coalesced(input) if input._way == "sparse_coo" else input
        if name == "real":  # an attribute
            return along(input, _with(x, x._elements.real), lambda dense: dense.real)
        function = getattr(core, name)
        made = _with(x, function(x._elements, *args, **kwargs))
        return along(input, made, function) if name in _LINEAR else made


def _in_place(name: str) -> None:
    @sparse(f"{name}_")
    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = _table[name](self, *args, **kwargs)
        if made.dtype != self.dtype:
            raise RuntimeError(f"{name}_: result type {made.dtype} can't be cast to {self.dtype}")
        return _taken(self, made)


for _name in (*_PLAIN_FORM_ALONE, *_FORMS_IN_PLACE):
    _of_zero(_name)
for _name in _FORMS_IN_PLACE:
    _in_place(_name)
_table["__neg__"], _table["__abs__"] = _table["neg"], _table["abs"]


@sparse("_coalesced_")
def _set_coalesced(self: Any, coalesced: bool) -> SparseTensor:
    """Says whether the indices are in order, each once; taken at its word."""
    self._ordered = bool(coalesced)
    return self


@sparse("copy_")
def _copy_into(self: Any, src: Any, non_blocking: bool = False) -> Any:
    if not isinstance(self, SparseTensor) or not isinstance(src, SparseTensor):
        kinds = [t._way if isinstance(t, SparseTensor) else "strided" for t in (self, src)]
        raise RuntimeError(
            f"copy_: found layouts {kinds[1]} and {kinds[0]}, expected one layout; use to_dense() first"
        )
    if tuple(self.shape) != tuple(src.shape) or self._way != src._way:
        raise RuntimeError(
            f"copy_: argument 'src' of shape {tuple(src.shape)} and layout {src._way} does not fit the tensor of shape "
            f"{tuple(self.shape)} and layout {self._way}"
        )
    made = _with(src, src._elements.to(self.dtype).clone(), tuple(p.clone() for p in src._places))
    return _taken(self, made)


@sparse("is_contiguous")
def _is_contiguous(self: Any, *_: Any, **__: Any) -> bool:
    return False


@sparse("is_same_size")
def _is_same_size(self: Any, other: Any) -> bool:
    return tuple(self.shape) == tuple(other.shape)


@sparse("t_")
def _t_(self: Any) -> Any:
    return _turn_around(self, 0, 1) if self.dim() == 2 else self


@sparse("transpose_", "swapaxes_", "swapdims_")
def _turn_around(self: Any, dim0: int, dim1: int) -> Any:
    made = _table["transpose"](self, dim0, dim1)
    if made._way != self._way or tuple(made.shape) != tuple(self.shape):
        raise RuntimeError("transpose_: a sparse tensor keeps its shape and layout; use transpose() instead")
    return _taken(self, made)


@sparse("select_copy")
def _select_copy(self: Any, dim: int, index: int) -> Any:
    return _table["clone"](_table["select"](self, dim, index))


@sparse("narrow_copy")
def _narrow_copy(self: Any, dim: int, start: int, length: int) -> Any:
    return _table["index_select"](self, dim, core.arange(start, start + length, device=self.device))
