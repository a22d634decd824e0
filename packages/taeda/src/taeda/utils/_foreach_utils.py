"""Helpers of optimizers that work on lists of tensors; their home is `taeda.optim.optimizer`."""

from __future__ import annotations

from typing import Any

from taeda.optim.optimizer import (
    _foreach_supported_types,
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _group_tensors_by_device_and_dtype,
)

__all__ = [
    "_device_has_foreach_support", "_foreach_supported_types", "_get_foreach_kernels_supported_devices",
    "_get_fused_kernels_supported_devices", "_group_tensors_by_device_and_dtype", "_has_foreach_support",
]  # fmt: skip


def _device_has_foreach_support(device: Any) -> bool:
    """Whether a device has kernels for lists of tensors: False."""
    return device.type in _get_foreach_kernels_supported_devices()


def _has_foreach_support(tensors: list[Any], device: Any) -> bool:
    """Whether such kernels take these tensors: False."""
    return _device_has_foreach_support(device) and all(
        t is None or type(t) in _foreach_supported_types for t in tensors
    )
