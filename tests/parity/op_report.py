"""What is printed of operators that were examined, and the page that is kept of it."""

from __future__ import annotations

import fnmatch
import functools
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

# The kinds of checks in the order of the page's columns.
KINDS = (
    "forward", "gradient", "method", "operator", "in-place", "out=", "out= refusals", "views", "aliases", "errors",
    "error classes",
)  # fmt: skip
EXCEPTIONS = Path(__file__).with_name("exceptions.yaml")
STATES = ("passed", "listed", "failed", "missing", "crashed", "left out")


@functools.cache
def exceptions() -> list[dict[str, Any]]:
    """What differs on purpose: `operator` (a shell pattern), `kinds`, `reason`, `words` of the differences."""
    entries = yaml.safe_load(EXCEPTIONS.read_text())
    for entry in entries:
        unknown = set(entry) - {"operator", "kinds", "reason", "words"}
        if unknown or not {"operator", "reason"} <= set(entry):
            raise ValueError(
                f"exceptions.yaml: {entry} needs an operator and a reason, and knows no {unknown}"
            )
    return entries


def exception_for(name: str, kind: str, differences: list[str]) -> dict[str, Any] | None:
    """The exception that all of the differences are of."""
    for entry in exceptions():
        if not fnmatch.fnmatchcase(name, entry["operator"]) or kind not in entry.get("kinds", [kind]):
            continue
        if all(re.search(entry.get("words", ""), text) for text in differences):
            return entry
    return None


@dataclass
class Entry:
    """One operator: for each kind how many samples passed and failed, and first differences."""

    name: str
    operator: str
    kinds: dict[str, dict[str, Any]] = field(default_factory=dict)
    missing: str | None = None
    crash: str | None = None
    left_out: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @classmethod
    def of(cls, operator: Any, seconds: float) -> Entry:
        from op_checks import label

        kinds = {kind: asdict(tally) for kind, tally in operator.tallies.items()}
        return cls(
            label(operator.record),
            operator.record.name,
            kinds,
            operator.missing,
            left_out=sorted(operator.left_out),
            seconds=round(seconds, 2),
        )

    @classmethod
    def crashed(cls, name: str, status: int) -> Entry:
        return cls(name, name, crash=f"the process ended with status {status}")

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Entry:
        return cls(**values)

    def reason(self, kind: str) -> str | None:
        """Why this kind of check may fail."""
        found = exception_for(self.name, kind, self.kinds.get(kind, {}).get("differences", []))
        return found["reason"] if found else None

    @property
    def state(self) -> str:
        """passed, listed (all that fails is an exception), failed, missing, crashed or left out (a listed name)."""
        if self.crash:
            return "crashed"
        if self.missing:
            return "left out" if exception_for(self.name, "missing", []) else "missing"
        failing = [kind for kind, tally in self.kinds.items() if tally["failed"]]
        if not failing:
            return "passed"
        return "listed" if all(self.reason(kind) for kind in failing) else "failed"

    def cell(self, kind: str) -> str:
        tally = self.kinds.get(kind)
        if tally is None:
            return ""
        total = tally["passed"] + tally["failed"]
        if not tally["failed"]:
            return str(total)
        mark = "~" if self.reason(kind) else "**"
        return f"{mark}{tally['passed']}/{total}{mark}"

    def first(self) -> str:
        """The first difference that no exception explains, else the reason of the first exception."""
        if self.crash:
            return self.crash
        if self.missing:
            entry = exception_for(self.name, "missing", [])
            return entry["reason"] if entry else "missing"
        reasons = []
        for kind in KINDS:
            tally = self.kinds.get(kind)
            if tally is None or not tally["failed"]:
                continue
            reason = self.reason(kind)
            if reason is None:
                return f"{kind}: {tally['differences'][0]}"
            reasons.append(f"{kind}: {reason}")
        return "; ".join(dict.fromkeys(reasons))

    def text(self, detailed: bool) -> str:
        """For the terminal: a line, and with details the differences of every kind."""
        counts = " ".join(
            f"{kind} {self.cell(kind).replace('*', '')}" for kind in KINDS if kind in self.kinds
        )
        line = f"{self.state:8} {self.name}  {counts}  {self.seconds:.1f} s"
        if self.left_out:
            line += f"  (left out: {', '.join(self.left_out)})"
        if not detailed:
            return line if self.state == "passed" else f"{line}\n    {self.first()}"
        lines = [line]
        if self.missing or self.crash:
            lines.append(f"    {self.missing or self.crash}")
        for kind in KINDS:
            for text in self.kinds.get(kind, {}).get("differences", []):
                reason = self.reason(kind)
                lines.append(f"    {kind}: {text}" + (f"  [listed: {reason}]" if reason else ""))
        return "\n".join(lines)


def share(entries: list[Entry], kind: str) -> str:
    """How many of the operators that have a kind of check pass it on all samples."""
    asked = [e for e in entries if kind in e.kinds]
    good = [e for e in asked if not e.kinds[kind]["failed"]]
    listed = [e for e in asked if e.kinds[kind]["failed"] and e.reason(kind)]
    return f"{len(good)} of {len(asked)}" + (f", {len(listed)} listed" if listed else "")


def summary(entries: list[Entry], complete: bool) -> str:
    """Numbers of operators in each state and, by kind of check, of those that pass."""
    counts = {state: sum(e.state == state for e in entries) for state in STATES}
    lines = [", ".join(f"{count} {state}" for state, count in counts.items() if count)]
    lines += [f"{kind}: {share(entries, kind)}" for kind in KINDS if any(kind in e.kinds for e in entries)]
    if complete:
        lines += [f"no longer needed: {text}" for text in unneeded(entries)]
    return "\n".join(lines)


def unneeded(entries: list[Entry]) -> list[str]:
    """Exceptions that explain no difference."""
    used = []
    for e in entries:
        if e.missing:
            used.append(exception_for(e.name, "missing", []))
        for kind, tally in e.kinds.items():
            if tally["failed"]:
                used.append(exception_for(e.name, kind, tally["differences"]))
    return [f"{x['operator']}: {x['reason']}" for x in exceptions() if not any(x is u for u in used)]


INTRODUCTION = """# Parity with PyTorch

Written by `python tests/parity/operators.py --jobs 2 --write` (`nox -s parity`): PyTorch 2.13's own operator records
({names} names, {records} records with their variants), each with its own samples in all its dtypes, run through both
libraries on the cpu.
A number is that of samples (of wrong calls, under "errors") that agree; **a/b** says that a of b do,
~a/b~ that what differs is listed in `tests/parity/exceptions.yaml`, whose reason then stands last.
Values agree when they are close to PyTorch's, or at most twice as far as PyTorch's from a more exact result: PyTorch's
in double precision or, of element-wise functions of one operand, that of the function of NumPy or SciPy that its record
names.
"""


def table(entries: list[Entry]) -> str:
    """The page docs/parity.md."""
    names = len({e.operator for e in entries})
    lines = [INTRODUCTION.format(names=names, records=len(entries)), "## Summary", ""]
    lines += ["| state | operators |", "|---|---|"]
    lines += [f"| {s} | {n} |" for s in STATES if (n := sum(e.state == s for e in entries))]
    lines += ["", "| check | operators that pass all samples |", "|---|---|"]
    lines += [f"| {kind} | {share(entries, kind)} |" for kind in KINDS]
    lines += [
        "",
        "## Operators",
        "",
        "| operator | state | " + " | ".join(KINDS) + " | first difference or reason |",
    ]
    lines.append("|---" * (len(KINDS) + 3) + "|")
    for e in entries:
        text = e.first().replace("|", "\\|").replace("<", "&lt;")
        cells = " | ".join(e.cell(kind) for kind in KINDS)
        lines.append(f"| {e.name} | {e.state} | {cells} | {text[:200]} |")
    return "\n".join(lines) + "\n"
