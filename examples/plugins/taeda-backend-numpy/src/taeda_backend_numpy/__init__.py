"""A device "numpy": the core operators of taeda as tables of NumPy and SciPy functions.

The core makes every other operator out of these: losses, normalisation, recurrent layers and optimizers have no line here.

import taeda_backend_numpy        # or nothing, once installed: the device is found by its name
x = taeda.ones(3, device="numpy")
"""

# ruff: noqa: E501 (tables of formulas)
import itertools
import math

import numpy as np
import scipy.special as sp

import taeda_tensor_core as tc
from taeda_tensor_core.library import Backend

backend = Backend("numpy", properties={"library": f"NumPy {np.__version__}"})
NP = {d: np.dtype(str(d).split(".")[-1]) for d in
      (tc.bool, tc.int8, tc.int16, tc.int32, tc.int64, tc.uint8, tc.uint16, tc.uint32, tc.uint64, tc.float32, tc.float64,
       tc.complex64, tc.complex128)}  # fmt: skip


# --- between tensors and arrays ---


def compute_dtype(dtype):
    """Halves are computed in float32."""
    return NP.get(dtype, np.dtype(np.float32))


def A(t, dtype=None):
    """A tensor as array in the dtype to compute in; what is no tensor stays as it is."""
    if not isinstance(t, tc.Tensor):
        return t
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


def made(value, dtype):
    """A new tensor on this device, for kernels that return their results."""
    value = np.asarray(value)
    out = tc.empty(value.shape, dtype=dtype, device="numpy")
    put(out, value)
    return out


def kernel(*names):
    """Registers `f(outputs, *inputs)` of tensors; NumPy's warnings about nan and inf are off, as taeda has none."""

    def take(f):
        def run(outputs, inputs):
            with np.errstate(all="ignore"):
                return f(outputs, *inputs)

        backend.kernel(*names)(run)
        return f

    return take


def as_given(outputs, inputs):
    """Each operand in a dtype of its own."""


def as_result(outputs, inputs):
    return compute_dtype(outputs[0].dtype)


def in_common(outputs, inputs):
    return compute_dtype(tc.result_type(*(t for t in inputs if isinstance(t, tc.Tensor))))


def table(meet, functions):
    """A kernel for each `name: function of arrays`; `meet` tells the dtype in which operands meet."""
    for name, f in functions.items():

        @kernel(name)
        def run(outputs, *inputs, name=name, f=f):
            dtype = meet(outputs, inputs)
            try:
                results = f(*(A(t, dtype) for t in inputs))
            except (IndexError, ZeroDivisionError) as error:
                raise type(error)(f"{name}: {error}") from None
            results = results if isinstance(results, tuple) else (results,)
            for out, value in zip(outputs, results, strict=True):
                put(out, value)


# --- element by element ---


def divided(f):
    def run(a, b):
        if a.dtype.kind in "iu" and np.any(b == 0):
            raise ZeroDivisionError("integer division by zero")
        return f(a, b)

    return run


def power(a, b):
    if a.dtype.kind == "i" and np.any(b < 0):
        odd = np.where(b % 2 == 0, 1, a)
        return np.where(b >= 0, a ** np.where(b < 0, 0, b), np.where(np.abs(a) == 1, odd, 0))
    return np.power(a, b)


def shift(f, gone):
    def run(a, b):
        outside = (b < 0) | (b >= a.dtype.itemsize * 8)
        return np.where(outside, gone(a), f(a, np.where(outside, 0, b)))

    return run


def add(a, b, k):
    return np.logical_or(a, b & bool(k)) if a.dtype == bool else a + np.asarray(k).astype(a.dtype) * b


table(as_result, {n: getattr(np, n) for n in (
    "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt", "floor", "ceil", "trunc",
    "conj", "sign", "copysign", "hypot", "maximum", "minimum", "nextafter", "gcd", "bitwise_and", "bitwise_or", "bitwise_xor")})  # fmt: skip
table(as_result, {a: getattr(np, "arc" + a[1:]) for a in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh")})  # fmt: skip
table(as_result, {n: getattr(sp, n) for n in ("erf", "erfc", "erfinv", "i0", "i0e", "i1", "i1e", "digamma")})
table(as_result, {
    "lgamma": sp.gammaln, "neg": np.negative, "add": add, "sub": lambda a, b, k: a - np.asarray(k).astype(a.dtype) * b,
    "mul": np.multiply, "div": np.divide, "pow": power, "round": lambda x, n: x if x.dtype.kind == "u" else np.round(x, n),
    "floor_divide": divided(np.floor_divide),
    "trunc_divide": divided(lambda a, b: (a - np.fmod(a, b)) // b if a.dtype.kind in "iu" else np.trunc(a / b)),
    "fmod": divided(np.fmod), "remainder": divided(np.remainder), "bitwise_not": np.invert, "bitwise_left_shift": shift(np.left_shift, lambda a: 0),
    "bitwise_right_shift": shift(np.right_shift, lambda a: np.where(a < 0, -1, 0)), "mm": np.matmul, "bmm": np.matmul,
})  # fmt: skip
table(in_common, {"eq": np.equal, "lt": np.less, "le": np.less_equal})
table(as_given, {
    "abs": np.abs, "angle": lambda x: np.angle(x if x.dtype.kind in "fc" else x.astype(np.float64)),
    "signbit": np.signbit, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_not": np.logical_not, "where": lambda c, a, b: np.where(c.astype(bool), a, b), "cast": lambda x, _: x, "clone": lambda x, _: x,
})  # fmt: skip


@kernel("copy_same_", "fill_")
def fill(_, to, value):
    put(to, np.broadcast_to(A(value), tuple(to.shape)))


@kernel("arange_fill_")
def arange(_, to, start, step):
    dtype = compute_dtype(to.dtype)
    put(to, np.asarray(start, dtype) + np.arange(to.numel()).astype(dtype) * np.asarray(step, dtype))


# --- reductions, running results, order ---


def over(f):
    return lambda x, dim, keep, *_: f(x, axis=(tuple(dim or ()) or None) if x.ndim else (), keepdims=keep)


def running(best_of):
    """An element that equals the best so far is the new best; its index is the largest of these."""

    def run(x, dim):
        x = np.atleast_1d(x)
        best = best_of.accumulate(x, axis=dim)
        at = np.arange(x.shape[dim]).reshape([-1 if d == dim % x.ndim else 1 for d in range(x.ndim)])
        return best, np.maximum.accumulate(np.where((x == best) | (x != x), at, 0), axis=dim)

    return run


def sort(x, dim, descending, _):
    x = np.atleast_1d(x)
    at = np.argsort(np.flip(x, dim) if descending else x, axis=dim, kind="stable")
    at = x.shape[dim] - 1 - np.flip(at, dim) if descending else at
    return np.take_along_axis(x, at, dim), at


def scan(f):
    return lambda x, dim, *_: f.accumulate(x, axis=dim, dtype=x.dtype) if x.ndim else x


table(as_result, {"sum": over(np.sum), "prod": over(np.prod), "amax": over(np.max), "amin": over(np.min), "cumsum": scan(np.add),
                  "cumprod": scan(np.multiply), "logcumsumexp": lambda x, *at: (
                      scan(np.logaddexp) if x.dtype.kind == "f" else lambda x, dim: np.log(np.exp(x).cumsum(dim)))(x, *at)})  # fmt: skip
table(as_given, {"any": over(lambda x, **how: np.any(x.astype(bool), **how)), "cummax": running(np.maximum), "cummin": running(np.minimum),
                 "argmax": lambda x, dim, _: np.argmax(x, dim if x.ndim else None),
                 "argmin": lambda x, dim, _: np.argmin(x, dim if x.ndim else None), "sort": sort})  # fmt: skip


@kernel("nonzero")
def nonzero(_, x):
    return made(np.argwhere(A(x)) if x.dim() else np.zeros((int(bool(A(x))), 0)), tc.int64)


# --- picking and placing ---


def along(x, dim, at):
    """Indices with which x[...] is like gather's along `dim`."""
    if at.size and (at.min() < 0 or at.max() >= x.shape[dim]):
        raise IndexError(
            f"index {at.min() if at.min() < 0 else at.max()} is out of range for size {x.shape[dim]}"
        )
    grid = list(np.ogrid[tuple(slice(n) for n in at.shape)])
    grid[dim] = at
    return tuple(grid)


def gather(x, dim, at, _):
    x, at = np.atleast_1d(x, at)
    return x[along(x, dim, at)]


def scatter(write):
    def run(x, dim, at, src):
        x, at, src = np.atleast_1d(x.copy(), at, src)
        write(x, along(x, dim, at), src[tuple(slice(n) for n in at.shape)])
        return x

    return run


table(as_given, {"gather": gather, "scatter": scatter(np.ndarray.__setitem__), "scatter_add": scatter(np.add.at)})  # fmt: skip


# --- convolution and pooling ---


def pair(v):
    return tuple(v) * 2 if len(v) == 1 else tuple(v)


class Windows:
    """The windows that a convolution or pooling moves over (N, C, H, W), and the way back."""

    def __init__(self, shape, size, stride, padding, dilation, out):
        self.shape, self.size, self.out = (1,) * (4 - len(shape)) + tuple(shape), pair(size), tuple(out[-2:])
        geometry = map(pair, (size, stride or size, padding, dilation))
        self.axes = list(zip(self.shape[2:], *geometry, self.out, strict=True))
        # windows of ceil_mode may end beyond the padding
        self.around = [(p, max((m - 1) * s + d * (k - 1) + 1 - n - p, 0)) for n, k, s, p, d, m in self.axes]

    def views(self, x):
        """Views (N, C, OH, OW) of the padded x, one for each place of a window."""
        for at in itertools.product(*map(range, self.size)):
            cut = [slice(i * d, i * d + s * m, s) for i, (*_, s, _, d, m) in zip(at, self.axes, strict=True)]
            yield x[(..., *cut)]

    def stack(self, x, value=0):
        """(places of a window, N, C, OH, OW)."""
        x = np.pad(x.reshape(self.shape), [(0, 0), (0, 0), *self.around], constant_values=value)
        return np.stack(list(self.views(x)))

    def fold(self, parts):
        """Adds what `stack` gives to the places it came from."""
        size = [n + sum(pad) for n, pad in zip(self.shape[2:], self.around, strict=True)]
        big = np.zeros((*self.shape[:2], *size), parts.dtype)
        for view, part in zip(self.views(big), parts, strict=True):
            view += part
        (top, _), (left, _) = self.around
        return big[:, :, top : top + self.shape[2], left : left + self.shape[3]]

    def counts(self, include_pad):
        """Elements in each window (OH, OW), with or without those of the padding."""
        sizes = []
        for n, k, s, p, _, m in self.axes:
            begin, low, high = np.arange(m) * s - p, -p if include_pad else 0, n + p if include_pad else n
            sizes.append(np.minimum(begin + k, high) - np.maximum(begin, low))
        return np.outer(*sizes)


def by_group(x, axis, groups):
    return x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])


@kernel("conv2d")
def conv2d(o, x, w, b, stride, padding, dilation, groups):
    x, w, b = (A(t, compute_dtype(o[0].dtype)) for t in (x, w, b))
    at = Windows(x.shape, w.shape[2:], stride, padding, dilation, o[0].shape)
    w = w.reshape(groups, -1, w.shape[1], math.prod(at.size))
    y = np.einsum("kngcxy,gock->ngoxy", by_group(at.stack(x), 2, groups), w, optimize=True)
    put(o[0], y if b is None else y + b.reshape(1, groups, -1, 1, 1))


@kernel("conv2d_backward")
def conv2d_backward(_, g, x, w, stride, padding, dilation, groups, mask):
    ga, xa, wa = A(g), A(x), A(w)
    at = Windows(xa.shape, wa.shape[2:], stride, padding, dilation, ga.shape)
    ga = ga.reshape(at.shape[0], *ga.shape[-3:])  # (C, H, W) is a batch of one
    gg = by_group(ga, 1, groups)
    wg, gx, gw = wa.reshape(groups, -1, wa.shape[1], math.prod(at.size)), None, None
    if mask & 1:
        parts = np.einsum("ngoxy,gock->kngcxy", gg, wg, optimize=True)
        gx = at.fold(parts.reshape(len(parts), *at.shape[:2], *at.out))
        gx = made(gx.reshape(xa.shape), x.dtype)
    if mask & 2:
        gw = np.einsum("ngoxy,kngcxy->gock", gg, by_group(at.stack(xa), 2, groups), optimize=True)
        gw = made(gw.reshape(wa.shape), w.dtype)
    return gx, gw, made(ga.sum((0, 2, 3)), g.dtype) if mask & 4 else None


@kernel("max_pool2d_with_indices")
def max_pool2d(o, x, size, stride, padding, dilation, _):
    x, h, w = A(x), *x.shape[-2:]
    at = Windows(x.shape, size, stride, padding, dilation, o[0].shape)
    values = at.stack(x, -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min)
    top = (values == values.max(0)) | (values != values)
    best = (top & at.stack(np.ones(x.shape, bool))).argmax(0)[None]
    put(o[0], np.take_along_axis(values, best, 0))
    where = Windows((h, w), size, stride, padding, dilation, o[0].shape).stack(np.arange(h * w))
    put(o[1], np.take_along_axis(np.broadcast_to(where, values.shape), best, 0))


@kernel("avg_pool2d")
def avg_pool2d(o, x, size, stride, padding, _, include_pad, divisor):
    at = Windows(x.shape, size, stride, padding, (1,), o[0].shape)
    put(o[0], at.stack(A(x)).sum(0) / (at.counts(include_pad) if divisor is None else divisor))


@kernel("avg_pool2d_backward")
def avg_pool2d_backward(o, g, x, size, stride, padding, _, include_pad, divisor):
    at = Windows(x.shape, size, stride, padding, (1,), g.shape)
    each = A(g).reshape(*at.shape[:2], *at.out) / (at.counts(include_pad) if divisor is None else divisor)
    put(o[0], at.fold(np.broadcast_to(each, (math.prod(at.size), *each.shape))))


def cells(shape, out):
    """For each place of an adaptive result, its index and that of its window."""
    sides = zip(shape[-2:], out[-2:], strict=True)
    edges = [[slice(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in sides]
    return [((..., i, j), (..., a, b)) for i, a in enumerate(edges[0]) for j, b in enumerate(edges[1])]


@kernel("adaptive_avg_pool2d")
def adaptive_avg_pool2d(o, x, _):
    x, y = A(x), np.zeros(tuple(o[0].shape), compute_dtype(o[0].dtype))
    for to, window in cells(x.shape, y.shape):
        y[to] = x[window].mean((-2, -1))
    put(o[0], y)


@kernel("adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(o, g, x):
    g, total = A(g), np.zeros(tuple(x.shape), compute_dtype(o[0].dtype))
    for to, window in cells(x.shape, g.shape):
        total[window] += (g[to] / math.prod(total[window].shape[-2:]))[..., None, None]
    put(o[0], total)


@kernel("adaptive_max_pool2d")
def adaptive_max_pool2d(o, x, _):
    x, at = A(x), np.zeros(tuple(o[1].shape), np.int64)
    lead, where = x.shape[:-2], np.arange(math.prod(x.shape[-2:])).reshape(x.shape[-2:])
    for to, window in cells(x.shape, at.shape):
        at[to] = where[window].reshape(-1)[x[window].reshape(*lead, -1).argmax(-1)]
    put(o[0], np.take_along_axis(x.reshape(*lead, -1), at.reshape(*lead, -1), -1))
    put(o[1], at)


# --- random numbers ---


def stream(generator):
    """NumPy's generator, seeded by a draw from taeda's: manual_seed makes both repeatable."""
    return np.random.default_rng(tc.empty((), dtype=tc.int64).random_(0, 2**62, generator=generator).item())


@kernel("uniform_")
def uniform(_, to, a, b, generator):
    put(to, a + (b - a) * stream(generator).random(tuple(to.shape)))


@kernel("random_")
def random(_, to, low, high, generator):
    low, high = (0, low) if high is None and low is not None else (low or 0, high)
    bits = {tc.bool: 1, tc.float16: 11, tc.bfloat16: 8, tc.float32: 24, tc.float64: 53}.get(to.dtype)
    top = 2**bits + (bits > 1) if bits else np.iinfo(NP[to.dtype]).max + 1
    if high is not None and high <= low:  # the end of the widest integers, modulo 2**64
        high += 2**64
    put(to, stream(generator).integers(low, min(top, 2**63) if high is None else high, tuple(to.shape)))


@kernel("poisson")
def poisson(_, x, generator):
    return made(stream(generator).poisson(A(x)), x.dtype)
