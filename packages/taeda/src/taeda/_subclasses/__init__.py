"""Tensors without elements that follow a program on any device."""

from __future__ import annotations

from taeda._subclasses.fake_tensor import (
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)  # fmt: skip

__all__ = ["DynamicOutputShapeException", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException"]
