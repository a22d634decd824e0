"""Records of tensors made from sizes, numbers and other tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import ALL, FLOATS, REALS, ErrorSample, OpRecord, Sample
from taeda_testing.sampling import Sampler, binary
from taeda_testing.vocabulary import with_errors
from taeda_testing.wrong import REFUSED, wrong_call, zeros

_DEFAULT = np.dtype("float32")

_SIZES = (((),), ((3,),), ((2, 3),), (2, 0, 3), (4,))


def _made(*calls: tuple[Any, ...], default: str = "float32") -> Sampler:
    """Calls with dtype=, and without it where that is the default."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for args in calls:
            yield Sample(args, {"dtype": np.dtype(dtype)})
            if dtype == default:
                yield Sample(args)

    return samples


def _like(*rest: Any) -> Sampler:
    """A tensor and further arguments; then with a dtype of its own."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((), (3,), (2, 3), (2, 0)):
            yield Sample((random_array(rng, shape, dtype), *rest))
        yield Sample((random_array(rng, (3, 2), dtype), *rest), {"dtype": _DEFAULT})

    return samples


def _new(*rest: Any) -> Sampler:
    """A tensor that gives the dtype, and sizes of every spelling."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for sizes in ((),), ((3,),), ((2, 0),), *(() if rest else ((2, 3), (4,))):
            yield Sample((random_array(rng, (2,), dtype), *sizes, *rest))
        yield Sample((random_array(rng, (), dtype), (2, 1), *rest), {"dtype": _DEFAULT})

    return samples


def _size(size: tuple) -> tuple[int, ...]:
    return tuple(size[0]) if isinstance(size[0], tuple) else size


def _filled(value: int) -> Callable[..., np.ndarray]:
    return lambda *size, dtype=_DEFAULT: np.full(_size(size), value, dtype)


def _filled_like(value: int) -> Callable[..., np.ndarray]:
    return lambda x, dtype=None: np.full(x.shape, value, dtype or x.dtype)


def _new_filled(value: int) -> Callable[..., np.ndarray]:
    return lambda x, *size, dtype=None: np.full(_size(size), value, dtype or x.dtype)


def _dtype_of(value: Any) -> str:
    return {bool: "bool", int: "int64", float: "float32", complex: "complex64"}[type(value)]


def _scalar_tensor(s: Any, dtype: Any = None) -> np.ndarray:
    return np.array(s, dtype or ("complex64" if isinstance(s, complex) else "float32"))


def _full(size: tuple, value: Any, dtype: Any = None) -> np.ndarray:
    return np.full(size, value, dtype or _dtype_of(value))


def _fulls(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for size in ((), (3,), (2, 0), (2, 3)):
        yield Sample((size, 2), {"dtype": np.dtype(dtype)})
    value = {"bool": True, "int64": -3, "float32": 1.5, "complex64": 1 - 2j}.get(dtype)
    if value is not None:
        yield Sample(((2, 3), value))


def _arange(start: Any, end: Any = None, step: Any = 1, dtype: Any = None) -> np.ndarray:
    start, end = (0, start) if end is None else (start, end)
    whole = all(isinstance(value, int) for value in (start, end, step))
    count = max(0, int(np.ceil((end - start) / step)))
    return (start + np.arange(count) * step).astype(dtype or (np.int64 if whole else _DEFAULT))


def _ranges(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    whole = [(5,), (0,), (1,), (2, 7), (3, 3), (1, 9, 3), (0, 9, 3)]
    down = [(5, 0, -2), (-3, 2), (-1, -8, -3)]
    broken = [(2.5,), (0, 1, 0.25), (0.5, 3), (1.0, -1.0, -0.3)]
    kind = np.dtype(dtype).kind
    for args in whole + down * (kind in "if") + broken * (kind == "f"):
        yield Sample(args, {"dtype": np.dtype(dtype)})
    for args in {"int64": whole + down, "float32": broken}.get(dtype, []):
        yield Sample(args)


def _between(start: float, end: float, steps: int) -> list[float]:
    return [start + (end - start) * i / (steps - 1) if i else start for i in range(steps)]


def _linspace(start: float, end: float, steps: int, dtype: Any = _DEFAULT) -> np.ndarray:
    return np.array(_between(start, end, steps)).astype(dtype)


def _logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    dtype: Any = _DEFAULT,
) -> np.ndarray:
    return np.array([base**e for e in _between(start, end, steps)], np.float64).astype(dtype)


def _eye(n: int, m: int | None = None, dtype: Any = _DEFAULT) -> np.ndarray:
    out = np.zeros((n, n if m is None else m), dtype)
    for i in range(min(out.shape)):
        out[i, i] = 1
    return out


def _triangle(inside: Callable[[int, int], bool]) -> Callable[..., np.ndarray]:
    def call(row: int, col: int, offset: int = 0, dtype: Any = np.int64) -> np.ndarray:
        found = [(i, j) for i in range(row) for j in range(col) if inside(j - i, offset)]
        return np.array(found, dtype).reshape(-1, 2).T

    return call


_TRIANGLES = _made(
    (3, 3), (2, 4), (4, 2, 1), (4, 2, -1), (3, 3, 5), (3, 3, -5), (0, 3), (3, 0), default="int64"
)


def _record(
    name: str, reference: Any, samples: Any, *errors: ErrorSample, dtypes: Any = ALL, **more: Any
) -> OpRecord:
    return OpRecord(name, reference, samples, dtypes, errors=errors, **more)


_UNINITIALISED = {"values": False, "half": "", "behaviours": ("uninitialised", "created leaves")}
_NEGATIVE = ErrorSample(((2, -1),), {}, REFUSED, ("size", "-1"))

_X = np.zeros(2, np.float32)


def _complex_of(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    return (real + 1j * imag.astype(np.result_type(imag, 1j))).astype(np.result_type(real, 1j))


RECORDS = [
    _record("arange", _arange, _ranges,
            wrong_call(REFUSED, "arange step", 0, 3, 0),
            wrong_call(REFUSED, "arange step -1", 0, 3, -1),
            wrong_call(REFUSED, "arange step", 3, 0),
            dtypes=REALS, creates=True),
    _record("arange_fill_", lambda x, start, step: (start + np.arange(x.size) * step).astype(x.dtype),
            lambda dtype, rng: (Sample((np.zeros(n, dtype), *rest)) for n in (0, 1, 7) for rest in ((0, 1), (3, 2))),
            dtypes=REALS, namespace="ops", writes=(0,), behaviours=("arange",)),
    _record("empty", _filled(0), _made(*_SIZES), _NEGATIVE, creates=True, **_UNINITIALISED),
    _record("empty_like", _filled_like(0), _like(), **_UNINITIALISED),
    _record("empty_permuted", lambda size, order, dtype=_DEFAULT: np.zeros(size, dtype),
            _made(((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((), ()), ((0, 2), (0, 1))),
            wrong_call(REFUSED, "empty_permuted 1 2", (2, 3), (1,)),
            wrong_call(REFUSED, "empty_permuted physical_layout", (2, 3), (1, 1)), creates=True, **_UNINITIALISED),
    _record("empty_strided", lambda size, stride, dtype=_DEFAULT: np.zeros(size, dtype),
            _made(((2, 3), (3, 1)), ((2, 3), (1, 2)), ((), ()), ((0, 2), (2, 1))),
            wrong_call(REFUSED, "empty_strided", (2, 3), (1,)), creates=True, **_UNINITIALISED),
    _record("eye", _eye, _made((3,), (0,), (1,), (2, 4), (3, 2), (2, 0)),
            wrong_call(REFUSED, "eye n -1", -1), wrong_call(REFUSED, "eye m -2", 2, -2), creates=True),
    _record("full", _full, _fulls, wrong_call(REFUSED, "size -1", (2, -1), 1), creates=True),
    _record("full_like", lambda x, value, dtype=None: _filled_like(value)(x, dtype), _like(1)),
    _record("linspace", _linspace, _made((0, 1, 5), (3, 9, 4), (2, 2, 3), (5, 1, 3), (1, 4, 1), (1, 4, 0)),
            wrong_call(REFUSED, "linspace steps -1", 0, 1, -1), dtypes=REALS, creates=True),
    _record("linspace", _linspace, _made((-1.5, 2.5, 7), (1e3, -1e3, 11)), dtypes=FLOATS, creates=True),
    _record("linspace", _linspace, _made((0, 1 + 1j, 3), (2j, 2, 5)), dtypes=("complex64", "complex128"), creates=True),
    _record("logspace", _logspace, _made((0, 2, 3), (2, 0, 3), (0, 3, 4, 2), (0, 2, 1, 3), (0, 1, 0)),
            wrong_call(REFUSED, "steps -1", 0, 1, -1), dtypes=REALS, creates=True),
    _record("logspace", _logspace, _made((-1.5, 2.5, 7), (-2, 2, 5, 0.5)), dtypes=FLOATS, creates=True),
    _record("new_empty", _new_filled(0), _new(), wrong_call(REFUSED, "size -1", _X, (-1,)), **_UNINITIALISED),
    _record("new_full", lambda x, size, value, dtype=None: np.full(size, value, dtype or x.dtype), _new(1),
            wrong_call(REFUSED, "size -1", _X, (-1,), 1)),
    _record("new_ones", _new_filled(1), _new(), wrong_call(REFUSED, "size -1", _X, (-1,))),
    _record("new_zeros", _new_filled(0), _new(), wrong_call(REFUSED, "size -1", _X, (-1,))),
    _record("ones", _filled(1), _made(*_SIZES), _NEGATIVE, creates=True),
    _record("ones_like", _filled_like(1), _like()),
    _record("scalar_tensor", _scalar_tensor,
            lambda dtype, rng: (Sample(s.args[1:], s.kwargs) for s in _fulls(dtype, rng)), creates=True),
    _record("tril_indices", _triangle(lambda ahead, offset: ahead <= offset), _TRIANGLES,
            wrong_call(REFUSED, "tril_indices row -1", -1, 2), wrong_call(REFUSED, "tril_indices col -2", 2, -2),
            dtypes=("int32", "int64"), creates=True),
    _record("triu_indices", _triangle(lambda ahead, offset: ahead >= offset), _TRIANGLES,
            wrong_call(REFUSED, "triu_indices row -1", -1, 2), wrong_call(REFUSED, "triu_indices col -2", 2, -2),
            dtypes=("int32", "int64"), creates=True),
    _record("zeros", _filled(0), _made(*_SIZES), _NEGATIVE, creates=True),
    _record("zeros_like", _filled_like(0), _like()),
    with_errors("complex", _complex_of, binary(),
            wrong_call(REFUSED, "complex real imag int64", zeros(2, dtype=np.int64), zeros(2, dtype=np.int64)),
            wrong_call((TypeError, RuntimeError), "complex float32 float64", zeros(2), zeros(2, dtype=np.float64)),
            wrong_call(REFUSED, "complex 2 3", zeros(2), zeros(3)), dtypes=FLOATS,
            behaviours=("gradients through complex numbers",), half=""),
]  # fmt: skip
