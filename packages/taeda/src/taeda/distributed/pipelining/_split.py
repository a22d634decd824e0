"""Cuts a model into the stages of a pipeline: it is exported, and its graph is cut where marks stand."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import partial
from typing import Any

import taeda as torch
from taeda.distributed.pipelining._traced import PipeInfo, _Inputs, _PipelineStage, build_stage
from taeda.export import export
from taeda.fx import Interpreter
from taeda.fx._code import CodeGen
from taeda.fx._record import _active
from taeda.fx.passes.split_module import split_module
from taeda.utils import _pytree

__all__ = ["Pipe", "SplitPoint", "pipe_split", "pipeline"]

_PREFIX = "submod_pp_"


class SplitPoint(Enum):
    """Where a stage begins: before a submodule, or after it."""

    BEGINNING = 1
    END = 2


def pipe_split() -> None:
    """Mark, in the forward of a model, where one stage ends and the next begins.

    It does nothing but while `pipeline` follows the model.

    Example:
        >>> class Net(taeda.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.first, self.second = taeda.nn.Linear(2, 2), taeda.nn.Linear(2, 2)
        ...
        ...     def forward(self, x):
        ...         x = self.first(x)
        ...         pipe_split()
        ...         return self.second(x)
        >>> pipeline(Net(), (taeda.ones(1, 2),)).num_stages
        2
    """
    if _active:
        _active[-1].graph.call_function(pipe_split)


class Pipe(torch.nn.Module):
    """A model cut into stages: `pipeline` makes it.

    Called, it runs all stages in this process, and gives the results of the model as a tuple. A parameter that several
    stages use is copied, so that each has its own: add up the gradients of the copies before an optimizer uses them.

    Args:
        split_gm: The graph module that calls the stages.
        num_stages: How many there are.
        has_loss_and_backward: Whether the graph computes gradients.
        loss_spec: Which result is the loss; not used.

    Attributes:
        split_gm, num_stages: As given.
        replicated_params: For each parameter that several stages use its names, by stage.
    """

    def __init__(
        self, split_gm: Any, num_stages: int, has_loss_and_backward: bool = False, loss_spec: Any = None
    ) -> None:
        super().__init__()
        self.split_gm, self.num_stages = split_gm, num_stages
        self.has_loss_and_backward, self.loss_spec = has_loss_and_backward, loss_spec
        self._inputs = _Inputs.of(split_gm.graph)
        self.replicated_params = _copied(split_gm)
        self._executor = (Interpreter(split_gm),)  # no child
        split_gm.forward = _refuse

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The results of the model, of all stages one after the other."""
        given = self._inputs.bind(args, kwargs)
        missing = [name for name in self._inputs.names if name not in given]
        if missing:
            raise TypeError(f"Pipe: expected arguments {self._inputs.names}, missing {missing}")
        return self._executor[0].run(*(given[name] for name in self._inputs.names))

    def get_stage_module(self, stage_idx: int) -> Any:
        """The module of a stage. Its parameters have the names that they have in the model.

        Raises:
            ValueError: There is no such stage.
        """
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return getattr(self.split_gm, f"{_PREFIX}{stage_idx}")

    def info(self) -> PipeInfo:
        """What stages need to know of the whole."""
        return PipeInfo(self.split_gm.graph, self.num_stages, self.has_loss_and_backward, self._inputs)

    def build_stage(self, stage_index: int, device: Any, group: Any = None) -> _PipelineStage:
        """A stage that schedules run.

        The last stage gives those results of the model that it computes: a tensor, or a tuple where there are several.

        Args:
            stage_index: Its place.
            device: Where it computes: it is moved there.
            group: The processes that share the pipeline; None for all.

        Raises:
            ValueError: There is no such stage, or no group of processes.
        """
        module = self.get_stage_module(stage_index)
        _set_device(module, torch.device(device))
        return build_stage(module, stage_index, self.info(), device, group)

    def print_readable(self) -> None:
        """Print the code of the whole and of its stages."""
        self.split_gm.print_readable()

    def __repr__(self) -> str:
        return repr(self.split_gm)

    __str__ = __repr__


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("To run pipeline locally, invoke the Pipe object directly, not `split_gm`")


def _copied(split: Any) -> list[dict[str, str]]:
    """Give each stage its own copy of parameters that several use; their names, by stage."""
    users: dict[int, dict[str, str]] = {}
    for stage, module in split.named_children():
        for name, parameter in module.named_parameters():
            users.setdefault(id(parameter), {})[stage] = name
    shared = [names for names in users.values() if len(names) > 1]
    for names in shared:
        for stage, name in names.items():
            module = getattr(split, stage)
            parameter = module.get_parameter(name)
            made = copy.deepcopy(parameter)
            for home in module.modules():  # under all its names in this stage
                for field, value in home._parameters.items():
                    if value is parameter:
                        home._parameters[field] = made
    return shared


def _set_device(module: Any, device: Any) -> None:
    """Let functions that make tensors put them on the device of the stage."""
    changed = False
    for node in module.graph.nodes:
        if node.op == "call_function" and node.kwargs.get("device") not in (None, device):
            node.kwargs = {**node.kwargs, "device": device}
            changed = True
    if changed:
        module.recompile()


def pipeline(
    module: Any,
    mb_args: tuple[Any, ...],
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None,
    split_policy: Callable[[Any], Any] | None = None,
) -> Pipe:
    """A model cut into the stages of a pipeline.

    The model is exported with example inputs, so branches are taken for good. It is cut at calls of `pipe_split`, or
    where `split_spec` says. What a later stage needs of any earlier one is sent to it.

    Args:
        module: The model.
        mb_args: Example arguments, those of a microbatch.
        mb_kwargs: Those by name.
        split_spec: Submodules, by path, before or after which a stage begins.
        split_policy: A function that is given the exported graph module and returns it with calls of `pipe_split` in
            its graph. Not together with `split_spec`.

    Raises:
        ValueError: Both are given, a split point is none, or a result of the model is a parameter itself.
        AttributeError: There is no such submodule. RuntimeError: The model cannot be exported; the text says why.

    Example:
        >>> model = taeda.nn.Sequential(taeda.nn.Linear(2, 3), taeda.nn.Linear(3, 1))
        >>> pipe = pipeline(model, (taeda.ones(4, 2),), split_spec={"1": SplitPoint.BEGINNING})
        >>> pipe.num_stages, list(pipe.get_stage_module(1).state_dict())
        (2, ['1.weight', '1.bias'])
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError("Cannot specify both `split_spec` and `split_policy`. Please use only one of them.")
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"pipeline: argument module: expected a Module, found {type(module).__name__}")
    with _marked(module, split_spec or {}):
        traced = _exported(module, mb_args, mb_kwargs)
    if split_policy is not None:
        traced = split_policy(traced)
    return _cut(module, traced)


def _exported(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    try:
        return export(module, args, kwargs)._runner  # its graph has the marks
    except Exception as error:
        raise RuntimeError(
            f"pipeline: argument module: expected a model that can be exported as one graph: {error}; stages can "
            "be cut by hand too, as PipelineStage takes them"
        ) from error


@contextmanager
def _marked(module: Any, spec: dict[str, SplitPoint]) -> Iterator[None]:
    """Context in which submodules mark where stages begin."""
    found = [(_submodule(module, path), _point(path, point)) for path, point in spec.items()]
    before = [(child, child.__dict__.get("forward")) for child, _ in found]
    try:
        for child, point in found:
            child.forward = partial(_marking, child.forward, point)
        yield
    finally:
        for child, forward in before:
            child.__dict__.pop("forward", None)
            if forward is not None:
                child.forward = forward


def _marking(forward: Callable[..., Any], point: SplitPoint, *args: Any, **kwargs: Any) -> Any:
    if point is SplitPoint.BEGINNING:
        pipe_split()
    result = forward(*args, **kwargs)
    if point is SplitPoint.END:
        pipe_split()
    return result


def _submodule(module: Any, path: str) -> Any:
    place = module
    names = path.split(".")
    for index, name in enumerate(names):
        place = getattr(place, name, None)
        if not isinstance(place, torch.nn.Module):
            raise AttributeError(
                f"pipeline: argument split_spec: expected paths of submodules, found {path!r}: Specified target {path} "
                f"referenced nonexistent module {'.'.join(names[: index + 1])}"
            )
    return place


def _point(path: str, point: Any) -> SplitPoint:
    if not isinstance(point, SplitPoint):
        raise ValueError(
            f"pipeline: argument split_spec: Unknown split point type: expected a SplitPoint for {path!r}, found "
            f"{point!r}"
        )
    return point


def _cut(module: Any, traced: Any) -> Pipe:
    """The pipe of a graph in which marks stand."""
    numbers = _numbered(traced.graph)
    codegen = traced.graph._codegen
    info = getattr(codegen, "pytree_info", None)
    traced.graph.set_codegen(CodeGen())
    split = split_module(traced, module, numbers.__getitem__, partition_affix="pp")
    end = split.graph.output_node()
    if any(node.op == "get_attr" for node in split.graph.nodes):
        names = [str(node.target) for node in split.graph.nodes if node.op == "get_attr"]
        raise ValueError(
            f"pipeline: argument module: expected results that a stage computes, found {names} itself"
        )
    end.args = (tuple(_pytree.tree_leaves(end.args[0], is_leaf=_is_node)),)
    split.recompile()
    count = sum(node.op == "call_module" for node in split.graph.nodes)
    pipe = Pipe(split, count)
    if info is not None:
        pipe._inputs = _Inputs.of(split.graph, [name for name in info.orig_args if name != "self"])
    return pipe


def _is_node(value: Any) -> bool:
    return not isinstance(value, (tuple, list, dict))


def _numbered(graph: Any) -> dict[Any, int]:
    """The stage of each node. Marks leave the graph; one before the first computation, or after the last, is none."""
    numbers: dict[Any, int] = {}
    stage, begun = 0, False
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target is pipe_split:
            stage, begun = stage + int(begun), False
            graph.erase_node(node)
        elif node.op not in ("placeholder", "get_attr", "output"):
            numbers[node] = stage
            begun = True
    _keep_sizes_near(graph, numbers)
    return numbers


def _keep_sizes_near(graph: Any, numbers: dict[Any, int]) -> None:
    """Take the items of a shape in the stage that asks for it: stages send numbers to each other, no shapes."""
    for node in graph.nodes:
        if node.target is operator.getitem and isinstance(node.args[0], type(node)):
            numbers[node] = numbers.get(node.args[0], numbers[node])
