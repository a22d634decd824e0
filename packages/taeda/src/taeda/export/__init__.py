"""Programs as graphs of what a module did with example inputs.

`export` runs the module once; `ExportedProgram.module()` is a module made of the graph, which no longer needs the
module's class. It asks of its inputs what `export` was told: sizes, bounds of sizes that may vary, values that are no
tensors. Its graph is one of operators, with parameters and buffers among its inputs and sizes that vary as
expressions; `run_decompositions` gives one of what these operators consist of.
"""

from __future__ import annotations

from taeda.export import graph_signature
from taeda.export._attributes import _assign_attr as _assign_attr
from taeda.export._attributes import _AttrKind as _AttrKind
from taeda.export._calls import ModuleCallEntry, ModuleCallSignature
from taeda.export._dims import Dim, dims
from taeda.export._files import load, save
from taeda.export._program import (
    CustomDecompTable,
    ExportedProgram,
    UnflattenedModule,
    draft_export,
    export,
    unflatten,
)
from taeda.export._shapes import AdditionalInputs, ShapesCollection
from taeda.export._sized import with_sizes as with_sizes

__all__ = [
    "AdditionalInputs", "Dim", "ExportBackwardSignature", "ExportGraphSignature", "ExportedProgram",
    "ModuleCallEntry", "ModuleCallSignature", "ShapesCollection", "UnflattenedModule", "default_decompositions",
    "dims", "draft_export", "export", "export_for_training", "load", "register_dataclass", "save", "unflatten",
]  # fmt: skip

ExportBackwardSignature = graph_signature.ExportBackwardSignature
ExportGraphSignature = graph_signature.ExportGraphSignature
export_for_training = export


def default_decompositions() -> CustomDecompTable:
    """The table by which `run_decompositions` takes operators apart; functions that are put into it go before."""
    return CustomDecompTable()


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Let containers of this class be taken apart by `utils._pytree`."""
    from taeda.utils import _pytree

    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
