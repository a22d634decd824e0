"""Settings of products: ``taeda.backends.cuda.matmul``."""

from __future__ import annotations

from types import SimpleNamespace

from taeda_tensor_cuda import _library

__all__ = ["matmul_settings"]


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
