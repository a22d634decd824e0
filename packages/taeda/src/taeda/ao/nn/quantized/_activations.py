"""Layers without quantized weights: computed on numbers, and stored by the scale that was observed."""

from __future__ import annotations

from typing import Any

import taeda
from taeda.ao.nn._copies import own_copy
from taeda.ao.nn.quantized._layers import output_scale
from taeda_registry.slots import nn


def _stored(name: str, order: str, shown: str | None = None) -> type:
    """A layer that computes like the float one of its name, and stores its result by a scale and a zero point.

    Args:
        order: The names of its arguments, in PyTorch's order; `weight` and `bias` are what the float layer learns.
    """
    base = getattr(nn, name)
    names = order.split()
    scales = [n for n in names if n.endswith(("scale", "zero_point"))] or ["scale", "zero_point"]

    class Stored(base):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            if len(args) > len(names):
                raise TypeError(
                    f"{name}: found {len(args)} arguments, expected at most {len(names)}: {order}"
                )
            given = dict(zip(names, args, strict=False)) | kwargs
            scale, zero_point = (given.pop(n, default) for n, default in zip(scales, (1.0, 0), strict=True))
            learned = {n: given.pop(n) for n in ("weight", "bias") if n in names and n in given}
            super().__init__(**given)
            for n, value in learned.items():
                setattr(self, n, value)
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


_NORM = "weight bias scale zero_point eps"
BatchNorm2d, BatchNorm3d = (_stored(f"BatchNorm{n}d", "num_features eps momentum") for n in (2, 3))
LayerNorm = _stored("LayerNorm", f"normalized_shape {_NORM} elementwise_affine")
GroupNorm = _stored("GroupNorm", f"num_groups num_channels {_NORM} affine")
InstanceNorm1d, InstanceNorm2d, InstanceNorm3d = (
    _stored(f"InstanceNorm{n}d", f"num_features {_NORM} momentum affine track_running_stats")
    for n in (1, 2, 3)
)
Hardswish = _stored("Hardswish", "scale zero_point")
ELU = _stored("ELU", "scale zero_point alpha")
LeakyReLU = _stored("LeakyReLU", "scale zero_point negative_slope inplace")
PReLU = _stored("PReLU", "output_scale output_zero_point num_parameters")
Sigmoid = _stored("Sigmoid", "output_scale output_zero_point")
Softmax = _stored("Softmax", "dim scale zero_point")


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
