"""Counts of instructions, by function, as valgrind's callgrind gives them.

Source: "Callgrind Format Specification" (valgrind's manual).
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from taeda_profiler.benchmark.common import TaskSpec

__all__ = ["CallgrindStats", "FunctionCount", "FunctionCounts", "collect"]

_SECONDS = 1800
_SHOWN = 18


class FunctionCount(NamedTuple):
    """Instructions of one function."""

    count: int
    function: str


@dataclasses.dataclass(repr=False, eq=False, frozen=True)
class FunctionCounts:
    """Instructions by function, the most first.

    Example:
        >>> counts = FunctionCounts((FunctionCount(5, "f"), FunctionCount(3, "g")), inclusive=False)
        >>> counts.sum(), counts.filter(lambda name: name == "g").sum()
        (8, 3)
    """

    _data: tuple[FunctionCount, ...]
    inclusive: bool
    truncate_rows: bool = True
    _linewidth: int | None = None

    def __iter__(self) -> Iterator[FunctionCount]:
        yield from self._data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, item: Any) -> FunctionCount | FunctionCounts:
        data = self._data[item]
        return dataclasses.replace(self, _data=data) if isinstance(item, slice) else data

    def __repr__(self) -> str:
        rows = list(self._data)
        cut = self.truncate_rows and len(rows) > _SHOWN
        shown = [*rows[: _SHOWN // 2], None, *rows[-_SHOWN // 2 :]] if cut else rows
        lines = ["..." if row is None else f"{row.count:>12}  {row.function}" for row in shown]
        return "\n".join([object.__repr__(self), *lines, "", f"Total: {self.sum()}"])

    def __add__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merged(other, lambda count: count)

    def __sub__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merged(other, lambda count: -count)

    def __mul__(self, other: float) -> FunctionCounts:
        return _summed({row.function: int(row.count * other) for row in self._data}, self.inclusive)

    def _merged(self, other: FunctionCounts, sign: Callable[[int], int]) -> FunctionCounts:
        if self.inclusive != other.inclusive:
            raise AssertionError("FunctionCounts: inclusive and exclusive counts do not go together")
        totals: dict[str, int] = defaultdict(int)
        for row in self._data:
            totals[row.function] += row.count
        for row in other._data:
            totals[row.function] += sign(row.count)
        return _summed(totals, self.inclusive)

    def transform(self, map_fn: Callable[[str], str]) -> FunctionCounts:
        """Functions renamed; those that get one name are summed up."""
        totals: dict[str, int] = defaultdict(int)
        for row in self._data:
            totals[map_fn(row.function)] += row.count
        return _summed(totals, self.inclusive)

    def filter(self, filter_fn: Callable[[str], bool]) -> FunctionCounts:
        """Only functions for which `filter_fn` gives True."""
        return dataclasses.replace(self, _data=tuple(row for row in self._data if filter_fn(row.function)))

    def sum(self) -> int:
        """Instructions of all."""
        return sum(row.count for row in self._data)

    def denoise(self) -> FunctionCounts:
        """Without what Python does at random, such as looking up in dictionaries."""
        return self.filter(lambda name: "dictobject.c:lookdict_unicode" not in name)


def _summed(totals: dict[str, int], inclusive: bool) -> FunctionCounts:
    rows = (FunctionCount(count, name) for name, count in totals.items() if count)
    return FunctionCounts(tuple(sorted(rows, reverse=True)), inclusive)


@dataclasses.dataclass(repr=False, eq=False, frozen=True)
class CallgrindStats:
    """Instructions of a statement, and of an empty one."""

    task_spec: TaskSpec
    number_per_run: int
    built_with_debug_symbols: bool
    baseline_inclusive_stats: FunctionCounts
    baseline_exclusive_stats: FunctionCounts
    stmt_inclusive_stats: FunctionCounts
    stmt_exclusive_stats: FunctionCounts
    stmt_callgrind_out: str | None

    def __repr__(self) -> str:
        runs = "run" if self.number_per_run == 1 else "runs"
        return textwrap.dedent(
            f"""\
            {object.__repr__(self)}
            {self.task_spec.summarize()}
              All: {self.counts(denoise=False):>14}    Noisy symbols removed: {self.counts(denoise=True):>14}
              Baseline: {self.baseline_exclusive_stats.sum():>9}
            {self.number_per_run} {runs} per measurement"""
        )

    def stats(self, inclusive: bool = False) -> FunctionCounts:
        """By function; `inclusive` counts what functions call with them."""
        return self.stmt_inclusive_stats if inclusive else self.stmt_exclusive_stats

    def counts(self, *, denoise: bool = False) -> int:
        """All instructions."""
        stats = self.stmt_exclusive_stats
        return (stats.denoise() if denoise else stats).sum()

    def delta(self, other: CallgrindStats, inclusive: bool = False) -> FunctionCounts:
        """What this takes more than another, by function."""
        return self.stats(inclusive) - other.stats(inclusive)

    def as_standardized(self) -> CallgrindStats:
        """Functions without the folders of their files, so that builds can be compared."""

        def plain(stats: FunctionCounts) -> FunctionCounts:
            return stats.transform(lambda name: re.sub(r"[^\s:]*/", "", name))

        return dataclasses.replace(
            self,
            baseline_inclusive_stats=plain(self.baseline_inclusive_stats),
            baseline_exclusive_stats=plain(self.baseline_exclusive_stats),
            stmt_inclusive_stats=plain(self.stmt_inclusive_stats),
            stmt_exclusive_stats=plain(self.stmt_exclusive_stats),
        )


# --- reading callgrind's files ---

_NAME = re.compile(r"\((\d+)\)(?: (.*))?")


class _Names:
    """Names are written once and then meant by their number."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        match = _NAME.fullmatch(text)
        if match is None:
            return text
        number, name = match.groups()
        if name is not None:
            self._known[number] = name
        return self._known.get(number, "???")


def parse(text: str) -> tuple[FunctionCounts, FunctionCounts]:
    """(inclusive, exclusive) counts of a file of callgrind."""
    functions, files = _Names(), _Names()
    own: dict[str, int] = defaultdict(int)
    calls: dict[str, int] = defaultdict(int)
    function, file, called = "", "", False
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key in ("fl", "fi", "fe"):
            file = files(value)
        elif key == "fn":
            function = f"{os.path.basename(file)}:{functions(value)}"
        elif key in ("cfi", "cfl"):
            files(value)
        elif key == "cfn":
            functions(value)
        elif key == "calls":
            called = True
        elif line[:1].isdigit() or line[:1] in "+-*":
            parts = line.split()
            if len(parts) >= 2:
                (calls if called else own)[function] += int(parts[1])
            called = False
    inclusive = {name: own.get(name, 0) + calls.get(name, 0) for name in {*own, *calls}}
    return _summed(inclusive, True), _summed(dict(own), False)


# --- running ---

_PROGRAM = """\
import pickle
import sys

import taeda
from taeda_profiler._C import counted

with open(sys.argv[1], "rb") as file:
    given = pickle.load(file)
names = {"taeda": taeda, "torch": taeda, **given["names"]}
taeda.set_num_threads(given["threads"])
exec(compile(given["setup"], "<setup>", "exec"), names)
body = "\\n".join("    " + line for line in given["stmt"].splitlines())
exec(compile("def counted_block(n):\\n  for _ in range(n):\\n" + body, "<stmt>", "exec"), names)
names["counted_block"](1)
counted(names["counted_block"], given["number"])
"""


def _check_names(names: dict[str, Any]) -> dict[str, Any]:
    kept, wrong = {}, []
    for name, value in names.items():
        if name in ("taeda", "torch"):
            continue
        try:
            pickle.loads(pickle.dumps(value))
            kept[name] = value
        except Exception:
            wrong.append(name)
    if wrong:
        raise ValueError(f"collect_callgrind: globals that cannot be pickled: {', '.join(sorted(wrong))}")
    return kept


def collect(
    task: TaskSpec, names: dict[str, Any], *, number: int, repeats: int | None, baseline: bool, keep: bool
) -> Any:
    """Counts instructions; see `Timer.collect_callgrind`."""
    if number < 1 or (repeats is not None and repeats < 1):
        raise ValueError(
            f"collect_callgrind: number and repeats must be positive, found {number} and {repeats}"
        )
    if shutil.which("valgrind") is None:
        raise RuntimeError("collect_callgrind: valgrind is not installed")
    kept = _check_names(names)
    empty = (_summed({}, True), _summed({}, False))
    base = _run("pass", task.setup, kept, task.num_threads, number)[:2] if baseline else empty
    found = []
    for _ in range(1 if repeats is None else repeats):
        inclusive, exclusive, text = _run(task.stmt, task.setup, kept, task.num_threads, number)
        found.append(CallgrindStats(task, number, False, *base, inclusive, exclusive, text if keep else None))
    return found[0] if repeats is None else tuple(found)


def _run(
    stmt: str, setup: str, names: dict[str, Any], threads: int, number: int
) -> tuple[FunctionCounts, FunctionCounts, str]:
    with tempfile.TemporaryDirectory() as folder:
        given, out = os.path.join(folder, "given"), os.path.join(folder, "out")
        program = os.path.join(folder, "program.py")
        with open(given, "wb") as file:
            pickle.dump(
                {"stmt": stmt, "setup": setup, "names": names, "threads": threads, "number": number}, file
            )
        with open(program, "w", encoding="utf-8") as text:
            text.write(_PROGRAM)
        command = [
            *(
                "valgrind",
                "--tool=callgrind",
                f"--callgrind-out-file={out}",
                "--dump-line=no",
                "--compress-pos=no",
            ),
            *("--instr-atstart=yes", "--collect-atstart=no", "--toggle-collect=taeda_profiler_counted"),
            *(sys.executable, program, given),
        ]
        environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": str(threads)}
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_SECONDS,
            env=environment,
        )
        if result.returncode != 0 or not os.path.exists(out):
            raise RuntimeError(
                f"collect_callgrind: valgrind failed:\n{result.stdout[-2000:]}{result.stderr[-2000:]}"
            )
        with open(out, encoding="utf-8", errors="replace") as file:
            content = file.read()
    return *parse(content), content
