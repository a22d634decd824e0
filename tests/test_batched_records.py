"""Every record's calls inside a vmap: shapes, dtypes and values of a call for each example, or a refusal by name."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import taeda
from taeda.func import vmap
from taeda_testing import all_records
from taeda_testing.record import OpRecord, Sample
from taeda_testing.runner import function_of, to_tensors

SEED = 20261125
SAMPLES = 2
DTYPES = ("bool", "int64", "float32", "complex64")
# What a vmap says where sizes or numbers follow from elements, or an operator has no meaning for a batch.
REFUSALS = ("belongs to level", "vmap", "meta", "has no memory", "read-only")


def arrays(sample: Sample) -> list[int]:
    """Positions of the arguments that are tensors."""
    return [at for at, value in enumerate(sample.args) if isinstance(value, np.ndarray)]


def scalars(sample: Sample) -> Sample:
    """The same call on one element of each tensor, without dimensions; as it is where there are no elements."""
    if any(isinstance(v, np.ndarray) and not v.size for v in sample.args):
        return sample
    return Sample(
        tuple(v.reshape(-1)[0:1].reshape(()) if isinstance(v, np.ndarray) else v for v in sample.args),
        sample.kwargs,
    )


def called(record: OpRecord, sample: Sample, at: list[int]) -> Any:
    """The record's function of the arguments at these positions, the others given."""

    def function(*tensors: Any) -> Any:
        args = [to_tensors(value) for value in sample.args]
        for place, value in zip(at, tensors, strict=True):
            args[place] = value.clone() if record.name.endswith("_") else value
        made = function_of(record)(*args, **{key: to_tensors(value) for key, value in sample.kwargs.items()})
        return tuple(t for t in taeda.utils._pytree.tree_leaves(made) if isinstance(t, taeda.Tensor))

    return function


def check(record: OpRecord, sample: Sample, where: str) -> None:
    at = arrays(sample)
    examples = [to_tensors(sample.args[place]) for place in at]
    function = called(record, sample, at)
    try:
        expected = function(*examples)
    except Exception:
        return  # samples made of single elements need not be right ones
    try:
        found = vmap(function, randomness="different")(*[taeda.stack([e, e]) for e in examples])
    except (RuntimeError, NotImplementedError, ValueError) as error:
        assert any(word in str(error) for word in REFUSALS), f"{where}: {error}"
        return
    assert len(found) == len(expected), where
    for ours, one in zip(found, expected, strict=True):
        assert (ours.dtype, tuple(ours.shape)) == (one.dtype, (2, *one.shape)), where
        if record.values and record.family != "random":
            taeda.testing.assert_close(
                ours[1], one, rtol=1e-4, atol=1e-5, equal_nan=True, msg=lambda m: f"{where}: {m}"
            )


@pytest.mark.parametrize(
    "record", [r for r in all_records() if not r.creates], ids=lambda record: record.name
)
def test_a_batch_is_what_its_examples_are(record):
    for dtype in (d for d in DTYPES if d in record.dtypes):
        seed = SEED + zlib.crc32(f"{record.name} {dtype}".encode())
        for number, sample in enumerate(record.samples(dtype, np.random.default_rng(seed))):
            if number == SAMPLES:
                break
            if not arrays(sample):
                continue
            for form, each in (("", sample), (" of single elements", scalars(sample))):
                check(record, each, f"{dtype}, sample {number}{form}, seed {seed}")
