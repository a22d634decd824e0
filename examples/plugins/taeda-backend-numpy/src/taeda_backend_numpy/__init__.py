"""A device "numpy": every core operator of taeda as a few lines of NumPy and SciPy.

import taeda_backend_numpy        # or nothing, once installed: the device is found by its name
x = taeda.ones(3, device="numpy")
"""

# ruff: noqa: E501 (tables of formulas)
import functools
import itertools
import math

import numpy as np
import scipy.special as sp

import taeda_tensor_core as tc
from taeda_tensor_core.library import Backend

backend = Backend("numpy", properties={"library": f"NumPy {np.__version__}"})
NP = {str(d).split(".")[-1]: np.dtype(str(d).split(".")[-1]) for d in
      (tc.bool, tc.int8, tc.int16, tc.int32, tc.int64, tc.uint8, tc.uint16, tc.uint32, tc.uint64, tc.float32, tc.float64,
       tc.complex64, tc.complex128)}  # fmt: skip


def compute_dtype(dtype):
    """Halves are computed in float32."""
    return NP.get(str(dtype).split(".")[-1], np.dtype(np.float32))


def A(t, dtype=None):
    """A tensor as array in the dtype to compute in; None stays None."""
    if t is None:
        return None
    a = backend.array(t)
    if t.dtype is tc.bfloat16:
        a = (a.astype(np.uint32) << 16).view(np.float32)
    return a.astype(compute_dtype(t.dtype) if dtype is None else dtype, copy=False)


def put(out, value):
    """Store a result, rounded to the tensor's dtype."""
    a, value = backend.array(out), np.asarray(value)
    if out.dtype is tc.bfloat16:
        bits = value.astype(np.float32)[...].view(np.uint32)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        value = np.where(np.isnan(value), (bits >> 16 | 0x40).astype(np.uint16), rounded)
    elif value.dtype.kind == "c" and a.dtype.kind != "c":
        value = value.real
    np.copyto(a, value.reshape(a.shape) if value.size == a.size else value, casting="unsafe")


def kernel(*names):
    """Registers `f(outputs, *inputs)`; NumPy's warnings about nan and inf are off, as PyTorch has none."""

    def take(f):
        @functools.wraps(f)
        def run(outputs, inputs):
            with np.errstate(all="ignore"):
                return f(outputs, *inputs)

        backend.kernel(*names)(run)
        return f

    return take


def elementwise(table, common=False, real=False):
    """One kernel for each `name: function of arrays`; operands meet in the output's dtype, or in their `common` one."""
    for name, f in table.items():

        @kernel(name)
        def run(o, *inputs, f=f):
            tensors = [t for t in inputs if isinstance(t, tc.Tensor)]
            dtype = compute_dtype(tc.result_type(*tensors)) if common else compute_dtype(o[0].dtype)
            put(o[0], f(*(A(t, None if real else dtype) if isinstance(t, tc.Tensor) else t for t in inputs)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x)) if x.dtype.kind == "c" else sp.expit(x)


def sgn(x):
    return np.where(x == 0, 0, x / np.abs(x)) if x.dtype.kind == "c" else np.sign(x)


def floor_divide(a, b):
    if a.dtype.kind in "iu" and np.any(b == 0):
        raise ZeroDivisionError("floor_divide: integer division by zero")
    return np.floor_divide(a, b)


def remainder(f, name):
    def run(a, b):
        if a.dtype.kind in "iu" and np.any(b == 0):
            raise ZeroDivisionError(f"{name}: integer division by zero")
        return f(a, b)

    return run


def trunc_divide(a, b):
    if a.dtype.kind in "iu":
        if np.any(b == 0):
            raise ZeroDivisionError("trunc_divide: integer division by zero")
        return ((a - np.fmod(a, b)) // b).astype(a.dtype)
    return np.trunc(a / b)


def power(a, b):
    if a.dtype.kind in "iu" and b.dtype.kind == "i" and np.any(b < 0):
        whole = np.where(b < 0, 0, b)
        odd = np.where(b % 2 == 0, 1, a)
        return np.where(b >= 0, a**whole, np.where(np.abs(a) == 1, odd, 0))
    return np.power(a, b)


def shift(f, left):
    def run(a, b):
        bits = a.dtype.itemsize * 8
        out = (b < 0) | (b >= bits)
        return np.where(out, 0 if left else np.where(a < 0, -1, 0), f(a, np.where(out, 0, b))).astype(a.dtype)

    return run


def clamp(x, low, high):
    x = x if low is None else np.maximum(x, np.asarray(low).astype(x.dtype))
    return x if high is None else np.minimum(x, np.asarray(high).astype(x.dtype))


def rounded(x, decimals):
    return np.round(x, decimals) if x.dtype.kind != "u" else x


def softplus(x, beta, threshold):
    return np.where(x * beta > threshold, x, np.logaddexp(0, x * beta) / beta)


def gelu(x, approximate):
    return (
        0.5
        * x
        * (
            1
            + (
                np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
                if approximate == "tanh"
                else sp.erf(x / math.sqrt(2))
            )
        )
    )


def gelu_backward(g, x, approximate):
    if approximate != "tanh":
        return g * (0.5 * (1 + sp.erf(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi))
    k = math.sqrt(2 / math.pi)
    t = np.tanh(k * (x + 0.044715 * x**3))
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x))


def mish_backward(g, x):
    t, s = np.tanh(np.logaddexp(0, x)), sp.expit(x)
    return g * (t + x * s * (1 - t * t))


def isclose(a, b, rtol, atol, equal_nan):
    return (
        np.isclose(a, b, rtol, atol, equal_nan)
        if a.dtype.kind in "fc"
        else np.isclose(a.astype(float), b.astype(float), rtol, atol)
    )


elementwise({n: getattr(np, n) for n in ["exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt", "square", "floor", "ceil", "trunc", "conj", "sign", "deg2rad", "rad2deg", "sinc", "copysign", "fmax", "fmin", "hypot", "logaddexp", "logaddexp2", "maximum", "minimum", "nextafter", "gcd", "lcm", "heaviside"]})  # fmt: skip
elementwise(
    {a: getattr(np, "arc" + a[1:]) for a in ["acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh"]}
)
elementwise(
    {n: getattr(sp, n) for n in ["erf", "erfc", "erfinv", "i0", "i0e", "i1", "i1e", "xlogy", "digamma"]}
)
elementwise({
    "lgamma": sp.gammaln, "sigmoid": sigmoid, "neg": np.negative, "reciprocal": lambda x: 1 / x, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sgn": sgn, "frac": lambda x: x - np.trunc(x), "relu": lambda x: np.where(x <= 0, 0, x), "round": rounded,
    "logit": lambda x, eps: sp.logit(x if eps is None else np.clip(x, eps, 1 - eps)),
    "nan_to_num": lambda x, n, p, m: np.nan_to_num(x, nan=n or 0.0, posinf=p, neginf=m) if x.dtype.kind in "fc" else x,
    "add": lambda a, b, k: np.logical_or(a, b & bool(k)) if a.dtype == bool else a + np.asarray(k).astype(a.dtype) * b,
    "sub": lambda a, b, k: a - np.asarray(k).astype(a.dtype) * b, "mul": np.multiply, "div": np.divide, "pow": power,
    "floor_divide": floor_divide, "trunc_divide": trunc_divide, "fmod": remainder(np.fmod, "fmod"),
    "remainder": remainder(np.remainder, "remainder"), "lerp": lambda a, b, w: np.where(np.abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w)),
    "addcdiv": lambda s, a, b, k: s + k * (a / b), "addcmul": lambda s, a, b, k: s + np.asarray(k).astype(s.dtype) * a * b,
    "clamp": clamp, "clamp_min": np.maximum, "clamp_max": np.minimum, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor, "bitwise_not": np.invert, "bitwise_left_shift": shift(np.left_shift, True),
    "bitwise_right_shift": shift(np.right_shift, False), "gelu": gelu, "gelu_backward": gelu_backward, "mish_backward": mish_backward,
    "elu": lambda x, a, s, i: np.where(x > 0, s * x, a * s * np.expm1(np.minimum(i * x, 0))),
    "elu_backward": lambda g, x, a, s, i: g * np.where(x > 0, s, a * s * i * np.exp(np.minimum(i * x, 0))),
    "hardshrink": lambda x, k: np.where(np.abs(x) <= k, 0, x), "softshrink": lambda x, k: np.where(np.abs(x) <= k, 0, x - np.sign(x) * k),
    "shrink_backward": lambda g, x, k: np.where(np.abs(x) <= k, 0, g), "hardsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hardsigmoid_backward": lambda g, x: np.where(np.abs(x) < 3, g / 6, 0), "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardswish_backward": lambda g, x: g * np.where(x <= -3, 0, np.where(x >= 3, 1, x / 3 + 0.5)),
    "hardtanh": np.clip, "hardtanh_backward": lambda g, x, a, b: np.where((x > a) & (x < b), g, 0),
    "leaky_relu": lambda x, k: np.where(x > 0, x, k * x), "leaky_relu_backward": lambda g, x, k: np.where(x > 0, g, k * g),
    "logsigmoid": lambda x: -np.logaddexp(0, -x), "logsigmoid_backward": lambda g, x: g * sp.expit(-x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)), "sigmoid_backward": lambda g, y: g * np.conj(y * (1 - y)),
    "tanh_backward": lambda g, y: g * np.conj(1 - y * y), "silu": lambda x: x * sp.expit(x),
    "silu_backward": lambda g, x: g * sp.expit(x) * (1 + x * (1 - sp.expit(x))), "softplus": softplus,
    "softplus_backward": lambda g, x, b, t: np.where(x * b > t, g, g * sp.expit(x * b)),
    "threshold": lambda x, t, v: np.where(x <= t, np.asarray(v).astype(x.dtype), x),
    "threshold_backward": lambda g, x, t: np.where(x <= t, 0, g), "native_dropout_backward": lambda g, m, s: g * m * s,
})  # fmt: skip
elementwise({"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
             "isclose": isclose}, common=True)  # fmt: skip
elementwise({"abs": np.abs, "angle": lambda x: np.where(np.isnan(x), x, np.angle(x)) if x.dtype.kind != "c" else np.angle(x), "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "signbit": np.signbit,
             "isposinf": lambda x: x == np.inf, "isneginf": lambda x: x == -np.inf, "cast": lambda x, _: x, "clone": lambda x, _: x,
             "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor, "logical_not": np.logical_not,
             "where": lambda c, a, b: np.where(c.astype(bool), a, b), "masked_fill": lambda x, m, v: np.where(m, v.astype(x.dtype), x),
             "tril": np.tril, "triu": np.triu}, real=True)  # fmt: skip


@kernel("copy_same_")
def copy(_, to, src):
    put(to, np.broadcast_to(A(src), tuple(to.shape)))


@kernel("fill_")
def fill(_, to, value):
    put(to, np.broadcast_to(A(value), tuple(to.shape)))


@kernel("arange_fill_")
def arange(_, to, start, step):
    put(
        to,
        np.asarray(start, compute_dtype(to.dtype))
        + np.arange(to.numel()).astype(compute_dtype(to.dtype)) * np.asarray(step, compute_dtype(to.dtype)),
    )


def axes(x, dim):
    return (
        tuple(range(x.ndim))
        if dim is None or dim == ()
        else tuple(d % max(x.ndim, 1) for d in dim)
        if x.ndim
        else ()
    )


def over(table, same=True):
    """Reductions `f(x, axes, keepdims)`; `same`: computed in the output's dtype."""
    for name, f in table.items():

        @kernel(name)
        def run(o, x, dim, keep, *rest, f=f):
            x = A(x, compute_dtype(o[0].dtype) if same else None)
            put(o[0], f(x, axes(x, dim), keep, *rest))


def variance(x, dim, keepdim, unbiased, correction):
    n = math.prod(x.shape[d] for d in dim)
    correction = float(unbiased) if correction is None else correction
    deviation = np.abs(x - x.mean(axis=dim, keepdims=True)) ** 2
    return deviation.sum(axis=dim, keepdims=keepdim) / np.float64(max(n - correction, 0))


def norm(x, dim, keep, order):
    x = np.abs(x)
    if order == math.inf or order == -math.inf:
        return (x.max if order > 0 else x.min)(axis=dim, keepdims=keep)
    if order == 0:
        return (x != 0).sum(axis=dim, keepdims=keep)
    return (x**order).sum(axis=dim, keepdims=keep) ** (1 / order)


def logsumexp(x, dim, keep=True):
    return sp.logsumexp(x, axis=dim, keepdims=keep)


over({"sum": lambda x, d, k, _: x.sum(axis=d, keepdims=k), "prod": lambda x, d, k, _: x.prod(axis=d, keepdims=k),
      "mean": lambda x, d, k, _: x.mean(axis=d, keepdims=k), "amax": lambda x, d, k: x.max(axis=d, keepdims=k),
      "amin": lambda x, d, k: x.min(axis=d, keepdims=k)})  # fmt: skip
over(
    {
        "all": lambda x, d, k: x.astype(bool).all(axis=d, keepdims=k),
        "any": lambda x, d, k: x.astype(bool).any(axis=d, keepdims=k),
    },
    same=False,
)


@kernel("var")
def var(o, x, dim, unbiased, keep, correction):
    x = A(x)
    put(o[0], variance(x, axes(x, dim), keep, unbiased, correction))


@kernel("vector_norm")
def vector_norm(o, x, order, dim, keep, dtype):
    x = A(x, None if dtype is None else compute_dtype(dtype))
    put(o[0], norm(x, axes(x, dim), keep, order))


def extremes(name, pick):
    @kernel(name)
    def run(o, x, dim, keep):
        x, outs = A(x), o[-1]
        at = (
            np.expand_dims(pick(x), 0)
            if dim is None or x.ndim == 0
            else np.expand_dims(pick(x, axis=dim), dim)
        )
        put(outs, at)
        if len(o) == 2:
            put(o[0], x if x.ndim == 0 else np.take_along_axis(x, at, dim))


for reduce, choose in {
    "argmax": np.argmax,
    "max.dim": np.argmax,
    "argmin": np.argmin,
    "min.dim": np.argmin,
}.items():
    extremes(reduce, choose)


def scan(name, f):
    @kernel(name)
    def run(o, x, dim, *_):
        x = A(x, compute_dtype(o[0].dtype))
        put(o[0], f(x, dim) if x.ndim else x)


scan("cumsum", lambda x, d: np.cumsum(x, axis=d, dtype=x.dtype))
scan("cumprod", lambda x, d: np.cumprod(x, axis=d, dtype=x.dtype))
scan("logcumsumexp", lambda x, d: np.logaddexp.accumulate(x, axis=d))


def running(name, better):
    @kernel(name)
    def run(o, x, dim):
        x = np.atleast_1d(A(x))
        moved, at = np.moveaxis(x, dim, 0), np.zeros(np.moveaxis(x, dim, 0).shape, np.int64)
        best = moved.copy()
        for i in range(1, len(moved)):
            new = (
                better(moved[i], best[i - 1]) | np.isnan(moved[i])
                if x.dtype.kind == "f"
                else better(moved[i], best[i - 1])
            )
            new &= ~np.isnan(best[i - 1]) | np.isnan(moved[i]) if x.dtype.kind == "f" else True
            best[i], at[i] = np.where(new, moved[i], best[i - 1]), np.where(new, i, at[i - 1])
        put(o[0], np.moveaxis(best, 0, dim))
        put(o[1], np.moveaxis(at, 0, dim))


running("cummax", np.greater_equal)
running("cummin", np.less_equal)


def order(x, dim, descending):
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    n = x.shape[dim]
    return n - 1 - np.flip(np.argsort(np.flip(x, dim), axis=dim, kind="stable"), dim)


@kernel("sort", "topk")
def sort(o, x, *rest):
    k, dim, descending = (
        (None, *rest[:2])
        if (len(rest) == 3 and not isinstance(rest[1], int | None)) or isinstance(rest[1], bool)
        else rest[:3]
    )
    x = np.atleast_1d(A(x))
    at = order(x, dim, descending)
    at = at if k is None else np.take(at, np.arange(k), axis=dim)
    put(o[0], np.take_along_axis(x, at, dim))
    put(o[1], at)


def made(value, dtype):
    """A new tensor on this device, for kernels that return their results."""
    value = np.asarray(value)
    out = tc.empty(value.shape, dtype=dtype, device="numpy")
    put(out, value)
    return out


@kernel("unique_all")
def unique_all(_, x):
    found = np.unique(A(x), return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    return made(found[0], x.dtype), *(
        made(v.reshape(x.shape) if i == 1 else v, tc.int64) for i, v in enumerate(found[1:])
    )


@kernel("nonzero")
def nonzero(_, x):
    return made(np.argwhere(A(x)) if x.dim() else np.zeros((int(bool(A(x))), 0)), tc.int64)


def places(x, indices):
    for i in (i for i in indices if i is not None):
        if i.dtype not in (tc.bool, tc.int64, tc.int32, tc.int16, tc.int8, tc.uint8):
            raise IndexError(f"index: tensors used as indices must be integer or bool, found {i.dtype}")
    return tuple(slice(None) if i is None else A(i) for i in indices)


@kernel("index")
def index(_, x, indices):
    return made(A(x)[places(x, indices)], x.dtype)


@kernel("index_put_")
def index_put(_, x, indices, values, accumulate):
    a, at = A(x).copy(), places(x, indices)
    if accumulate:
        np.add.at(a, at, A(values, a.dtype))
    else:
        a[at] = A(values, a.dtype)
    put(x, a)


def along(x, dim, at):
    """Indices for which x[...] is like gather's along `dim`."""
    grid = list(np.ogrid[tuple(slice(n) for n in at.shape)])
    if at.ndim:
        grid[dim] = at
    return tuple(grid)


def checked(at, n, name):
    if at.size and (at.min() < 0 or at.max() >= n):
        raise IndexError(
            f"{name}: index {at.min() if at.min() < 0 else at.max()} is out of range for size {n}"
        )
    return at


@kernel("gather")
def gather(o, x, dim, at, _):
    x = np.atleast_1d(A(x))
    at = np.atleast_1d(A(at))
    put(o[0], x[along(x, dim, checked(at, x.shape[dim], "gather"))])


def scatters(name, add):
    @kernel(name)
    def run(o, x, dim, at, src):
        x, at = np.atleast_1d(A(x)).copy(), np.atleast_1d(A(at))
        if isinstance(src, tc.Tensor):
            src = np.atleast_1d(A(src, x.dtype))[tuple(slice(n) for n in at.shape)]
        to = along(x, dim, checked(at, x.shape[dim], name))
        if add:
            np.add.at(x, to, src)
        else:
            x[to] = src
        put(o[0], x)


for put_name in ("scatter", "scatter.value", "scatter_add"):
    scatters(put_name, put_name == "scatter_add")


@kernel("index_select")
def index_select(o, x, dim, at):
    x = np.atleast_1d(A(x))
    put(o[0], np.take(x, checked(np.atleast_1d(A(at)), x.shape[dim], "index_select"), axis=dim))


def index_writes(name, write):
    @kernel(name)
    def run(o, x, dim, at, value, alpha=1):
        x = np.atleast_1d(A(x)).copy()
        moved = np.moveaxis(x, dim, 0)
        v = (
            np.atleast_1d(A(value, x.dtype))
            if name == "index_fill"
            else np.moveaxis(np.atleast_1d(A(value, x.dtype)), dim, 0)
        )
        write(moved, checked(np.atleast_1d(A(at)), len(moved), name), v, np.asarray(alpha).astype(x.dtype))
        put(o[0], x)


index_writes("index_add", lambda x, at, v, k: np.add.at(x, at, k * v))
index_writes("index_copy", lambda x, at, v, k: x.__setitem__(at, v))
index_writes("index_fill", lambda x, at, v, k: x.__setitem__(at, v.reshape(())))


@kernel("cat")
def cat(o, tensors, dim):
    parts = [
        A(t, compute_dtype(o[0].dtype)) for t in tensors if tuple(t.shape) != (0,) or len(o[0].shape) == 1
    ]
    put(o[0], np.concatenate(parts, axis=dim))


def scaled(k, s):
    return 0 if k == 0 else k * s


def product(name, f):
    @kernel(name)
    def run(o, *inputs):
        dtype = compute_dtype(o[0].dtype)
        put(o[0], f(*(A(t, dtype) if isinstance(t, tc.Tensor) else t for t in inputs)))


for name in ("mm", "bmm", "mv", "dot"):
    product(name, np.matmul)
for name in ("addmm", "addmv", "baddbmm"):
    product(name, lambda s, a, b, beta, alpha: np.asarray(scaled(beta, s) + alpha * (a @ b)).astype(a.dtype))
product("linear", lambda x, w, b: x @ w.T + (0 if b is None else b))


@kernel("linear_backward")
def linear_backward(_, g, x, w, mask):
    ga, xa, wa = A(g), A(x), A(w)
    rows = ga.reshape(-1, ga.shape[-1])
    return (made(ga @ wa, x.dtype) if mask & 1 else None, made(rows.T @ xa.reshape(len(rows), xa.shape[-1]), w.dtype) if mask & 2 else None,
            made(rows.sum(0), g.dtype) if mask & 4 else None)  # fmt: skip


def pair(v, n=2):
    return tuple(v) * n if len(v) == 1 else tuple(v)


def windows(x, kernel_size, stride, dilation):
    """(N, C, OH, OW, KH, KW) view of a padded (N, C, H, W)."""
    span = [d * (k - 1) + 1 for k, d in zip(kernel_size, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, span, axis=(-2, -1))
    return view[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def padded(x, padding, value=0, more=(0, 0)):
    return np.pad(
        x, [(0, 0), (0, 0), *((p, p + m) for p, m in zip(padding, more, strict=True))], constant_values=value
    )


def fold(g, shape, kernel_size, stride, padding, dilation, more=(0, 0)):
    """Sums windows (N, C, OH, OW, KH, KW) back to the places they came from."""
    big = np.zeros(
        (*shape[:2], *(n + 2 * p + m for n, p, m in zip(shape[2:], padding, more, strict=True))), g.dtype
    )
    for i, j in itertools.product(*map(range, kernel_size)):
        big[:, :, i * dilation[0] :, j * dilation[1] :][
            :, :, : g.shape[2] * stride[0] : stride[0], : g.shape[3] * stride[1] : stride[1]
        ] += g[..., i, j]
    return big[:, :, padding[0] : padding[0] + shape[2], padding[1] : padding[1] + shape[3]]


def grouped(x, groups):
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])


@kernel("conv2d")
def conv2d(o, x, w, b, stride, padding, dilation, groups):
    dtype = compute_dtype(o[0].dtype)
    x, w, b, stride, padding, dilation = (
        A(x, dtype),
        A(w, dtype),
        A(b, dtype),
        pair(stride),
        pair(padding),
        pair(dilation),
    )
    view = grouped(windows(padded(x, padding), w.shape[2:], stride, dilation), groups)
    y = np.einsum("ngcxyij,gocij->ngoxy", view, w.reshape(groups, -1, *w.shape[1:]), optimize=True)
    y = y.reshape(y.shape[0], -1, *y.shape[3:])
    put(o[0], y if b is None else y + b[:, None, None])


@kernel("conv2d_backward")
def conv2d_backward(_, g, x, w, stride, padding, dilation, groups, mask):
    ga, xa, wa, stride, padding, dilation = A(g), A(x), A(w), pair(stride), pair(padding), pair(dilation)
    gg, wg, size = grouped(ga, groups), wa.reshape(groups, -1, *wa.shape[1:]), wa.shape[2:]
    gx = gw = gb = None
    if mask & 1:
        cols = np.einsum("ngoxy,gocij->ngcxyij", gg, wg, optimize=True)
        gx = made(
            fold(cols.reshape(cols.shape[0], -1, *cols.shape[3:]), xa.shape, size, stride, padding, dilation),
            x.dtype,
        )
    if mask & 2:
        view = grouped(windows(padded(xa, padding), size, stride, dilation), groups)
        view = view[:, :, :, : ga.shape[2], : ga.shape[3]]
        gw = made(np.einsum("ngoxy,ngcxyij->gocij", gg, view, optimize=True).reshape(wa.shape), w.dtype)
    if mask & 4:
        gb = made(ga.sum((0, 2, 3)), g.dtype)
    return gx, gw, gb


# --- softmax, dropout, embedding ---


def rows(name, f):
    @kernel(name)
    def run(o, *inputs):
        *tensors, dim = inputs[: 3 if name.endswith("backward") else 2]
        dtype = compute_dtype(o[0].dtype)
        put(o[0], f(*(np.atleast_1d(A(t, dtype)) for t in tensors), dim))


rows("softmax", lambda x, d: sp.softmax(x, axis=d))
rows("log_softmax", lambda x, d: x - logsumexp(x, d))
rows("softmax_backward", lambda g, y, d: y * (g - (g * y).sum(axis=d, keepdims=True)))
rows("log_softmax_backward", lambda g, y, d: g - np.exp(y) * g.sum(axis=d, keepdims=True))


def stream(generator):
    """NumPy's generator, seeded by a draw from taeda's: manual_seed makes both repeatable."""
    return np.random.default_rng(tc.empty((), dtype=tc.int64).random_(0, 2**62, generator=generator).item())


@kernel("native_dropout")
def native_dropout(o, x, p, generator):
    keep = stream(generator).random(tuple(x.shape)) >= p
    put(o[0], np.where(keep, A(x) / (1 - p) if p < 1 else 0, 0))
    put(o[1], keep)


def draws(table):
    for name, f in table.items():

        @kernel(name)
        def run(_, to, *rest, f=f):
            *values, generator = rest
            put(to, f(stream(generator), tuple(to.shape), *values))


def between(r, size, to, low, high):
    low, high = (0, low) if high is None and low is not None else (low or 0, high)
    bits = {tc.bool: 1, tc.float16: 11, tc.bfloat16: 8, tc.float32: 24, tc.float64: 53}.get(to.dtype)
    top = 2**bits + (bits > 1) if bits else np.iinfo(NP[str(to.dtype).split(".")[-1]]).max + 1
    return r.integers(low, min(top, 2**63) if high is None else high, size)


draws({"normal_": lambda r, s, m, d: r.normal(m, d, s), "uniform_": lambda r, s, a, b: a + (b - a) * r.random(s),
       "bernoulli_": lambda r, s, p: r.random(s) < p, "exponential_": lambda r, s, k: r.exponential(1 / k, s),
       "geometric_": lambda r, s, p: r.geometric(p, s), "cauchy_": lambda r, s, m, k: m + k * r.standard_cauchy(s)})  # fmt: skip


@kernel("random_")
def random(_, to, low, high, generator):
    put(to, between(stream(generator), tuple(to.shape), to, low, high))


@kernel("poisson")
def poisson(_, x, generator):
    return made(stream(generator).poisson(A(x)), x.dtype)


@kernel("multinomial")
def multinomial(_, x, count, replacement, generator):
    r, p = stream(generator), np.atleast_2d(A(x, np.float64))
    out = (
        np.stack([r.choice(len(row), count, replacement, row / row.sum()) for row in p])
        if len(p)
        else np.zeros((0, count))
    )
    return made(out.reshape(*x.shape[:-1], count), tc.int64)


@kernel("embedding")
def embedding(o, w, at, *_):
    put(o[0], A(w)[checked(A(at), w.shape[0], "embedding")])


@kernel("embedding_backward")
def embedding_backward(o, g, at, count, padding, by_frequency):
    at, total = A(at).reshape(-1), np.zeros((count, g.shape[-1]), compute_dtype(g.dtype))
    g = A(g).reshape(-1, g.shape[-1]) / (
        np.bincount(at, minlength=count)[at][:, None] if by_frequency and at.size else 1
    )
    np.add.at(total, at[at != padding], g[at != padding])
    put(o[0], total)


# --- losses ---


def reduced(v, how):
    return v if how == 0 else v.mean() if how == 1 else v.sum()


def bce_slope(x, t):
    return (x - t) / np.maximum(x * (1 - x), 1e-12)


def losses(table):
    for name, (value, slope) in table.items():

        @kernel(name)
        def forward(o, x, t, how, *rest, f=value):
            dtype = compute_dtype(o[0].dtype)
            put(o[0], reduced(f(A(x, dtype), A(t, dtype), *rest), how))

        @kernel(name + "_backward")
        def backward(o, g, x, t, how, *rest, f=slope):
            dtype = compute_dtype(o[0].dtype)
            d = f(A(x, dtype), A(t, dtype), *rest)
            put(o[0], A(g, dtype) * d / (max(d.size, 1) if how == 1 else 1))


losses({
    "mse_loss": (lambda x, t: (x - t) ** 2, lambda x, t: 2 * (x - t)),
    "l1_loss": (lambda x, t: np.abs(x - t), lambda x, t: np.sign(x - t)),
    "smooth_l1_loss": (lambda x, t, b: np.where(np.abs(x - t) < b, 0.5 * (x - t) ** 2 / (b or 1), np.abs(x - t) - 0.5 * b),
                       lambda x, t, b: np.where(np.abs(x - t) < b, (x - t) / (b or 1), np.sign(x - t))),
    "huber_loss": (lambda x, t, k: np.where(np.abs(x - t) <= k, 0.5 * (x - t) ** 2, k * (np.abs(x - t) - 0.5 * k)),
                   lambda x, t, k: np.clip(x - t, -k, k)),
    "bce_loss": (lambda x, t: -(t * np.maximum(np.log(x), -100) + (1 - t) * np.maximum(np.log1p(-x), -100)), bce_slope),
    "bce_with_logits_loss": (lambda x, t: np.logaddexp(0, x) - x * t, lambda x, t: sp.expit(x) - t),
})  # fmt: skip


def classes(x, target, weight, ignore, name):
    """Scores with the classes last, safe targets, and the weight of each."""
    x, t = (x[None], np.atleast_1d(A(target))) if x.ndim == 1 else (np.moveaxis(x, 1, -1), A(target))
    kept = t != ignore
    w = np.ones(x.shape[-1], x.dtype) if weight is None else A(weight, x.dtype)
    safe = checked(np.where(kept, t, 0), x.shape[-1], name) if t.size else t
    return x, safe, np.where(kept, w[safe] if t.size else 0, 0).astype(x.dtype), w, kept


def class_loss(o, loss, w, how):
    total = w.sum()
    put(o[-1], total)
    put(o[0], loss.reshape(tuple(o[0].shape)) if how == 0 else loss.sum() / (total if how == 1 else 1))


@kernel("nll_loss_forward")
def nll_loss_forward(o, x, target, weight, how, ignore):
    x, t, w, _, _ = classes(A(x), target, weight, ignore, "nll_loss")
    class_loss(o, -w * np.take_along_axis(x, t[..., None], -1)[..., 0], w, how)


@kernel("cross_entropy_forward")
def cross_entropy_forward(o, x, target, weight, how, ignore, smooth):
    x, t, w, each, kept = classes(A(x), target, weight, ignore, "cross_entropy")
    lse = logsumexp(x, -1)
    loss = (1 - smooth) * w * (lse - np.take_along_axis(x, t[..., None], -1))[
        ..., 0
    ] + kept * smooth / x.shape[-1] * (each * (lse - x)).sum(-1)
    put(o[1], lse.reshape(tuple(o[1].shape)))
    class_loss(o, loss, w, how)


def class_slope(o, g, d, how, total, like):
    up = A(g)
    d = d * (up.reshape(*d.shape[:-1], 1) if how == 0 else up / (A(total) if how == 1 else 1))
    put(o[0], d.reshape(tuple(like.shape)) if like.dim() == 1 else np.moveaxis(d, -1, 1))


@kernel("nll_loss_backward")
def nll_loss_backward(o, g, like, target, weight, how, ignore, total):
    x, t, w, _, _ = classes(A(like), target, weight, ignore, "nll_loss")
    d = np.zeros_like(x)
    np.put_along_axis(d, t[..., None], -w[..., None], -1)
    class_slope(o, g, d, how, total, like)


@kernel("cross_entropy_backward")
def cross_entropy_backward(o, g, like, target, weight, how, ignore, smooth, _, total):
    x, t, w, each, kept = classes(A(like), target, weight, ignore, "cross_entropy")
    p, hot = sp.softmax(x, -1), np.zeros_like(x)
    np.put_along_axis(hot, t[..., None], 1, -1)
    d = (1 - smooth) * w[..., None] * (p - hot) + kept[..., None] * smooth / x.shape[-1] * (
        each.sum() * p - each
    )
    class_slope(o, g, d, how, total, like)


# --- normalisation ---


def normalised(o, x, axis, w, b, eps, save=None, mean=None, variance_=None):
    mean = x.mean(axis=axis, keepdims=True) if mean is None else mean
    inv = 1 / np.sqrt((x.var(axis=axis, keepdims=True) if variance_ is None else variance_) + eps)
    y = (x - mean) * inv
    put(o[0], (y if save is None else y.reshape(save)) * (1 if w is None else w) + (0 if b is None else b))
    put(o[1], mean)
    put(o[2], inv)
    return mean


def slopes(g, x, mean, inv, w, axis, over, mask, training=True):
    """Gradients of input, weight and bias; statistics over `axis`, weight and bias summed `over` the others."""
    xhat = (x - mean) * inv
    gw = g if w is None else g * w
    gx = (
        inv * (gw - gw.mean(axis=axis, keepdims=True) - xhat * (gw * xhat).mean(axis=axis, keepdims=True))
        if training
        else inv * gw
    )
    return [
        v if mask >> i & 1 else None for i, v in enumerate((gx, (g * xhat).sum(axis=over), g.sum(axis=over)))
    ]


def channel(v, n):
    return None if v is None else A(v).reshape(1, -1, *[1] * (n - 2))


@kernel("native_batch_norm")
def native_batch_norm(o, x, w, b, mean, var_, training, momentum, eps):
    a, n = A(x), x.dim()
    axis = tuple(d for d in range(n) if d != 1)
    stats = (None, None) if training or mean is None else (channel(mean, n), channel(var_, n))
    normalised(o, a, axis, channel(w, n), channel(b, n), eps, None, *stats)
    if training and mean is not None:
        put(mean, (1 - momentum) * A(mean) + momentum * a.mean(axis))
        put(var_, (1 - momentum) * A(var_) + momentum * a.var(axis, ddof=1))


@kernel("batch_norm_backward")
def batch_norm_backward(_, g, x, w, mean, inv, training, mask):
    axis = tuple(d for d in range(x.dim()) if d != 1)
    parts = slopes(
        A(g),
        A(x),
        channel(mean, x.dim()),
        channel(inv, x.dim()),
        channel(w, x.dim()),
        axis,
        axis,
        mask,
        training,
    )
    return tuple(None if v is None else made(v, t.dtype) for v, t in zip(parts, (x, mean, mean), strict=True))


@kernel("native_layer_norm")
def native_layer_norm(o, x, shape, w, b, eps):
    normalised(o, A(x), tuple(range(x.dim() - len(shape), x.dim())), A(w), A(b), eps)


@kernel("layer_norm_backward")
def layer_norm_backward(_, g, x, shape, mean, inv, w, mask):
    lead = x.dim() - len(shape)
    parts = slopes(A(g), A(x), A(mean), A(inv), A(w), tuple(range(lead, x.dim())), tuple(range(lead)), mask)
    return tuple(None if v is None else made(v, x.dtype) for v in parts)


@kernel("native_group_norm")
def native_group_norm(o, x, groups, w, b, eps):
    normalised(
        o,
        A(x).reshape(x.shape[0], groups, -1),
        2,
        channel(w, x.dim()),
        channel(b, x.dim()),
        eps,
        tuple(x.shape),
    )


@kernel("group_norm_backward")
def group_norm_backward(_, g, x, groups, mean, inv, w, mask):
    ga, xa, n = A(g), A(x), x.dim()
    flat = (x.shape[0], groups, -1)
    weighted = (ga if w is None else ga * channel(w, n)).reshape(flat)
    m, i = A(mean)[..., None], A(inv)[..., None]
    gx = slopes(weighted, xa.reshape(flat), m, i, None, 2, 0, 1)[0].reshape(xa.shape)
    xhat, axis = ((xa.reshape(flat) - m) * i).reshape(xa.shape), tuple(d for d in range(n) if d != 1)
    parts = (gx, (ga * xhat).sum(axis), ga.sum(axis))
    return tuple(made(v, x.dtype) if mask >> k & 1 else None for k, v in enumerate(parts))


# --- pooling ---


def four(x):
    return x if x.ndim == 4 else x[None]


def pool_plan(x, kernel_size, stride, padding, dilation, out):
    """Everything as pairs, and how much more must be padded at the end for windows that ceil_mode adds."""
    k, p, d = pair(kernel_size), pair(padding), pair(dilation)
    s = pair(stride) if stride else k
    more = tuple(
        max(0, (n_out - 1) * s[i] + d[i] * (k[i] - 1) + 1 - (x.shape[2 + i] + 2 * p[i]))
        for i, n_out in enumerate(out)
    )
    return k, s, p, d, more


def least(dtype):
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def flat_windows(x, k, s, p, d, more, out, value):
    v = windows(padded(x, p, value, more), k, s, d)[:, :, : out[0], : out[1]]
    return v.reshape(*v.shape[:4], -1)


def max_windows(o, x, kernel_size, stride, padding, dilation):
    x, out = four(A(x)), tuple(o[0].shape[-2:])
    k, s, p, d, more = pool_plan(x, kernel_size, stride, padding, dilation, out)
    v = flat_windows(x, k, s, p, d, more, out, least(x.dtype))
    at = v.argmax(-1)
    put(o[0], np.take_along_axis(v, at[..., None], -1)[..., 0])
    where = np.broadcast_to(np.arange(x.shape[2] * x.shape[3]).reshape(x.shape[2:]), x.shape)
    return at, np.take_along_axis(flat_windows(where, k, s, p, d, more, out, 0), at[..., None], -1)[..., 0]


@kernel("max_pool2d_with_offsets")
def max_pool2d_with_offsets(o, x, k, s, p, d, _):
    put(o[1], max_windows(o, x, k, s, p, d)[0])


@kernel("max_pool2d_with_indices")
def max_pool2d_with_indices(o, x, k, s, p, d, _):
    put(o[1], max_windows(o, x, k, s, p, d)[1])


@kernel("max_pool2d_with_indices_backward", "adaptive_max_pool2d_backward")
def max_pool2d_with_indices_backward(o, g, x, *rest):
    at, total = (
        A(rest[-1]),
        np.zeros((math.prod(x.shape[:-2]), x.shape[-2] * x.shape[-1]), compute_dtype(o[0].dtype)),
    )
    flat = at.reshape(len(total), -1)
    np.add.at(total, (np.arange(len(total))[:, None], flat), A(g).reshape(flat.shape))
    put(o[0], total)


@kernel("max_pool2d_backward")
def max_pool2d_backward(o, g, x, k, s, p, d, _, offsets):
    g, at, shape = four(A(g)), four(A(offsets)), four(np.broadcast_to(np.int8(0), tuple(x.shape))).shape
    k, s, p, d, more = pool_plan(np.broadcast_to(np.int8(0), shape), k, s, p, d, g.shape[2:])
    hot = (at[..., None] == np.arange(k[0] * k[1])) * g[..., None]
    put(o[0], fold(hot.reshape(*g.shape, *k), shape, k, s, p, d, more))


@kernel("max_pool2d_pick")
def max_pool2d_pick(o, x, k, s, p, d, _, offsets):
    x, at = four(A(x)), four(A(offsets)).astype(np.int64)
    v = flat_windows(x, *pool_plan(x, k, s, p, d, at.shape[2:]), at.shape[2:], 0)
    put(o[0], np.take_along_axis(v, at[..., None], -1)[..., 0])


def counts(shape, plan, out, include_pad, divisor):
    k, s, p, d, more = plan
    if divisor is not None:
        return float(divisor)
    ones = np.ones((1, 1, *shape[2:]))
    if include_pad:
        ones, p = padded(ones, p, 1), (0, 0)
    return flat_windows(ones, k, s, p, d, more, out, 0).sum(-1)


@kernel("avg_pool2d")
def avg_pool2d(o, x, k, s, p, _, include_pad, divisor):
    x, out = four(A(x)), tuple(o[0].shape[-2:])
    plan = pool_plan(x, k, s, p, (1,), out)
    put(o[0], flat_windows(x, *plan, out, 0).sum(-1) / counts(x.shape, plan, out, include_pad, divisor))


@kernel("avg_pool2d_backward")
def avg_pool2d_backward(o, g, x, k, s, p, _, include_pad, divisor):
    g, shape = four(A(g)), four(np.broadcast_to(np.int8(0), tuple(x.shape))).shape
    plan = pool_plan(np.broadcast_to(np.int8(0), shape), k, s, p, (1,), g.shape[2:])
    each = g / counts(shape, plan, g.shape[2:], include_pad, divisor)
    put(o[0], fold(np.broadcast_to(each[..., None, None], (*g.shape, *plan[0])), shape, *plan))


def cells(shape, out):
    """For each place of an adaptive result, the slices of its window."""
    edges = [
        [slice(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]
        for n, m in zip(shape[-2:], out, strict=True)
    ]
    return [((..., i, j), (..., a, b)) for i, a in enumerate(edges[0]) for j, b in enumerate(edges[1])]


@kernel("adaptive_avg_pool2d")
def adaptive_avg_pool2d(o, x, _):
    x, y = A(x), np.zeros(tuple(o[0].shape), compute_dtype(o[0].dtype))
    for to, window in cells(x.shape, y.shape[-2:]):
        y[to] = x[window].mean((-2, -1))
    put(o[0], y)


@kernel("adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(o, g, x):
    g, total = A(g), np.zeros(tuple(x.shape), compute_dtype(o[0].dtype))
    for to, window in cells(x.shape, g.shape[-2:]):
        total[window] += (g[to] / max(total[window].shape[-1] * total[window].shape[-2], 1))[..., None, None]
    put(o[0], total)


@kernel("adaptive_max_pool2d")
def adaptive_max_pool2d(o, x, _):
    x, y, at = (
        A(x),
        np.zeros(tuple(o[0].shape), compute_dtype(o[0].dtype)),
        np.zeros(tuple(o[0].shape), np.int64),
    )
    where = np.arange(x.shape[-2] * x.shape[-1]).reshape(x.shape[-2:])
    for to, window in cells(x.shape, y.shape[-2:]):
        flat = x[window].reshape(*x.shape[:-2], -1)
        best = flat.argmax(-1)
        y[to], at[to] = np.take_along_axis(flat, best[..., None], -1)[..., 0], where[window].reshape(-1)[best]
    put(o[0], y)
    put(o[1], at)


# --- recurrent layers ---


def lstm_cell(z, c):
    i, f, g, o = np.split(z, 4, -1)
    i, f, g, o = sp.expit(i), sp.expit(f), np.tanh(g), sp.expit(o)
    c = f * c + i * g
    return o * np.tanh(c), c, np.concatenate([i, f, g, o], -1)


def lstm_cell_slope(gh, gc, gates, c, c_out):
    (i, f, g, o), t = np.split(gates, 4, -1), np.tanh(c_out)
    dc = gc + gh * o * (1 - t * t)
    return np.concatenate(
        [dc * g * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - g * g), gh * t * o * (1 - o)], -1
    ), dc * f


def put_all(outs, values):
    for out, value in zip(outs, values, strict=True):
        put(out, value)


@kernel("lstm_gates")
def lstm_gates(o, a, b, c):
    put_all(o, lstm_cell(A(a) + A(b), A(c)))


def zero(t, like):
    return np.zeros_like(like) if t is None else A(t)


@kernel("lstm_gates_backward")
def lstm_gates_backward(o, gh, gc, gates, c, c_out):
    c = A(c)
    put_all(o, lstm_cell_slope(zero(gh, c), zero(gc, c), A(gates), c, A(c_out)))


@kernel("lstm_sequence")
def lstm_sequence(o, x, h, c, w, b, reverse):
    x, h, c, w = A(x), A(h), A(c), A(w).T
    steps = [None] * len(x)
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        h, c, gates = lstm_cell(x[t] + h @ w + (0 if b is None else A(b)), c)
        steps[t] = h, gates, c
    output, gates, cells_ = (np.stack(v) for v in zip(*steps, strict=True))
    put_all(o, (output, h, c, gates, cells_))


@kernel("lstm_sequence_backward")
def lstm_sequence_backward(o, go, gh, gc, h, c, w, output, gates, cells_, reverse):
    h, c, w, output, gates, cells_ = map(A, (h, c, w, output, gates, cells_))
    go, gh, gc, gw, gx = zero(go, output), zero(gh, h), zero(gc, c), np.zeros_like(w), np.zeros_like(gates)
    order_ = list(reversed(range(len(output)))) if reverse else list(range(len(output)))
    for n in reversed(range(len(order_))):
        t, before = order_[n], order_[n - 1] if n else None
        gx[t], gc = lstm_cell_slope(
            gh + go[t], gc, gates[t], c if before is None else cells_[before], cells_[t]
        )
        gw += gx[t].T @ (h if before is None else output[before])
        gh = gx[t] @ w
    put_all(o, (gx, gh, gc, gw, gx.sum((0, 1))))


@kernel("gru_gates")
def gru_gates(o, a, b, h):
    (ir, iz, i_n), (hr, hz, hn), h = np.split(A(a), 3, -1), np.split(A(b), 3, -1), A(h)
    r, z = sp.expit(ir + hr), sp.expit(iz + hz)
    n = np.tanh(i_n + r * hn)
    put_all(o, ((1 - z) * n + z * h, np.concatenate([r, z, n, hn], -1)))


@kernel("gru_gates_backward")
def gru_gates_backward(o, g, gates, h):
    g, (r, z, n, hn), h = A(g), np.split(A(gates), 4, -1), A(h)
    dn, dz = g * (1 - z) * (1 - n * n), g * (h - n) * z * (1 - z)
    dr = dn * hn * r * (1 - r)
    put_all(o, (np.concatenate([dr, dz, dn], -1), np.concatenate([dr, dz, dn * r], -1), g * z))


# --- optimizers ---


@kernel("_fused_sgd_")
def fused_sgd(_, params, grads, buffers, lr, momentum, dampening, decay, nesterov, maximize, first):
    for i, (p, g) in enumerate(zip(params, grads, strict=True)):
        g = (-1 if maximize else 1) * A(g) + decay * A(p)
        if momentum:
            buffer = g if first else momentum * A(buffers[i]) + (1 - dampening) * g
            put(buffers[i], buffer)
            g = g + momentum * buffer if nesterov else buffer
        put(p, A(p) - lr * g)


@kernel("_fused_adam_")
def fused_adam(
    _, params, grads, firsts, seconds, tops, steps, lr, b1, b2, eps, decay, amsgrad, maximize, decoupled
):
    for i, (p, g, m, v, t) in enumerate(zip(params, grads, firsts, seconds, steps, strict=True)):
        g, a = (-1 if maximize else 1) * A(g), A(p)
        a, g = (a * (1 - lr * decay), g) if decoupled else (a, g + decay * a)
        put(m, b1 * A(m) + (1 - b1) * g)
        put(v, b2 * A(v) + (1 - b2) * g * g)
        if amsgrad:
            put(tops[i], np.maximum(A(tops[i]), A(v)))
        second = A(tops[i] if amsgrad else v) / (1 - b2**t)
        put(p, a - lr / (1 - b1**t) * A(m) / (np.sqrt(second) + eps))
