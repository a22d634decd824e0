"""Sequences of layers under one name."""

from __future__ import annotations

from typing import Any

from taeda_registry.slots import nn


class _FusedModule(nn.Sequential):
    """Layers that are called one after another."""

    _kinds: tuple[str, ...] = ()

    def __init__(self, *layers: Any) -> None:
        found = tuple(type(layer).__name__ for layer in layers)
        if len(layers) != len(self._kinds) or not all(
            isinstance(layer, getattr(nn, kind)) for layer, kind in zip(layers, self._kinds, strict=True)
        ):
            raise AssertionError(
                f"Incorrect types for input modules {found}: {type(self).__name__} takes {self._kinds}"
            )
        super().__init__(*layers)


def _fused(name: str, *kinds: str) -> type:
    text = f"`{'`, `'.join(kinds)}` one after another."
    return type(
        name, (_FusedModule,), {"_kinds": kinds, "__module__": "taeda.ao.nn.intrinsic", "__doc__": text}
    )


LinearReLU = _fused("LinearReLU", "Linear", "ReLU")
LinearBn1d = _fused("LinearBn1d", "Linear", "BatchNorm1d")
BNReLU2d = _fused("BNReLU2d", "BatchNorm2d", "ReLU")
BNReLU3d = _fused("BNReLU3d", "BatchNorm3d", "ReLU")
ConvReLU1d = _fused("ConvReLU1d", "Conv1d", "ReLU")
ConvReLU2d = _fused("ConvReLU2d", "Conv2d", "ReLU")
ConvReLU3d = _fused("ConvReLU3d", "Conv3d", "ReLU")
ConvBn1d = _fused("ConvBn1d", "Conv1d", "BatchNorm1d")
ConvBn2d = _fused("ConvBn2d", "Conv2d", "BatchNorm2d")
ConvBn3d = _fused("ConvBn3d", "Conv3d", "BatchNorm3d")
ConvBnReLU1d = _fused("ConvBnReLU1d", "Conv1d", "BatchNorm1d", "ReLU")
ConvBnReLU2d = _fused("ConvBnReLU2d", "Conv2d", "BatchNorm2d", "ReLU")
ConvBnReLU3d = _fused("ConvBnReLU3d", "Conv3d", "BatchNorm3d", "ReLU")
