"""A backend's run in processes of its own: one that crashes or hangs costs one operator, not the report."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from taeda_testing.conformance.report import Item, Outcome, Problem, Report, Skip

# How a line of the child begins; the rest of it is JSON.
BEGIN, ITEM, FACTS, ERROR, END = "begin", "item", "facts", "error", "end"

# The group of an item that stands for the process itself.
OUTSIDE = "process"

_ERRORS = {"RuntimeError": RuntimeError, "ValueError": ValueError}


def run_backend_isolated(
    device: str,
    lacks: dict[str, str] | None = None,
    only: Iterable[str] = (),
    progress: Callable[[str], None] | None = None,
    timeout: float = 300,
    load: str | None = None,
) -> Report:
    """`run_backend` in child processes; a new one goes on behind the operator that ended or held up the last.

    Args:
        device, lacks, only, progress, load: as for `run_backend`.
        timeout: seconds that a single operator may take.

    Returns:
        The report; an operator that ended the process has failed, with the signal or exit status as what was found.
        A process that ends badly outside all operators is an item of its own, "process".

    Raises:
        RuntimeError, ValueError: as `run_backend`.
    """
    report = Report("backend", device)
    done: set[str] = set()
    while True:
        order = {
            "device": device,
            "lacks": lacks or {},
            "only": sorted(only),
            "done": sorted(done),
            "load": load,
        }
        child, before = _Child(order, timeout), len(report.items)
        fallen = child.collect(report, progress or (lambda _name: None))
        stuck = len(report.items) == before
        if fallen is not None:
            report.items.append(fallen)
        if fallen is None or child.ended or (stuck and fallen.group == OUTSIDE):
            return report
        done |= {item.name for item in report.items}


class _Child:
    """One process and what it says, line by line."""

    def __init__(self, order: dict[str, Any], timeout: float) -> None:
        self.timeout, self.ended = timeout, False
        self.process = subprocess.Popen(
            [sys.executable, "-m", "taeda_testing.conformance.serve", json.dumps(order)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            for line in stream:
                self.lines.put(line)
        self.lines.put("")

    def collect(self, report: Report, progress: Callable[[str], None]) -> Item | None:
        """Moves items into the report; returns the item that ended the process, or None at the end of the run."""
        current: dict[str, str] = {}
        while True:
            try:
                line = self.lines.get(timeout=self.timeout)
            except queue.Empty:
                self.process.kill()
                self.process.wait()
                return self._fallen(report, current, f"no answer within {self.timeout:g} seconds")
            if not line:
                break
            kind, _, text = line.partition(" ")
            if kind == BEGIN:
                current = json.loads(text)
                progress(current["name"])
            elif kind == ITEM:
                report.items.append(_item(json.loads(text)))
                current = {}
            elif kind == FACTS:
                report.facts, report.lacks = json.loads(text)
            elif kind == END:
                self.ended = True
            elif kind == ERROR:
                self.process.wait()
                raise _ERRORS[json.loads(text)[0]](json.loads(text)[1])
        status = self.process.wait()
        return None if status == 0 else self._fallen(report, current, _ending(status))

    @staticmethod
    def _fallen(report: Report, current: dict[str, str], found: str) -> Item:
        if not current and not report.items:
            raise RuntimeError(f"run_backend: the device cannot be used: {found}")
        item = Item(**(current or {"name": "process", "group": OUTSIDE}), checks=1)
        call = current.get("name", "the end of the program, or its beginning after a crash")
        item.problems.append(Problem("process", call, "a process that goes on, or ends well", found))
        return item.settle()


def _ending(status: int) -> str:
    if status < 0:
        return f"the process was ended by {signal.Signals(-status).name}"
    return f"the process ended with status {status}"


def _item(data: dict[str, Any]) -> Item:
    data = {**data, "outcome": Outcome(data["outcome"])}
    data["problems"] = [Problem(**problem) for problem in data["problems"]]
    data["skips"] = [Skip(**skip) for skip in data["skips"]]
    return Item(**data)
