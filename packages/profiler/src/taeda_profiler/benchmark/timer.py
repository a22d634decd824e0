"""Timer: runs a statement often enough to tell how long it takes."""

from __future__ import annotations

import enum
import functools
import sys
import textwrap
import timeit
from collections.abc import Callable
from time import perf_counter
from typing import Any, NoReturn

import numpy as np

from taeda_profiler.benchmark import compiled_timer, counts
from taeda_profiler.benchmark.common import Measurement, TaskSpec, set_torch_threads
from taeda_registry.slots import tensor

# A block of runs takes so many times what reading the clock takes, so that the clock is lost in it.
_CLOCKS_PER_BLOCK = 1000
_LARGEST_BLOCK = 10**9


class Language(enum.Enum):
    """What statements are written in."""

    PYTHON = 0
    CPP = 1


@functools.cache
def _has_accelerator() -> bool:
    """Looked for once: finding out takes longer than most statements."""
    return hasattr(tensor, "accelerator") and tensor.accelerator.current_accelerator() is not None


def timer() -> float:
    """Seconds, once the accelerator has done what was asked of it."""
    if _has_accelerator():
        tensor.accelerator.synchronize()
    return perf_counter()


class Timer:
    """Times a statement of Python or of C++.

    Args:
        stmt: The statement, run in a loop.
        setup: Run once before each loop; a statement in C++ sees what it declares.
        global_setup: Of statements in C++: what stands outside of functions, such as includes.
        timer: A clock in seconds. Statements in C++ have one of their own.
        globals: Names that the statement sees, beside "taeda" and "torch".
        label, sub_label, description, env: What tables call it: label by table, sub_label by row, description by
            column.
        num_threads: Threads that operators use meanwhile.
        language: `Language.PYTHON`, or `Language.CPP` (also "cpp", "c++"): compiled as an extension, with the names of
            `taeda/extension.h` and those of PyTorch's namespaces.

    Raises:
        ValueError: `num_threads` is not positive, the language is unknown, or a statement in C++ is given `globals`.
        RuntimeError: A statement in C++ cannot be compiled, or the program has not imported taeda.
        SyntaxError: The statement or the setup is no Python.

    Example:
        >>> measurement = Timer("x * 2", setup="x = 3").timeit(1000)
        >>> measurement.number_per_run
        1000
    """

    _timer_cls: type[timeit.Timer] = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError(f"Timer: argument 'stmt' must be a text, found {type(stmt).__name__}")
        compiled = language in (Language.CPP, "cpp", "c++")
        if not compiled and language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Timer: argument 'language' must be Language.PYTHON, found {language!r}")
        if global_setup and not compiled:
            raise ValueError("Timer: argument 'global_setup' belongs to statements in C++")
        if globals and compiled:
            raise ValueError("Timer: argument 'globals' belongs to statements in Python")
        if num_threads < 1:
            raise ValueError(f"Timer: argument 'num_threads' must be positive, found {num_threads}")
        self._globals = _with_library(globals)
        self._clock = timer
        # A statement may stand indented in the program.
        self._task_spec = TaskSpec(
            stmt=_unindented(stmt),
            setup=_unindented(setup),
            global_setup=textwrap.dedent(global_setup),
            label=label,
            sub_label=sub_label,
            description=description,
            env=env,
            num_threads=num_threads,
        )
        self._compiled = compiled
        self._timer: Any = (
            compiled_timer.CompiledTimer(self._task_spec)
            if compiled
            else self._timer_cls(
                stmt=self._task_spec.stmt, setup=self._task_spec.setup, timer=timer, globals=self._globals
            )
        )

    def _timeit(self, number: int) -> float:
        # A clock that stands still between two looks would make everything infinitely fast.
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Times one block of so many runs, after a shorter one that is thrown away.

        Raises:
            ValueError: `number` is not positive.
        """
        if number < 1:
            raise ValueError(f"Timer.timeit: argument 'number' must be positive, found {number}")
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Not there; `blocked_autorange` and `timeit` are."""
        raise NotImplementedError("Timer.repeat is not there: use blocked_autorange or timeit")

    def autorange(self, callback: Callable[[int, float], NoReturn] | None = None) -> NoReturn:
        """Not there; `blocked_autorange` is."""
        raise NotImplementedError("Timer.autorange is not there: use blocked_autorange")

    def _block_size(self, min_run_time: float) -> int:
        """How many runs make a block that is long beside the clock, and short beside the whole."""
        clock = float(np.median([self._clock_time() for _ in range(5)]))
        wanted = min(max(clock * _CLOCKS_PER_BLOCK, min_run_time / 1000), min_run_time)
        number = 1
        while number < _LARGEST_BLOCK:
            taken = self._timeit(number)
            if taken >= wanted or taken >= min_run_time:
                break
            # Towards the wanted length, in steps that a first, cold block does not spoil.
            number *= int(min(max(2, wanted / taken), 10))
        return number

    def _clock_time(self) -> float:
        start = self._clock()
        return max(self._clock() - start, 0.0)

    def _blocks(
        self,
        number: int,
        done: Callable[[list[float], float], bool],
        callback: Callable[[int, float], Any] | None,
    ) -> Measurement:
        """Times blocks until `done(times, sum of times)`."""
        times: list[float] = []
        total = 0.0
        while not done(times, total):
            times.append(self._timeit(number))
            total += times[-1]
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def blocked_autorange(
        self, callback: Callable[[int, float], NoReturn] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Times blocks of runs for so many seconds.

        Args:
            callback: Called with the number of runs and the seconds of each block.
            min_run_time: Seconds for all blocks together, at least.

        Raises:
            ValueError: `min_run_time` is not positive.

        Example:
            >>> found = Timer("sum(range(100))").blocked_autorange(min_run_time=0.01)
            >>> found.median > 0
            True
        """
        if not min_run_time > 0:
            raise ValueError(
                f"Timer.blocked_autorange: argument 'min_run_time' must be positive, found {min_run_time}"
            )
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            return self._blocks(number, lambda times, total: bool(times) and total >= min_run_time, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], NoReturn] | None = None,
    ) -> Measurement:
        """Times blocks of runs until the middle half of them lies within a part `threshold` of the median.

        Args:
            threshold: The part.
            min_run_time, max_run_time: Seconds for all blocks together, at least and at most.
            callback: As of `blocked_autorange`.

        Raises:
            ValueError: Times that are not positive, or a minimum above the maximum.
        """
        if not 0 < min_run_time <= max_run_time:
            raise ValueError(
                "Timer.adaptive_autorange: expected 0 < min_run_time <= max_run_time, "
                f"found {min_run_time} and {max_run_time}"
            )

        def done(times: list[float], total: float) -> bool:
            if total >= max_run_time:
                return True
            enough = len(times) >= 4 and total >= min_run_time
            return enough and Measurement(1, times, self._task_spec).meets_confidence(threshold)

        with set_torch_threads(self._task_spec.num_threads):
            return self._blocks(self._block_size(min_run_time), done, callback)

    def collect_callgrind(
        self,
        number: int = 100,
        *,
        repeats: int | None = None,
        collect_baseline: bool = True,
        retain_out_file: bool = False,
    ) -> Any:
        """Counts the instructions of so many runs, in a process under valgrind.

        The process imports taeda and gets those of `globals` that can be pickled, as copies.

        Args:
            number: Runs that are counted, after one that is not.
            repeats: Count so often and give a tuple; None counts once and gives one result.
            collect_baseline: Count an empty statement too, so that what the interpreter itself does can be taken off.
            retain_out_file: Keep valgrind's own file.

        Raises:
            RuntimeError: valgrind is not installed, or failed.
            ValueError: `number` or `repeats` is not positive, or names in `globals` cannot be pickled.
            NotImplementedError: The statement is C++.
        """
        if self._compiled:
            raise NotImplementedError("Timer.collect_callgrind: not for statements in C++")
        return counts.collect(
            self._task_spec,
            self._globals,
            number=number,
            repeats=repeats,
            baseline=collect_baseline,
            keep=retain_out_file,
        )


def _with_library(names: dict[str, Any] | None) -> dict[str, Any]:
    """The names that a statement sees: the given ones, and the library that the program has imported."""
    library = sys.modules.get("taeda")
    given = {} if library is None else {"taeda": library, "torch": library}
    return {**given, **(names or {})}


def _unindented(text: str) -> str:
    lines = textwrap.dedent(text).strip("\n")
    return lines if lines.strip() else "pass"
