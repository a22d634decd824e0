"""Who holds which bytes: tensors that are alive, by where they came from, and those that a block left behind."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from taeda_profiler._recorder import MODULE, Recording
from taeda_profiler.table import memory_text
from taeda_profiler.trace import Trace

__all__ = ["Held", "Snapshot", "leaks", "record", "snapshot_of"]


@dataclasses.dataclass(frozen=True)
class Held:
    """One piece of memory that was taken and not given back.

    Attributes:
        bytes: Its size.
        operator: The operator that took it, "" for none.
        module: The path of the module in whose forward that was, "" for none.
        stack: Lines of the program, the innermost first, if they were recorded.
        address: Where it lies.
    """

    bytes: int
    operator: str
    module: str
    stack: tuple[str, ...]
    address: int

    @property
    def line(self) -> str:
        """The innermost line of the program."""
        return self.stack[0] if self.stack else ""


class Snapshot:
    """Memory that was taken during a recording and not given back until its end."""

    def __init__(self, held: list[Held]) -> None:
        self.held = held

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Iterator[Held]:
        return iter(self.held)

    @property
    def bytes(self) -> int:
        """All of it."""
        return sum(item.bytes for item in self.held)

    def by(self, what: str) -> dict[str, int]:
        """Bytes by "operator", "module" or "line", the most first.

        Raises:
            ValueError: Something else.
        """
        if what not in ("operator", "module", "line"):
            raise ValueError(
                f"Snapshot.by: argument 'what' must be 'operator', 'module' or 'line', found {what!r}"
            )
        totals: dict[str, int] = {}
        for item in self.held:
            key = getattr(item, what) or "(none)"
            totals[key] = totals.get(key, 0) + item.bytes
        return dict(sorted(totals.items(), key=lambda entry: entry[1], reverse=True))

    def __str__(self) -> str:
        lines = [f"{memory_text(self.bytes)} in {len(self)} pieces"]
        for what in ("operator", "module", "line"):
            found = list(self.by(what).items())[:5]
            lines += [f"by {what}:", *(f"  {memory_text(size):>12}  {key}" for key, size in found)]
        return "\n".join(lines)


def snapshot_of(trace: Trace) -> Snapshot:
    """What a trace with memory has taken and not given back."""
    uses = trace.memory
    alive: dict[int, int] = {}
    for place, (address, size) in enumerate(
        zip(uses["address"].tolist(), uses["bytes"].tolist(), strict=True)
    ):
        if size > 0:
            alive[address] = place
        else:
            alive.pop(address, None)
    return Snapshot([_held(trace, place) for place in alive.values()])


def _held(trace: Trace, place: int) -> Held:
    event = int(trace.memory["event"][place])
    operator = trace.names[int(trace.name[event])][0] if event >= 0 else ""
    stack = tuple(trace.stack_of(int(trace.detail[event]))) if event >= 0 else ()
    module, outer = "", event
    while outer >= 0:
        if int(trace.kind[outer]) == MODULE + 1:
            module = trace.names[int(trace.name[outer])][0].removeprefix("nn.Module: ")
            break
        outer = int(trace.parent[outer])
    size, address = int(trace.memory["bytes"][place]), int(trace.memory["address"][place])
    return Held(size, operator, module, stack, address)


class record:
    """A block whose memory is recorded; `snapshot` tells what is held at its end.

    Args:
        stacks: Record lines of the program too.
        modules: Record modules too.
        max_mb: Room for what is recorded.

    Example:
        >>> with taeda.memory.record() as recorded:
        ...     kept = taeda.ones(1000)
        >>> recorded.snapshot.by("operator")
        {'aten::ones': 4000}
    """

    def __init__(self, stacks: bool = True, modules: bool = True, max_mb: float = 256) -> None:
        self._recording = Recording(memory=True, stacks=stacks, modules=modules, max_mb=max_mb)
        self._trace: Trace | None = None

    def __enter__(self) -> Any:
        self._recording.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._trace = self._recording.stop()

    @property
    def trace(self) -> Trace:
        """What was recorded.

        Raises:
            AssertionError: The block has not ended.
        """
        if self._trace is None:
            raise AssertionError("memory.record: the block has not ended")
        return self._trace

    @property
    def snapshot(self) -> Snapshot:
        """What was taken in the block and is held at its end."""
        return snapshot_of(self.trace)

    @property
    def peak(self) -> int:
        """The most bytes in use above the beginning."""
        sizes = np.cumsum(self.trace.memory["bytes"])
        return max(int(sizes.max()), 0) if len(sizes) else 0


class leaks(record):
    """A block that should give back all memory that it takes; what it holds at its end is warned of, by line.

    Cycles of Python objects are collected first, since these are no leaks.

    Args:
        allowed: Bytes that may be held without a warning.

    Example:
        >>> with taeda.profiler.leaks() as found:
        ...     _ = taeda.ones(1000).sum().item()
        >>> found.snapshot.bytes
        0
    """

    def __init__(
        self, allowed: int = 0, stacks: bool = True, modules: bool = True, max_mb: float = 256
    ) -> None:
        super().__init__(stacks, modules, max_mb)
        self.allowed = allowed

    def __exit__(self, *exception: object) -> None:
        import gc

        gc.collect()
        super().__exit__(*exception)
        found = self.snapshot
        if found.bytes > self.allowed and exception[0] is None:
            warnings.warn(f"leaks: the block holds {found}", RuntimeWarning, stacklevel=2)
