"""Every record's calls on meta: the shapes, dtypes and kinds of results that the cpu gives, without elements."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import taeda
from taeda_testing import all_records
from taeda_testing.record import OpRecord, Sample
from taeda_testing.runner import function_of, to_tensors

SEED = 20261125
SAMPLES = 4

# Operators whose results' sizes, or whose result as a number, follow from elements. On meta they say so.
BY_ELEMENTS = {
    "allclose", "argwhere", "bincount", "combinations", "ctc_loss", "equal", "histogram", "histogramdd", "index",
    "index_put", "index_put_", "is_nonzero", "item", "masked_select", "nonzero", "one_hot", "repeat_interleave",
    "tensor_split", "unique", "unique_all", "unique_consecutive", "unique_consecutive_all", "unique_dim",
    "unique_dim_consecutive", "where",
}  # fmt: skip


def described(result: Any) -> Any:
    """Shapes and dtypes of a result; of what is no tensor, its type."""
    if isinstance(result, taeda.Tensor):
        return tuple(result.shape), result.dtype
    if isinstance(result, (list, tuple)):
        return [described(each) for each in result]
    return type(result)


def on_meta(value: Any) -> Any:
    if isinstance(value, taeda.Tensor):
        return value.to("meta")
    if isinstance(value, (list, tuple)):
        return type(value)(map(on_meta, value))
    return value


def call(record: OpRecord, sample: Sample, meta: bool) -> Any:
    args = [to_tensors(value) for value in sample.args]
    kwargs = {key: to_tensors(value) for key, value in sample.kwargs.items()}
    if meta:
        args, kwargs = [on_meta(a) for a in args], {key: on_meta(value) for key, value in kwargs.items()}
    if record.creates:
        kwargs |= {"device": "meta" if meta else "cpu"}
    return function_of(record)(*args, **kwargs)


@pytest.mark.parametrize("record", all_records(), ids=lambda record: record.name)
def test_meta_tells_what_the_cpu_gives(record):
    for dtype in record.dtypes:
        seed = SEED + zlib.crc32(f"{record.name} {dtype}".encode())
        for number, sample in enumerate(record.samples(dtype, np.random.default_rng(seed))):
            if number == SAMPLES:
                break
            expected = described(call(record, sample, meta=False))
            try:
                found = described(call(record, sample, meta=True))
            except NotImplementedError:
                assert record.name in BY_ELEMENTS, f"{dtype}, sample {number}, seed {seed}"
                continue
            assert found == expected, f"{dtype}, sample {number}, seed {seed}"
