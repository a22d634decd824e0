"""Everything that is checked of a record: one table, which the tests, the conformance kit and plug-ins run through."""

from __future__ import annotations

import itertools
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from taeda_testing import runner
from taeda_testing.aliasing import check_aliased_in_place, check_aliased_out
from taeda_testing.half import check_half, hard_samples
from taeda_testing.in_place_gradient import check_in_place_gradient, fits_in_place
from taeda_testing.orders import check_orders, special_samples
from taeda_testing.ownership import check_hooks_stay, check_ownership
from taeda_testing.record import FLOATS, ErrorSample, OpRecord, Sample
from taeda_testing.second import check_second_gradient

SEED = 20250301


def samples_of(record: OpRecord, dtype: str) -> Iterator[Sample]:
    """The samples of a record; the same ones in every run."""
    seed = SEED + zlib.crc32(f"{record.name} {dtype}".encode())
    return record.samples(dtype, np.random.default_rng(seed))


def size_of(value: Any) -> int:
    """Elements of all arrays of a sample, or of a value of one."""
    if isinstance(value, Sample):
        value = (*value.args, *value.kwargs.values())
    if isinstance(value, np.ndarray):
        return value.size
    return sum(map(size_of, value)) if isinstance(value, (list, tuple)) else 0


def smooth(record: OpRecord, sample: Sample) -> bool:
    """Whether a sample is small and finite, as differences of function values need."""
    arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
    return not sample.note and all(a.size <= 64 and np.isfinite(a).all() for a in arrays)


def _smooth_and_small(record: OpRecord, sample: Sample) -> bool:
    arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
    return smooth(record, sample) and sum(a.size for a in arrays) <= 40


def _smooth_in_place(record: OpRecord, sample: Sample) -> bool:
    return smooth(record, sample) and fits_in_place(record, sample)


def _hard(record: OpRecord, _: str) -> Iterator[Sample]:
    rng = np.random.default_rng(SEED + zlib.crc32(record.name.encode()))
    return itertools.islice(hard_samples(record.samples("float32", rng)), 60)


def _orders(record: OpRecord, sample: Sample, _: str) -> int:
    """The sample, and real ones with special values too."""
    compared = int(check_orders(record, sample))
    if all(a.dtype.kind != "c" for a in sample.args if isinstance(a, np.ndarray)):
        rng = np.random.default_rng([SEED, size_of(sample)])
        compared += sum(check_orders(record, special) for special in special_samples(record, sample, rng))
    return compared


@dataclass(frozen=True)
class RecordCheck:
    """One kind of check.

    Attributes:
        name: of the kind.
        run: called with record, sample and device; raises Failure for a difference.
        dtypes: those in which a record is checked, () for not at all.
        takes: whether a sample can be checked.
        samples: of a record in a dtype.
        need: capability without which a device is not checked.
        devices: whether it can be run on every device, or shows nothing beyond the cpu.
        counts: whether `run` gives how much there was to compare, which must be more than nothing in the end.
    """

    name: str
    run: Callable[[OpRecord, Sample, str], Any]
    dtypes: Callable[[OpRecord], Iterable[str]]
    takes: Callable[[OpRecord, Sample], bool] = lambda _record, _sample: True
    samples: Callable[[OpRecord, str], Iterable[Sample]] = samples_of
    need: str | None = None
    devices: bool = False
    counts: bool = False

    def on(self, record: OpRecord, sample: Sample, device: str) -> int:
        """The check on one sample, and how much there was to compare; warnings say nothing against a result.

        Raises:
            Failure: a difference.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return self.run(record, sample, device) or 0

    def all_samples(self, record: OpRecord, dtype: str, device: str = "cpu") -> None:
        """The check on every sample that it takes.

        Raises:
            Failure: a difference, or nothing that could be compared.
        """
        compared = 0
        for sample in self.samples(record, dtype):
            if self.takes(record, sample):
                compared += self.on(record, sample, device)
        if self.counts and not compared:
            raise runner.Failure(f"{record.name}: {self.name} {dtype}: there was nothing to compare")


def _real(record: OpRecord) -> list[str]:
    return [d for d in record.differentiated if d == "float64"]


def _without_graph(record: OpRecord) -> list[str]:
    floats = [d for d in FLOATS if d in record.dtypes and record.differentiable]
    return list(dict.fromkeys((*floats, *record.differentiated)))


def _fits_half(record: OpRecord) -> bool:
    return bool(record.half) and "float32" in record.dtypes and not record.creates


CHECKS = (
    RecordCheck("forward", runner.check_forward, lambda r: r.dtypes, devices=True),
    RecordCheck(
        "in-place",
        runner.check_in_place,
        lambda r: r.dtypes if r.in_place else (),
        need="in-place",
        devices=True,
    ),
    RecordCheck(
        "in-place, shared memory",
        check_aliased_in_place,
        lambda r: r.dtypes if r.in_place or 0 in r.writes else (),
        need="in-place",
        devices=True,
    ),
    RecordCheck("out=", runner.check_out, lambda r: r.dtypes if r.out else (), need="out", devices=True),
    RecordCheck(
        "out=, shared memory",
        check_aliased_out,
        lambda r: r.dtypes if r.out else (),
        need="out",
        devices=True,
    ),
    RecordCheck(
        "gradient",
        lambda record, sample, device: runner.check_gradient(record, sample, device=device),
        lambda r: r.differentiated,
        smooth,
        need="gradients",
        devices=True,
    ),
    RecordCheck(
        "second gradient",
        lambda record, sample, _: check_second_gradient(record, sample),
        lambda r: r.differentiated if r.second else (),
        _smooth_and_small,
    ),
    RecordCheck(
        "in-place gradient",
        lambda record, sample, _: check_in_place_gradient(record, sample),
        lambda r: _real(r) if r.in_place else (),
        _smooth_in_place,
    ),
    RecordCheck("ownership", lambda record, sample, _: check_ownership(record, sample), _real),
    RecordCheck(
        "hooks of written results", lambda record, sample, _: check_hooks_stay(record, sample), _real
    ),
    RecordCheck(
        "gradient with its graph",
        _orders,
        _without_graph,
        lambda _, sample: size_of(sample) <= 200,
        counts=True,
    ),
    *(
        RecordCheck(
            "half precision",
            lambda record, sample, _, name=name: check_half(record, sample, name),
            lambda r, name=name: (name,) if _fits_half(r) else (),
            samples=_hard,
            counts=True,
        )
        for name in ("float16", "bfloat16")
    ),
)


@dataclass(frozen=True)
class Case:
    """One record in one dtype under one check, or one wrong call; its text is a name for reports."""

    name: str
    call: Callable[[str], None]

    def run(self, device: str = "cpu") -> None:
        """Runs it on a device.

        Raises:
            Failure: something differs from the record; the text names the call.
        """
        self.call(device)

    def __str__(self) -> str:
        return self.name


def record_cases(records: Iterable[OpRecord]) -> list[Case]:
    """Everything that is checked of some records, in cases that pytest can be parametrized with.

    Example::

        @pytest.mark.parametrize("case", record_cases(RECORDS), ids=str)
        def test_record(case):
            case.run()
    """
    return [case for record in records for case in _cases(record)]


def _cases(record: OpRecord) -> Iterator[Case]:
    title = f"{record.family}-{record.name}"
    for check in CHECKS:
        for dtype in check.dtypes(record):
            call = _call_of(check, record, dtype)
            yield Case(f"{check.name}-{title}-{dtype}", call)
    for i, wrong in enumerate(record.errors):
        yield Case(f"error-{title}-{i}", _error(record, wrong))


def _call_of(check: RecordCheck, record: OpRecord, dtype: str) -> Callable[[str], None]:
    return lambda device: check.all_samples(record, dtype, device)


def _error(record: OpRecord, wrong: ErrorSample) -> Callable[[str], None]:
    return lambda device: runner.check_error(record, wrong, device)
