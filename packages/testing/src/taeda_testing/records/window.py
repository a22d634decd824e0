"""Records of windows, held against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.signal import windows

from taeda_testing.record import FLOATS, OpRecord
from taeda_testing.records.creation import _DEFAULT, _made
from taeda_testing.wrong import REFUSED, wrong_call

_LENGTHS = (0, 1, 2, 5, 8)


def _record(name: str, reference: Callable[..., Any], *more: tuple[Any, ...]) -> OpRecord:
    """A window of several lengths, symmetric and periodic; `more` are further arguments."""

    def shown(length: int, periodic: bool = True, *rest: float, dtype: Any = _DEFAULT) -> Any:
        return np.asarray(reference(length, *rest, sym=not periodic)).astype(dtype)

    calls = [(n, *rest) for n in _LENGTHS for rest in ((), (True,), (False,), *more)]
    return OpRecord(
        name, shown, _made(*calls), FLOATS, creates=True, half="",
        atol={"float32": 1e-6, "float64": 1e-12},
        errors=(wrong_call(REFUSED, f"{name} window_length -1", -1),
                wrong_call(REFUSED, f"{name} dtype int64", 4, dtype=np.dtype("int64"))),
    )  # fmt: skip


def _hamming(length: int, alpha: float = 0.54, beta: float = 0.46, sym: bool = True) -> np.ndarray:
    return windows.general_cosine(length, (alpha, beta), sym)


def _kaiser(length: int, beta: float = 12.0, sym: bool = True) -> np.ndarray:
    return windows.kaiser(length, beta, sym)


RECORDS = [
    _record("bartlett_window", windows.bartlett),
    _record("blackman_window", windows.blackman),
    _record("hamming_window", _hamming, (True, 0.6), (False, 0.6, 0.4)),
    _record("hann_window", windows.hann),
    _record("kaiser_window", _kaiser, (True, 3.0), (False, 0.0)),
]  # fmt: skip
