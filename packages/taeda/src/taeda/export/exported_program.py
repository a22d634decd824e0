"""Exported programs, and what their inputs and outputs are, under the name of PyTorch's own file."""

from __future__ import annotations

from taeda.export._calls import ModuleCallEntry, ModuleCallSignature
from taeda.export._program import ExportedProgram
from taeda.export.graph_signature import (
    ConstantArgument,
    CustomObjArgument,
    ExportBackwardSignature,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
    TokenArgument,
)

__all__ = [
    "ConstantArgument", "CustomObjArgument", "ExportBackwardSignature", "ExportGraphSignature", "ExportedProgram",
    "InputKind", "InputSpec", "ModuleCallEntry", "ModuleCallSignature", "OutputKind", "OutputSpec", "SymBoolArgument",
    "SymFloatArgument", "SymIntArgument", "TensorArgument", "TokenArgument",
]  # fmt: skip
