"""The dense tensor that a sparse one was made of, which has gradients where the sparse one holds nothing.

The gradients of a sparse tensor's elements are those of its places alone. A product, or a sum with a dense tensor,
depends on the other places of what the sparse tensor was made of as well: `dense.to_sparse() @ x` has the gradients of
`dense @ x`, as in PyTorch; so do linear functions of it, `2 * dense.to_sparse() @ x`. `sparse.mm` and `sparse.addmm`
have those of the places alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.sparse._tensor import SparseTensor, _with


def made_of(dense: Any, made: SparseTensor) -> SparseTensor:
    """The sparse tensor, which remembers the dense one where gradients of that are recorded."""
    if dense is not None and core.is_grad_enabled() and dense.requires_grad:
        made._source = [(t, t._version) for t in (dense, made._elements)]
    return made


def source_of(x: Any) -> Any:
    """The dense tensor that `x` is equal to and whose gradients are recorded; None where there is none, or where one of
    the two was changed since."""
    known = x.__dict__.get("_source") if core.is_grad_enabled() and isinstance(x, SparseTensor) else None
    if known is None or known[1][0] is not x._elements or any(t._version != then for t, then in known):
        return None
    return known[0][0]


def along(x: SparseTensor, made: SparseTensor, linear: Callable[[Any], Any]) -> SparseTensor:
    """`made`, a linear function of `x`, as made of the same function of what `x` was made of."""
    source = source_of(x)
    return made if source is None else made_of(linear(source), made)


def at_places_alone(x: Any) -> Any:
    """The tensor without what it was made of."""
    return x if source_of(x) is None else _with(x, x._elements)


@cache
def _product() -> Any:
    from taeda_registry.slots import autograd

    class ProductOfSource(autograd.Function):
        """The product of a sparse tensor, with the gradient of that as if it were dense."""

        @staticmethod
        def forward(ctx: Any, source: Any, other: Any, x: Any, compute: Any) -> Any:
            ctx.save_for_backward(source, other, x._elements)
            ctx.x, ctx.compute = x, compute
            return compute(_with(x, x._elements.detach()), other)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            source, other, elements = ctx.saved_tensors
            of_source = of_other = None
            if ctx.needs_input_grad[0]:
                by = core.outer if other.dim() == 1 else core.matmul
                of_source = by(grad, other.conj() if other.dim() == 1 else other.mH)
            if ctx.needs_input_grad[1]:
                # A product of its own, since it depends on what the sparse tensor was made of.
                adjoint = made_of(source, _with(ctx.x, elements)).mH
                of_other = product_with(adjoint, grad, ctx.compute)
            return of_source, of_other, None, None

    return ProductOfSource


def product_with(x: Any, other: Any, compute: Any) -> Any:
    """`compute(x, other)`, the product of a sparse and a dense tensor, with the gradient of what `x` was made of."""
    source = source_of(x)
    return compute(x, other) if source is None else _product().apply(source, other, x, compute)
