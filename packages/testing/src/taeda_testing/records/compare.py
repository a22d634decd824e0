"""Records of comparisons, logic, bits and choices by a condition."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import (
    ALL,
    FLOATS,
    FLOATS_AND_COMPLEX,
    INTEGERS,
    REALS,
    ErrorSample,
    OpRecord,
    Sample,
)
from taeda_testing.sampling import binary, mostly_zero, unary, with_masks
from taeda_testing.vocabulary import function_of_two
from taeda_testing.wrong import REFUSED, misfit, zeros


def _record(name, reference, samples, dtypes=ALL, differentiable=True, **more):
    return OpRecord(name, reference, samples, dtypes, differentiable=differentiable, **more)


def _filled(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in with_masks(dtype, rng):
        yield Sample((*sample.args, 1))


def _chosen(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for c, a, b in (((3,), (3,), (3,)), ((2, 1), (3,), (2, 3)), ((), (2,), ()), ((0, 3), (3,), (0, 3))):
        mask = np.asarray(rng.integers(0, 2, c).astype(bool))
        yield Sample((mask, random_array(rng, a, dtype), random_array(rng, b, dtype)))


def _numbers(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    mask, x = rng.integers(0, 2, (2, 3)).astype(bool), random_array(rng, (2, 3), dtype)
    yield Sample((mask, x, 2.5))
    yield Sample((mask, -1, x))


def _close(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in binary(special=True)(dtype, rng):
        a, b = sample.args
        yield Sample((a, np.where(rng.integers(0, 2, np.broadcast(a, b).shape), a, b).astype(dtype)))


def _nearly(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((4,), (2, 3), (), (0,)):
        x = random_array(rng, shape, dtype, 1, 4)
        for far in (0, 1e-6, 1e-3, 0.5):
            other = np.asarray(x + far, dtype)
            yield Sample((x, other))
            yield Sample((x, other), {"rtol": 0.0, "atol": 0.1})
            yield Sample((x, other, 1e-2, 0.0))
    one = np.array([1, np.nan, np.inf], dtype)
    yield Sample((one, one))
    yield Sample((one, one), {"equal_nan": True})
    yield Sample((one[2:], -one[2:]))
    yield Sample((one[:1], random_array(rng, (2, 3), dtype)), {"atol": 1.0})


def _twice(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((4,), (2, 3), (), (0,), (2, 0)):
        x = random_array(rng, shape, dtype)
        yield Sample((x, x.copy()))
        yield Sample((x, np.asarray(x == 0).astype(dtype)))
        yield Sample((x, x[None]))
    x = random_array(rng, (2, 3), dtype)
    yield Sample((x, x.T.copy()))
    yield Sample((x, np.asfortranarray(x)))
    yield Sample((np.zeros((1, 3), dtype), np.zeros((2, 3), dtype)))
    if np.dtype(dtype).kind == "f":
        yield Sample((np.array([np.nan], dtype), np.array([np.nan], dtype)))
        yield Sample((np.array([0.0], dtype), np.array([-0.0], dtype)))


RECORDS = [
    function_of_two("eq", np.equal, ALL, differentiable=False),
    function_of_two("ne", np.not_equal, ALL, differentiable=False),
    function_of_two("lt", np.less, ("bool", *REALS), differentiable=False),
    function_of_two("le", np.less_equal, ("bool", *REALS), differentiable=False),
    function_of_two("gt", np.greater, ("bool", *REALS), differentiable=False),
    function_of_two("ge", np.greater_equal, ("bool", *REALS), differentiable=False),
    function_of_two("logical_and", np.logical_and, ALL, differentiable=False),
    function_of_two("logical_or", np.logical_or, ALL, differentiable=False),
    function_of_two("logical_xor", np.logical_xor, ALL, differentiable=False),
    function_of_two("bitwise_and", np.bitwise_and, ("bool", *INTEGERS), differentiable=False),
    function_of_two("bitwise_or", np.bitwise_or, ("bool", *INTEGERS), differentiable=False),
    function_of_two("bitwise_xor", np.bitwise_xor, ("bool", *INTEGERS), differentiable=False),
    function_of_two("bitwise_left_shift", np.left_shift, INTEGERS, samples=binary(0, 3), differentiable=False),
    function_of_two("bitwise_right_shift", np.right_shift, INTEGERS, samples=binary(0, 3), differentiable=False),
    _record("masked_fill", lambda x, m, v: np.where(m, np.asarray(v, x.dtype), x), _filled, in_place=True,
            errors=(ErrorSample((zeros(2), np.zeros(3, bool), 1.0), {}, REFUSED, ("2", "3")),)),
    _record("where", np.where, _chosen, out=True, errors=misfit(
        "where", np.zeros(2, bool), (3,), 0.0, words=("2", "3")
    )),
    OpRecord("where", lambda c: list(np.argwhere(np.atleast_1d(c)).astype(np.int64).T), mostly_zero, ALL),
    _record("where", np.where, _numbers, FLOATS_AND_COMPLEX),
    OpRecord("isclose", np.isclose, _close, FLOATS_AND_COMPLEX),
    OpRecord("isposinf", np.isposinf, unary(special=True), FLOATS),
    OpRecord("isneginf", np.isneginf, unary(special=True), FLOATS),
    OpRecord("allclose", np.allclose, _nearly, FLOATS, errors=(
        *misfit("allclose", (3,), (2,), words=("3", "2")),
        *misfit("allclose", (3,), (3,), -1.0, words=("rtol", "-1")),
    )),
    OpRecord("equal", np.array_equal, _twice, ALL),
    OpRecord("isnan", np.isnan, unary(special=True), FLOATS_AND_COMPLEX),
    OpRecord("isreal", np.isreal, unary(special=True), ALL),
    OpRecord("isinf", np.isinf, unary(special=True), FLOATS_AND_COMPLEX),
    OpRecord("isfinite", np.isfinite, unary(special=True), FLOATS_AND_COMPLEX),
    OpRecord("signbit", np.signbit, unary(special=True), FLOATS, out=True),
    OpRecord("logical_not", np.logical_not, unary(), ALL, out=True),
    OpRecord("bitwise_not", np.invert, unary(), ("bool", *REALS[:8]), in_place=True, out=True),
]  # fmt: skip
