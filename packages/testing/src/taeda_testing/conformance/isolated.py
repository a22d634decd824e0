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
BEGIN, ITEM, FACTS, ERROR = "begin", "item", "facts", "error"

_ERRORS = {"RuntimeError": RuntimeError, "ValueError": ValueError}


def run_backend_isolated(
    device: str,
    lacks: dict[str, str] | None = None,
    only: Iterable[str] = (),
    progress: Callable[[str], None] | None = None,
    timeout: float = 300,
) -> Report:
    """`run_backend` in child processes; a new one goes on behind the operator that ended or held up the last.

    Args:
        device, lacks, only, progress: as for `run_backend`.
        timeout: seconds that a single operator may take.

    Returns:
        The report; an operator that ended the process has failed, with the signal or exit status as what was found.

    Raises:
        RuntimeError, ValueError: as `run_backend`.
    """
    report = Report("backend", device)
    done: set[str] = set()
    while True:
        child = _Child(device, lacks or {}, sorted(only), sorted(done), timeout)
        fallen = child.collect(report, progress or (lambda _name: None))
        if fallen is None:
            return report
        report.items.append(fallen)
        done |= {item.name for item in report.items}


class _Child:
    """One process and what it says, line by line."""

    def __init__(
        self, device: str, lacks: dict[str, str], only: list[str], done: list[str], timeout: float
    ) -> None:
        order = {"device": device, "lacks": lacks, "only": only, "done": done}
        self.timeout = timeout
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
                return self._fallen(current, f"no answer within {self.timeout:g} seconds")
            if not line:
                break
            kind, _, text = line.partition(" ")
            if kind == BEGIN:
                current = json.loads(text)
                progress(current["name"])
            elif kind == ITEM:
                report.items.append(_item(json.loads(text)))
            elif kind == FACTS:
                report.facts, report.lacks = json.loads(text)
            elif kind == ERROR:
                self.process.wait()
                raise _ERRORS[json.loads(text)[0]](json.loads(text)[1])
        status = self.process.wait()
        return None if status == 0 else self._fallen(current, _ending(status))

    @staticmethod
    def _fallen(current: dict[str, str], found: str) -> Item:
        if not current:
            raise RuntimeError(f"run_backend: the device cannot be used: {found}")
        item = Item(current["name"], current["group"], current["family"], checks=1)
        item.problems.append(Problem("process", current["name"], "a process that goes on", found))
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
