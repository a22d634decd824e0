"""Runs the operator records and the device suite on one device."""

from __future__ import annotations

import platform
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing import runner
from taeda_testing.conformance import devices
from taeda_testing.conformance.capability import DTYPES, Lacks
from taeda_testing.conformance.checks import chosen, run_check
from taeda_testing.conformance.indirect import INDIRECT, Through
from taeda_testing.conformance.operators import Operator, declared
from taeda_testing.conformance.report import Item, Problem, Report, Skip
from taeda_testing.record import ErrorSample, OpRecord, Sample, all_records
from taeda_testing.suites import chance as chance_suite
from taeda_testing.suites import device as device_suite
from taeda_testing.suites import layers as layer_suite
from taeda_testing.suites import streams as stream_suite

SEED = 20250301
CHECKS = (*device_suite.CHECKS, *chance_suite.CHECKS, *layer_suite.CHECKS, *stream_suite.CHECKS)


def run_backend(
    device: str,
    lacks: dict[str, str] | None = None,
    only: Iterable[str] = (),
    progress: Callable[[str], None] | None = None,
    load: str | None = None,
) -> Report:
    """Holds a device of the active tensor provider against every operator record and the device suite.

    Args:
        device: name of a device, ``"mydev"`` or ``"mydev:1"``.
        lacks: capabilities that the backend does not have, with reasons, beside those it declares itself.
        only: operators or behaviours to run; all when empty.
        progress: called with every operator's name before its run.
        load: plug-in to load first, if it is not installed: a library, a Python file or a module.

    Returns:
        The report; its ``core`` score is over core operators, ``everything`` over all operators and behaviours.

    Raises:
        ValueError: an unknown capability, operator or behaviour.
        RuntimeError: the device cannot be had at all; the cause is chained.

    Example:
        >>> run_backend("cpu", only=["add"]).everything.passed
        1
    """
    if load is not None:
        devices.load(load)
    report, work = plan(device, lacks, only)
    for task in work:
        if progress is not None:
            progress(task.name)
        report.items.append(task.run())
    return report


@dataclass(frozen=True)
class Task:
    """One item that is still to be run."""

    name: str
    group: str
    family: str
    run: Callable[[], Item]


def plan(
    device: str, lacks: dict[str, str] | None = None, only: Iterable[str] = ()
) -> tuple[Report, list[Task]]:
    """An empty report, and what has to be run to fill it; arguments and errors are those of `run_backend`."""
    devices.require(device)
    missing = Lacks({**devices.load_autograd(), **devices.lacks(device), **(lacks or {})})
    tasks = list(_operators(device, missing))
    for check in CHECKS:
        call = partial(run_check, check, missing, partial(check.run, device))
        tasks.append(Task(check.name, "behaviour", "", call))
    tasks = chosen(tasks, only, "operator or behaviour")
    return Report("backend", device, _facts(), missing.declared), tasks


def _facts() -> dict[str, str]:
    module = tensor.Tensor.__module__.partition(".")[0]
    version = getattr(__import__(module), "__version__", "unknown")
    return {
        "tensor provider": f"{module} {version}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "seed": str(SEED),
    }


def _operators(device: str, lacks: Lacks) -> Iterator[Task]:
    records: dict[str, list[OpRecord]] = {}
    for record in all_records():
        records.setdefault(record.name, []).append(record)
    known = dict(declared())
    for name in records:
        known.setdefault(name, Operator(name, "composite", records[name][0].family))
    for operator in sorted(known.values(), key=lambda op: (op.family, op.name)):
        through = INDIRECT.get(operator.name, Through())
        if operator.name in records or operator.group == "core" or through:
            call = partial(_operator, operator, records, through, device, lacks)
            yield Task(operator.name, operator.group, operator.family, call)


def _operator(
    operator: Operator, records: dict[str, list[OpRecord]], through: Through, device: str, lacks: Lacks
) -> Item:
    """The item of one operator: its own records, or those that reach it."""
    item = Item(operator.name, operator.group, operator.family)
    run = _Run(item, device, lacks)
    with devices.counted_fallbacks(device) as fallbacks:
        for record in records.get(operator.name, ()):
            run.record(record)
        for name in through.forward:
            for record in records[name]:
                run.forward(_only_floats(record))
        for name in through.gradient:
            for record in records[name]:
                run.gradients(record)
        for name in through.behaviour:
            run.behaviour(name)
    reached = (*through.forward, *through.gradient, *through.behaviour)
    if reached:
        item.note = "through " + ", ".join(reached)
    item.fallbacks = fallbacks()
    if item.group == "optional" and not item.needs and not devices.has_kernel(device, item.name):
        item.group = "decomposed"
    return item.settle()


def _only_floats(record: OpRecord) -> OpRecord:
    return replace(record, dtypes=tuple(d for d in record.dtypes if d.startswith("float")))


class _Run:
    """Collects one operator's checks into its item."""

    def __init__(self, item: Item, device: str, lacks: Lacks) -> None:
        self.item, self.device, self.lacks = item, device, lacks

    def record(self, record: OpRecord) -> None:
        """All forms of the record's operator."""
        self.forward(record)
        if record.in_place:
            self._form(record, record.dtypes, "in-place", runner.check_in_place, "in-place")
        if record.out:
            self._form(record, record.dtypes, "out=", runner.check_out, "out")
        self.gradients(record)
        for wrong in record.errors:
            absent = self._other_dtype(Sample(wrong.args, wrong.kwargs))
            if absent is not None:
                self.item.skips.append(Skip(f"errors ({runner.describe(wrong)})", absent))
                continue
            self._one("errors", wrong, lambda w=wrong: runner.check_error(record, w, self.device))

    def forward(self, record: OpRecord) -> None:
        """The plain call in every dtype and layout."""
        self._form(record, record.dtypes, "forward", runner.check_forward, None)

    def gradients(self, record: OpRecord) -> None:
        """Gradients against central differences, on the samples that are small enough."""

        def check(record: OpRecord, sample: Sample, device: str) -> None:
            arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
            if all(a.size <= 64 and np.isfinite(a).all() for a in arrays) and not sample.note:
                runner.check_gradient(record, sample, device=device)

        self._form(record, record.differentiated, "gradient", check, "gradients")

    def behaviour(self, name: str) -> None:
        """A check of the device suite."""
        check = next(check for check in CHECKS if check.name == name)
        found = run_check(check, self.lacks, lambda: check.run(self.device))
        self.item.checks += found.checks
        self.item.problems += found.problems
        self.item.skips += found.skips
        self.item.needs += [need for need in found.needs if need not in self.item.needs]

    def _form(
        self,
        record: OpRecord,
        dtypes: Iterable[str],
        form: str,
        check: Callable[[OpRecord, Sample, str], None],
        need: str | None,
    ) -> None:
        for dtype in dtypes:
            title = f"{form} {dtype}"
            absent = self.lacks.first([n for n in (dtype, need) if n])
            if absent is not None:
                self.item.skips.append(Skip(title, absent))
                continue
            for sample in samples(record, dtype):
                other = self._other_dtype(sample)
                if other is not None:
                    self.item.skips.append(Skip(f"{title} ({runner.describe(sample)})", other))
                    continue
                self._one(title, sample, lambda s=sample: check(record, s, self.device), record)

    def _other_dtype(self, sample: Sample) -> str | None:
        """A capability missing for one of the further arguments."""
        values = [*sample.args, *sample.kwargs.values()]
        arrays = [v for value in values for v in (value if isinstance(value, (list, tuple)) else [value])]
        names = [v.dtype.name for v in arrays if isinstance(v, np.ndarray)]
        return self.lacks.first(name for name in names if name in DTYPES)

    def _one(
        self,
        title: str,
        sample: Sample | ErrorSample,
        check: Callable[[], None],
        record: OpRecord | None = None,
    ) -> None:
        """One call; what goes wrong becomes a problem or a need."""
        self.item.checks += 1
        try:
            check()
        except Exception as error:
            need = devices.missing_kernel(error)
            if (
                need is None
                and isinstance(error, AttributeError)
                and record is not None
                and not _offered(record)
            ):
                need = record.name
            if need is not None:
                self.item.needs += [] if need in self.item.needs else [need]
            elif isinstance(error, runner.Failure):
                call = error.call or runner.describe(sample)
                self._problem(title, call, error.expected, error.found or str(error))
            else:
                self._problem(title, runner.describe(sample), "a result", f"{type(error).__name__}: {error}")

    def _problem(self, title: str, call: str, expected: str, found: str) -> None:
        """Keeps the first problem of every kind of check; samples come smallest first."""
        for i, problem in enumerate(self.item.problems):
            if problem.check == title:
                self.item.problems[i] = replace(problem, times=problem.times + 1)
                return
        self.item.problems.append(Problem(title, call, expected[:400], found[:400]))


def _offered(record: OpRecord) -> bool:
    try:
        runner.function_of(record)
    except AttributeError:
        return False
    return True


def samples(record: OpRecord, dtype: str) -> list[Sample]:
    """The samples of a record, the same ones in every run, smallest first."""
    seed = SEED + zlib.crc32(f"{record.name} {dtype}".encode())
    return sorted(record.samples(dtype, np.random.default_rng(seed)), key=_size)


def _size(sample: Sample) -> int:
    def count(value: Any) -> int:
        if isinstance(value, np.ndarray):
            return value.size
        return sum(map(count, value)) if isinstance(value, (list, tuple)) else 0

    return sum(count(value) for value in (*sample.args, *sample.kwargs.values()))
