"""Every record on the active provider's CPU: forward in all layouts and dtypes, in-place, out=, gradients."""

import zlib

import numpy as np
import pytest

from taeda_testing import (
    all_records,
    check_error,
    check_forward,
    check_gradient,
    check_hooks_stay,
    check_in_place,
    check_in_place_gradient,
    check_out,
    check_ownership,
    check_second_gradient,
    fits_in_place,
)
from taeda_testing.wrong import WRONG

SEED = 20250301
RECORDS = all_records()


def samples(record, dtype):
    """The samples of a record; the same ones in every run."""
    seed = SEED + zlib.crc32(f"{record.name} {dtype}".encode())
    print("seed", seed)
    return record.samples(dtype, np.random.default_rng(seed))


def cases(pick):
    return [pytest.param(r, d, id=f"{r.family}-{r.name}-{d}") for r in RECORDS for d in pick(r)]


@pytest.mark.parametrize(("record", "dtype"), cases(lambda r: r.dtypes))
def test_forward(record, dtype):
    for sample in samples(record, dtype):
        check_forward(record, sample)


@pytest.mark.parametrize(("record", "dtype"), cases(lambda r: r.dtypes if r.in_place else ()))
def test_in_place(record, dtype):
    for sample in samples(record, dtype):
        check_in_place(record, sample)


@pytest.mark.parametrize(("record", "dtype"), cases(lambda r: r.dtypes if r.out else ()))
def test_out(record, dtype):
    for sample in samples(record, dtype):
        check_out(record, sample)


def smooth(sample):
    """Whether a sample is small and finite, as differences of function values need."""
    arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
    return not sample.note and all(a.size <= 64 and np.isfinite(a).all() for a in arrays)


@pytest.mark.parametrize(("record", "dtype"), cases(lambda r: r.gradient))
def test_gradient(record, dtype):
    for sample in samples(record, dtype):
        if smooth(sample):
            check_gradient(record, sample)


@pytest.mark.parametrize(("record", "dtype"), cases(lambda r: r.gradient if r.second else ()))
def test_second_gradient(record, dtype):
    for sample in samples(record, dtype):
        arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
        if smooth(sample) and sum(a.size for a in arrays) <= 40:
            check_second_gradient(record, sample)


@pytest.mark.parametrize(("record", "dtype"), cases(lambda r: r.gradient if r.in_place else ()))
def test_in_place_gradient(record, dtype):
    for sample in samples(record, dtype):
        if smooth(sample) and fits_in_place(record, sample):
            check_in_place_gradient(record, sample)


@pytest.mark.parametrize(("record", "dtype"), cases(lambda r: r.gradient))
def test_results_show_arguments_or_nothing(record, dtype):
    for sample in samples(record, dtype):
        check_ownership(record, sample)


@pytest.mark.parametrize(("record", "dtype"), cases(lambda r: r.gradient))
def test_hooks_stay_when_results_are_written(record, dtype):
    for sample in samples(record, dtype):
        check_hooks_stay(record, sample)


@pytest.mark.parametrize(
    ("record", "wrong"),
    [pytest.param(r, w, id=f"{r.family}-{r.name}-{i}") for r in RECORDS for i, w in enumerate(r.errors)],
)
def test_errors(record, wrong):
    check_error(record, wrong)


def test_wrong_calls_belong_to_records():
    assert set(WRONG) <= {record.name for record in RECORDS}
