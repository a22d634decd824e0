"""What a profiler does in each step of a program."""

from __future__ import annotations

import enum
from collections.abc import Callable

__all__ = ["ProfilerAction", "ProfilerActivity", "schedule"]


class ProfilerActivity(enum.Enum):
    """Whose work is recorded."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def always(_step: int) -> ProfilerAction:
    """Record every step."""
    return ProfilerAction.RECORD


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """A function from the number of a step to what a profiler does in it.

    Args:
        wait: Steps at the beginning of a cycle in which nothing is recorded.
        warmup: Steps whose records are thrown away.
        active: Steps that are recorded.
        repeat: Cycles; 0 for no end.
        skip_first: Steps before the first cycle.
        skip_first_wait: Not 0: the first cycle does not wait.

    Raises:
        AssertionError: A negative number, or no active step.

    Example:
        >>> plan = taeda.profiler.schedule(wait=1, warmup=1, active=1)
        >>> [plan(step).name for step in range(3)]
        ['NONE', 'WARMUP', 'RECORD_AND_SAVE']
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError("Invalid profiler schedule arguments")
    cycle = wait + warmup + active

    def plan(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        if repeat > 0 and step // cycle >= repeat:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return plan
