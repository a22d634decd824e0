"""Layers without quantized weights: computed on numbers, and stored by the scale that was observed."""

from __future__ import annotations

from typing import Any

import taeda
from taeda.ao.nn._copies import own_copy
from taeda.ao.nn.quantized._layers import output_scale
from taeda_registry.slots import nn


def _stored(name: str, shown: str | None = None) -> type:
    """A layer that computes like the float one of its name, and stores its result by a scale and a zero point."""
    base = getattr(nn, name)

    class Stored(base):
        def __init__(self, *args: Any, scale: float = 1.0, zero_point: int = 0, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.register_buffer("scale", taeda.tensor(float(scale)))
            self.register_buffer("zero_point", taeda.tensor(int(zero_point)))

        def forward(self, input: Any) -> Any:
            made = super().forward(input.dequantize())
            return taeda.quantize_per_tensor(
                made.detach(), float(self.scale), int(self.zero_point), input.dtype
            )

        def _get_name(self) -> str:
            return shown or f"Quantized{name}"

        @classmethod
        def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
            """The layer in place of an observed one."""
            made = own_copy(cls, mod)
            scale, zero_point = output_scale(mod)
            made.register_buffer("scale", taeda.tensor(scale))
            made.register_buffer("zero_point", taeda.tensor(zero_point))
            return made

    Stored.__name__ = Stored.__qualname__ = name
    Stored.__module__ = "taeda.ao.nn.quantized"
    Stored.__doc__ = f"`nn.{name}` of quantized tensors; `scale` and `zero_point` are those of the result."
    return Stored


BatchNorm2d, BatchNorm3d = _stored("BatchNorm2d"), _stored("BatchNorm3d")
LayerNorm, GroupNorm = _stored("LayerNorm"), _stored("GroupNorm")
InstanceNorm1d, InstanceNorm2d, InstanceNorm3d = (_stored(f"InstanceNorm{n}d") for n in (1, 2, 3))
Hardswish, ELU, LeakyReLU, PReLU = (
    _stored("Hardswish"),
    _stored("ELU"),
    _stored("LeakyReLU"),
    _stored("PReLU"),
)
Sigmoid, Softmax = _stored("Sigmoid"), _stored("Softmax")


class ReLU6(nn.ReLU6):
    """`nn.ReLU6` of quantized tensors, whose scale the result has."""

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> ReLU6:
        """The layer in place of a float one."""
        return ReLU6(mod.inplace)


class Dropout(nn.Dropout):
    """`nn.Dropout` of quantized tensors, which pass as they are."""

    def forward(self, input: Any) -> Any:
        return input

    def _get_name(self) -> str:
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Dropout:
        """The layer in place of a float one."""
        return cls(mod.p, mod.inplace)


class MaxPool2d(nn.MaxPool2d):
    """`nn.MaxPool2d` of quantized tensors."""

    def _get_name(self) -> str:
        return "QuantizedMaxPool2d"
