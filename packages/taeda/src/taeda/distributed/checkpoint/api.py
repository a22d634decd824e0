"""The error of savings and loadings that failed somewhere."""

from __future__ import annotations

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """Something went wrong in one or several processes.

    Args:
        msg: What was being done.
        failures: The error of each process in which it failed, with its traceback.
    """

    def __init__(self, msg: str, failures: dict[int, tuple[BaseException, object]]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, tuple[BaseException, object]]:
        """The errors by process."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, _) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n{type(error).__name__}: {error}\n"
        return text
