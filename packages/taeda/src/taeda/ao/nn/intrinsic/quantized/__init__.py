"""Quantized layers with what follows them."""

from __future__ import annotations

from typing import Any

from taeda.ao.nn import quantized as nnq
from taeda_registry.slots import nn

__all__ = ["BNReLU2d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]


class LinearReLU(nnq.Linear):
    """A quantized linear layer, and numbers below 0 become 0."""

    _relu = True


def _conv_relu(dims: int) -> type:
    text = f"A quantized `Conv{dims}d`, and numbers below 0 become 0."
    attributes = {"_relu": True, "__module__": __name__, "__doc__": text}
    return type(f"ConvReLU{dims}d", (getattr(nnq, f"Conv{dims}d"),), attributes)


ConvReLU1d, ConvReLU2d, ConvReLU3d = _conv_relu(1), _conv_relu(2), _conv_relu(3)


class BNReLU2d(nnq.BatchNorm2d):
    """A quantized `BatchNorm2d`, and numbers below 0 become 0."""

    def forward(self, input: Any) -> Any:
        return nn.functional.relu(super().forward(input))

    def _get_name(self) -> str:
        return "QuantizedBNReLU2d"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer in place of observed ones."""
        first = mod[0]
        if hasattr(mod, "activation_post_process"):
            first.activation_post_process = mod.activation_post_process
        return super().from_float(first)
