"""Home of quantization, of which only the stand-ins of unquantized models are there."""

from taeda.ao import quantization

__all__ = ["quantization"]
