"""Settings of what a compiler that is not there would log: accepted, and nothing is logged."""

from typing import Any

__all__ = ["LazyString", "getArtifactLogger", "set_logs", "trace_structured"]


def set_logs(**settings: Any) -> None:
    """Nothing: no part that these settings name is there."""


def trace_structured(name: str, *arguments: Any, **settings: Any) -> None:
    """Nothing: no log of a compiler is written, and functions that would give its text are not called."""


def getArtifactLogger(module_qname: str, artifact_name: str) -> Any:
    """A logger of Python's `logging` for one part of a module."""
    import logging

    return logging.getLogger(f"{module_qname}.__{artifact_name}")


class LazyString:
    """Text that a function makes when it is asked for."""

    def __init__(self, func: Any, *args: Any, **kwargs: Any) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self) -> str:
        return self.func(*self.args, **self.kwargs)
