"""Records of matrix products."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import COMPLEX, FLOATS, OpRecord, Sample
from taeda_testing.wrong import misfit

_PAIRS = (((2, 3), (3, 4)), ((1, 1), (1, 1)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((40, 70), (70, 33)))
_MATMUL = (
    *_PAIRS,
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((4, 2, 3), (3, 5)),
    ((5, 1, 2, 3), (4, 3, 2)),
)
_DTYPES = ("int32", "int64", *FLOATS, *COMPLEX)
_TOLERANCE = {"rtol": {"float32": 1e-4, "complex64": 1e-4}, "atol": {"float32": 1e-3, "complex64": 1e-3}}


def _pairs(shapes):
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for a, b in shapes:
            yield Sample((random_array(rng, a, dtype), random_array(rng, b, dtype)))

    return samples


def _record(name, reference, samples, dtypes=_DTYPES, **more):
    return OpRecord(
        name,
        reference,
        samples,
        dtypes,
        gradient=("float64",),
        family="linalg",
        out=True,
        **_TOLERANCE,
        **more,
    )


RECORDS = [
    _record("mm", np.matmul, _pairs(_PAIRS)),
    _record("matmul", np.matmul, _pairs(_MATMUL)),
    _record(
        "bmm", np.matmul, _pairs((((4, 2, 3), (4, 3, 5)), ((0, 2, 3), (0, 3, 1)), ((2, 40, 30), (2, 30, 20))))
    ),
    _record("mv", np.matmul, _pairs((((2, 3), (3,)), ((5, 0), (0,)))), errors=misfit(
        "mv", (2, 3), (4,), words=("vec", "3", "4")
    )),
    _record("dot", np.dot, _pairs((((3,), (3,)), ((0,), (0,)))), errors=misfit(
        "dot", (3,), (4,), words=("3", "4")
    )),
    _record("outer", np.outer, _pairs((((3,), (2,)), ((0,), (2,)))), errors=misfit(
        "outer", (2, 3), (2,), words=("self", "(2, 3)")
    )),
]  # fmt: skip
