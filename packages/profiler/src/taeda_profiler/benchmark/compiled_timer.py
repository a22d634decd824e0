"""The loop of a Timer around a statement of C++, compiled as an extension of taeda."""

from __future__ import annotations

import hashlib
import sys
from typing import Any

from taeda_profiler.benchmark.common import TaskSpec

_SOURCE = """
#include <chrono>
#include <taeda/torch_names/names.h>
{global_setup}

static double timeit(int64_t taeda_number) {{
  const pybind11::gil_scoped_release taeda_unlocked;
  {setup}
  const auto taeda_begin = std::chrono::steady_clock::now();
  for (int64_t taeda_i = 0; taeda_i < taeda_number; ++taeda_i) {{
    {stmt}
  }}
  const auto taeda_end = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(taeda_end - taeda_begin).count();
}}
"""


class CompiledTimer:
    """What `timeit.Timer` is for Python.

    Raises:
        RuntimeError: The statement cannot be compiled, or the program has not imported taeda.
    """

    def __init__(self, task: TaskSpec) -> None:
        library: Any = sys.modules.get("taeda")
        if library is None:
            raise RuntimeError("Timer: statements in C++ are compiled by taeda; import it first")
        parts = {"stmt": task.stmt, "setup": task.setup}
        parts = {name: "" if text == "pass" else text for name, text in parts.items()}
        source = _SOURCE.format(global_setup=task.global_setup, **parts)
        name = "timer_" + hashlib.sha256(source.encode()).hexdigest()[:16]
        self._module = library.utils.cpp_extension.load_inline(name, source, functions="timeit")

    def timeit(self, number: int) -> float:
        """Seconds of so many runs."""
        return self._module.timeit(number)
