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
    check_orders,
    check_out,
    check_ownership,
    check_second_gradient,
    fits_in_place,
    special_samples,
)
from taeda_testing.record import FLOATS
from taeda_testing.runner import function_of, to_tensors
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


def size(sample):
    """Elements of all arrays of a sample."""
    lists = [value if isinstance(value, (list, tuple)) else [value] for value in sample.args]
    return sum(a.size for values in lists for a in values if isinstance(a, np.ndarray))


def smooth(sample):
    """Whether a sample is small and finite, as differences of function values need."""
    arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
    return not sample.note and all(a.size <= 64 and np.isfinite(a).all() for a in arrays)


@pytest.mark.parametrize(("record", "dtype"), cases(lambda r: r.differentiated))
def test_gradient(record, dtype):
    for sample in samples(record, dtype):
        if smooth(sample):
            check_gradient(record, sample)


@pytest.mark.parametrize(("record", "dtype"), cases(lambda r: r.differentiated if r.second else ()))
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


def orders(record):
    """The dtypes in which the gradient must not depend on whether it is recorded itself."""
    floats = [d for d in FLOATS if d in record.dtypes]
    return dict.fromkeys((*floats, *record.differentiated)) if record.gradient else ()


@pytest.mark.parametrize(("record", "dtype"), cases(orders))
def test_gradient_is_the_same_whatever_the_order(record, dtype):
    compared = 0
    for number, sample in enumerate(samples(record, dtype)):
        if size(sample) > 200:
            continue
        compared += check_orders(record, sample)
        if np.dtype(dtype).kind == "f":
            for special in special_samples(record, sample, np.random.default_rng([SEED, number])):
                compared += check_orders(record, special)
    print("compared", compared)
    assert compared


def taken_as_complex(record):
    """Whether an operator takes its real samples as complex numbers."""

    def changed(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(changed, value))
        real = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        return np.asarray(value + 0.25j).astype("complex128") if real else value

    calls = [s for s in samples(record, "float64") if size(s) and not s.note]
    try:
        for sample in calls:
            args = [to_tensors(changed(value)) for value in sample.args]
            function_of(record)(*args, **{key: to_tensors(v) for key, v in sample.kwargs.items()})
    except (RuntimeError, TypeError, ValueError):
        return False
    return bool(calls)


@pytest.mark.parametrize(
    "name",
    sorted({r.name for r in RECORDS if r.gradient} - {r.name for r in RECORDS if "complex128" in r.dtypes}),
)
def test_what_takes_complex_says_so(name):
    """Else its complex gradients would be looked at by nobody."""
    assert not all(taken_as_complex(r) for r in RECORDS if r.name == name and "float64" in r.dtypes)


@pytest.mark.parametrize(
    ("record", "wrong"),
    [pytest.param(r, w, id=f"{r.family}-{r.name}-{i}") for r in RECORDS for i, w in enumerate(r.errors)],
)
def test_errors(record, wrong):
    check_error(record, wrong)


def test_wrong_calls_belong_to_records():
    assert set(WRONG) <= {record.name for record in RECORDS}
