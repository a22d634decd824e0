"""What is known of a process that failed, and how it says so: in a file whose name it finds in its environment."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import Any

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

_FILE = "TORCHELASTIC_ERROR_FILE"


class ErrorHandler:
    """Writes an exception to the file that TORCHELASTIC_ERROR_FILE names, as JSON."""

    def initialize(self) -> None:
        """Let a process that is ended by a signal print where it was; done before the program begins."""
        with suppress(Exception):  # standard error may be no file
            faulthandler.enable(all_threads=True)

    def record_exception(self, e: BaseException) -> None:
        """Write an exception, its text and its traceback; nothing where no file is named."""
        path = os.environ.get(_FILE)
        if path:
            info = {
                "py_callstack": "".join(traceback.format_exception(e)),
                "timestamp": str(int(time.time())),
            }
            self._write(path, {"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": info}})

    def override_error_code_in_rootcause_data(
        self, rootcause_error_file: str, rootcause_error: dict[str, Any], error_code: int = 0
    ) -> None:
        """Note the status of a process among what it wrote itself."""
        if isinstance(rootcause_error.get("message"), dict):
            rootcause_error["message"]["errorCode"] = error_code

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Pass on what another process wrote, as the cause of this one's end."""
        with open(rootcause_error_file, encoding="utf-8") as file:
            found = json.load(file)
        if error_code:
            self.override_error_code_in_rootcause_data(rootcause_error_file, found, error_code)
        path = os.environ.get(_FILE)
        if path:
            self._write(path, found)

    @staticmethod
    def _write(path: str, content: dict[str, Any]) -> None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file)


def get_error_handler() -> ErrorHandler:
    """A new handler."""
    return ErrorHandler()


@dataclass
class ProcessFailure:
    """A process that ended with another status than 0.

    Args:
        local_rank: Its number on its machine.
        pid: Its process number.
        exitcode: Its status; the negative number of a signal that ended it.
        error_file: What it wrote of its exception, or a file that is not there.

    Attributes:
        message: The exception's text with its traceback, or how the process ended.
        timestamp: When, in seconds since 1970.
        error_file_data: The content of the file.
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict[str, Any] = field(init=False)
    message: Any = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        self.error_file_data, self.timestamp = {}, int(time.time())
        self.message = f"ended with {self.end()}"
        if not os.path.isfile(self.error_file):
            self.error_file = "<N/A>"
            return
        with suppress(ValueError, KeyError, TypeError), open(self.error_file, encoding="utf-8") as file:
            self.error_file_data = json.load(file)
            self.message = self.error_file_data["message"]
            self.timestamp = int(self.message["extraInfo"]["timestamp"])

    def end(self) -> str:
        """How the process ended: "exit code 1", "signal SIGKILL"."""
        return f"signal {self.signal_name()}" if self.exitcode < 0 else f"exit code {self.exitcode}"

    def signal_name(self) -> str:
        """The signal that ended it, "<N/A>" for none."""
        if self.exitcode >= 0:
            return "<N/A>"
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return "<Unknown>"

    def timestamp_isoformat(self) -> str:
        """When, as text: "2024-05-01_12:30:00"."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """Processes that were started failed.

    Args:
        name: What they ran.
        failures: By rank.
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        if not failures:
            raise ValueError("ChildFailedError: argument 'failures' is empty, expected one at least")
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and how."""
        rank = min(self.failures, key=lambda r: self.failures[r].timestamp)
        return rank, self.failures[rank]

    def format_msg(self) -> str:
        """All failures as text, the first one with its traceback."""
        root, first = self.get_first_failure()
        lines = [f"{self.name} FAILED"]
        for rank in (root, *(r for r in sorted(self.failures) if r != root)):
            failure = self.failures[rank]
            lines.append(
                f"rank {rank}: local rank {failure.local_rank} ended with {failure.end()} "
                f"(pid {failure.pid}, {failure.timestamp_isoformat()})"
            )
        if isinstance(first.message, dict):
            lines.append(str(first.message.get("extraInfo", {}).get("py_callstack", first.message)).rstrip())
        return "\n".join(lines)


def record(fn: Callable[..., Any], error_handler: ErrorHandler | None = None) -> Callable[..., Any]:
    """Decorator of the main function of a program: an exception is written to a file before it goes on.

    Who started the program reads it there, and says what happened in which process.

    Args:
        fn: The function.
        error_handler: What writes; `get_error_handler()` by default.

    Example:
        >>> @record
        ... def main():
        ...     train()
    """
    handler = error_handler or get_error_handler()
    handler.initialize()

    @wraps(fn)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except SystemExit as end:
            if end.code not in (None, 0):
                handler.record_exception(end)
            raise
        except ChildFailedError as error:
            _, first = error.get_first_failure()
            if first.error_file != "<N/A>":
                handler.dump_error_file(first.error_file, first.exitcode)
            else:
                handler.record_exception(error)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return recorded
