"""Weights of convolutions in channels-last order."""

from __future__ import annotations

from typing import Any, TypeVar

from taeda_nn.modules.conv import _ConvNd
from taeda_nn.modules.module import Module

M = TypeVar("M", bound=Module)


def _convert(module: M, memory_format: Any, rank: int) -> M:
    for below in module.modules():
        if isinstance(below, _ConvNd) and len(below.kernel_size) == rank:
            below.weight.data = below.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Lays the weights of all convolutions over two dimensions out in ``memory_format``; returns the module."""
    return _convert(module, memory_format, 2)


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Lays the weights of all convolutions over three dimensions out in ``memory_format``; returns the module."""
    return _convert(module, memory_format, 3)
