"""What the exporter to ONNX raises."""

from __future__ import annotations

from typing import Any

__all__ = [
    "CheckerError", "OnnxExporterError", "OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError",
]  # fmt: skip


class OnnxExporterWarning(UserWarning):
    """Warning of the exporter."""


class OnnxExporterError(RuntimeError):
    """Failure of the exporter."""


class CheckerError(OnnxExporterError):
    """A file that is no valid ONNX."""


class UnsupportedOperatorError(OnnxExporterError):
    """A program uses a function that has no counterpart in ONNX here."""


class SymbolicValueError(OnnxExporterError):
    """A function is used in a way that cannot be written.

    Args:
        msg: What is wrong.
        value: The value it is wrong with.
    """

    def __init__(self, msg: str, value: Any = None) -> None:
        super().__init__(msg)
        self.value = value
