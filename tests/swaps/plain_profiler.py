"""Stand-in provider of slot ``profiler``: Python's own cProfile in the place of a recorder."""

import contextlib
import cProfile
import enum
import pstats
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

__taeda_interface__ = {"profiler": "1.0"}


class ProfilerActivity(enum.Enum):
    """Whose work is recorded."""

    CPU = 0


class ProfilerAction(enum.Enum):
    """What is done in a step."""

    NONE = 0
    RECORD = 2


class Rows(list):
    """Functions of Python with how often they ran."""

    def table(self, **_options: Any) -> str:
        """One line for each."""
        return "\n".join(f"{name} {count}" for name, count in self)


class profile:
    """A block under cProfile."""

    def __init__(self, **_options: Any) -> None:
        self._profile = cProfile.Profile()

    def __enter__(self) -> "profile":
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin."""
        self._profile.enable()

    def stop(self) -> None:
        """End."""
        self._profile.disable()

    def step(self) -> None:
        """Steps are not told apart."""

    def events(self) -> Rows:
        """The functions."""
        found = pstats.Stats(self._profile).stats  # type: ignore[attr-defined]
        return Rows((name, count[0]) for (_, _, name), count in found.items())

    key_averages = events

    def export_chrome_trace(self, path: str) -> None:
        """Writes cProfile's own file."""
        self._profile.dump_stats(path)


@contextlib.contextmanager
def record_function(_name: str) -> Iterator[None]:
    """The block that it stands around."""
    yield


def schedule(**_steps: int) -> Callable[[int], ProfilerAction]:
    """All steps."""
    return lambda _step: ProfilerAction.RECORD


def tensorboard_trace_handler(folder: str) -> Callable[[profile], None]:
    """Writes into a folder."""
    return lambda prof: prof.export_chrome_trace(f"{folder}/profile")


def supported_activities() -> set[ProfilerActivity]:
    """The host's."""
    return {ProfilerActivity.CPU}


autograd_profiler = SimpleNamespace(profile=profile, record_function=record_function)
benchmark = SimpleNamespace()
flop_counter = SimpleNamespace()
