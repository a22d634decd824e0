"""Prints a digest of each element-wise record by the loops of one instruction set: the child of test_isas.

TAEDA_ISA=avx2 python tests/isa_bits.py
"""

from __future__ import annotations

import hashlib
import itertools
import warnings
import zlib
from collections.abc import Iterator

import numpy as np

import taeda as t
from taeda_testing import all_records
from taeda_testing.record import OpRecord, Sample
from taeda_testing.runner import function_of, to_tensors

# Those whose loops are lines of scalar arithmetic, and the copies between dtypes around them.
FAMILIES = ("activation", "arith", "cast", "compare", "special", "unary")
LENGTH = 700  # elements at least: several blocks and a rest


def lengthened(sample: Sample) -> Sample:
    """Arrays of one shape repeated along the last dimension; others stay as they are."""
    arrays = [a for a in sample.args if isinstance(a, np.ndarray) and a.ndim]
    if len({a.shape for a in arrays}) != 1 or arrays[0].size == 0:
        return sample
    repeats = -(-LENGTH // arrays[0].shape[-1])
    args = (
        np.concatenate([a] * repeats, -1) if isinstance(a, np.ndarray) and a.ndim else a for a in sample.args
    )
    return Sample(tuple(args), sample.kwargs)


def apart(value: object) -> object:
    """A tensor whose elements do not lie in a row."""
    if not isinstance(value, t.Tensor) or value.dim() == 0:
        return value
    return t.stack([value, value], -1)[..., 0]


def results(record: OpRecord, sample: Sample) -> Iterator[t.Tensor]:
    """Of the operands as they are and with elements apart."""
    kwargs = {name: to_tensors(value) for name, value in sample.kwargs.items()}
    for change in (lambda value: value, apart):
        found = function_of(record)(*(change(to_tensors(value)) for value in sample.args), **kwargs)
        yield from (
            r for r in (found if isinstance(found, (list, tuple)) else [found]) if isinstance(r, t.Tensor)
        )


def digest(record: OpRecord, dtype: str) -> str:
    """Of all results' bytes; NaN counts as one value."""
    made = hashlib.sha256()
    rng = np.random.default_rng(zlib.crc32(record.name.encode()))
    for sample in itertools.islice(record.samples(dtype, rng), 12):
        for tensor in results(record, lengthened(sample)):
            plain = tensor.detach().resolve_conj().contiguous()
            if plain.is_floating_point():
                plain = t.where(plain.isnan(), t.full_like(plain, float("nan")), plain)
            made.update(plain.view(-1).view(t.uint8).numpy().tobytes())
    return made.hexdigest()[:16]


def main() -> None:
    warnings.simplefilter("ignore")
    for record in all_records():
        if record.family in FAMILIES and record.values and not record.creates and not record.row_major:
            for dtype in record.dtypes:
                print(f"{record.family} {record.name} {dtype}\t{digest(record, dtype)}")


if __name__ == "__main__":
    main()
