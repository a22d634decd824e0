"""Sums, products, quotients and powers of sparse tensors, element by element, also in place."""

from __future__ import annotations

from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.sparse._facts import _batch_dims
from taeda_tensor_core.sparse._making import _flat, _unflat, as_given, broadcast, coalesced, coo, to_dense
from taeda_tensor_core.sparse._sources import along, made_of, source_of
from taeda_tensor_core.sparse._tensor import SparseTensor, _table, _taken, _with, sparse

Tensor = core.Tensor


@sparse("add", "__add__", "__radd__")
def _add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    if isinstance(other, SparseTensor) and isinstance(input, SparseTensor):
        a, b = coo(input), coo(other)
        if tuple(a.shape) != tuple(b.shape) or a._places[0].shape[0] != b._places[0].shape[0]:
            raise RuntimeError(f"add: found shapes {tuple(a.shape)} and {tuple(b.shape)}, expected one")
        values = core.cat([a._elements, b._elements * alpha if alpha != 1 else b._elements])
        made = SparseTensor.around(
            (core.cat([a._places[0], b._places[0]], 1),), values, tuple(a.shape), "sparse_coo", False
        )
        made = coalesced(made) if input._way == "sparse_coo" else as_given(made, input)
        if source_of(input) is None and source_of(other) is None:
            return made
        return made_of(core.add(_as_dense(input), _as_dense(other), alpha=alpha), made)
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        raise TypeError("add: a number added to a sparse tensor would fill it; use to_dense() first")
    return core.add(_as_dense(input), _as_dense(other), alpha=alpha)


def _as_dense(x: Any) -> Any:
    if not isinstance(x, SparseTensor):
        return x
    source = source_of(x)
    return to_dense(x) if source is None else source


@sparse("add_", "__iadd__")
def _add_to(self: Any, other: Any, *, alpha: float = 1) -> Any:
    """Adds a sparse tensor to the places of a dense one that it names."""
    if isinstance(self, SparseTensor):
        return _taken(self, _add(self, other, alpha=alpha))
    if tuple(self.shape) != tuple(other.shape):
        raise RuntimeError(
            f"add_: argument 'other' has shape {tuple(other.shape)}, expected {tuple(self.shape)}"
        )
    x = coalesced(other)
    values = (x._elements if alpha == 1 else x._elements * alpha).to(self.dtype)
    return self.index_put_(tuple(x._places[0]), values, accumulate=True)


@sparse("_fused_sgd_")
def _sgd(
    params: Any, grads: Any, buffers: Any, lr: float, momentum: float, dampening: float, weight_decay: float,
    nesterov: bool, maximize: bool, first_step: bool,
) -> None:  # fmt: skip
    """Steps of gradient descent where some gradients are sparse: without momentum these move only rows they hold."""
    if weight_decay:
        raise RuntimeError(
            "SGD: argument 'weight_decay' moves all rows and does not go with sparse gradients; use sparse=False"
        )
    dense = [i for i, grad in enumerate(grads) if not isinstance(grad, SparseTensor)]
    sign = -1 if maximize else 1
    for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
        if not isinstance(grad, SparseTensor):
            continue
        if momentum:
            _add_to(buffers[i].mul_(momentum), grad, alpha=sign * (1 if first_step else 1 - dampening))
            param.add_(buffers[i], alpha=-lr * (momentum if nesterov else 1))
        if nesterov or not momentum:
            _add_to(param, grad, alpha=-sign * lr)
    if dense:
        kept = [buffers[i] for i in dense] if momentum else []
        core.ops._fused_sgd_(
            [params[i] for i in dense], [grads[i] for i in dense], kept,
            lr, momentum, dampening, weight_decay, nesterov, maximize, first_step,
        )  # fmt: skip


@sparse("sub", "subtract", "__sub__")
def _sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    return _add(input, other, alpha=-alpha)


@sparse("__rsub__", "rsub")
def _rsub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    return _add(other, input, alpha=-alpha)


@sparse("mul", "multiply", "__mul__", "__rmul__")
def _mul(input: Any, other: Any) -> Any:
    if not isinstance(input, SparseTensor):
        input, other = other, input
    if isinstance(other, SparseTensor) and tuple(other.shape) != tuple(input.shape):
        return _spread_product(input, other)
    if isinstance(other, SparseTensor):
        return as_given(_common(coalesced(input), coalesced(other)), input)
    if not isinstance(other, Tensor) or other.dim() == 0:
        return along(input, _with(input, input._elements * other), lambda dense: dense * other)
    shape = tuple(core.broadcast_shapes(input.shape, other.shape))
    x = coalesced(input if shape == tuple(input.shape) else broadcast(input, shape))
    spread = core.broadcast_to(other, shape)
    made = _with(x, x._elements * spread[tuple(x._places[0])])
    return along(input, as_given(made, input), lambda dense: dense * other)


def _spread_product(a: Any, b: Any) -> Any:
    """The product of tensors whose shapes broadcast: at the places of one that has the result's shape."""
    shape = tuple(core.broadcast_shapes(a.shape, b.shape))
    for whole, other in ((a, b), (b, a)):
        if tuple(whole.shape) == shape:
            return _mul(whole, other.to_dense())
    return _mul(broadcast(a, shape), b.to_dense())


def _common(a: Any, b: Any) -> Any:
    """Products where both have a place."""
    if a._places[0].shape == b._places[0].shape and core.equal(a._places[0], b._places[0]):
        return _with(a, a._elements * b._elements)
    sizes = tuple(a.shape[: a._places[0].shape[0]])
    mine, other = _flat(a._places[0], sizes), _flat(b._places[0], sizes)
    at = core.searchsorted(other, mine).clamp(max=max(other.shape[0] - 1, 0))
    both = (
        ((other[at] == mine) if other.shape[0] else core.zeros_like(mine, dtype=core.bool))
        .nonzero()
        .flatten()
    )
    values = a._elements[both] * b._elements[at[both]]
    return SparseTensor.around((_unflat(mine[both], sizes),), values, tuple(a.shape), "sparse_coo", True)


@sparse("div", "divide", "true_divide", "__truediv__")
def _div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    if isinstance(other, Tensor) and other.dim() > 0:
        raise NotImplementedError(
            "div: expected a number or a tensor of 0 dimensions as divisor of a sparse tensor"
        )
    made = _with(input, core.div(input._elements, other, rounding_mode=rounding_mode))
    return made if rounding_mode else along(input, made, lambda dense: dense / other)


@sparse("floor_divide", "__floordiv__")
def _floor_divide(input: Any, other: Any) -> Any:
    return _div(input, other, rounding_mode="floor")


@sparse("pow", "__pow__")
def _pow(input: Any, exponent: Any) -> Any:
    if isinstance(exponent, Tensor) or exponent <= 0:
        raise NotImplementedError("pow: expected a positive number as exponent of a sparse tensor")
    x = coalesced(input)
    return _with(x, x._elements**exponent)


def _in_place(name: str, function: Any) -> None:
    """A function whose result the tensor itself takes."""

    @sparse(f"{name}_", f"__i{name}__")
    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self, SparseTensor):  # a dense tensor meets a sparse one
            made = function(self, *args, **kwargs)
            return self.copy_(to_dense(made) if isinstance(made, SparseTensor) else made)
        return _taken(self, function(self, *args, **kwargs))


for _short, _function in (("sub", _sub), ("mul", _mul), ("div", _div), ("pow", _pow)):
    _in_place(_short, _function)
_table["__itruediv__"] = _table["div_"]


@sparse("zero_")
def _zero(self: Any) -> Any:
    self._elements, self._ordered = self._elements.narrow(_batch_dims(self), 0, 0).detach(), True
    self._places = (
        (self._places[0][:, :0],)
        if self._way == "sparse_coo"
        else (self._places[0] * 0, self._places[1][..., :0])
    )
    return self
