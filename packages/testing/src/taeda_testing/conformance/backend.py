"""Runs the operator records and the device suite on one device."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing import runner
from taeda_testing.cases import CHECKS as RECORD_CHECKS
from taeda_testing.cases import SEED, RecordCheck, size_of
from taeda_testing.conformance import devices
from taeda_testing.conformance.capability import DTYPES, Lacks
from taeda_testing.conformance.checks import chosen, run_check
from taeda_testing.conformance.operators import Operator, declared
from taeda_testing.conformance.report import Item, Problem, Report, Skip
from taeda_testing.record import ErrorSample, OpRecord, Sample, all_records
from taeda_testing.suites import chance as chance_suite
from taeda_testing.suites import device as device_suite
from taeda_testing.suites import layers as layer_suite
from taeda_testing.suites import streams as stream_suite

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
        records.setdefault(record.title, []).append(record)
    known = dict(declared())
    for name in records:
        known.setdefault(name, Operator(name, "composite", records[name][0].family))
    for operator in sorted(known.values(), key=lambda op: (op.family, op.name)):
        if operator.name in records or operator.group == "core":
            call = partial(_operator, operator, records.get(operator.name, ()), device, lacks)
            yield Task(operator.name, operator.group, operator.family, call)


def _operator(operator: Operator, records: Sequence[OpRecord], device: str, lacks: Lacks) -> Item:
    """The item of one operator: its records, and the behaviours that these name."""
    item = Item(operator.name, operator.group, operator.family)
    run = _Run(item, device, lacks)
    with devices.counted_fallbacks(device) as fallbacks:
        for record in records:
            run.record(record)
        behaviours = dict.fromkeys(name for record in records for name in record.behaviours)
        for name in behaviours:
            run.behaviour(name)
    if behaviours:
        item.note = "with " + ", ".join(behaviours)
    item.fallbacks = fallbacks()
    if item.group == "optional" and not item.needs and not devices.has_kernel(device, item.name):
        item.group = "decomposed"
    return item.settle()


class _Run:
    """Collects one operator's checks into its item."""

    def __init__(self, item: Item, device: str, lacks: Lacks) -> None:
        self.item, self.device, self.lacks = item, device, lacks

    def record(self, record: OpRecord) -> None:
        """Every check that devices are held to, and wrong calls."""
        absent = self.lacks.first(record.needs)
        if absent is not None:
            self.item.skips.append(Skip("all checks", absent))
            return
        for check in RECORD_CHECKS:
            if check.devices:
                self._check(check, record)
        for wrong in record.errors:
            absent = self._other_dtype(Sample(wrong.args, wrong.kwargs))
            if absent is not None:
                self.item.skips.append(Skip(f"errors ({runner.describe(wrong)})", absent))
                continue
            self._one("errors", wrong, lambda w=wrong: runner.check_error(record, w, self.device))

    def behaviour(self, name: str) -> None:
        """A check of the device suite."""
        check = next(check for check in CHECKS if check.name == name)
        found = run_check(check, self.lacks, lambda: check.run(self.device))
        self.item.checks += found.checks
        self.item.problems += found.problems
        self.item.skips += found.skips
        self.item.needs += [need for need in found.needs if need not in self.item.needs]

    def _check(self, check: RecordCheck, record: OpRecord) -> None:
        """One check on the samples, smallest first."""
        for dtype in check.dtypes(record):
            title = f"{check.name} {dtype}"
            absent = self.lacks.first([n for n in (dtype, check.need) if n])
            if absent is not None:
                self.item.skips.append(Skip(title, absent))
                continue
            for sample in sorted(check.samples(record, dtype), key=size_of):
                other = self._other_dtype(sample)
                if other is not None:
                    self.item.skips.append(Skip(f"{title} ({runner.describe(sample)})", other))
                elif check.takes(record, sample):
                    self._one(title, sample, lambda s=sample: check.on(record, s, self.device), record)

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
        check: Callable[[], Any],
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
