"""Derivatives: for each operator a function of the gradients, the arguments and the results."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import taeda_tensor_core as tc

ops = tc.ops
RULES: dict[str, Rule] = {}


class Rule:
    """A derivative, and what of a call has to be kept for it.

    A parameter whose name begins with an underscore is not read, of one that ends in `_like` only facts are: neither is
    saved.
    """

    def __init__(self, function: Callable, single: bool) -> None:
        self.function, self.single = function, single
        _, out, *rest = inspect.signature(function).parameters.values()
        self.results = how(out.name)
        self.arguments = [how(p.name) for p in rest if p.kind is not p.VAR_POSITIONAL]
        self.others = [how(p.name) for p in rest if p.kind is p.VAR_POSITIONAL]

    def reads(self, count: int) -> list[str]:
        """How each of `count` arguments is read."""
        return self.arguments + self.others * (count - len(self.arguments))

    def __call__(self, grads: tuple, out: Any, args: list) -> tuple:
        found = self.function(grads[0], out[0], *args) if self.single else self.function(grads, out, *args)
        return found if isinstance(found, tuple) else (found,)


def how(name: str) -> str:
    return "skipped" if name.startswith("_") else "like" if name.endswith("_like") else "kept"


def rule(*names: str) -> Callable[[Callable], Callable]:
    """`f(grads, out, *arguments)` gives the gradients of the tensor arguments, in their order."""

    def take(f: Callable) -> Callable:
        RULES.update(dict.fromkeys(names, Rule(f, single=False)))
        return f

    return take


def simple(**table: Callable) -> None:
    """Rules of one result: `f(grad, out, *arguments)`; a single gradient may come without its tuple."""
    RULES.update({name: Rule(f, single=True) for name, f in table.items()})


simple(
    add=lambda g, _y, _a, _b, alpha: (g, g * alpha),
    sub=lambda g, _y, _a, _b, alpha: (g, g * -alpha),
    mul=lambda g, _y, a, b: (g * b, g * a),
    div=lambda g, y, _a, b: (g / b, -g * y / b),
    pow=lambda g, y, a, b: (g * b * a ** (b - 1), g * y * a.log()),
    neg=lambda g, _y, _a: -g,
    exp=lambda g, y, _a: g * y,
    log=lambda g, _y, a: g / a,
    log1p=lambda g, _y, a: g / (a + 1),
    expm1=lambda g, y, _a: g * (y + 1),
    sqrt=lambda g, y, _a: g / (2 * y),
    rsqrt=lambda g, y, _a: g * -0.5 * y**3,
    square=lambda g, _y, a: g * 2 * a,
    reciprocal=lambda g, y, _a: -g * y * y,
    abs=lambda g, _y, a: g * a.sgn(),
    sin=lambda g, _y, a: g * a.cos(),
    cos=lambda g, _y, a: -g * a.sin(),
    tanh=lambda g, y, _a: g * (1 - y * y),
    sigmoid=lambda g, y, _a: g * y * (1 - y),
    relu=lambda g, y, _a: g * (y > 0).to(g.dtype),
    silu=lambda g, _y, a: g * (a.sigmoid() * (1 + a * (1 - a.sigmoid()))),
    gelu=lambda g, _y, a, approximate: ops.gelu_backward(g, a, approximate=approximate),
    leaky_relu=lambda g, _y, a, slope: ops.leaky_relu_backward(g, a, slope),
    softplus=lambda g, _y, a, beta, threshold: ops.softplus_backward(g, a, beta, threshold),
    clamp=lambda g, _y, a, low, high: (
        g * ((a >= (low if low is not None else a)) & (a <= (high if high is not None else a))).to(g.dtype)
    ),
    where=lambda g, _y, c, _a, _b: (None, tc.where(c, g, tc.zeros_like(g)), tc.where(c, tc.zeros_like(g), g)),
    masked_fill=lambda g, _y, _a, m, _v: (g.masked_fill(m, 0), None, None),
    maximum=lambda g, _y, a, b: (
        g * ((a > b).to(g.dtype) + (a == b).to(g.dtype) / 2),
        g * ((b > a).to(g.dtype) + (a == b).to(g.dtype) / 2),
    ),
    minimum=lambda g, _y, a, b: (
        g * ((a < b).to(g.dtype) + (a == b).to(g.dtype) / 2),
        g * ((b < a).to(g.dtype) + (a == b).to(g.dtype) / 2),
    ),
    cast=lambda g, _y, _a, _dtype: g,
    clone=lambda g, _y, _a, _layout: g,
    mm=lambda g, _y, a, b: (g @ b.t(), a.t() @ g),
    bmm=lambda g, _y, a, b: (g @ b.transpose(1, 2), a.transpose(1, 2) @ g),
    mv=lambda g, _y, a, b: (g.unsqueeze(1) * b, a.t() @ g),
    dot=lambda g, _y, a, b: (g * b, g * a),
    addmm=lambda g, _y, _s, a, b, beta, alpha: (g * beta, (g @ b.t()) * alpha, (a.t() @ g) * alpha),
    view=lambda g, _y, a_like, _size: g.reshape(a_like.shape),
    permute=lambda g, _y, _a, dims: g.permute(
        [sorted(range(len(dims)), key=lambda i: dims[i] % len(dims))[i] for i in range(len(dims))]
    ),
    transpose=lambda g, _y, _a, i, j: g.transpose(i, j),
    expand=lambda g, _y, _a, _size, _implicit: g,
    unsqueeze=lambda g, _y, a_like, _dim: g.reshape(a_like.shape),
    squeeze=lambda g, _y, a_like: g.reshape(a_like.shape),
    select=lambda g, _y, a_like, dim, i: embed(g.unsqueeze(dim), a_like, dim, [i]),
    slice=lambda g, _y, a_like, dim, start, stop, step: embed(
        g, a_like, dim, range(a_like.shape[dim])[slice(start, stop, step)]
    ),
    sum=lambda g, _y, a_like, dim, keep, _dtype: spread(g, a_like, dim, keep),
    mean=lambda g, y_like, a_like, dim, keep, _dtype: (
        spread(g, a_like, dim, keep) * (max(y_like.numel(), 1) / max(a_like.numel(), 1))
    ),
    softmax=lambda g, y, _a, dim, _dtype: y * (g - (g * y).sum(dim, keepdim=True)),
    log_softmax=lambda g, y, _a, dim, _dtype: g - y.exp() * g.sum(dim, keepdim=True),
    mse_loss=lambda g, _y, a, b, how: signed(ops.mse_loss_backward(g, a, b, how)),
    l1_loss=lambda g, _y, a, b, how: signed(ops.l1_loss_backward(g, a, b, how)),
    bce_with_logits_loss=lambda g, _y, a, b, how: (ops.bce_with_logits_loss_backward(g, a, b, how), None),
    embedding=lambda g, _y, w_like, at, pad, freq, _sparse: (
        ops.embedding_backward(g, at, w_like.shape[0], pad, freq),
        None,
    ),
    avg_pool2d=lambda g, _y, a, *rest: ops.avg_pool2d_backward(g, a, *rest),
    adaptive_avg_pool2d=lambda g, _y, a, _size: ops.adaptive_avg_pool2d_backward(g, a),
    index_select=lambda g, _y, a_like, dim, at: (zeros(a_like).index_add(dim, at, g), None),
    gather=lambda g, _y, a_like, dim, at, _sparse: (zeros(a_like).scatter_add(dim, at, g), None),
    index_add=lambda g, _y, _a, dim, at, _s, alpha: (g, None, g.index_select(dim, at) * alpha),
    scatter_add=lambda g, _y, _a, dim, at, _s: (g, None, g.gather(dim, at)),
    copy_same_=lambda g, _y, _a, _source: (None, g),
    fill_=lambda g, _y, _a, _value: (None, g.sum()),
)


def signed(g: tc.Tensor) -> tuple:
    return g, -g


def zeros(like: Any) -> tc.Tensor:
    return tc.zeros(like.shape, dtype=like.dtype, device=like.device)


def embed(g: tc.Tensor, like: Any, dim: int, places: Any) -> tc.Tensor:
    """`g` at some places of a dimension, zero elsewhere."""
    at = tc.tensor([place % like.shape[dim] for place in places], dtype=tc.int64, device=g.device)
    return zeros(like).to(g.dtype).index_add(dim, at, g)


def spread(g: tc.Tensor, like: Any, dim: tuple | None, keep: bool) -> tc.Tensor:
    """A reduction's gradient over the elements that it was made of."""
    if not keep and like.dim():
        reduced = {d % like.dim() for d in (dim or range(like.dim()))}
        g = g.reshape([1 if d in reduced else n for d, n in enumerate(like.shape)])
    return g.expand(like.shape)


@rule("linear")
def linear(grads: tuple, _out: Any, x: tc.Tensor, w: tc.Tensor, b_like: Any) -> tuple:
    return ops.linear_backward(grads[0], x, w, 7 if b_like is not None else 3)


@rule("conv2d")
def conv2d(grads: tuple, _out: Any, x: tc.Tensor, w: tc.Tensor, b_like: Any, *plan: Any) -> tuple:
    return ops.conv2d_backward(grads[0], x, w, *plan, 7 if b_like is not None else 3)


@rule("native_batch_norm")
def batch_norm(
    grads: tuple, out: Any, x: tc.Tensor, w: Any, _b: Any, _mean: Any, _var: Any, training: bool, *_: Any
) -> tuple:
    return ops.batch_norm_backward(grads[0], x, w, out[1], out[2], training, 7 if w is not None else 1)


@rule("native_layer_norm")
def layer_norm(grads: tuple, out: Any, x: tc.Tensor, shape: tuple, w: Any, _b: Any, _eps: float) -> tuple:
    return ops.layer_norm_backward(grads[0], x, shape, out[1], out[2], w, 7 if w is not None else 1)


@rule("native_dropout")
def dropout(grads: tuple, out: Any, _x: tc.Tensor, p: float, _generator: Any) -> tuple:
    return (grads[0] * out[1].to(grads[0].dtype) * (1 / (1 - p) if p < 1 else 0.0),)


@rule("max_pool2d_with_offsets")
def max_pool2d(grads: tuple, out: Any, x: tc.Tensor, k: Any, s: Any, p: Any, d: Any, ceil: bool) -> tuple:
    return (ops.max_pool2d_backward(grads[0], x, k, s, p, d, ceil, out[1]),)


@rule("max_pool2d_with_indices")
def max_pool2d_indices(
    grads: tuple, out: Any, x: tc.Tensor, k: Any, s: Any, p: Any, d: Any, ceil: bool
) -> tuple:
    return (ops.max_pool2d_with_indices_backward(grads[0], x, k, s, p, d, ceil, out[1]),)


@rule("cross_entropy_forward")
def cross_entropy(
    grads: tuple, out: Any, x: tc.Tensor, target: tc.Tensor, w: Any, how: int, ignore: int, smooth: float
) -> tuple:
    return ops.cross_entropy_backward(grads[0], x, target, w, how, ignore, smooth, out[1], out[2]), None, None


@rule("nll_loss_forward")
def nll_loss(grads: tuple, out: Any, x: tc.Tensor, target: tc.Tensor, w: Any, how: int, ignore: int) -> tuple:
    return ops.nll_loss_backward(grads[0], x, target, w, how, ignore, out[1]), None, None


@rule("cat")
def cat(grads: tuple, out_like: Any, tensors_like: list, dim: int) -> tuple:
    found, at = [], 0
    for t in tensors_like:
        n = t.shape[dim] if t.dim() == out_like[0].dim() else 0
        found.append(grads[0].narrow(dim, at, n) if n else zeros(t))
        at += n
    return tuple(found)


@rule("amax", "amin")
def extreme(grads: tuple, out: Any, x: tc.Tensor, dim: Any, keep: bool) -> tuple:
    hit = (x == spread(out[0], x, dim, keep)).to(grads[0].dtype)
    count = hit.sum(list(range(x.dim())) if dim is None else list(dim), keepdim=True) if x.dim() else hit
    return (spread(grads[0], x, dim, keep) * hit / count,)


@rule("max.dim", "min.dim")
def extreme_at(grads: tuple, out: Any, x_like: Any, dim: int, keep: bool) -> tuple:
    g, at = (grads[0], out[1]) if keep else (grads[0].unsqueeze(dim), out[1].unsqueeze(dim))
    return (zeros(x_like).scatter_add(dim, at, g),)
