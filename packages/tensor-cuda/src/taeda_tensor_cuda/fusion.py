"""Kernels that are written at run time: why there are none, and what was compiled.

fast = taeda.backends.compile_graph(lambda x: (x * 2 + 1).relu(), taeda.ones(3, device="cuda"))
fast.reason          # empty: its operators run as one kernel
"""

from __future__ import annotations

from typing import Any

from taeda_tensor_cuda._library import report_object

__all__ = ["statistics", "unavailable_reason"]


def statistics() -> dict[str, Any]:
    """What was written and compiled in this process.

    Returns: A dict of "compiler" (with its settings; empty where there is none, and then "reason"), "folder" (of the
        files; empty for none), and counts: "kernels" in use, "compiled" here, "from_files", "damaged_files" that were
        made anew, "files_of_others" (of another text with the same number, which stay), "unwritten_files", and texts
        that "failed".

    Raises:
        RuntimeError: The backend has not been started.

    Example:
        >>> taeda_tensor_cuda.fusion.statistics()["compiled"]
        1
    """
    found: dict[str, Any] = report_object(None, 0, "fusion")
    return found


def unavailable_reason() -> str:
    """Why no kernels are written at run time; empty where they are.

    Raises:
        RuntimeError: The backend has not been started.

    Example:
        >>> taeda_tensor_cuda.fusion.unavailable_reason()
        'there is no libnvrtc.so.13 (nor an older one)'
    """
    return str(statistics()["reason"])
