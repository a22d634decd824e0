"""Half precision: every record's values and gradients within a few units in the last place; open ends of intervals."""

import itertools
import zlib

import numpy as np
import pytest

from taeda_testing import all_records
from taeda_testing.half import check_half, hard_samples

SEED = 20250301
# Of other bits by definition: what comes out is no number of the dtype that went in. lstm_sequence keeps the gates of
# every step as halves; lstm itself calls it in float32.
OTHER = {"lstm_sequence", "view", "view_as_complex", "view_as_real", "empty_like", "polar", "complex"}
RECORDS = [
    r for r in all_records()
    if "float32" in r.dtypes and not r.creates and r.family != "random" and r.name not in OTHER
]  # fmt: skip


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("record", [pytest.param(r, id=f"{r.family}-{r.name}") for r in RECORDS])
def test_within_a_few_units_of_float64(record, name):
    rng = np.random.default_rng(SEED + zlib.crc32(record.name.encode()))
    count = 0
    for sample in itertools.islice(hard_samples(record.samples("float32", rng)), 60):
        count += check_half(record, sample, name)
    assert count > 0
