"""Quantizing and pruning models, and the layers of quantized ones."""

from taeda.ao import nn, pruning, quantization

__all__ = ["nn", "pruning", "quantization"]
