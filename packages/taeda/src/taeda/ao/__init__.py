"""Quantizing models, and the layers of quantized ones."""

from taeda.ao import nn, quantization

__all__ = ["nn", "quantization"]
