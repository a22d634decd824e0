"""Records of activations, softmax and dropout, and of their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import special

from taeda_testing.arrays import SHAPES, random_array, widest
from taeda_testing.record import FLOATS, FLOATS_AND_COMPLEX, INTEGERS, REALS, ErrorSample, OpRecord, Sample
from taeda_testing.sampling import PAIRS, Sampler, sized, unary
from taeda_testing.vocabulary import kinks
from taeda_testing.wrong import dimension, misfit


def _wide(function):
    """Computed in float64, rounded to the input's dtype."""

    def call(x: np.ndarray, *args, **kwargs) -> np.ndarray:
        return np.asarray(function(widest(x), *args, **kwargs)).astype(x.dtype)

    return call


def _calls(*calls):
    """Every shape, with each tuple of further arguments."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for rest in calls:
            for sample in unary()(dtype, rng):
                yield Sample((*sample.args, *rest))

    return samples


def _rows(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((5,), (2, 3), (3, 4, 2), (0, 3), (2, 200)):
        for dim in range(-1, len(shape)):
            yield Sample((random_array(rng, shape, dtype, -20, 20), dim))


def _channels(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """One slope for all elements, or one for each channel."""
    shapes = (
        ((), ()),
        ((5,), (1,)),
        ((2, 3), (3,)),
        ((2, 3), ()),
        ((2, 3, 4), (3,)),
        ((0, 2), (2,)),
        ((1, 2, 1, 3), (1,)),
    )
    for x, slope in shapes:
        yield Sample((random_array(rng, x, dtype), random_array(rng, slope, dtype)))


def _prelu(x: np.ndarray, slope: np.ndarray) -> np.ndarray:
    slope = slope.reshape(1, -1, *[1] * (x.ndim - 2)) if slope.size > 1 else slope.reshape(())
    return np.where(x > 0, x, slope * x)


def _converted(function):
    """With a dtype the input is converted first."""

    def call(x: np.ndarray, dim: int, dtype: np.dtype | None = None) -> np.ndarray:
        out = function(x.astype(np.float64), dim) if x.size else x
        return np.asarray(out).astype(dtype or x.dtype)

    return call


def _converted_rows(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    other = "float32" if dtype == "float64" else "float64"
    for shape in ((), (2, 3)):
        yield Sample((random_array(rng, shape, dtype), -1), {"dtype": np.dtype(other)}, "another dtype")


def _rows_of_integers(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample((random_array(rng, (2, 3), dtype), 1), {"dtype": np.dtype("float32")})


def _wrong(*args, **kwargs) -> ErrorSample:
    """A wrong call, the words of its message last."""
    *given, words = args
    arrays = tuple(np.zeros(a, np.float32) if isinstance(a, tuple) else a for a in given)
    return ErrorSample(arrays, kwargs, (RuntimeError, ValueError, IndexError), words)


def _record(name, function, samples=None, namespace="ops", dtypes=FLOATS, **more):
    chosen = samples or unary(special=True)
    return OpRecord(name, _wide(function), chosen, dtypes, differentiable=True, namespace=namespace, **more)


def _gelu(x: np.ndarray, approximate: str = "none") -> np.ndarray:
    if approximate == "none":
        return x * special.ndtr(x)
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


_SELU = (1.6732632423543772, 1.0507009873554805)


def _elu(x, alpha=1.0, scale=1.0, input_scale=1.0):
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) * input_scale))


def _softplus(x, beta=1.0, threshold=20.0):
    return np.where(beta * x > threshold, x, np.logaddexp(0, beta * x) / beta)


def _softmaxes(name, function, namespace="", out=True, integers=INTEGERS, **more):
    shared = {**more, "namespace": namespace, "out": out, "cancels": True}
    return [
        OpRecord(name, _converted(function), _rows, FLOATS, differentiable=True, **shared),
        OpRecord(name, _converted(function), _converted_rows, FLOATS, **shared),
        OpRecord(name, _converted(function), _rows_of_integers, integers, **shared),
    ]


def _halves(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, *dim in (((4,),), ((4,), 0), ((2, 6, 3), 1), ((2, 3, 4), -1), ((0, 2), 1)):
        yield Sample((random_array(rng, shape, dtype), *dim))


_OUT = {"out": True}
# Sums that cancel near zeros of a function keep their absolute accuracy.
_EVEN = {"accuracy": {"float32": (2e-6, 2e-6), "float64": (1e-13, 1e-13)}}
INF, NAN = np.inf, np.nan
_GELU_AT_MINUS_6 = special.ndtr(-6.0) - 6 * np.exp(-18) / np.sqrt(2 * np.pi)

_SIGNED = {"dtypes": (*INTEGERS[:4], *FLOATS), "out": True}

_ORDERED = {"dtypes": REALS, "out": True}


def _chance(name, reference, samples, dtypes=FLOATS, **more):
    return OpRecord(name, reference, samples, dtypes, half="", **more)


def _options(*rest: tuple, shapes=SHAPES, low: float = -4, high: float = 4) -> Sampler:
    """Arrays of the shapes, each with every set of further arguments."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in shapes:
            for args in rest:
                yield Sample((random_array(rng, shape, dtype, low, high), *args))

    return samples


def _dropped(x, p=0.5, training=True):
    return x if not training or p == 0 else np.zeros_like(x)


def _leaky(x, lower=1 / 8, upper=1 / 3, training=False):
    return np.where(x < 0, x * np.asarray((lower + upper) / 2, x.dtype), x)


def _masked(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((random_array(rng, shape, dtype), random_array(rng, shape, "bool"), 1.25))


def _refused(name: str, *args, words: tuple[str, ...], **options):
    return misfit(name, *args, words=words, error=(RuntimeError, ValueError, TypeError), **options)


_ROOT = np.sqrt(2 / np.pi)


def _pairs(*calls: tuple[Any, ...], options: tuple[dict[str, Any], ...] = ({},)) -> Any:
    """Gradients and inputs that broadcast, with each tuple of further arguments."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for rest in calls or ((),):
            for given in options:
                for a, b in PAIRS:
                    x = random_array(rng, b, dtype)
                    yield Sample((random_array(rng, a, dtype), x, *rest), dict(given))

    return samples


def _row_gradients(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((), (5,), (2, 3), (3, 4, 2), (0, 3), (2, 40)):
        for dim in range(-1, max(len(shape), 1)):
            output = random_array(rng, shape, dtype, -1, 1)
            yield Sample((random_array(rng, shape, dtype), output, dim))


def _half_gradients(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, dim in (((4,), -1), ((6, 3), 0), ((2, 6, 3), 1), ((2, 3, 80), -1), ((0, 2), 1)):
        half = [size // 2 if at == dim % len(shape) else size for at, size in enumerate(shape)]
        yield Sample((random_array(rng, tuple(half), dtype), random_array(rng, shape, dtype), dim))


def _wide_backward(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(grad: np.ndarray, x: np.ndarray, *args: Any, **kwargs: Any) -> np.ndarray:
        found = function(widest(grad), widest(x), *args, **kwargs)
        return np.asarray(found).astype(grad.dtype)

    return call


def _elu_backward(g, x, alpha, scale, input_scale):
    return g * scale * np.where(x > 0, 1, alpha * input_scale * np.exp(np.minimum(x, 0) * input_scale))


def _gelu_backward(g, x, approximate="none"):
    if approximate == "none":
        return g * (special.ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi))
    t = np.tanh(_ROOT * (x + 0.044715 * x**3))
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * _ROOT * (1 + 3 * 0.044715 * x * x))


def _mish_backward(g, x):
    t = np.tanh(np.logaddexp(0, x))
    return g * (t + x * (1 - t * t) * special.expit(x))


def _softplus_backward(g, x, beta, threshold):
    return g * np.where(beta * x > threshold, 1, special.expit(beta * x))


def _softmax_backward(g, y, dim):
    return y * (g - (g * y).sum(dim, keepdims=True)) if y.ndim else y * (g - g * y)


def _glu_backward(g, x, dim):
    value, gate = np.split(x, 2, dim)
    s, left = 1 / (1 + np.exp(-gate)), 1 / (1 + np.exp(gate))
    return np.concatenate((g * np.conj(s), g * np.conj(value * s * left)), dim)


def _log_softmax_backward(g, y, dim):
    return g - np.exp(y) * (g.sum(dim, keepdims=True) if y.ndim else g)


def _backward(
    name: str,
    function: Callable[..., Any],
    *calls: Any,
    samples: Any = None,
    dtypes: Any = FLOATS,
    cancels: bool = False,
) -> OpRecord:
    rest = calls[0] if calls else ()
    wrong = (np.zeros((2, 3), np.float32), np.zeros(4, np.float32), *rest)
    return OpRecord(
        name,
        _wide_backward(function),
        samples or _pairs(*calls),
        dtypes,
        differentiable=True,
        namespace="ops",
        out=True,
        cancels=cancels,
        errors=() if samples else (ErrorSample(wrong, {}, (RuntimeError, ValueError), (name, "3", "4")),),
    )


_CERTAIN = sized(
    *((s, p, t) for s in ((2, 3), (2, 3, 4), (0, 2)) for p, t in ((0.5, False), (0.0, True), (1.0, True)))
)


RECORDS = [
    _record(
        "relu", lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)), namespace="", in_place=True, **_ORDERED,
            half="largest", kinks=kinks({0.0: 0, 1.0: 1}, -0.0, INF, -INF), **_EVEN
    ),
    _record("relu6", lambda x: np.clip(x, 0, 6), kinks=kinks({0.0: 0, 6.0: 0, 1.0: 1, NAN: 0}, INF, -INF), **_EVEN),
    _record("elu", _elu, _calls((), (0.7,), (0.7, 1.5, 2.0)), **_OUT, half="largest", **_EVEN,
            kinks=kinks({0.0: 2, 1.0: 1, NAN: NAN, -INF: 0}, INF, alpha=2.0)),
    _record(
        "celu",
        lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha)),
        _calls((), (0.7,)),
        "",
        half="largest",
        kinks=kinks({}, NAN, INF, alpha=0.5),
        **_EVEN,
    ),
    _record(
        "selu", lambda x: _SELU[1] * np.where(x > 0, x, _SELU[0] * np.expm1(np.minimum(x, 0))), unary(), "",
            half="largest", kinks=kinks({}, NAN, INF), **_EVEN
    ),
    _record(
        "gelu",
        _gelu,
        unary(),
        cancels=True,
        errors=(_wrong((2,), ("gelu", "approximate", "sigmoid"), approximate="sigmoid"),),
        kinks=kinks({-6.0: _GELU_AT_MINUS_6, 0.0: 0.5, -40.0: 0}, 6.0, 3.0, -3.0),
        **_OUT,
        **_EVEN,
    ),
    _record("gelu", _gelu, unary(approximate="tanh"), cancels=True, **_OUT,
            kinks=kinks({}, 6.0, -6.0, 3.0, -3.0, approximate="tanh")),
    _record("silu", lambda x: x * special.expit(x), unary(), cancels=True, **_OUT, **_EVEN,
            kinks=kinks({}, 20.0, -20.0)),
    _record("mish", lambda x: x * np.tanh(np.logaddexp(0, x)), unary(), cancels=True, **_OUT, **_EVEN,
            kinks=kinks({0.0: 0.6, -800.0: 0, 800.0: 1}, 20.0, -20.0)),
    _record("softplus", _softplus, _calls((), (2.0,), (2.0, 3.0)), **_OUT, half="largest", **_EVEN,
            kinks=kinks({}, 20.0, INF, beta=2.0, threshold=4.0)),
    _record("softsign", lambda x: x / (1 + np.abs(x)), unary(), dtypes=FLOATS_AND_COMPLEX, **_EVEN),
    _record("tanhshrink", lambda x: x - np.tanh(x), unary(), dtypes=FLOATS_AND_COMPLEX, **_EVEN),
    _record("logsigmoid", lambda x: -np.logaddexp(0, -x), unary(), kinks=kinks({}, INF, -INF), **_OUT, **_EVEN),
    _record("leaky_relu", lambda x, slope=0.01: np.where(x > 0, x, slope * x), _calls((), (0.3,)), **_OUT, **_EVEN,
            kinks=kinks({0.0: 0.25, 1.0: 1, NAN: 0.25}, INF, -INF, negative_slope=0.25)),
    _record(
        "hardtanh",
        lambda x, low=-1.0, high=1.0: np.clip(x, low, high),
        _calls((), (-2, 1)),
        errors=(
            ErrorSample((np.uint8([0, 1, 3]),), {}, (RuntimeError,), ("hardtanh", "min_val", "uint8")),
            ErrorSample((np.float32([0, 1]), 2, 1), {}, (ValueError,), ("hardtanh", "min_val", "2")),
        ),
        kinks=kinks({-1.0: 0, 1.0: 0, 0.5: 1, NAN: 0})
        + kinks({}, -0.25, 2.0, NAN, INF, -INF, min_val=-0.25, max_val=2.0),
        **_SIGNED,
        **_EVEN,
    ),
    _record("hardtanh", lambda x, low, high: np.clip(x, low, high), _calls((1, 3)), **_ORDERED),
    _record("hardsigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1), unary(), **_OUT, **_EVEN,
            kinks=kinks({-3.0: 0, 3.0: 0, NAN: 0}, INF, -INF)),
    _record("hardswish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), unary(), **_OUT, **_EVEN,
            kinks=kinks({-3.0: 0, 3.0: 1, -INF: 0, INF: 1, NAN: NAN})),
    _record("hardshrink", lambda x, at=0.5: np.where(np.abs(x) <= at, 0, x), _calls((), (1.0,)), **_EVEN,
            kinks=kinks({-0.5: 0, 0.5: 0, 0.6: 1, NAN: 0}, INF, -INF)),
    _record(
        "softshrink", lambda x, at=0.5: np.sign(x) * np.maximum(np.abs(x) - at, 0), _calls((), (1.0,)), **_OUT, **_EVEN,
        kinks=kinks({-0.5: 0, 0.5: 0, 0.6: 1, NAN: 0}, INF, -INF)
    ),
    _record("threshold", lambda x, at, value: np.where(x > at, x, value), _calls((1, 9)), **_ORDERED,
            kinks=kinks({1.0: 0, 2.0: 1, 0.0: 0}, NAN, INF, -INF, threshold=1.0, value=9.0)),
    _record("prelu", _prelu, _channels, "", errors=(_wrong((2, 3), (2,), ("prelu", "weight", "2", "3")),),
            half="largest"),
    *_softmaxes("softmax", special.softmax, half="largest", errors=dimension("softmax")),
    *_softmaxes("log_softmax", special.log_softmax, half="largest", errors=dimension("log_softmax")),
    *_softmaxes("softmin", lambda x, dim: special.softmax(-x, dim), "ops", out=False, integers=INTEGERS[:4],
            half="largest"),
    _record(
        "glu",
        lambda x, dim=-1: (lambda a, b: a / (1 + np.exp(-b)))(*np.split(x, 2, dim)),
        _halves,
        dtypes=FLOATS_AND_COMPLEX,
        errors=(_wrong((2, 3), 1, ("glu", "3")), _wrong((2, 2), 2, ("2",))),
        **_OUT,
    ),
    _chance("dropout", _dropped, _options((0.5, False), (0.0,), (1.0, True)), FLOATS_AND_COMPLEX, differentiable=True,
            errors=_refused("dropout", (2,), 1.5, words=("p", "1.5")), behaviours=("dropout",)),
    _chance("native_dropout", lambda x, p: (_dropped(x, p), np.full(x.shape, p == 0)), _options((0.0,), (1.0,)),
            FLOATS_AND_COMPLEX, differentiable=True, namespace="ops",
            errors=_refused("native_dropout", (2,), -1.0, words=("p", "-1")), behaviours=("dropout",)),
    OpRecord("native_dropout_backward", lambda grad, mask, scale: (grad * mask * scale).astype(grad.dtype), _masked,
            FLOATS_AND_COMPLEX, differentiable=True, namespace="ops"),
    OpRecord("native_dropout_backward", lambda grad, mask, scale: (grad * mask * scale).astype(np.float32), _masked,
             ("bool", "uint8", "int64"), namespace="ops"),
    _chance("rrelu", _leaky, _options((), (0.2, 0.4), (0.25, 0.25, True)), differentiable=True, errors=_refused(
        "rrelu", (2,), 0.5, 0.25, True, words=("lower", "upper", "0.5", "0.25")
    ), behaviours=("random slopes",)),
    _backward("elu_backward", _elu_backward, (1, 1, 1), (0.7, 1.5, 2.0)),
    _backward("gelu_backward", _gelu_backward, cancels=True),
    _backward("gelu_backward", _gelu_backward, samples=_pairs(options=({"approximate": "tanh"},)), cancels=True),
    _backward("hardsigmoid_backward", lambda g, x: np.where(np.abs(x) < 3, g / 6, 0)),
    _backward("hardswish_backward", lambda g, x: g * np.where(x < -3, 0, np.where(x <= 3, x / 3 + 0.5, 1))),
    _backward("hardtanh_backward", lambda g, x, low, high: np.where((x > low) & (x < high), g, 0), (-1, 1),
            (-2.5, 0.5)),
    _backward("leaky_relu_backward", lambda g, x, slope: np.where(x > 0, g, g * slope), (0.01,), (-2,)),
    _backward("glu_backward", _glu_backward, samples=_half_gradients, dtypes=FLOATS_AND_COMPLEX, cancels=True),
    _backward("log_softmax_backward", _log_softmax_backward, samples=_row_gradients, cancels=True),
    _backward("logsigmoid_backward", lambda g, x: g * special.expit(-x)),
    _backward("mish_backward", _mish_backward, cancels=True),
    _backward("prelu_forward", lambda x, slope: np.where(x > 0, x, slope * x)),
    _backward("shrink_backward", lambda g, x, at: np.where(np.abs(x) > at, g, 0), (0.5,), (2,)),
    _backward("sigmoid_backward", lambda g, y: g * np.conj(y * (1 - y)), dtypes=FLOATS_AND_COMPLEX),
    _backward("silu_backward", lambda g, x: g * special.expit(x) * (1 + x * special.expit(-x)), cancels=True),
    _backward("softmax_backward", _softmax_backward, samples=_row_gradients, cancels=True),
    _backward("softplus_backward", _softplus_backward, (1, 20), (2.0, 3.0)),
    _backward("tanh_backward", lambda g, y: g * np.conj(1 - y * y), dtypes=FLOATS_AND_COMPLEX),
    _backward("threshold_backward", lambda g, x, at: np.where(x <= at, 0, g), (0,), (1.5,)),
    *(
        _chance(name, lambda x, p, train: _dropped(x, p, train), _CERTAIN, FLOATS_AND_COMPLEX, differentiable=True,
                errors=_refused(name, (2, 3), 1.5, True, words=("p", "1.5")), behaviours=("dropout",))
        for name in ("alpha_dropout", "feature_alpha_dropout", "feature_dropout")
    ),
]  # fmt: skip
