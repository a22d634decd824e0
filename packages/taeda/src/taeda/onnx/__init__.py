"""Whether a model is being exported, and what programs register for an exporter that is not there."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from taeda import _absent
from taeda.onnx import symbolic_helper

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ExportableModule", "ONNXProgram", "OnnxExporterError", "OperatorExportTypes", "TensorProtoDataType",
    "TrainingMode", "export", "is_in_onnx_export",
    "register_custom_op_symbolic", "select_model_mode_for_export", "symbolic_helper", "unregister_custom_op_symbolic",
]  # fmt: skip

_REASON = "there is no exporter to ONNX; copy the state_dict into PyTorch and export there"

export = _absent.function("taeda.onnx.export", _REASON)
select_model_mode_for_export = _absent.function("taeda.onnx.select_model_mode_for_export", _REASON)
ONNXProgram = _absent.cls("taeda.onnx.ONNXProgram", _REASON)
ExportableModule = _absent.cls("taeda.onnx.ExportableModule", _REASON)


class OnnxExporterError(RuntimeError):
    """Failure of an exporter."""


class OperatorExportTypes(enum.IntEnum):
    """How an exporter writes operators."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(enum.IntEnum):
    """The mode in which a model is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class TensorProtoDataType(enum.IntEnum):
    """Numbers of element types in ONNX files (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto)."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: False."""
    return False


_symbolics: dict[tuple[str, int], Callable[..., Any]] = {}


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Keep the function by which an exporter would write an operator; nothing calls it.

    Raises:
        ValueError: The name is not of the form `library::operator`.
    """
    if symbolic_name.count("::") != 1:
        raise ValueError(
            "register_custom_op_symbolic: argument 'symbolic_name' must be 'library::operator', found "
            f"{symbolic_name!r}"
        )
    _symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget the function of an operator."""
    _symbolics.pop((symbolic_name, opset_version), None)


def __getattr__(name: str) -> Any:
    if name.startswith("symbolic_opset"):
        from importlib import import_module

        return import_module(f"taeda.onnx.{name}")
    raise AttributeError(f"module 'taeda.onnx' has no attribute {name!r}")
