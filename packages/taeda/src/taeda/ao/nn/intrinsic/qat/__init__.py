"""Fused layers whose weights are quantized and dequantized while they are trained."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda.ao.nn import qat as nnqat
from taeda.ao.nn._copies import draw_unused, own_copy
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
    """A layer with its normalization as a part of it, quantized as the one layer that they are when trained.

    The weight is quantized after it is multiplied by the factors of the normalization; what comes out is divided by
    them, and normalized. Source: R. Krishnamoorthi, "Quantizing deep convolutional networks for efficient inference",
    2018, section 3.2.2.
    """

    _relu = False
    _layer_class: Any = None  #: the layer's own class
    weight: Any
    bias: Any

    def _join(self, bn: Any, qconfig: Any, freeze_bn: bool = False) -> None:
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.bn = bn
        self.weight_fake_quant = qconfig.weight()
        self.freeze_bn = freeze_bn
        if freeze_bn:
            self.freeze_bn_stats()

    def forward(self, input: Any) -> Any:
        factor = self.bn.weight / taeda.sqrt(self.bn.running_var + self.bn.eps)
        shape = [1] * self.weight.dim()
        along = [*shape]
        along[0], shape[1] = -1, -1
        weight = self.weight_fake_quant(self.weight * factor.reshape(along))
        made = self._applied(input, weight) / factor.reshape(shape)
        if self.bias is not None:
            made = made + self.bias.reshape(shape)
        made = self.bn(made)
        return nn.functional.relu(made) if self._relu else made

    def _applied(self, input: Any, weight: Any) -> Any:
        return self._conv_forward(input, weight, None)

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
        made = own_copy(cls, mod[0])
        draw_unused(*cls._drawn(made, mod[1]))
        made._join(mod[1], mod.qconfig)
        made.train(mod.training)
        return made

    @staticmethod
    def _drawn(layer: Any, bn: Any) -> tuple[Any, ...]:
        """What a new layer of this class draws, in its order."""
        return layer.weight, bn.weight, layer.bias

    def reset_bn_parameters(self) -> None:
        """Begin anew with the normalization: what it has seen, its factors, and the bias of the layer."""
        self.bn.reset_running_stats()
        nn.init.uniform_(self.bn.weight)
        nn.init.zeros_(self.bn.bias)

    def folded(self) -> Any:
        """The one layer that they are, with what was said and seen of the two."""
        layer = own_copy(self._layer_class, self)
        for part in ("bn", "weight_fake_quant"):
            layer._modules.pop(part)
        made = self._fused(layer.eval(), self.bn.eval())
        made.qconfig, made.weight_fake_quant = self.qconfig, self.weight_fake_quant
        if hasattr(self, "activation_post_process"):
            made.activation_post_process = self.activation_post_process
        return made

    def _fused(self, layer: Any, bn: Any) -> Any:
        return nn.utils.fuse_conv_bn_eval(layer, bn)


class LinearBn1d(_LayerBn, nn.Linear):
    """`Linear` and `BatchNorm1d`.

    Args:
        in_features: Of `Linear`; so is what follows but for `eps` and `momentum`, which are of `BatchNorm1d`.
        freeze_bn: The normalization uses what it has seen, and sees no more.
        qconfig: How the weight is quantized.
    """

    _layer_class = nn.Linear

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, eps: float = 1e-05, momentum: float = 0.1,
        freeze_bn: bool = False, qconfig: Any = None,
    ) -> None:  # fmt: skip
        nn.Linear.__init__(self, in_features, out_features, bias)
        self._join(nn.BatchNorm1d(out_features, eps, momentum), qconfig, freeze_bn)
        self.reset_bn_parameters()

    @staticmethod
    def _drawn(layer: Any, bn: Any) -> tuple[Any, ...]:
        return layer.weight, layer.bias, bn.weight

    def _applied(self, input: Any, weight: Any) -> Any:
        return nn.functional.linear(input, weight)

    def _fused(self, layer: Any, bn: Any) -> Any:
        return nn.utils.fuse_linear_bn_eval(layer, bn)


def _conv_bn(dims: int, relu: bool) -> type:
    conv, normalization = getattr(nn, f"Conv{dims}d"), getattr(nn, f"BatchNorm{dims}d")

    class Normalized(_LayerBn, conv):
        _layer_class, _relu = conv, relu

        def __init__(
            self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
            dilation: Any = 1, groups: int = 1, bias: bool | None = None, padding_mode: str = "zeros",
            eps: float = 1e-05, momentum: float = 0.1, freeze_bn: bool = False, qconfig: Any = None,
        ) -> None:  # fmt: skip
            conv.__init__(
                self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, False,
                padding_mode,
            )  # fmt: skip
            if bias:
                self.bias = nn.Parameter(taeda.empty(out_channels))
            self._join(normalization(out_channels, eps, momentum), qconfig, freeze_bn)
            self.reset_bn_parameters()

        def reset_bn_parameters(self) -> None:
            super().reset_bn_parameters()
            if self.bias is not None:
                bound = 1 / math.sqrt(math.prod(self.weight.shape[1:]))
                nn.init.uniform_(self.bias, -bound, bound)

    Normalized.__name__ = Normalized.__qualname__ = f"ConvBn{'ReLU' if relu else ''}{dims}d"
    Normalized.__module__ = __name__
    text = f"`Conv{dims}d` and `BatchNorm{dims}d`{', and numbers below 0 become 0' if relu else ''}"
    Normalized.__doc__ = f"{text}; `qconfig` says how the weight is quantized."
    return Normalized


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
