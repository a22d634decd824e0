"""Layers of quantized models."""

from taeda.ao.nn import intrinsic, qat, quantized

__all__ = ["intrinsic", "qat", "quantized"]
