"""Operators of ONNX, opset 16: none, as there is no exporter."""

from taeda.onnx._opset import absent_operator as __getattr__

__all__ = ["__getattr__"]
