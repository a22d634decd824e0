"""Numbers with an imaginary part among real tensors, in every record's calls: they are not cut silently."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import taeda
from taeda import library
from taeda_testing import all_records
from taeda_testing.record import OpRecord
from taeda_testing.runner import function_of, to_tensors

SEED = 20261128


def numbers_of(name: str) -> list[tuple[int, str]]:
    """Position and name of each argument that is a number which may be complex."""
    op = next((op for op in library.operators() if op.name == name), None)
    if op is None:
        return []
    return [(i, a.name) for i, a in enumerate(op.arguments) if a.type == "Scalar" and not a.list]


CASES = [
    pytest.param(record, *place, id=f"{record.name}-{place[1]}")
    for record in {record.name: record for record in all_records() if "float32" in record.dtypes}.values()
    for place in numbers_of(record.name)
]


def calls(record: OpRecord, position: int, name: str) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Arguments of the record's calls with a complex number there."""
    rng = np.random.default_rng(SEED + zlib.crc32(record.name.encode()))
    for sample in record.samples("float32", rng):
        args = [to_tensors(value) for value in sample.args]
        kwargs = {key: to_tensors(value) for key, value in sample.kwargs.items()}
        if position < len(args) and not isinstance(args[position], taeda.Tensor):
            args[position] = 1 + 2j
        elif position >= len(args) and not isinstance(kwargs.get(name), taeda.Tensor):
            kwargs[name] = 1 + 2j
        else:
            continue
        yield args, kwargs


@pytest.mark.parametrize("record, position, name", CASES)
def test_they_are_used_or_refused(record: OpRecord, position: int, name: str) -> None:
    print("seed", SEED)
    for args, kwargs in calls(record, position, name):
        try:
            made = function_of(record)(*args, **kwargs)
        except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
            assert str(error)
            continue
        results = made if isinstance(made, (tuple, list)) else [made]
        assert any(
            isinstance(r, taeda.Tensor) and (r.is_complex() or r.dtype == taeda.bool) for r in results
        ), args
