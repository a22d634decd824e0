"""What was timed, and what came out."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from taeda_registry.slots import tensor

# Below so many blocks, and above such a scatter, a measurement warns.
_FEW, _WIDE = 4, 0.1
# A median in nanoseconds and less has no more digits than this.
_MOST_DIGITS = 5

_UNITS = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))
_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What is timed: statement, setup, and what tables call it."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        sub = f": {self.sub_label}" if self.sub_label else ""
        return f"stmt:{sub}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """The setup as a line, or several."""
        if not self.setup or self.setup == "pass":
            return ""
        return (
            f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"
        )

    def summarize(self) -> str:
        """Title, description, setup and threads."""
        parts = [
            self.title,
            self.description
            or (f"setup: {self.setup}" if self.setup_str() and "\n" not in self.setup else ""),
            self.setup_str() if "\n" in self.setup else "",
            f"Num threads: {self.num_threads}" if self.num_threads > 1 else "",
        ]
        return "\n".join(part for part in parts if part)


_TASK_FIELDS = tuple(field.name for field in dataclasses.fields(TaskSpec))


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of one statement.

    Args:
        number_per_run: How often the statement ran in each block.
        raw_times: Seconds of each block.
        task_spec: What was timed.
        metadata: Whatever belongs to it.

    Attributes:
        times: Seconds of one run, by block.
        median, mean, iqr: Of `times`; the interquartile range is the length of the middle half.
        significant_figures: Digits of the median that the scatter lets stand.
        has_warnings: The blocks are few, or scatter widely.

    Example:
        >>> Measurement(10, [1e-3, 2e-3, 3e-3], TaskSpec("f()", "")).median
        0.0002
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _TASK_FIELDS or name in ("title", "setup_str", "summarize"):
            return getattr(self.task_spec, name)
        raise AttributeError(f"Measurement has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds of one run, by block."""
        return [time / self.number_per_run for time in self.raw_times]

    def _need_times(self) -> list[float]:
        if not self.raw_times:
            raise ValueError("Measurement: nothing has been timed")
        return self.times

    @property
    def median(self) -> float:
        """Seconds of one run, in the middle."""
        return statistics.median(self._need_times())

    @property
    def mean(self) -> float:
        """Seconds of one run, on average."""
        return statistics.fmean(self._need_times())

    @property
    def iqr(self) -> float:
        """Seconds from the first to the third quartile."""
        low, high = np.quantile(self._need_times(), (0.25, 0.75))
        return float(high - low)

    @property
    def significant_figures(self) -> int:
        """Digits of the median that stand if the middle half of a normal distribution scatters so."""
        if len(self.raw_times) < 2:
            return _MOST_DIGITS
        # 1.349 standard deviations lie between the quartiles of a normal distribution, 1.645 on either side of 90 %.
        deviation = self.iqr / 1.349 / math.sqrt(len(self.raw_times))
        half = max(1.645 * deviation, self.median * 1e-9, 1e-15)
        digits = math.floor(math.log10(self.median / half)) + 1 if self.median > 0 else _MOST_DIGITS
        return min(max(digits, 1), _MOST_DIGITS)

    @property
    def has_warnings(self) -> bool:
        """Whether `repr` warns of few blocks, or of a wide scatter."""
        return len(self.raw_times) > 1 and not self.meets_confidence()

    def meets_confidence(self, threshold: float = _WIDE) -> bool:
        """Whether the middle half lies within a part `threshold` of the median."""
        return self.iqr <= threshold * self.median

    @property
    def title(self) -> str:
        """What was timed."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """Where it was timed, as given."""
        return self.task_spec.env or "Unspecified env"

    @property
    def as_row_name(self) -> str:
        """What its row in a table is called."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        lines = [f"{object.__repr__(self)}", self.task_spec.summarize()]
        if not self.raw_times:
            return "\n".join([*lines, "  (nothing was timed)"])
        unit, scale = select_unit(self.median)
        if len(self.raw_times) == 1:
            run = "run" if self.number_per_run == 1 else "runs"
            lines.append(f"  {self.median / scale:.2f} {unit}\n  1 measurement, {self.number_per_run} {run}")
            return "\n".join(lines)
        digits = self.significant_figures
        quartiles = np.quantile(self.times, (0.25, 0.75)) / scale
        lines += [
            f"  Median: {trim_sigfig(self.median / scale, digits):.{_places(self.median / scale, digits)}f} {unit}",
            f"  IQR:    {self.iqr / scale:.2f} {unit} ({quartiles[0]:.2f} to {quartiles[1]:.2f})",
            f"  {len(self.raw_times)} measurements, {self.number_per_run} runs per measurement, "
            f"{self.task_spec.num_threads} thread{'s' if self.task_spec.num_threads > 1 else ''}",
        ]
        if self.has_warnings:
            lines.append(
                f"  WARNING: the middle half scatters by {self.iqr / self.median * 100:.1f}% of the median; "
                "the machine is busy, or the statement varies"
            )
        return "\n".join(lines)

    __str__ = __repr__

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Measurements of one task joined into one each, in the order of the first; times of one run stay."""
        joined: dict[TaskSpec, list[Measurement]] = {}
        for measurement in measurements:
            joined.setdefault(measurement.task_spec, []).append(measurement)
        merged = []
        for task, parts in joined.items():
            same = {part.number_per_run for part in parts}
            count = same.pop() if len(same) == 1 else 1
            times = [time * count for part in parts for time in part.times]
            merged.append(Measurement(count, times, task, None))
        return merged


def _places(value: float, digits: int) -> int:
    """Digits after the point that show so many significant ones."""
    if value <= 0:
        return 0
    return max(digits - 1 - math.floor(math.log10(value)), 0)


def select_unit(t: float) -> tuple[str, float]:
    """The unit for a time in seconds, and its length: ("us", 1e-6)."""
    found = _UNITS[0]
    for unit in _UNITS:
        if t >= unit[1]:
            found = unit
    return found


def unit_to_english(u: str) -> str:
    """The unit in a word: "us" is a microsecond."""
    return _ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """`x` with `n` significant digits."""
    if x == 0:
        return 0.0
    scale = 10.0 ** (math.floor(math.log10(abs(x))) + 1 - n)
    return round(x / scale) * scale


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each element once, in the order of the first."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """A block in which operators use `n` threads."""
    before = tensor.get_num_threads()
    try:
        tensor.set_num_threads(n)
        yield
    finally:
        tensor.set_num_threads(before)
