"""Stages of a model that `pipeline` cut: its graph says which stage needs what of which."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from taeda.distributed.pipelining._stages import _WISHES, _Kept, _PipelineStageBase
from taeda.utils import _pytree

__all__ = ["PipeInfo", "build_stage"]


class _Inputs:
    """How the arguments of a program become the inputs of its graph.

    Args:
        names: The inputs of the graph.
        arguments: The arguments of the program where some are containers; None where each is an input.
    """

    def __init__(self, names: list[str], arguments: list[str] | None) -> None:
        self.names, self.arguments = names, arguments

    @classmethod
    def of(cls, graph: Any, arguments: list[str] | None = None) -> _Inputs:
        """Those of a graph."""
        return cls([str(node.target) for node in graph.nodes if node.op == "placeholder"], arguments)

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Inputs by name, those that are given.

        Raises:
            TypeError: There is no such argument.
        """
        known = self.arguments or self.names
        if len(args) > len(known):
            raise TypeError(f"pipeline: expected at most {len(known)} arguments, {known}, found {len(args)}")
        given = dict(zip(known, args, strict=False))
        strange = [name for name in kwargs if name not in known or name in given]
        if strange:
            raise TypeError(f"pipeline: expected arguments named {known}, once each, found {strange}")
        given.update(kwargs)
        if self.arguments is None:
            return given
        missing = [name for name in known if name not in given]
        if missing:
            raise TypeError(f"pipeline: expected all of the arguments {known}, missing {missing}")
        leaves = _pytree.tree_leaves([given[name] for name in known])
        return dict(zip(self.names, leaves, strict=True))


@dataclass
class PipeInfo:
    """What there is to know of a `Pipe`.

    Attributes:
        graph: The graph that calls the stages.
        num_stages: How many there are.
        has_loss_and_backward: Whether the graph computes gradients: False.
    """

    graph: Any
    num_stages: int
    has_loss_and_backward: bool
    _inputs: _Inputs | None = field(default=None, repr=False)


def _origin(node: Any, numbers: dict[Any, int]) -> tuple[int | None, Any]:
    """Where a value comes from: a stage and the place among its results, or None and the name of an input."""
    if node.op == "placeholder":
        return None, str(node.target)
    if node.target is operator.getitem:
        called, index = node.args
        return numbers[called], index
    return numbers[node], 0


class _PipelineStage(_PipelineStageBase):
    """A stage that `pipeline` cut: it gets what the graph says, of any earlier stage.

    An input of the program that a later stage needs is given to that stage's `step` by name, or else comes from the
    first stage.

    Args:
        stage_module: Its module.
        stage_index: Its place among the stages.
        pipe_info: `Pipe.info()`.
        device: Where it computes; the module is moved there.
        group: The processes that share the pipeline; None for all.
    """

    def __init__(
        self, stage_module: Any, stage_index: int, pipe_info: PipeInfo, device: Any, group: Any = None
    ) -> None:
        super().__init__(stage_module, stage_index, pipe_info.num_stages, device, group)
        self.pipe_info = pipe_info
        calls = [node for node in pipe_info.graph.nodes if node.op == "call_module"]
        if len(calls) != self.num_stages:
            raise ValueError(
                f"build_stage: argument pipe_info: expected {self.num_stages} stages in its graph, found {len(calls)}"
            )
        numbers = {node: index for index, node in enumerate(calls)}
        self._needs = [[_origin(arg, numbers) for arg in node.args] for node in calls]
        self.node, self.name = calls[stage_index], calls[stage_index].name
        self._wishes: dict[int, list[str]] = {}
        if not any(p.is_meta for p in [*stage_module.parameters(), *stage_module.buffers()]):
            self.submod.to(self.device)

    def _roots(self, stage: int) -> list[str]:
        """The program's inputs that a stage needs."""
        return list(dict.fromkeys(name for source, name in self._needs[stage] if source is None))

    def _results(self, source: int, target: int) -> list[int]:
        """The places of those results of a stage that another one needs."""
        return list(dict.fromkeys(place for found, place in self._needs[target] if found == source))

    def _sources(self) -> list[int]:
        found = {source for source, _ in self._needs[self.stage_index] if source is not None}
        if self._wishes.get(self.stage_index):
            found.add(0)
        return sorted(found)

    def _targets(self) -> list[int]:
        later = range(self.stage_index + 1, self.num_stages)
        return [
            t for t in later if self._results(self.stage_index, t) or (self.is_first and self._wishes.get(t))
        ]

    def _outgoing(self, target: int, kept: _Kept) -> list[Any]:
        values = [kept.outputs[place] for place in self._results(self.stage_index, target)]
        wishes = self._wishes.get(target, []) if self.is_first else []
        missing = [name for name in wishes if name not in kept.roots]
        if missing:
            raise TypeError(
                f"pipeline: argument {missing[0]}: expected it in the step of stage {target}, by name, or in that of "
                f"stage 0, found it in neither"
            )
        return [*values, *(kept.roots[name] for name in wishes)]

    def _ask(self, kwargs: dict[str, Any]) -> None:
        roots = self._roots(self.stage_index)
        if self.is_first or not roots:
            return
        known = self._named_roots(kwargs)
        self._wishes = {self.stage_index: [name for name in roots if name not in known]}
        self._send(_WISHES, 0, 0, list(self._wishes[self.stage_index]))

    def _answer(self) -> None:
        if not self.is_first:
            return
        asking = [stage for stage in range(1, self.num_stages) if self._roots(stage)]
        self._wishes = {stage: self._receive(_WISHES, stage, 0) for stage in asking}

    def _named_roots(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The program's inputs that were given to a later stage by name."""
        return self._graph_inputs().bind((), kwargs) if kwargs else {}

    def _graph_inputs(self) -> _Inputs:
        return self.pipe_info._inputs or _Inputs.of(self.pipe_info.graph)

    def _first_roots(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The program's inputs in the first stage: all of them, or only those that it uses itself."""
        inputs, own = self._graph_inputs(), self._roots(0)
        if inputs.arguments is None and len(args) + len(kwargs) == len(own) < len(inputs.names):
            return (
                _Inputs(own, None).bind(args, kwargs)
                if set(kwargs) <= set(own)
                else inputs.bind(args, kwargs)
            )
        return inputs.bind(args, kwargs)

    def _call_arguments(
        self, kept: _Kept, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        kept.roots = self._first_roots(args, kwargs) if self.is_first else self._named_roots(kwargs)
        values: dict[tuple[int | None, Any], Any] = {(None, k): v for k, v in kept.roots.items()}
        for source, received in kept.received.items():
            keys: list[tuple[int | None, Any]] = [
                (source, p) for p in self._results(source, self.stage_index)
            ]
            if source == 0:
                keys += [(None, name) for name in self._wishes.get(self.stage_index, [])]
            values.update(zip(keys, received, strict=True))
        missing = [name for source, name in self._needs[self.stage_index] if (source, name) not in values]
        if missing:
            raise TypeError(
                f"pipeline: stage {self.stage_index}: expected arguments {self._roots(self.stage_index)}, missing "
                f"{missing}"
            )
        return tuple(values[key] for key in self._needs[self.stage_index]), {}


def build_stage(
    stage_module: Any, stage_index: int, pipe_info: PipeInfo, device: Any, group: Any = None
) -> _PipelineStage:
    """A stage of a module that `pipeline` cut.

    Args:
        stage_module: Its module, `Pipe.get_stage_module(stage_index)`.
        stage_index: Its place among the stages.
        pipe_info: `Pipe.info()`.
        device: Where it computes; the module is moved there.
        group: The processes that share the pipeline; None for all.

    Raises:
        ValueError: There is no such stage, or no group of processes.

    Example:
        >>> pipe = pipeline(model, (x,), split_spec={"layers.1": SplitPoint.BEGINNING})  # doctest: +SKIP
        >>> stage = build_stage(pipe.get_stage_module(rank), rank, pipe.info(), "cpu")  # doctest: +SKIP
    """
    return _PipelineStage(stage_module, stage_index, pipe_info, device, group)
