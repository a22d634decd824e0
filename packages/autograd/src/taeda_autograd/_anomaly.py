"""Anomaly mode: errors in backward tell where the forward operation was called; NaN in a gradient is an error."""

from __future__ import annotations

from taeda_autograd import _C


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return _C.is_anomaly_enabled()


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, when it is on, looks for NaN in gradients."""
    before = _C.set_anomaly(False, True)
    _C.set_anomaly(*before)
    return before[1]


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode; `set_detect_anomaly` does it for a block, too."""
    _C.set_anomaly(mode, check_nan)


class set_detect_anomaly:
    """Switch anomaly mode at once; also usable as a context manager that switches back.

    Args:
        mode: On or off.
        check_nan: Raise RuntimeError when a node's gradient holds NaN.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _C.set_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _C.set_anomaly(*self._before)


class detect_anomaly:
    """Context in which anomaly mode is on.

    Example:
        >>> with taeda.autograd.detect_anomaly():
        ...     loss.backward()
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan

    def __enter__(self) -> None:
        self._before = _C.set_anomaly(True, self._check_nan)

    def __exit__(self, *exception: object) -> None:
        _C.set_anomaly(*self._before)
