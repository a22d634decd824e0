"""Runs another library's own tests on taeda or on PyTorch and keeps how each ended; then compares two such runs.

    python suites.py run torch|taeda FILE PYTEST-ARGUMENT...
    python suites.py compare THEIRS MINE [LINES]

A run writes each test's outcome and the end of its error as JSON. With taeda, taeda stands under the name torch before
pytest imports anything. SUITE_LIMIT seconds (60) are given to each test, SUITE_TIME seconds (600) of a core to all
together, of which every SUITE_EVERY-th is run, from the SUITE_FIRST-th (0) on. The comparison counts both runs and
lists the errors of tests that pass on PyTorch alone, the most frequent first, with one test of each.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zoo_worker

LIMIT = int(os.environ.get("SUITE_LIMIT", "60"))
TIME = int(os.environ.get("SUITE_TIME", "600"))
EVERY = int(os.environ.get("SUITE_EVERY", "1"))
FIRST = int(os.environ.get("SUITE_FIRST", "0"))


class Outcomes:
    """A pytest plug-in that keeps how each test ended, with a limit of time for each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, tuple[str, str]] = {}
        self.end = time.process_time() + TIME

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = items[FIRST::EVERY]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        def stop(*_: object) -> None:
            raise TimeoutError(f"more than {LIMIT} s")

        before = signal.signal(signal.SIGALRM, stop)
        signal.alarm(LIMIT)
        self.path.with_suffix(".now").write_text(item.nodeid)  # read where the process ends in a test
        if time.process_time() > self.end:
            item.session.shouldstop = "the time is over"
        try:
            return (yield)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        part_failed = self.found.get(report.nodeid, ("", ""))[0] == "failed"  # parts are reported first
        if not part_failed and (report.when == "call" or report.outcome != "passed"):
            error = "" if report.outcome == "passed" else str(report.longrepr)[-4000:]
            self.found[report.nodeid] = (report.outcome, error)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.found[report.nodeid] = ("uncollected", str(report.longrepr)[-4000:])

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps(self.found))


def run(name: str, path: Path, arguments: list[str]) -> int:
    """Runs pytest on that library."""
    warnings.simplefilter("ignore")
    os.environ |= {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled", "MPLBACKEND": "agg"}
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the session in order
    zoo_worker.library(name)
    del sys.path[0]
    plain = [
        "-q",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        "-W",
        "ignore",
        "--continue-on-collection-errors",
    ]
    return int(pytest.main([*plain, *arguments], plugins=[Outcomes(path)]))


def kind(error: str) -> str:
    """What an error says, without the numbers that differ between tests."""
    lines = [line[1:].strip() for line in error.splitlines() if line.startswith("E ")]
    said = next((line for line in lines if line), error.strip().splitlines()[-1] if error.strip() else "")
    return re.sub(r"\d+(\.\d+)?(e-?\d+)?", "N", said)[:200]


def compare(theirs: dict[str, Any], mine: dict[str, Any], shown: int) -> None:
    """Prints the counts of both and the kinds of failures on taeda alone."""
    print("PyTorch", dict(Counter(outcome for outcome, _ in theirs.values())))
    print("taeda  ", dict(Counter(outcome for outcome, _ in mine.values())))
    kinds: dict[str, list[str]] = defaultdict(list)
    for test, (outcome, _) in theirs.items():
        if outcome == "passed" and mine.get(test, ("missing", ""))[0] != "passed":
            kinds[kind(mine[test][1]) if test in mine else "not run"].append(test)
    for test in mine.keys() - theirs.keys():
        if mine[test][0] == "uncollected":
            kinds[kind(mine[test][1])].append(test)
    print(sum(map(len, kinds.values())), "on taeda alone")
    for said, tests in sorted(kinds.items(), key=lambda item: -len(item[1]))[:shown]:
        print(f"{len(tests):5} {said}\n        {tests[0]}")


def main() -> int:
    """Either of the two commands."""
    if sys.argv[1] == "run":
        return run(sys.argv[2], Path(sys.argv[3]).resolve(), sys.argv[4:])
    theirs, mine = (json.loads(Path(path).read_text(encoding="utf-8")) for path in sys.argv[2:4])
    compare(theirs, mine, int(sys.argv[4]) if len(sys.argv) > 4 else 30)
    return 0


if __name__ == "__main__":
    sys.exit(main())
