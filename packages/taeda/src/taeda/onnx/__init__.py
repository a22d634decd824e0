"""Modules as files of ONNX, which other programs run."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from taeda import _absent, version
from taeda.onnx import errors, symbolic_helper
from taeda.onnx._state import is_in_onnx_export
from taeda.onnx.errors import OnnxExporterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda.onnx._export import ONNXProgram, export, select_model_mode_for_export

__all__ = [
    "ExportableModule", "ONNXProgram", "OnnxExporterError", "OperatorExportTypes", "TensorProtoDataType",
    "TrainingMode", "errors", "export", "is_in_onnx_export", "producer_name", "producer_version",
    "register_custom_op_symbolic", "select_model_mode_for_export", "symbolic_helper", "unregister_custom_op_symbolic",
]  # fmt: skip

#: Who writes the files, and in which version, as the files say.
producer_name, producer_version = "taeda", version.__version__

ExportableModule = _absent.cls("taeda.onnx.ExportableModule", "derive from nn.Module, and export that")


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


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Let an operator be written by this function, in files of this version of operators and later ones.

    It is called with the graph and the operator's arguments, and gives what `g.op("library::Operator", *arguments,
    name_i=1)` gave it; the ends `_i`, `_f` and `_s` of attributes say their kinds.

    Raises:
        ValueError: The name is not of the form `library::operator`.
    """
    if symbolic_name.count("::") != 1:
        raise ValueError(
            "register_custom_op_symbolic: argument 'symbolic_name' must be 'library::operator', found "
            f"{symbolic_name!r}"
        )
    from taeda.onnx._walk import custom

    custom[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget the function of an operator."""
    from taeda.onnx._walk import custom

    custom.pop((symbolic_name, opset_version), None)


def __getattr__(name: str) -> Any:
    if name.startswith("symbolic_opset"):
        from importlib import import_module

        return import_module(f"taeda.onnx.{name}")
    if name in ("ONNXProgram", "export", "select_model_mode_for_export"):
        from taeda.onnx import _export

        return getattr(_export, name)
    raise AttributeError(f"module 'taeda.onnx' has no attribute {name!r}")
