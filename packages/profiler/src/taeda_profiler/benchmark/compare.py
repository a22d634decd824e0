"""Compare: a table for each label of measurements, with a row for each sub-label and a column for each description."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from taeda_profiler.benchmark.common import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

_BEST, _GOOD, _BAD, _VERY_BAD, _BOLD, _END = (
    "\033[92m",
    "\033[34m",
    "\033[2m\033[91m",
    "\033[31m",
    "\033[1m",
    "\033[0m",
)


class Colorize(enum.Enum):
    """What the best is looked for among."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Tables of measurements.

    Args:
        results: The measurements; those of one task are merged.

    Raises:
        ValueError: One of them is no measurement.

    Example:
        >>> slow = Timer("sum(range(1000))", label="sum", sub_label="python", description="1000").timeit(100)
        >>> Compare([slow]).print()  # doctest: +ELLIPSIS
        [----------...
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trim = self._warnings = False
        self._colors = Colorize.NONE
        self.extend_results(results)

    def __str__(self) -> str:
        return "\n".join(self._render())

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements; nothing has changed after an error."""
        found = list(results)
        for item in found:
            if not isinstance(item, Measurement):
                raise ValueError(f"Compare: expected measurements, found {type(item).__name__}")
        self._results.extend(found)

    def trim_significant_figures(self) -> None:
        """Show only the digits that the scatter lets stand."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the best and the worst of each column, or row."""
        self._colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark measurements that scatter widely."""
        self._warnings = True

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))

    def _render(self) -> list[str]:
        merged = Measurement.merge(self._results)
        labels = ordered_unique(item.task_spec.label or item.task_spec.stmt for item in merged)
        return [
            self._table(
                [item for item in merged if (item.task_spec.label or item.task_spec.stmt) == label], label
            )
            for label in labels
        ]

    def _table(self, results: list[Measurement], label: str) -> str:
        columns = ordered_unique(item.task_spec.description or "" for item in results)
        rows = ordered_unique(
            (item.task_spec.num_threads, item.task_spec.env, item.as_row_name) for item in results
        )
        rows.sort(key=lambda row: row[0])
        cells = {
            (
                item.task_spec.num_threads,
                item.task_spec.env,
                item.as_row_name,
                item.task_spec.description or "",
            ): item
            for item in results
        }
        unit, scale = select_unit(min(item.median for item in results))
        names = [f"({env})  {name}" if env else name for _, env, name in rows]
        texts = [[self._text(cells.get((*row, column)), scale) for column in columns] for row in rows]
        widths = [
            max(len(column), *(len(line[i]) for line in texts), 5) + 2 for i, column in enumerate(columns)
        ]
        first = max(len(name) for name in names) + 6
        total = first + sum(width + 3 for width in widths)
        lines = ["[" + f" {label} ".center(max(total - 2, len(label) + 4), "-") + "]"]
        lines.append(
            " " * first
            + "".join(f" | {column.center(width)}" for column, width in zip(columns, widths, strict=True))
        )
        threads = None
        for row, name, line in zip(rows, names, texts, strict=True):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(total, "-"))
            shown = "".join(
                f" | {self._colored(text.center(width), cells.get((*row, column)), row, column, cells)}"
                for text, width, column in zip(line, widths, columns, strict=True)
            )
            lines.append(f"      {name}".ljust(first) + shown)
        lines.append(f"\nTimes are in {unit_to_english(unit)}s ({unit}).\n")
        if self._warnings and any(item.has_warnings for item in results):
            lines.append("(! XX%) the middle half of the measurements scatters by so much of the median.\n")
        return "\n".join(lines)

    def _text(self, item: Measurement | None, scale: float) -> str:
        if item is None:
            return ""
        value = item.median / scale
        if self._trim:
            value = trim_sigfig(value, item.significant_figures)
        text = f"{value:.0f}" if value >= 1000 and self._trim else f"{value:.1f}"
        if self._warnings and item.has_warnings:
            text = f"(! {item.iqr / item.median * 100:.0f}%) {text}"
        return text

    def _colored(
        self,
        text: str,
        item: Measurement | None,
        row: tuple[int, str | None, str],
        column: str,
        cells: dict[tuple[int, str | None, str, str], Measurement],
    ) -> str:
        if item is None or self._colors is Colorize.NONE:
            return text
        same = [
            other.median
            for key, other in cells.items()
            if (
                key[:3] == row
                if self._colors is Colorize.ROWWISE
                else (key[3] == column and key[0] == row[0])
            )
        ]
        best = min(same)
        if item.median <= best:
            return _BEST + _BOLD + text + _END
        if item.median <= best * 1.05:
            return _GOOD + text + _END
        if item.median > best * 5:
            return _BOLD + _VERY_BAD + text + _END
        return _BAD + text + _END if item.median > best * 2 else text
