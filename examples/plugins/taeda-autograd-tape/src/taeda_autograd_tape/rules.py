"""Derivatives: for each operator a function of the gradients, the arguments and the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda_tensor_core as tc

ops = tc.ops
RULES: dict[str, Callable] = {}


def rule(*names: str) -> Callable[[Callable], Callable]:
    """`f(grads, out, *arguments)` gives the gradients of the tensor arguments, in their order."""

    def take(f: Callable) -> Callable:
        for name in names:
            RULES[name] = f
        return f

    return take


def simple(**table: Callable) -> None:
    """Rules of one result: `f(grad, out, *arguments)`; a single gradient may come without its tuple."""
    for name, f in table.items():

        def run(grads: tuple, out: tuple, *args: Any, f: Callable = f) -> tuple:
            found = f(grads[0], out[0], *args)
            return found if isinstance(found, tuple) else (found,)

        RULES[name] = run


simple(
    add=lambda g, y, a, b, alpha: (g, g * alpha),
    sub=lambda g, y, a, b, alpha: (g, g * -alpha),
    mul=lambda g, y, a, b: (g * b, g * a),
    div=lambda g, y, a, b: (g / b, -g * y / b),
    pow=lambda g, y, a, b: (g * b * a ** (b - 1), g * y * a.log()),
    neg=lambda g, y, a: -g,
    exp=lambda g, y, a: g * y,
    log=lambda g, y, a: g / a,
    log1p=lambda g, y, a: g / (a + 1),
    expm1=lambda g, y, a: g * (y + 1),
    sqrt=lambda g, y, a: g / (2 * y),
    rsqrt=lambda g, y, a: g * -0.5 * y**3,
    square=lambda g, y, a: g * 2 * a,
    reciprocal=lambda g, y, a: -g * y * y,
    abs=lambda g, y, a: g * a.sgn(),
    sin=lambda g, y, a: g * a.cos(),
    cos=lambda g, y, a: -g * a.sin(),
    tanh=lambda g, y, a: g * (1 - y * y),
    sigmoid=lambda g, y, a: g * y * (1 - y),
    relu=lambda g, y, a: g * (y > 0).to(g.dtype),
    silu=lambda g, y, a: g * (a.sigmoid() * (1 + a * (1 - a.sigmoid()))),
    gelu=lambda g, y, a, approximate: ops.gelu_backward(g, a, approximate=approximate),
    leaky_relu=lambda g, y, a, slope: ops.leaky_relu_backward(g, a, slope),
    softplus=lambda g, y, a, beta, threshold: ops.softplus_backward(g, a, beta, threshold),
    clamp=lambda g, y, a, low, high: (
        g * ((a >= (low if low is not None else a)) & (a <= (high if high is not None else a))).to(g.dtype)
    ),
    where=lambda g, y, c, a, b: (None, tc.where(c, g, tc.zeros_like(g)), tc.where(c, tc.zeros_like(g), g)),
    masked_fill=lambda g, y, a, m, v: (g.masked_fill(m, 0), None, None),
    maximum=lambda g, y, a, b: (
        g * ((a > b).to(g.dtype) + (a == b).to(g.dtype) / 2),
        g * ((b > a).to(g.dtype) + (a == b).to(g.dtype) / 2),
    ),
    minimum=lambda g, y, a, b: (
        g * ((a < b).to(g.dtype) + (a == b).to(g.dtype) / 2),
        g * ((b < a).to(g.dtype) + (a == b).to(g.dtype) / 2),
    ),
    cast=lambda g, y, a, dtype: g,
    clone=lambda g, y, a, layout: g,
    mm=lambda g, y, a, b: (g @ b.t(), a.t() @ g),
    bmm=lambda g, y, a, b: (g @ b.transpose(1, 2), a.transpose(1, 2) @ g),
    mv=lambda g, y, a, b: (g.unsqueeze(1) * b, a.t() @ g),
    dot=lambda g, y, a, b: (g * b, g * a),
    addmm=lambda g, y, s, a, b, beta, alpha: (g * beta, (g @ b.t()) * alpha, (a.t() @ g) * alpha),
    view=lambda g, y, a, size: g.reshape(a.shape),
    permute=lambda g, y, a, dims: g.permute(
        [sorted(range(len(dims)), key=lambda i: dims[i] % len(dims))[i] for i in range(len(dims))]
    ),
    transpose=lambda g, y, a, i, j: g.transpose(i, j),
    expand=lambda g, y, a, size, implicit: g,
    unsqueeze=lambda g, y, a, dim: g.reshape(a.shape),
    squeeze=lambda g, y, a: g.reshape(a.shape),
    select=lambda g, y, a, dim, i: embed(g, a, lambda z: z.select(dim, i)),
    slice=lambda g, y, a, dim, start, stop, step: embed(g, a, lambda z: ops.slice(z, dim, start, stop, step)),
    sum=lambda g, y, a, dim, keep, dtype: spread(g, a, dim, keep),
    mean=lambda g, y, a, dim, keep, dtype: spread(g, a, dim, keep) * (max(y.numel(), 1) / max(a.numel(), 1)),
    softmax=lambda g, y, a, dim, dtype: y * (g - (g * y).sum(dim, keepdim=True)),
    log_softmax=lambda g, y, a, dim, dtype: g - y.exp() * g.sum(dim, keepdim=True),
    mse_loss=lambda g, y, a, b, how: signed(ops.mse_loss_backward(g, a, b, how)),
    l1_loss=lambda g, y, a, b, how: signed(ops.l1_loss_backward(g, a, b, how)),
    bce_with_logits_loss=lambda g, y, a, b, how: (ops.bce_with_logits_loss_backward(g, a, b, how), None),
    embedding=lambda g, y, w, at, pad, freq, sparse: (
        ops.embedding_backward(g, at, w.shape[0], pad, freq),
        None,
    ),
    avg_pool2d=lambda g, y, a, *rest: ops.avg_pool2d_backward(g, a, *rest),
    adaptive_avg_pool2d=lambda g, y, a, size: ops.adaptive_avg_pool2d_backward(g, a),
    index_select=lambda g, y, a, dim, at: (tc.zeros_like(a).index_add(dim, at, g), None),
    gather=lambda g, y, a, dim, at, sparse: (tc.zeros_like(a).scatter_add(dim, at, g), None),
)


def signed(g: tc.Tensor) -> tuple:
    return g, -g


def embed(g: tc.Tensor, like: tc.Tensor, part: Callable) -> tc.Tensor:
    """`g` at the place that `part` shows of a tensor, zero elsewhere."""
    out = tc.zeros(like.shape, dtype=g.dtype, device=g.device)
    part(out).copy_(g)
    return out


def spread(g: tc.Tensor, like: tc.Tensor, dim: tuple | None, keep: bool) -> tc.Tensor:
    """A reduction's gradient over the elements that it was made of."""
    if not keep and like.dim():
        reduced = {d % like.dim() for d in (dim or range(like.dim()))}
        g = g.reshape([1 if d in reduced else n for d, n in enumerate(like.shape)])
    return g.expand(like.shape)


@rule("linear")
def linear(grads: tuple, out: tuple, x: tc.Tensor, w: tc.Tensor, b: tc.Tensor | None) -> tuple:
    return ops.linear_backward(grads[0], x, w, 7 if b is not None else 3)


@rule("conv2d")
def conv2d(grads: tuple, out: tuple, x: tc.Tensor, w: tc.Tensor, b: tc.Tensor | None, *plan: Any) -> tuple:
    return ops.conv2d_backward(grads[0], x, w, *plan, 7 if b is not None else 3)


@rule("native_batch_norm")
def batch_norm(
    grads: tuple, out: tuple, x: tc.Tensor, w: Any, b: Any, mean: Any, var: Any, training: bool, *_: Any
) -> tuple:
    return ops.batch_norm_backward(grads[0], x, w, out[1], out[2], training, 7 if w is not None else 1)


@rule("native_layer_norm")
def layer_norm(grads: tuple, out: tuple, x: tc.Tensor, shape: tuple, w: Any, b: Any, eps: float) -> tuple:
    return ops.layer_norm_backward(grads[0], x, shape, out[1], out[2], w, 7 if w is not None else 1)


@rule("native_dropout")
def dropout(grads: tuple, out: tuple, x: tc.Tensor, p: float, generator: Any) -> tuple:
    return (grads[0] * out[1].to(grads[0].dtype) * (1 / (1 - p) if p < 1 else 0.0),)


@rule("max_pool2d_with_offsets")
def max_pool2d(grads: tuple, out: tuple, x: tc.Tensor, k: Any, s: Any, p: Any, d: Any, ceil: bool) -> tuple:
    return (ops.max_pool2d_backward(grads[0], x, k, s, p, d, ceil, out[1]),)


@rule("max_pool2d_with_indices")
def max_pool2d_indices(
    grads: tuple, out: tuple, x: tc.Tensor, k: Any, s: Any, p: Any, d: Any, ceil: bool
) -> tuple:
    return (ops.max_pool2d_with_indices_backward(grads[0], x, k, s, p, d, ceil, out[1]),)


@rule("cross_entropy_forward")
def cross_entropy(
    grads: tuple, out: tuple, x: tc.Tensor, target: tc.Tensor, w: Any, how: int, ignore: int, smooth: float
) -> tuple:
    return ops.cross_entropy_backward(grads[0], x, target, w, how, ignore, smooth, out[1], out[2]), None, None


@rule("nll_loss_forward")
def nll_loss(
    grads: tuple, out: tuple, x: tc.Tensor, target: tc.Tensor, w: Any, how: int, ignore: int
) -> tuple:
    return ops.nll_loss_backward(grads[0], x, target, w, how, ignore, out[1]), None, None


@rule("cat")
def cat(grads: tuple, out: tuple, tensors: list, dim: int) -> tuple:
    found, at = [], 0
    for t in tensors:
        n = t.shape[dim] if t.dim() == out[0].dim() else 0
        found.append(grads[0].narrow(dim, at, n) if n else tc.zeros_like(t))
        at += n
    return tuple(found)


@rule("amax", "amin")
def extreme(grads: tuple, out: tuple, x: tc.Tensor, dim: Any, keep: bool) -> tuple:
    hit = (x == spread(out[0], x, dim, keep)).to(grads[0].dtype)
    count = hit.sum(list(range(x.dim())) if dim is None else list(dim), keepdim=True) if x.dim() else hit
    return (spread(grads[0], x, dim, keep) * hit / count,)


@rule("max.dim", "min.dim")
def extreme_at(grads: tuple, out: tuple, x: tc.Tensor, dim: int, keep: bool) -> tuple:
    g, at = (grads[0], out[1]) if keep else (grads[0].unsqueeze(dim), out[1].unsqueeze(dim))
    return (tc.zeros_like(x).scatter_add(dim, at, g),)
