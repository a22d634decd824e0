"""The functions that put layers which follow each other into one module, by the layers' classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda.ao.quantization.fuse_modules import fuse_known_modules, fused_as

__all__ = [
    "fuse_conv_bn", "fuse_conv_bn_relu", "fuse_convtranspose_bn", "fuse_linear_bn", "get_fuser_method",
]  # fmt: skip


def fuse_conv_bn(is_qat: bool, conv: Any, bn: Any) -> Any:
    """A convolution and a normalization as one module: in eval mode a convolution with other weights.

    Args:
        is_qat: Whether they will be trained: the normalization stays a layer of its own inside.

    Raises:
        AssertionError: One is in train mode and the other is not, or both are without `is_qat`.

    Example:
        >>> fuse_conv_bn(False, nn.Conv2d(3, 4, 1).eval(), nn.BatchNorm2d(4).eval())
        Conv2d(3, 4, kernel_size=(1, 1), stride=(1, 1))
    """
    return fuse_known_modules([conv, bn], is_qat)[0]


def fuse_conv_bn_relu(is_qat: bool, conv: Any, bn: Any, relu: Any) -> Any:
    """`fuse_conv_bn` with a ReLU behind it."""
    return fuse_known_modules([conv, bn, relu], is_qat)[0]


def fuse_linear_bn(is_qat: bool, linear: Any, bn: Any) -> Any:
    """`fuse_conv_bn` of a linear layer."""
    return fuse_known_modules([linear, bn], is_qat)[0]


def fuse_convtranspose_bn(is_qat: bool, convt: Any, bn: Any) -> Any:
    """`fuse_conv_bn` of a transposed convolution; Exception with `is_qat`."""
    return fuse_known_modules([convt, bn], is_qat)[0]


def _together(is_qat: bool, *modules: Any) -> Any:
    return fuse_known_modules(list(modules), is_qat)[0]


def get_fuser_method(
    op_list: tuple[type, ...], additional_fuser_method_mapping: Any = None
) -> Callable[..., Any]:
    """The function `f(is_qat, *modules)` for layers of these classes.

    Raises:
        AssertionError: There is none.
    """
    own = (additional_fuser_method_mapping or {}).get(tuple(op_list))
    if own is not None:
        return own
    if fused_as(tuple(kind.__name__ for kind in op_list)) is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return _together
