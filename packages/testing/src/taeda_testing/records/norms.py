"""Records of norms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import FLOATS_AND_COMPLEX, OpRecord, Sample
from taeda_testing.sampling import Sampler
from taeda_testing.wrong import misfit

_P = (2, 1, 0, 3, 1.5, -1, np.inf, -np.inf)


def _record(name, reference, samples, dtypes=FLOATS_AND_COMPLEX, **more):
    return OpRecord(name, reference, samples, dtypes, ("float64",), family="reduce", **more)


def _norm(x, p=2, dim=None, keepdim=False, dtype=None):
    size = np.abs(x if dtype is None else x.astype(dtype)).astype(np.float64)
    axes = None if dim is None else tuple(np.atleast_1d(dim).tolist())
    p = 2 if p in (None, "fro") else p
    if np.isinf(p):
        found = (np.max if p > 0 else np.min)(size, axis=axes, keepdims=keepdim)
    elif p == 0:
        found = (size != 0).sum(axis=axes, keepdims=keepdim)
    else:
        found = (size**p).sum(axis=axes, keepdims=keepdim) ** (1 / p)
    return np.asarray(found).astype(np.zeros(0, dtype or x.dtype).real.dtype)


def _norms(names: bool = True) -> Sampler:
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        x = random_array(rng, (3, 4), dtype)
        yield Sample((x,))
        for p in (*_P, *((None, "fro") if names else ())):
            yield Sample((x, p))
            yield Sample((x, p), {"dim": 1, "keepdim": True})
        yield Sample((random_array(rng, (2, 3, 2), dtype), 2, (0, -1)))
        yield Sample((random_array(rng, (2, 3, 2), dtype), 1, [1], True))
        yield Sample((random_array(rng, (), dtype), 2))
        yield Sample((random_array(rng, (0, 3), dtype), 2, 0))
        yield Sample((x[:2], 2, 0), {"dtype": np.dtype("complex128" if x.dtype.kind == "c" else "float64")})

    return samples


def _distances(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for a, b in (((5,), (5,)), ((2, 3), (3,)), ((), (3,)), ((0,), (0,))):
        yield Sample((random_array(rng, a, dtype), random_array(rng, b, dtype)))
    for p in _P:
        yield Sample((random_array(rng, (2, 3), dtype), random_array(rng, (2, 1), dtype), p))


RECORDS = [
    _record("dist", lambda x, y, p=2: _norm(x - y, p), _distances, errors=misfit(
        "", (2, 3), (4,), words=("3", "4")
    )),
    _record("norm", _norm, _norms(), FLOATS_AND_COMPLEX, errors=(
        *misfit("norm", (2, 3), "nuclear", words=("p", "nuclear")),
        *misfit("norm", (2, 3), 2, 2, error=IndexError, words=("dim", "2")),
    )),
    _record("vector_norm", _norm, _norms(False), FLOATS_AND_COMPLEX, namespace="ops", out=True, errors=misfit(
        "vector_norm", (2, 3), 2, -3, error=IndexError, words=("dim", "-3")
    )),
]  # fmt: skip
