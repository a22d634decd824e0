"""Values and gradients beside PyTorch for every operator name that both libraries have, on PyTorch's own samples."""

from __future__ import annotations

import itertools
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the reference is PyTorch")

sys.path.insert(0, str(Path(__file__).parent))
from autograd_differences import DIFFERENT, LOOSE, RANDOM, SKIPPED_SAMPLES, VALUES_ONLY  # noqa: E402
from op_functions import function_of, known  # noqa: E402
from op_samples import close, convert, gradients, op_records, tensors, theirs, weights_for  # noqa: E402

import taeda  # noqa: E402

SEED = 20250607
SAMPLES = 8
TOLERANCE = {"float32": (2e-4, 2e-5), "float64": (1e-9, 1e-11)}
RECORDS = [r for r in op_records() if known(r) and r.name not in RANDOM]


def label(record):
    return record.name + (f"-{record.variant_test_name}" if record.variant_test_name else "")


def cases():
    for record, dtype in itertools.product(RECORDS, TOLERANCE):
        if getattr(torch, dtype) in record.supported_dtypes("cpu"):
            yield pytest.param(record, dtype, id=f"{label(record)}-{dtype}")


def call(function, sample, change):
    leaves = []
    arguments = [change(value, leaves) for value in (sample.input, *sample.args)]
    keywords = change(dict(sample.kwargs), leaves)
    return function(*arguments, **keywords), leaves


def compare(record, sample, dtype):
    rtol, atol = TOLERANCE[dtype]
    rtol = LOOSE.get((record.name, dtype), rtol)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected, their_leaves = call(record.op, sample, theirs)
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            pytest.fail(f"PyTorch refuses its own sample: {error}")
        found, our_leaves = call(function_of(record), sample, convert)
        a, b = tensors(found), tensors(expected)
        assert len(a) == len(b), f"{len(a)} results, expected {len(b)}"
        for i, (ours, other) in enumerate(zip(a, b, strict=True)):
            close(ours, other, f"result {i}", rtol, atol)
        if not record.supports_autograd or record.name in VALUES_ONLY:
            return
        mine = gradients(found, our_leaves, taeda.autograd.grad, weights_for(taeda))
        reference = gradients(expected, their_leaves, torch.autograd.grad, weights_for(torch))
    assert (mine is None) == (reference is None), "only one of both libraries records the result"
    for i, (ours, other) in enumerate(zip(mine or [], reference or [], strict=True)):
        if ours is None or other is None:  # unused and zero mean the same
            rest = other if ours is None else ours
            assert rest is None or not np.asarray(rest.detach().numpy()).any(), f"gradient {i}"
            continue
        close(ours, other, f"gradient {i}", rtol, atol)


@pytest.mark.parametrize(("record", "dtype"), list(cases()))
def test_agrees_with_pytorch(record, dtype):
    torch.manual_seed(SEED)
    different = DIFFERENT.get(label(record)) or DIFFERENT.get(record.name)
    wanted = getattr(torch, dtype)
    skip = SKIPPED_SAMPLES.get(record.name, lambda sample: False)
    samples = record.sample_inputs("cpu", wanted, requires_grad=record.supports_autograd)
    compared = 0
    for number, sample in enumerate(itertools.islice(samples, SAMPLES)):
        if skip(sample):
            continue
        expected = different.words if different and different.holds_for(number, dtype) else None
        error = difference(record, sample, dtype)
        if expected is None:
            assert error is None, f"sample {number} ({sample.summary()}): {error}"
        else:
            found = error and re.search(expected, error)
            assert found, (
                f"sample {number} is listed as different ({different.reason}), but: {error or 'agrees'}"
            )
        compared += 1
    assert compared, "no sample was compared"


def difference(record, sample, dtype) -> str | None:
    """Type and text of the error that comparing a sample gives, if any."""
    try:
        compare(record, sample, dtype)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def test_differences_name_operators_that_both_have():
    names = {r.name for r in RECORDS} | {label(r) for r in RECORDS}
    assert set(DIFFERENT) | set(SKIPPED_SAMPLES) | VALUES_ONLY <= names
