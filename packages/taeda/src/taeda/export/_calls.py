"""What an exported program tells of the modules that it consists of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taeda.export._program import ExportedProgram

__all__ = ["ModuleCallEntry", "ModuleCallSignature", "calls_of"]


@dataclass
class ModuleCallSignature:
    """What a module takes and gives.

    Attributes:
        inputs: What stands for its inputs in the graph; empty for the whole program.
        outputs: The same for its outputs.
        in_spec: The containers of its arguments and of those by name.
        out_spec: The containers of its result.
        forward_arg_names: The names of its arguments.
    """

    inputs: list[Any]
    outputs: list[Any]
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = field(default=None)


@dataclass
class ModuleCallEntry:
    """A module of a program: its path, and what it takes and gives where that is kept."""

    fqn: str
    signature: ModuleCallSignature | None = None


def calls_of(program: ExportedProgram) -> list[ModuleCallEntry]:
    """The whole program with what it takes and gives, and the paths of its modules."""
    spec, names = program.call_spec, program._operators.names if program._operators is not None else None
    paths = dict.fromkeys(path for path, _ in program._runner.named_modules())
    for node in program.graph.nodes:
        for path, _ in (node.meta.get("nn_module_stack") or {}).values():
            paths[path] = None
    whole = ModuleCallSignature([], [], spec.in_spec, spec.out_spec, None if names is None else list(names))
    return [ModuleCallEntry("", whole), *(ModuleCallEntry(path) for path in paths if path)]
