"""Masked reductions of sparse tensors, and of dense ones by sparse masks: what the mask names is reduced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.sparse._making import as_given, coalesced, to_dense
from taeda_tensor_core.sparse._tensor import SparseTensor, _table, _with

_REDUCED = ("sum", "prod", "amax", "amin", "mean")
_DENSE = (
    "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logsumexp", "median", "norm", "normalize", "softmax",
    "softmin", "std", "var",
)  # fmt: skip


def _all_true(x: SparseTensor) -> SparseTensor:
    """A mask of the places of ``x``."""
    return _with(x, core.ones_like(x._elements, dtype=core.bool))


def _plain(mask: Any) -> Any:
    return to_dense(mask) if isinstance(mask, SparseTensor) else mask


def _reduction(name: str) -> Callable[..., Any]:
    function = getattr(core.ops, f"masked_{name}")

    def reduced(
        input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
    ) -> Any:
        options = {"keepdim": bool(keepdim), "dtype": dtype}
        if not isinstance(input, SparseTensor):
            return function(input, dim, **options, mask=_plain(mask))
        way = input._way
        if way not in (("sparse_csr",) if name == "mean" else ("sparse_coo", "sparse_csr")):
            raise ValueError(
                f"masked.{name}: argument 'input' has layout {input.layout}; use to_dense() first"
            )
        if mask is None and name != "sum":
            raise ValueError(f"masked.{name}: argument 'mask' is missing: a sparse input needs one")
        if way == "sparse_csr" and not keepdim:
            raise RuntimeError(f"masked.{name}: a compressed tensor keeps its dimensions; pass keepdim=True")
        chosen = _plain(_all_true(coalesced(input)) if mask is None else mask).to(core.bool)
        chosen = chosen.broadcast_to(tuple(input.shape))
        result = function(to_dense(input), dim, **options, mask=chosen)
        dims = tuple(range(chosen.ndim)) if dim is None or dim == () else dim
        there = core.any(chosen, dim=dims, keepdim=bool(keepdim))
        places = there.nonzero().t().contiguous()
        values = result[tuple(places)] if result.ndim else result.reshape(1)[: places.shape[1]]
        made = SparseTensor.around((places,), values, tuple(result.shape), "sparse_coo", True)
        return as_given(made, input)

    return reduced


def _of_dense(name: str) -> Callable[..., Any]:
    function = getattr(core.ops, f"masked_{name}")

    def computed(input: Any, *args: Any, mask: Any = None, **kwargs: Any) -> Any:
        if isinstance(input, SparseTensor):
            raise ValueError(
                f"masked.{name}: argument 'input' has layout {input.layout}, expected a dense tensor"
            )
        return function(input, *args, mask=_plain(mask), **kwargs)

    return computed


_table.update({f"masked_{name}": _reduction(name) for name in _REDUCED})
_table.update({f"masked_{name}": _of_dense(name) for name in _DENSE})
