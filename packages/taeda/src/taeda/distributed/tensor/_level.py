"""What operators do with tensors that are spread over processes: the level at which they are met.

A tensor of the level carries its part in this process and how it lies. A rule gives the result's; operators without
one are computed from whole tensors, by all processes alike: right, with more traffic than a rule of its own needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import taeda as torch
from taeda.distributed.tensor import _moves
from taeda.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
# Composites that have a rule as a whole.
_WHOLE = (
    "empty_like", "expand_as", "full_like", "new_empty", "new_full", "new_ones", "new_zeros", "ones_like", "rand_like",
    "randn_like", "reshape",
    "scaled_dot_product_attention", "vector_norm", "zeros_like",
)  # fmt: skip


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: the rule of the operators of these names."""

    def put(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return put


class Part:
    """The part of this process, and how the whole lies over the mesh."""

    def __init__(self, local: Any, placements: Sequence[Placement], shape: Sequence[int]) -> None:
        self.local, self.placements, self.shape = local, tuple(placements), tuple(shape)


class Spreading(torch.library.Level):
    """One call of a function with tensors of a mesh.

    Args:
        mesh: The mesh.
    """

    def __init__(self, mesh: Any) -> None:
        super().__init__("DTensor", composites=_WHOLE)
        self.mesh = mesh
        self.whole = (Replicate(),) * mesh.ndim

    def __call__(self, op: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        from taeda.distributed.tensor import _rules

        form = op.form
        if form == "out":
            return self._write_out(op, args, kwargs)
        known = RULES.get(op.name)
        if known is None and (form == "inplace" or op.name.removesuffix("_") in _rules.elementwise()):
            known = _rules.written if form == "inplace" else _rules.aligned
        made = NotImplemented if known is None else known(self, op, *args, **kwargs)
        if made is NotImplemented:
            made = self._from_whole(op, args, kwargs)
        return changed(made, self.dress, Part)

    # Tensors of the level

    def dress(self, part: Part) -> Any:
        """A tensor of the level."""
        return self.wrap(part, part.shape, part.local.dtype, part.local.device)

    def part(self, value: Any) -> Part:
        """What a tensor carries; a plain one is had by all."""
        found = self.payload(value)
        return Part(value, self.whole, value.shape) if found is None else found

    def local(self, value: Any, wanted: Sequence[Placement]) -> Any:
        """The part of this process of a tensor that is brought to lie as wanted."""
        found = self.part(value)
        return _moves.redistribute(found.local, found.shape, self.mesh, found.placements, wanted)

    def summed(self, local: Any, dims: Sequence[int]) -> Any:
        """What all along these dimensions of the mesh have, used beside something that is cut there."""
        for dim in dims:
            local = _moves.summed(local, self.mesh.get_group(dim))
        return local

    def _from_whole(self, op: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        def whole(value: Any) -> Any:
            return self.local(value, self.whole)

        made = op(*changed(args, whole), **{key: changed(v, whole) for key, v in kwargs.items()})
        return changed(made, lambda t: Part(t, self.whole, t.shape))

    def _write_out(self, op: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        count = sum(a.written for a in op.arguments)
        base = torch.library.op(op.name.removesuffix(".out").removesuffix("_out"))
        made = self(base, args[count:], kwargs)
        for target, result in zip(tensors_of(list(args[:count])), tensors_of(made), strict=True):
            part = self.part(target)
            part.local.copy_(self.local(result, part.placements))


def tensors_of(value: Any, kind: type = torch.Tensor) -> list[Any]:
    """The tensors among arguments, also inside lists."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, (list, tuple)):
        return [each for item in value for each in tensors_of(item, kind)]
    if isinstance(value, dict):
        return [each for item in value.values() for each in tensors_of(item, kind)]
    return []


def changed(value: Any, change: Callable[[Any], Any], kind: type = torch.Tensor) -> Any:
    """Arguments with every tensor replaced, also inside lists and dicts."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(changed(item, change, kind) for item in value))
    if isinstance(value, (list, tuple)):
        items = [changed(item, change, kind) for item in value]
        return items if isinstance(value, list) else _same_tuple(value, items)
    if isinstance(value, dict):
        return {key: changed(item, change, kind) for key, item in value.items()}
    return value


def _same_tuple(value: tuple, items: list[Any]) -> Any:
    return tuple(items) if type(value) is tuple else type(value)(items)


__all__ = ["Part", "Partial", "Placement", "Replicate", "Shard", "Spreading", "changed", "rule", "tensors_of"]
