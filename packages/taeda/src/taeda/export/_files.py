"""Exported programs in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda._subclasses import FakeTensor, FakeTensorMode
from taeda.export._program import ExportedProgram
from taeda.utils import _pytree
from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from taeda.fx.graph import Graph

__all__ = ["load", "save"]

_FORMAT = "taeda.export"


class _Shown:
    """What a graph tells of a tensor."""

    def __init__(self, fake: FakeTensor) -> None:
        plain = tuple(map(int, fake.shape))
        self.form, self.sizes = (
            (plain, fake.stride(), fake.dtype, fake.device, fake.requires_grad),
            fake.sizes,
        )

    def fake(self, mode: FakeTensorMode) -> FakeTensor:
        """The fake tensor."""
        shape, stride, dtype, device, gradient = self.form
        like = tensor.empty_strided(shape, stride, dtype=dtype, device="meta")
        made = FakeTensor._over(like, mode, device).requires_grad_(gradient)
        made.sizes = self.sizes
        return made


def _values(graph: Graph) -> list[dict[str, Any]]:
    """What is noted of each node, without functions."""
    kept = ("val", "stack_trace", "nn_module_stack", "torch_fn")
    return [
        _pytree.tree_map_only(FakeTensor, _Shown, {key: node.meta.get(key) for key in kept})
        for node in graph.nodes
    ]


def save(
    ep: ExportedProgram,
    f: Any,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Write an exported program to a file.

    Args:
        ep: The program.
        f: A path, or a file open for writing.
        extra_files: Further contents by name.
        opset_version: Accepted.
        pickle_protocol: The version of Python's format that it writes.

    Raises:
        TypeError: It is no exported program.
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got {type(ep).__name__}"
        )
    content = {"format": _FORMAT, "program": ep._runner, "extra": dict(extra_files or {})}
    content |= {"guards": ep._guards, "constants": ep._constants, "operators": ep._operators}
    content |= {"example_inputs": ep.example_inputs, "values": _values(ep.graph)}
    tensor.save(content, f, pickle_protocol=pickle_protocol)


def load(
    f: Any, *, extra_files: dict[str, Any] | None = None, expected_opset_version: dict[str, int] | None = None
) -> ExportedProgram:
    """Read what `save` wrote. That runs code that the file names: read only what you trust.

    Args:
        f: A path, or a file open for reading.
        extra_files: Names of further contents; filled with them.
        expected_opset_version: Accepted.

    Raises:
        RuntimeError: The file is another's.
    """
    if hasattr(f, "seek"):
        f.seek(0)  # the file is read from its beginning, wherever it was left
    content = tensor.load(f, weights_only=False)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise RuntimeError(f"load: {f} was not written by taeda.export.save")
    for name in extra_files or {}:
        if name in content["extra"]:
            extra_files[name] = content["extra"][name]  # type: ignore[index]
    parts = (content.get(name) for name in ("example_inputs", "guards"))
    constants, operators = content.get("constants", ()), content.get("operators")
    made = ExportedProgram(content["program"], *parts, constants, operators)
    mode = FakeTensorMode()
    for node, notes in zip(made.graph.nodes, content.get("values", ()), strict=False):
        shown = _pytree.tree_map_only(_Shown, lambda value: value.fake(mode), notes)
        node.meta |= {key: value for key, value in shown.items() if value is not None}
    return made
