"""The page of rows that are slower than PyTorch's: their times, each group with its measured cause."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

HERE = Path(__file__).parent
REASONS = HERE / "reasons.yaml"
PAGE = HERE.parent / "docs" / "benchmarks" / "operators.md"
BEGIN, END = "| size | rows |", "## Two threads"
SLOW = 1.3

Times = Mapping[str, Mapping[str, float]]


@dataclass
class Reason:
    """A cause, and the labels of the rows that it explains; a label stands for its training row too."""

    name: str
    why: str
    labels: list[str]
    rows: list[str] = field(default_factory=list)


def _reasons() -> list[Reason]:
    return [
        Reason(name, entry["why"].strip(), entry["rows"].splitlines())
        for name, entry in yaml.safe_load(REASONS.read_text(encoding="utf-8")).items()
    ]


def _ratios(times: Times, sizes: Iterable[str]) -> dict[str, dict[str, float]]:
    """By label, by size."""
    found: dict[str, dict[str, float]] = {}
    for size in sizes:
        for row, both in times.items():
            if row.startswith(f"{size}: ") and len(both) > 1:
                label = row.removeprefix(f"{size}: ")
                found.setdefault(label, {})[size] = both["taeda"] / both["torch"]
    return found


def _grouped(slow: list[str]) -> list[Reason]:
    """The reasons of these rows; ValueError names rows that have none."""
    reasons = _reasons()
    by_label = {label: reason for reason in reasons for label in reason.labels}
    bare = []
    for label in slow:
        reason = by_label.get(label) or by_label.get(label.removesuffix(", training"))
        if reason is None:
            bare.append(label)
        else:
            reason.rows.append(label)
    if bare:
        raise ValueError("rows without a reason in benchmarks/reasons.yaml:\n" + "\n".join(bare))
    return [reason for reason in reasons if reason.rows]


def _mean(values: list[float]) -> str:
    return f"{math.exp(sum(map(math.log, values)) / len(values)):.2f}" if values else ""


def _summary(ratios: dict[str, dict[str, float]], aims: Mapping[str, float]) -> Iterable[str]:
    yield f"{BEGIN} geometric mean | forward | with gradients | aim | above {SLOW} |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for size, aim in aims.items():
        of = {label: by_size[size] for label, by_size in ratios.items() if size in by_size}
        training = [value for label, value in of.items() if label.endswith(", training")]
        forward = [value for label, value in of.items() if not label.endswith(", training")]
        slow = sum(value > SLOW for value in of.values())
        means = " | ".join(map(_mean, (list(of.values()), forward, training)))
        yield f"| {size} | {len(of)} | {means} | {aim} | {slow} |"


def write(times: Times, aims: Mapping[str, float]) -> None:
    """Writes the summary and the slow rows with their reasons into the page; ValueError where a row has none."""
    ratios = _ratios(times, aims)
    slow = sorted(label for label, by_size in ratios.items() if max(by_size.values()) > SLOW)
    *_, middle, largest = aims
    missing = sum(middle in by_size and largest not in by_size for by_size in ratios.values())
    rest = f"{missing} of the rows of {middle} were not measured at {largest}, where most take minutes."
    lines = [*_summary(ratios, aims), "", rest, "", f"### Above {SLOW}, and why", ""]
    for reason in _grouped(slow):
        lines += [f"**{reason.name}**: {reason.why}", "", "| row | " + " | ".join(aims) + " |"]
        lines += ["|---|" + "---:|" * len(aims)]
        for label in reason.rows:
            cells = (f"{ratios[label][size]:.2f}" if size in ratios[label] else "" for size in aims)
            lines.append(f"| `{label}` | " + " | ".join(cells) + " |")
        lines.append("")
    page = PAGE.read_text(encoding="utf-8")
    begin, end = page.index(BEGIN), page.index(END)
    PAGE.write_text(page[:begin] + "\n".join(lines) + "\n" + page[end:], encoding="utf-8")
