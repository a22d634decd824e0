"""Records of random operators, called so that chance has no say; the device suite looks at the distributions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taeda_testing.arrays import SHAPES, random_array
from taeda_testing.record import FLOATS, FLOATS_AND_COMPLEX, REALS, OpRecord, Sample
from taeda_testing.sampling import Sampler
from taeda_testing.wrong import misfit

_EMPTY = ((0,), (2, 0), (0, 3, 1))
_BOUNDED = ("bool", *REALS)


def _record(name, reference, samples, dtypes=FLOATS, gradient=(), **more):
    return OpRecord(name, reference, samples, dtypes, gradient, family="random", **more)


def _calls(*rest: tuple, shapes=SHAPES, low: float = -4, high: float = 4) -> Sampler:
    """Arrays of the shapes, each with every set of further arguments."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in shapes:
            for args in rest:
                yield Sample((random_array(rng, shape, dtype, low, high), *args))

    return samples


def _made(*calls: tuple, sized: bool = True) -> Sampler:
    """Calls that make a tensor of a dtype: arguments before the size."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for args in calls:
            for shape in SHAPES if sized else ((),):
                yield Sample((*args, shape) if sized else args, {"dtype": np.dtype(dtype)})

    return samples


def _empty(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in _EMPTY:
        yield Sample((shape,))
        yield Sample(shape, {"dtype": np.dtype(dtype)})
        yield Sample((list(shape),), {"dtype": np.dtype(dtype), "requires_grad": False})


def _empty_like(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in _EMPTY:
        yield Sample((np.zeros(shape, dtype),))
        yield Sample((np.zeros(shape, dtype),), {"dtype": np.dtype("float64")})


def _shaped(*size, dtype=np.float32, requires_grad=False):
    return np.zeros(size[0] if isinstance(size[0], (tuple, list)) else size, dtype)


def _filled(x, value):
    return np.full(x.shape, value, x.dtype)


def _integers(*args, dtype=np.int64):
    *bounds, size = args
    return np.full(size, bounds[0] if len(bounds) > 1 else 0, dtype)


def _integers_like(x, *bounds, dtype=None):
    return np.full(x.shape, bounds[0] if len(bounds) > 1 else 0, dtype or x.dtype)


def _dropped(x, p=0.5, training=True):
    return x if not training or p == 0 else np.zeros_like(x)


def _leaky(x, lower=1 / 8, upper=1 / 3, training=False):
    return np.where(x < 0, x * np.asarray((lower + upper) / 2, x.dtype), x)


def _sure(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((np.asarray(rng.integers(0, 2, shape)).astype(dtype),))


def _given(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, p in (((3,), (3,)), ((2, 3), (3,)), ((), ())):
        yield Sample((np.zeros(shape, dtype), np.asarray(rng.integers(0, 2, p)).astype(np.float32)))


def _masked(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((random_array(rng, shape, dtype), random_array(rng, shape, "bool"), 1.25))


def _means(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for mean, std in (((3,), (3,)), ((2, 1), (3,)), ((), (2,)), ((0,), (0,))):
        yield Sample((random_array(rng, mean, dtype), np.zeros(std, dtype)))
    yield Sample((random_array(rng, (2, 3), dtype), 0.0))
    yield Sample((2.5, np.zeros((2, 3), dtype)))


def _categories(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for rows in ((), (1,), (4,), (0,)):
        weights = np.eye(5, dtype=dtype)[rng.integers(0, 5, rows)]
        yield Sample((weights * np.asarray(3, dtype), 1))
        yield Sample((weights, 7, True))


def _drawn(weights, n, replacement=False):
    return np.repeat(np.argmax(weights, -1)[..., None], n, -1)


def _wrong(name: str, *args, words: tuple[str, ...], **options):
    return misfit(name, *args, words=words, error=(RuntimeError, ValueError, TypeError), **options)


RECORDS = [
    _record("bernoulli", np.copy, _sure),
    _record("bernoulli", _filled, _calls((0.0,), (1.0,)), _BOUNDED, errors=_wrong(
        "bernoulli", (2,), 1.5, words=("p", "1.5")
    )),
    _record("bernoulli_", _filled, _calls((0.0,), (1.0,)), _BOUNDED, errors=(
        *_wrong("bernoulli_", (2,), -0.5, words=("p", "-0.5")),
    ), writes=(0,)),
    _record("bernoulli_", lambda x, p: np.broadcast_to(p, x.shape).astype(x.dtype), _given, writes=(0,)),
    _record("cauchy_", lambda x, *_: x, _calls((), (1.0, 2.0), shapes=_EMPTY), errors=_wrong(
        "cauchy_", (2,), 0.0, -1.0, words=("sigma", "-1")
    ), writes=(0,)),
    _record("dropout", _dropped, _calls((0.5, False), (0.0,), (1.0, True)), FLOATS_AND_COMPLEX, gradient=("float64",),
            errors=_wrong("dropout", (2,), 1.5, words=("p", "1.5"))),
    _record("exponential_", lambda x, *_: x, _calls((), (2.0,), shapes=_EMPTY), errors=_wrong(
        "exponential_", (2,), -1.0, words=("lambd", "-1")
    ), writes=(0,)),
    _record("geometric_", lambda x, *_: x, _calls((0.5,), shapes=_EMPTY), REALS, errors=(
        *_wrong("geometric_", (2,), 0.0, words=("p", "0")),
        *_wrong("geometric_", (2,), 1.5, words=("p", "1.5")),
    ), writes=(0,)),
    _record("log_normal_", lambda x, *_: x, _calls((), (0.0, 1.0), shapes=_EMPTY), errors=_wrong(
        "log_normal_", (2,), 0.0, -1.0, words=("std", "-1")
    ), writes=(0,)),
    _record("multinomial", _drawn, _categories, errors=(
        *_wrong("multinomial", np.ones(2, np.float32), 3, words=("3", "2")),
        *_wrong("multinomial", np.ones(2, np.float32), 0, words=("num_samples", "0")),
        *_wrong("multinomial", (1, 1, 2), 1, words=("self", "(1, 1, 2)")),
        *_wrong("multinomial", np.int64([1, 2]), 1, words=("self", "int64")),
        *_wrong("multinomial", np.float32([1, 0, 0]), 2, words=("2", "1 non-zero")),
        *_wrong("multinomial", np.float32([1, -1]), 1, words=("self", "non-negative")),
        *_wrong("multinomial", np.zeros((1, 2), np.float32), 1, True, words=("self", "sum up to 0")),
    )),
    _record("native_dropout", lambda x, p: (_dropped(x, p), np.full(x.shape, p == 0)), _calls((0.0,), (1.0,)),
            FLOATS_AND_COMPLEX, gradient=("float64",), namespace="ops",
            errors=_wrong("native_dropout", (2,), -1.0, words=("p", "-1"))),
    _record("native_dropout_backward", lambda grad, mask, scale: (grad * mask * scale).astype(grad.dtype), _masked,
            FLOATS_AND_COMPLEX, gradient=("float64",), namespace="ops"),
    _record("normal", lambda mean, std, size, dtype: np.full(size, mean, dtype), _made((2.5, 0.0)), creates=True,
            errors=_wrong("normal", 0.0, -1.0, [2], words=("std", "-1"))),
    _record("normal", lambda mean, std: np.asarray(mean + std).astype(np.result_type(
        *(a for a in (mean, std) if isinstance(a, np.ndarray))
    )), _means, errors=(
        *_wrong("normal", (2,), -1.0, words=("std", "-1")),
        *_wrong("normal", (2,), np.float32([1, -2]), words=("std", "-2")),
    )),
    _record("normal_", lambda x, mean, std: _filled(x, mean), _calls((2.5, 0.0)), errors=_wrong(
        "normal_", (2,), 0.0, -1.0, words=("std", "-1")
    ), writes=(0,)),
    _record("poisson", np.zeros_like, _calls((), low=0, high=0)),
    _record("rand", _shaped, _empty, creates=True, errors=_wrong("", [-2], words=("-2",))),
    _record("rand_like", lambda x, dtype=None: x.astype(dtype or x.dtype), _empty_like),
    _record("randint", _integers, _made((3, 4), (-2, -1), (1,)), ("int8", "int64", *FLOATS), creates=True,
            errors=(*_wrong("randint", 4, 4, [2], words=("low", "4")),
                    *_wrong("randint", 0, 300, [2], dtype=np.dtype("uint8"), words=("high", "300", "uint8")),
                    *_wrong("randint", -1, 3, [2], dtype=np.dtype("uint8"), words=("low", "-1", "uint8")))),
    _record("randint_like", _integers_like, _calls((3, 4), (1,)), _BOUNDED[1:], errors=_wrong(
        "randint_like", (2,), 4, 4, words=("low", "4")
    )),
    _record("randn", _shaped, _empty, creates=True, errors=_wrong("", [-2], words=("-2",))),
    _record("randn_like", lambda x, dtype=None: x.astype(dtype or x.dtype), _empty_like),
    _record("random_", lambda x, *bounds: _integers_like(x, *bounds), _calls((3, 4), (1,)), _BOUNDED[1:], errors=_wrong(
        "random_", (2,), 4, 4, words=("low", "high", "4")
    ), writes=(0,)),
    _record("random_", lambda x, *bounds: _integers_like(x, *bounds), _calls((3, 4)), ("uint8",), errors=_wrong(
        "random_", np.zeros(2, np.uint8), 0, 300, words=("high", "300", "uint8")
    ), writes=(0,)),
    _record("randperm", lambda n, dtype: np.zeros(n, dtype), _made((0,), (1,), sized=False), REALS, creates=True,
            errors=(*_wrong("randperm", -1, words=("n", "-1")),
                    *misfit("randperm", 300, dtype=np.dtype("uint8"), words=("n", "300", "uint8")))),
    _record("rrelu", _leaky, _calls((), (0.2, 0.4), (0.25, 0.25, True)), gradient=("float64",), errors=_wrong(
        "rrelu", (2,), 0.5, 0.25, True, words=("lower", "upper", "0.5", "0.25")
    )),
    _record("uniform_", lambda x, a, b: _filled(x, a), _calls((2.5, 2.5)), errors=(
        *_wrong("uniform_", (2,), 2.0, 1.0, words=("a", "b", "2", "1")),
        *_wrong("uniform_", (2,), 0.0, float("inf"), words=("a", "b", "inf")),
    ), writes=(0,)),
]  # fmt: skip
