"""Tensors without memory that follow a program: there are none; the device 'meta' has tensors of shapes alone."""

from __future__ import annotations

from taeda._subclasses.fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
