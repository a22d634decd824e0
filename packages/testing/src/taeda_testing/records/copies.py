"""Records of views in memory of their own: they are those of the views; and of copies with a part replaced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import ALL, OpRecord, Sample
from taeda_testing.records import shape, unary
from taeda_testing.sampling import calls
from taeda_testing.wrong import REFUSED, wrong_call, zeros


def _copy_of(name: str, view: str, nth: int = 0, out: bool = True, **more: Any) -> OpRecord:
    """The record of a view, of which `name` gives a copy; `nth` of several of one name."""
    record = [r for r in (*shape.RECORDS, *unary.RECORDS) if r.name == view][nth]
    return replace(record, name=name, out=out, in_place=False, namespace="", behaviours=(), **more)


def _split_copy(name: str, kind: type) -> OpRecord:
    """The record of `split` with the calls that give a size (int) or sizes (list)."""
    record = _copy_of(name, "split", out=False)
    every = record.samples

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        return (sample for sample in every(dtype, rng) if isinstance(sample.args[1], kind))

    errors = tuple(wrong for wrong in record.errors if isinstance(wrong.args[1], kind))
    return replace(record, samples=samples, errors=errors)


def _parts(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sizes, size, stride, offset in (
        ((6,), (2, 2), (3, 1), 0),
        ((2, 3), (2,), (2,), 1),
        ((3,), (), (), 2),
    ):
        yield Sample((random_array(rng, sizes, dtype), random_array(rng, size, dtype), size, stride, offset))
    yield Sample((random_array(rng, (4,), dtype), random_array(rng, (2,), dtype), (2,), (1,)))


def _replaced(x: np.ndarray, src: np.ndarray, size: Any, stride: Any, storage_offset: int = 0) -> np.ndarray:
    out = x.copy()
    flat = out.reshape(-1)
    for at in np.ndindex(*size):
        flat[storage_offset + sum(i * s for i, s in zip(at, stride, strict=True))] = src[at]
    return out


RECORDS = [
    OpRecord("alias_copy", np.copy, calls(((),), ((3,),), ((2, 3),), ((0, 2),)), ALL,
             differentiable=True, out=True),
    _copy_of("as_strided_copy", "as_strided"),
    OpRecord("as_strided_scatter", _replaced, _parts, ALL, differentiable=True, row_major=True, errors=(
        wrong_call(REFUSED, "as_strided_scatter src", zeros(4), zeros(3), (2,), (1,)),
        wrong_call(REFUSED, "as_strided", zeros(4), zeros(3), (3,), (2,)),
    )),
    _copy_of("detach_copy", "detach"),
    _copy_of("diagonal_copy", "diagonal"),
    _copy_of("expand_copy", "expand"),
    _copy_of("permute_copy", "permute"),
    _copy_of("select_copy", "select"),
    _copy_of("slice_copy", "slice"),
    _split_copy("split_copy", int),
    _split_copy("split_with_sizes_copy", list),
    _copy_of("squeeze_copy", "squeeze"),
    _copy_of("squeeze_copy", "squeeze", 1),
    _copy_of("t_copy", "t"),
    _copy_of("transpose_copy", "transpose"),
    _copy_of("unbind_copy", "unbind", out=False),
    _copy_of("unfold_copy", "unfold"),
    _copy_of("unsafe_chunk", "chunk", out=False),
    _split_copy("unsafe_split", int),
    _split_copy("unsafe_split_with_sizes", list),
    _copy_of("unsqueeze_copy", "unsqueeze"),
    _copy_of("view_as_complex_copy", "view_as_complex", needs=("complex",)),
    _copy_of("view_as_real_copy", "view_as_real"),
    _copy_of("view_copy", "view"),
]  # fmt: skip
