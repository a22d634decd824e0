"""Settings of products and convolutions: ``taeda.backends.cuda.matmul`` and ``taeda.backends.cudnn``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from taeda_tensor_cuda import _library

__all__ = ["cudnn_is_available", "cudnn_setting", "cudnn_version", "library_settings", "matmul_settings"]


class _Matmul(SimpleNamespace):
    """Precision of matrix products; what is not named here is kept, and nothing reads it."""

    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 may round their factors to TF32's 10 bits; False at first."""
        return bool(_library.library().taeda_cuda_allow_tf32(-1))

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        if not isinstance(allowed, bool):
            raise TypeError(f"allow_tf32: expected a bool, found {type(allowed).__name__}")
        _library.library().taeda_cuda_allow_tf32(int(allowed))

    @property
    def fp32_precision(self) -> str:
        """The same by a name: "tf32", or "ieee" for all bits."""
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        if precision not in ("ieee", "tf32", "none"):
            raise ValueError(f"fp32_precision: expected 'ieee', 'tf32' or 'none', found {precision!r}")
        self.allow_tf32 = precision == "tf32"


matmul_settings = _Matmul(
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False,
)


def cudnn_setting(name: str, value: Any) -> None:
    """Make a setting of ``taeda.backends.cudnn``; those that cuDNN's convolutions do not follow change nothing.

    Args:
        name: "enabled", "allow_tf32" (of float32), "benchmark" (several ways are tried, the fastest is kept) or
            "deterministic" (of those tried, ones that give the same bits each time; what is not tried always does).
        value: A bool.

    Raises:
        TypeError: ``value`` of one of these is no bool.
    """
    setting = _library.library().taeda_cuda_cudnn_setting
    if setting(name.encode(), -1) < 0:
        return
    if not isinstance(value, bool):
        raise TypeError(f"backends.cudnn.{name}: expected a bool, found {type(value).__name__}")
    setting(name.encode(), int(value))


def _found() -> dict[str, Any]:
    try:
        found: dict[str, Any] = _library.report_object(None, 0, "libraries")["cudnn"]
    except RuntimeError:  # no device is in use
        return {"found": False}
    return found


def cudnn_is_available() -> bool:
    """Whether the backend is in use and has found the library."""
    return bool(_found()["found"])


def cudnn_version() -> int | None:
    """The library's version, 91501 for 9.15.1; None where there is none."""
    return _found().get("version")


#: What ``taeda.backends.cudnn`` tells and asks.
library_settings = {"cudnn": (cudnn_setting, {"is_available": cudnn_is_available, "version": cudnn_version})}
