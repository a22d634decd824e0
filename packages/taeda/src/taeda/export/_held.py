"""Which nodes of an exported program's graph stand for what it holds: parameters, buffers, constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taeda.export._program import ExportedProgram

__all__ = [
    "get_buffer", "get_lifted_tensor_constant", "get_param", "is_buffer", "is_lifted_tensor_constant", "is_param",
    "register_dataclass_as_pytree_node",
]  # fmt: skip


def _path(node: Any, paths: dict[str, str]) -> str | None:
    """The path of what a node stands for: an input of that name, or one that reads it. None for another."""
    if node.op == "get_attr":
        return node.target if node.target in paths.values() else None
    return paths.get(node.name)


def is_param(program: ExportedProgram, node: Any) -> bool:
    """Whether a node stands for a parameter."""
    return _path(node, program.graph_signature.inputs_to_parameters) is not None


def get_param(program: ExportedProgram, node: Any) -> Any:
    """The parameter that a node stands for; None where it stands for none."""
    path = _path(node, program.graph_signature.inputs_to_parameters)
    return None if path is None else dict(program.named_parameters())[path]


def is_buffer(program: ExportedProgram, node: Any) -> bool:
    """Whether a node stands for a buffer."""
    return _path(node, program.graph_signature.inputs_to_buffers) is not None


def get_buffer(program: ExportedProgram, node: Any) -> Any:
    """The buffer that a node stands for; None where it stands for none."""
    path = _path(node, program.graph_signature.inputs_to_buffers)
    return None if path is None else dict(program.named_buffers())[path]


def is_lifted_tensor_constant(program: ExportedProgram, node: Any) -> bool:
    """Whether a node stands for a tensor which the program holds besides."""
    return _path(node, program.graph_signature.inputs_to_lifted_tensor_constants) is not None


def get_lifted_tensor_constant(program: ExportedProgram, node: Any) -> Any:
    """The constant that a node stands for; None where it stands for none."""
    path = _path(node, program.graph_signature.inputs_to_lifted_tensor_constants)
    return None if path is None else program.constants[path]


def register_dataclass_as_pytree_node(
    cls: type,
    flatten_fn: Any = None,
    unflatten_fn: Any = None,
    *,
    serialized_type_name: str | None = None,
    **_: Any,
) -> None:
    """`export.register_dataclass`, or with functions of one's own `utils._pytree.register_pytree_node`."""
    from taeda import export
    from taeda.utils import _pytree

    if flatten_fn is None or unflatten_fn is None:
        export.register_dataclass(cls, serialized_type_name=serialized_type_name)
    else:
        _pytree.register_pytree_node(cls, flatten_fn, unflatten_fn, serialized_type_name=serialized_type_name)
