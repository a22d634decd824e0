"""The dense tensor that a sparse one was made of, which has gradients where the sparse one holds nothing.

The gradients of a sparse tensor's elements are those of its places alone. A product, or a sum with a dense tensor,
depends on the other places of what the sparse tensor was made of as well: `dense.to_sparse() @ x` has the gradients of
`dense @ x`, as in PyTorch. `sparse.mm` and `sparse.addmm` have those of the places alone.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.sparse._tensor import SparseTensor, _with


def made_of(dense: Any, made: SparseTensor) -> SparseTensor:
    """The sparse tensor, which remembers the dense one where gradients of that are recorded."""
    if dense is not None and core.is_grad_enabled() and dense.requires_grad:
        made._source = dense, dense._version
    return made


def source_of(x: Any) -> Any:
    """The dense tensor that `x` is equal to and whose gradients are recorded; None where there is none."""
    known = x.__dict__.get("_source") if core.is_grad_enabled() and isinstance(x, SparseTensor) else None
    return known[0] if known is not None and known[0]._version == known[1] else None


def at_places_alone(x: Any) -> Any:
    """The tensor without what it was made of."""
    return x if source_of(x) is None else _with(x, x._elements)


@cache
def _product() -> Any:
    from taeda_registry.slots import autograd

    class ProductOfSource(autograd.Function):
        """A product that is known already, with the gradient of the first operand as if that were dense."""

        @staticmethod
        def forward(ctx: Any, source: Any, other: Any, product: Any) -> Any:
            ctx.save_for_backward(other)
            return product.view_as(product)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (other,) = ctx.saved_tensors
            if other.dim() == 1:
                return core.outer(grad, other.conj()), None, grad
            return core.matmul(grad, other.mT.conj()), None, grad

    return ProductOfSource


def product_with(x: Any, other: Any, compute: Any) -> Any:
    """`compute(x, other)`, the product of a sparse and a dense tensor, with the gradient of what `x` was made of."""
    source = source_of(x)
    if source is None:
        return compute(x, other)
    return _product().apply(source, other, compute(_with(x, x._elements.detach()), other))
