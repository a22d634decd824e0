"""Layers with quantized weights whose inputs are quantized anew each time, by their own range; they give float32."""

from __future__ import annotations

from typing import Any

import taeda
from taeda.ao.nn._copies import own_copy
from taeda.ao.nn.quantized._layers import Linear as _StaticLinear
from taeda.ao.nn.quantized._layers import observed_weight
from taeda_registry.slots import nn, tensor

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "Linear", "RNNCell"]


class Linear(_StaticLinear):
    """A linear layer with a quantized weight.

    Args:
        in_features, out_features: Sizes of the last dimensions.
    """

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._weight.dtype}"
        return f"{text}, qscheme={self._weight.qscheme()}" if self._weight.is_quantized else text

    def forward(self, x: Any) -> Any:
        return tensor.quantized.layers.linear_dynamic(x, self._weight, self._bias, reduce_range=True)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Linear:
        """The layer in place of one with a configuration."""
        made = cls(mod.in_features, mod.out_features)
        made.set_weight_bias(_weight(mod, mod.weight), mod.bias)
        made.train(mod.training)
        return made


def _weight(mod: Any, weight: Any) -> Any:
    """The weight quantized as the configuration says, or as float16 where that says so."""
    if mod.qconfig.weight().dtype == taeda.float16:
        return weight.detach().half()
    return observed_weight(mod, weight)


def _recurrent(name: str) -> type:
    base = getattr(nn, name)

    class Recurrent(base):
        """Its weights are numbers that come back from being quantized."""

        def _get_name(self) -> str:
            return f"DynamicQuantized{name}"

        @classmethod
        def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
            """The layer in place of one with a configuration."""
            made = own_copy(cls, mod)
            for value in mod.parameters():
                taeda.randn(value.shape)  # as programs draw that make a layer first
            for key, value in mod.named_parameters():
                numbers = value.detach()
                if value.dim() > 1:
                    numbers = _weight(mod, value).dequantize().to(value.dtype)
                setattr(made, key, nn.Parameter(numbers, requires_grad=False))
            if hasattr(made, "flatten_parameters"):
                made.flatten_parameters()
            return made

    Recurrent.__name__ = Recurrent.__qualname__ = name
    Recurrent.__module__ = "taeda.ao.nn.quantized.dynamic"
    Recurrent.__doc__ = f"`nn.{name}` with quantized weights."
    return Recurrent


LSTM, GRU = _recurrent("LSTM"), _recurrent("GRU")
LSTMCell, GRUCell, RNNCell = _recurrent("LSTMCell"), _recurrent("GRUCell"), _recurrent("RNNCell")
