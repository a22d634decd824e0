"""Fused layers whose weights are quantized and dequantized while they are trained."""

from __future__ import annotations

from typing import Any

import taeda
from taeda.ao.nn import qat as nnqat
from taeda_registry.slots import nn

__all__ = [
    "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d",
    "ConvReLU3d", "LinearBn1d", "LinearReLU", "freeze_bn_stats", "update_bn_stats",
]  # fmt: skip


def _with_relu(name: str) -> type:
    class Rectified(getattr(nnqat, name)):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return nn.functional.relu(super().forward(*args, **kwargs))

    made = f"{name[:-2]}ReLU{name[-2:]}" if name[-1] == "d" else f"{name}ReLU"
    Rectified.__name__ = Rectified.__qualname__ = made
    Rectified.__module__, Rectified.__doc__ = __name__, f"`qat.{name}`, and numbers below 0 become 0."
    return Rectified


LinearReLU = _with_relu("Linear")
ConvReLU1d, ConvReLU2d, ConvReLU3d = (_with_relu(f"Conv{n}d") for n in (1, 2, 3))


class _LayerBn(nn.Module):
    """A layer and its normalization, quantized as the one layer that they are when trained.

    The weight is quantized after it is multiplied by the factors of the normalization; what comes out is divided by
    them, and normalized. Source: R. Krishnamoorthi, "Quantizing deep convolutional networks for efficient inference",
    2018, section 3.2.2.
    """

    _relu = False

    def __init__(self, layer: Any, bn: Any, qconfig: Any) -> None:
        super().__init__()
        self._layer_name = "linear" if isinstance(layer, nn.Linear) else "conv"
        setattr(self, self._layer_name, layer)
        self.bn = bn
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight()
        self.freeze_bn = False

    def _get_name(self) -> str:
        return type(self).__name__

    def _layer(self) -> Any:
        return getattr(self, self._layer_name)

    def _factor(self) -> Any:
        return self.bn.weight / taeda.sqrt(self.bn.running_var + self.bn.eps)

    def forward(self, input: Any) -> Any:
        factor, layer = self._factor(), self._layer()
        shape = [1] * layer.weight.dim()
        along = [*shape]
        along[0], shape[1] = -1, -1
        weight = self.weight_fake_quant(layer.weight * factor.reshape(along))
        made = self._applied(input, weight) / factor.reshape(shape)
        if layer.bias is not None:
            made = made + layer.bias.reshape(shape)
        made = self.bn(made)
        return nn.functional.relu(made) if self._relu else made

    def _applied(self, input: Any, weight: Any) -> Any:
        return self._layer()._conv_forward(input, weight, None)

    def train(self, mode: bool = True) -> Any:
        super().train(mode)
        if self.freeze_bn:
            self.bn.train(False)
        return self

    def freeze_bn_stats(self) -> Any:
        """The normalization uses what it has seen, and sees no more."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def update_bn_stats(self) -> Any:
        """The normalization follows what goes by."""
        self.freeze_bn = False
        self.bn.training = self.training
        return self

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> _LayerBn:
        """The layer in place of fused ones with a configuration."""
        made = cls(mod[0], mod[1], mod.qconfig)
        made.train(mod.training)
        return made

    def folded(self) -> Any:
        """The one layer that they are, with what was said and seen of the two."""
        made = self._fused(self._layer().eval(), self.bn.eval())
        made.qconfig, made.weight_fake_quant = self.qconfig, self.weight_fake_quant
        if hasattr(self, "activation_post_process"):
            made.activation_post_process = self.activation_post_process
        return made

    def _fused(self, layer: Any, bn: Any) -> Any:
        return nn.utils.fuse_conv_bn_eval(layer, bn)


class LinearBn1d(_LayerBn):
    """`Linear` and `BatchNorm1d`."""

    def _applied(self, input: Any, weight: Any) -> Any:
        return nn.functional.linear(input, weight)

    def _fused(self, layer: Any, bn: Any) -> Any:
        return nn.utils.fuse_linear_bn_eval(layer, bn)


def _conv_bn(dims: int, relu: bool) -> type:
    name = f"ConvBn{'ReLU' if relu else ''}{dims}d"
    text = f"`Conv{dims}d` and `BatchNorm{dims}d`{', and numbers below 0 become 0' if relu else ''}."
    return type(name, (_LayerBn,), {"_relu": relu, "__module__": __name__, "__doc__": text})


ConvBn1d, ConvBn2d, ConvBn3d = (_conv_bn(n, False) for n in (1, 2, 3))
ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d = (_conv_bn(n, True) for n in (1, 2, 3))


def freeze_bn_stats(mod: Any) -> None:
    """For `Module.apply`: normalizations use what they have seen."""
    if isinstance(mod, _LayerBn):
        mod.freeze_bn_stats()


def update_bn_stats(mod: Any) -> None:
    """For `Module.apply`: normalizations follow what goes by."""
    if isinstance(mod, _LayerBn):
        mod.update_bn_stats()
