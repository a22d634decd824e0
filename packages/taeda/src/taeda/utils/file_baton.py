"""A file by which processes take turns."""

from __future__ import annotations

import os
import time

__all__ = ["FileBaton"]


class FileBaton:
    """A file that one process makes and removes, while others wait until it is gone.

    Args:
        lock_file_path: The file. wait_seconds: How long to sleep between looks.
        warn_after_seconds: Warn after so long a wait; never by default.

    Example:
        >>> baton = FileBaton(path)
        >>> if baton.try_acquire():
        ...     try:
        ...         build()
        ...     finally:
        ...         baton.release()
        ... else:
        ...     baton.wait()
    """

    def __init__(
        self, lock_file_path: str, wait_seconds: float = 0.1, warn_after_seconds: float | None = None
    ) -> None:
        self.lock_file_path = lock_file_path
        self.wait_seconds, self.warn_after_seconds = wait_seconds, warn_after_seconds
        self.fd: int | None = None

    def try_acquire(self) -> bool:
        """Make the file; False where it is there already."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Sleep until the file is gone."""
        begin, warned = time.monotonic(), False
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            waited = time.monotonic() - begin
            if self.warn_after_seconds is not None and waited > self.warn_after_seconds and not warned:
                import warnings

                warned = True
                warnings.warn(f"waited for {self.lock_file_path} for {waited:.0f} seconds", stacklevel=2)

    def release(self) -> None:
        """Remove the file."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        os.remove(self.lock_file_path)
