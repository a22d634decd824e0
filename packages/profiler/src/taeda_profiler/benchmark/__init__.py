"""Timing of statements: ``taeda.utils.benchmark``.

Statements are timed in blocks that are long enough for the clock, on a chosen number of threads, and told by their
median and how far they scatter. Instructions are counted with valgrind where it is installed.

Example:
    >>> from taeda.utils import benchmark
    >>> timer = benchmark.Timer("x + x", setup="x = taeda.ones(8)", globals={"taeda": taeda})
    >>> timer.timeit(100).number_per_run
    100
"""

from __future__ import annotations

from taeda_profiler.benchmark.common import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from taeda_profiler.benchmark.compare import Colorize, Compare
from taeda_profiler.benchmark.counts import CallgrindStats, FunctionCount, FunctionCounts
from taeda_profiler.benchmark.fuzzer import (
    FuzzedParameter,
    FuzzedSparseTensor,
    FuzzedTensor,
    Fuzzer,
    ParameterAlias,
)
from taeda_profiler.benchmark.timer import Language, Timer, timer

__all__ = [
    "CallgrindStats",
    "Colorize",
    "Compare",
    "FunctionCount",
    "FunctionCounts",
    "FuzzedParameter",
    "FuzzedSparseTensor",
    "FuzzedTensor",
    "Fuzzer",
    "Language",
    "Measurement",
    "ParameterAlias",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]
