"""Targets that are, overlap or show an operand: in-place and out= forms give what they give on copies."""

import zlib

import numpy as np
import pytest

from taeda_testing import all_records
from taeda_testing.aliasing import check_aliased_in_place, check_aliased_out

SEED = 20260214
FORMS = {"in-place": check_aliased_in_place, "out": check_aliased_out}


@pytest.mark.parametrize("form", FORMS)
def test_targets_may_share_memory_with_operands(form):
    print("seed", SEED)
    count = refused = 0
    for record in all_records():
        for dtype in record.dtypes:
            rng = np.random.default_rng(SEED + zlib.crc32(f"{record.name} {dtype}".encode()))
            for sample in record.samples(dtype, rng):
                calls, errors = FORMS[form](record, sample)
                count, refused = count + calls, refused + errors
    print(count, "calls,", refused, "refused")
    assert count > 1000 and not refused
