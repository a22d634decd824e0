"""Parameters of a module that are cut over processes: put together for a forward, their gradients cut again.

A unit has the parameters of one wrapped module. Before its forward the parts of all processes become whole tensors,
which stand in the module in the place of the parameters; the backward of that step adds up the gradients of all
processes and gives each its part. So autograd itself says when what is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import taeda as torch
from taeda.distributed._reductions import RedOpType


@dataclass
class Entry:
    """A parameter: its name in the unit, where it stands (several places share one), and its whole shape."""

    name: str
    places: list[tuple[Any, str]]
    shape: tuple[int, ...]
    requires_grad: bool = True

    @property
    def numel(self) -> int:
        """How many elements it has."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass
class Settings:
    """What is rounded when, and by what gradients are divided.

    Args:
        param_dtype: Of whole parameters; None leaves theirs.
        reduce_dtype: Of sums of gradients.
        divide: By what sums of gradients are divided; None for the number of processes.
        sync: Whether gradients are added up over processes.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    divide: float | None = None
    sync: bool = True


class Rows:
    """Each parameter cut along its first dimension."""

    def __init__(self, entries: Sequence[Entry], size: int) -> None:
        self.entries, self.size = entries, size
        self._rows = [-(-e.shape[0] // size) if e.shape else 1 for e in entries]
        self._widths = [e.numel // e.shape[0] if e.shape and e.shape[0] else 1 for e in entries]

    def lengths(self) -> list[int]:
        """How many elements of each parameter a process sends."""
        return [r * w for r, w in zip(self._rows, self._widths, strict=True)]

    def pack(self, parts: Sequence[Any]) -> Any:
        """The parts of this process one after the other."""
        flat = []
        for part, length in zip(parts, self.lengths(), strict=True):
            given = part.reshape(-1)
            flat.append(given)
            if given.numel() < length:
                flat.append(given.new_zeros(length - given.numel()))
        return torch.cat(flat)

    def whole(self, rows: Any) -> list[Any]:
        """Whole parameters, of what all processes sent: a row for each."""
        found = []
        for entry, block in zip(self.entries, rows.split(self.lengths(), 1), strict=True):
            found.append(block.reshape(-1)[: entry.numel].reshape(entry.shape))
        return found

    def cut(self, wholes: Sequence[Any]) -> Any:
        """What each process gets of whole gradients: a row for each."""
        blocks = []
        for whole, length in zip(wholes, self.lengths(), strict=True):
            flat = whole.reshape(-1)
            missing = length * self.size - flat.numel()
            flat = torch.cat([flat, flat.new_zeros(missing)]) if missing else flat
            blocks.append(flat.view(self.size, length))
        return torch.cat(blocks, 1)

    def unpack(self, row: Any, like: Sequence[Any]) -> list[Any]:
        """Parts of gradients, shaped as the parts of parameters."""
        blocks = row.split(self.lengths())
        return [block[: part.numel()].reshape(part.shape) for block, part in zip(blocks, like, strict=True)]


class Flat:
    """All parameters one after the other, cut into equal parts."""

    def __init__(self, entries: Sequence[Entry], size: int) -> None:
        self.entries, self.size = entries, size
        self.total = sum(e.numel for e in entries)
        self.each = -(-self.total // size) if self.total else 0

    def spans(self, rank: int) -> list[tuple[int, int]]:
        """Of each parameter the elements that a process has: where they begin in it, and how many."""
        found, at = [], 0
        low, high = rank * self.each, (rank + 1) * self.each
        for entry in self.entries:
            start, end = max(low - at, 0), min(high - at, entry.numel)
            found.append((min(start, entry.numel), max(end - start, 0)))
            at += entry.numel
        return found

    def pack(self, parts: Sequence[Any]) -> Any:
        """The parts of this process one after the other."""
        flat = torch.cat([part.reshape(-1) for part in parts])
        missing = self.each - flat.numel()
        return torch.cat([flat, flat.new_zeros(missing)]) if missing else flat

    def whole(self, rows: Any) -> list[Any]:
        """Whole parameters, of what all processes sent: a row for each."""
        blocks = rows.reshape(-1)[: self.total].split([e.numel for e in self.entries])
        return [block.view(entry.shape) for block, entry in zip(blocks, self.entries, strict=True)]

    def cut(self, wholes: Sequence[Any]) -> Any:
        """What each process gets of whole gradients: a row for each."""
        flat = torch.cat([whole.reshape(-1) for whole in wholes])
        missing = self.each * self.size - flat.numel()
        return (torch.cat([flat, flat.new_zeros(missing)]) if missing else flat).view(self.size, self.each)

    def unpack(self, row: Any, like: Sequence[Any]) -> list[Any]:
        """Parts of gradients, shaped as the parts of parameters."""
        found, at = [], 0
        for part in like:
            found.append(row[at : at + part.numel()].reshape(part.shape))
            at += part.numel()
        return found


class Unit:
    """The parameters of one wrapped module.

    Args:
        entries: The parameters.
        layout: How they are cut.
        shards: The processes over which they are cut; None for this one alone.
        copies: The processes that have the same parts; None for this one alone.
        settings: What is rounded when.
    """

    def __init__(
        self, entries: list[Entry], layout: Any, shards: Any, copies: Any, settings: Settings
    ) -> None:
        self.entries, self.layout, self.settings = entries, layout, settings
        self.shards = shards if shards is not None and shards.size() > 1 else None
        self.copies = copies if copies is not None and copies.size() > 1 else None
        self.waiting: dict[int, Any] = {}
        self._before: list[Any] | None = None

    def processes(self) -> int:
        """How many processes' gradients are added up."""
        return (self.shards.size() if self.shards else 1) * (self.copies.size() if self.copies else 1)

    def gathered(self, parts: Sequence[Any]) -> list[Any]:
        """Whole parameters, through which gradients flow to the parts."""
        if not self.entries:
            return []
        return list(_Whole.apply(self, *parts))

    def rows(self, parts: Sequence[Any]) -> Any:
        """What all processes send, a row for each."""
        mine = self.layout.pack(parts)
        if self.settings.param_dtype is not None and mine.is_floating_point():
            mine = mine.to(self.settings.param_dtype)
        if self.shards is None:
            return mine.unsqueeze(0)
        room = torch.empty((self.shards.size(), mine.numel()), dtype=mine.dtype, device=mine.device)
        self.shards.allgather([list(room.unbind(0))], [mine], later=False)
        return room

    def reduced(self, rows: Any) -> Any:
        """This process's part of the averages of gradients."""
        before = rows.dtype
        if self.settings.reduce_dtype is not None:
            rows = rows.to(self.settings.reduce_dtype)
        rows = rows / (self.settings.divide or self.processes())
        if self.shards is not None:
            mine = torch.empty_like(rows[0])
            self.shards.reduce_scatter([mine], [list(rows.unbind(0))], RedOpType.SUM, later=False)
        else:
            mine = rows[0]
        if self.copies is not None:
            mine = mine.contiguous()
            self.copies.allreduce([mine], RedOpType.SUM, later=False)
        return mine if self.settings.reduce_dtype is None else mine.to(before)

    # In the module

    def put(self, wholes: Sequence[Any]) -> None:
        """Let whole tensors stand in the places of the parameters."""
        if self._before is not None:
            return
        self._before = []
        for entry, whole in zip(self.entries, wholes, strict=True):
            for module, name in entry.places:
                self._before.append((module, name, module._parameters.get(name, _ABSENT)))
                module._parameters[name] = whole

    def restore(self) -> None:
        """Let the parameters stand in their places again."""
        for module, name, value in self._before or ():
            if value is _ABSENT:
                module._parameters.pop(name, None)
            else:
                module._parameters[name] = value
        self._before = None

    @property
    def is_put(self) -> bool:
        """Whether whole tensors stand in the places of the parameters."""
        return self._before is not None

    @contextmanager
    def standing(self, wholes: Sequence[Any]) -> Iterator[None]:
        """`put` for a while."""
        if self.is_put:
            yield
            return
        self.put(wholes)
        try:
            yield
        finally:
            self.restore()


_ABSENT = object()


class _Whole(torch.autograd.Function):
    """From parts to whole parameters."""

    @staticmethod
    def forward(ctx: Any, unit: Unit, *parts: Any) -> Any:
        ctx.unit, ctx.shapes = unit, parts
        ctx.set_materialize_grads(False)
        return tuple(whole.clone() for whole in unit.layout.whole(unit.rows(parts)))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        unit, parts = ctx.unit, ctx.shapes
        own = gradients_with_waiting(unit, gradients)
        if not unit.settings.sync:
            for place, gradient in enumerate(own):
                if gradient is not None:
                    unit.waiting[place] = gradient.detach()
            return (None, *[None] * len(parts))
        unit.waiting.clear()
        if all(gradient is None for gradient in own):
            return (None, *[None] * len(parts))
        first = next(gradient for gradient in own if gradient is not None)
        filled = [
            torch.zeros(entry.shape, dtype=first.dtype, device=first.device) if gradient is None else gradient
            for entry, gradient in zip(unit.entries, own, strict=True)
        ]
        mine = unit.reduced(unit.layout.cut(filled))
        found = unit.layout.unpack(mine.to(parts[0].dtype), parts)
        single = len(parts) != len(unit.entries)
        return (None, *(g.clone() if single or own[i] is not None else None for i, g in enumerate(found)))


def gradients_with_waiting(unit: Unit, gradients: Sequence[Any]) -> list[Any]:
    """Gradients, with those added that were kept back."""
    found = []
    for place, gradient in enumerate(gradients):
        kept = unit.waiting.get(place)
        if gradient is None or kept is None:
            found.append(kept if gradient is None else gradient)
        else:
            found.append(gradient + kept)
    return found


@dataclass
class Found:
    """The parameters of a module that belong to a unit, in the order of names."""

    entries: list[Entry] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)


def managed(module: Any, is_other: Any, ignored: set[int]) -> Found:
    """The parameters of a module and of the modules in it that are no units themselves.

    Args:
        module: The module.
        is_other: Says of a module in it whether it is another unit.
        ignored: Parameters that are left alone, by identity.
    """
    found, known = Found(), {}

    def visit(part: Any, prefix: str) -> None:
        for name, value in part._parameters.items():
            if value is None or id(value) in ignored:
                continue
            if id(value) in known:
                known[id(value)].places.append((part, name))
                continue
            entry = Entry(prefix + name, [(part, name)], tuple(value.shape), value.requires_grad)
            known[id(value)] = entry
            found.entries.append(entry)
            found.values.append(value)
        for name, child in part._modules.items():
            if child is not None and not is_other(child):
                visit(child, f"{prefix}{name}.")

    visit(module, "")
    return found


def cast(value: Any, dtype: Any) -> Any:
    """Floating-point tensors of arguments in another dtype."""
    from taeda.utils import _pytree

    if dtype is None:
        return value
    return _pytree.tree_map_only(torch.Tensor, lambda t: t.to(dtype) if t.is_floating_point() else t, value)
