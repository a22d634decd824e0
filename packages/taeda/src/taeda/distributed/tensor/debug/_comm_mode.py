"""How often processes exchange tensors while a block runs."""

from __future__ import annotations

import functools
import json
from collections import Counter
from typing import Any

import taeda as torch
from taeda.distributed._group import ProcessGroup
from taeda.utils.module_tracker import ModuleTracker
from taeda_registry import files

__all__ = ["CommDebugMode"]

#: Methods of groups, and the operator that each counts as.
_METHODS = {
    "allreduce": "all_reduce", "allgather": "all_gather_into_tensor", "reduce_scatter": "reduce_scatter_tensor",
    "broadcast": "broadcast", "alltoall": "all_to_all_single",
}  # fmt: skip


class CommDebugMode:
    """Context that counts what groups of processes exchange in it, in all and by module.

    Attributes:
        comm_counts: Numbers of exchanges, by operator: ``taeda.ops.c10d_functional.all_reduce`` and others.
        comm_module_counts: For names of modules ("Global" is the whole), {"forward": counts, "backward": counts}.

    Example:
        >>> with CommDebugMode() as mode:  # doctest: +SKIP
        ...     model(inputs).sum().backward()
        >>> mode.get_total_counts()  # doctest: +SKIP
        2
    """

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.comm_counts: Counter[Any] = Counter()
        self.comm_module_counts: dict[str, dict[str, Counter[Any]]] = {}
        self._tracker = ModuleTracker()
        self._before: dict[str, Any] = {}

    def _note(self, name: str) -> None:
        operator = getattr(torch.ops.c10d_functional, name)
        self.comm_counts[operator] += 1
        way = "backward" if self._tracker.is_bw else "forward"
        for module in self._tracker.parents:
            counts = self.comm_module_counts.setdefault(module, {"forward": Counter(), "backward": Counter()})
            counts[way][operator] += 1

    def __enter__(self) -> CommDebugMode:
        self._forget()
        self._tracker.__enter__()
        for method, name in _METHODS.items():
            found = self._before[method] = getattr(ProcessGroup, method)

            def noted(*args: Any, _found: Any = found, _name: str = name, **kwargs: Any) -> Any:
                self._note(_name)
                return _found(*args, **kwargs)

            setattr(ProcessGroup, method, functools.wraps(found)(noted))
        return self

    def __exit__(self, *exception: Any) -> None:
        for method, found in self._before.items():
            setattr(ProcessGroup, method, found)
        self._tracker.__exit__(*exception)

    def get_total_counts(self) -> int:
        """The number of exchanges."""
        return sum(self.comm_counts.values())

    def get_comm_counts(self) -> dict[Any, int]:
        """Numbers of exchanges by operator; 0 for what there was none of."""
        return self.comm_counts

    def generate_comm_debug_tracing_table(self, noise_level: int = 3) -> str:
        """The counts by module as text; every level of detail gives the same."""
        lines = []
        for module, ways in sorted(self.comm_module_counts.items()):
            lines.append(module)
            for way, counts in ways.items():
                if counts:
                    lines.append(f"  {way.upper()} PASS")
                lines += [f"    *{operator.name}: {count}" for operator, count in counts.items()]
        return "\n".join(lines) + "\n"

    def log_comm_debug_tracing_table_to_file(
        self, file_name: str = "comm_mode_log.txt", noise_level: int = 3
    ) -> None:
        """Write that text into a file."""
        with files.replacing_text(file_name) as file:
            file.write(self.generate_comm_debug_tracing_table(noise_level))

    def generate_json_dump(self, file_name: str = "comm_mode_log.json", noise_level: int = 3) -> None:
        """Write the counts by module into a file of JSON."""
        made = {
            module: {
                way: {operator.name: n for operator, n in counts.items()} for way, counts in ways.items()
            }
            for module, ways in self.comm_module_counts.items()
        }
        with files.replacing_text(file_name) as file:
            json.dump(made, file, indent=2)
