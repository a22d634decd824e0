"""Runs of a recorded program, with the operators that each of its nodes calls."""

from __future__ import annotations

import dataclasses
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from taeda.func import _vmap
from taeda.fx import GraphModule, Interpreter
from taeda.utils import _pytree
from taeda.utils._python_dispatch import TorchDispatchMode, as_told
from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taeda._subclasses import FakeTensorMode
    from taeda.fx.node import Node

__all__ = ["Call", "CannotTrace", "Ref", "Run", "Sub"]


class CannotTrace(RuntimeError):
    """What a program does cannot stand in a graph of operators; the text says why."""


class Ref(NamedTuple):
    """A tensor, or a number out of one: the input, constant or call that it comes from, and the way into its result."""

    home: str
    index: int
    way: tuple[int, ...] = ()


class Sub(NamedTuple):
    """A graph that is an argument of a call: its name, what it does, and with which inputs."""

    name: str
    run: Run
    inputs: list[Any]


@dataclasses.dataclass
class Call:
    """One call of an operator.

    Attributes:
        target: The overload, or a function that is kept whole.
        args, kwargs: Its arguments, with a `Ref` for each tensor.
        result: Its result, in fake tensors.
        source: The node of the recorded program that it belongs to.
        shares: The argument whose memory the result shows, if any.
        keeps: Whether its arguments have no dtype beyond that of the first, which a new value would take on.
    """

    target: Any
    args: Any
    kwargs: Any
    result: Any
    source: Node | None
    shares: Ref | None = None
    keeps: bool = True


def _shared(args: Any, result: Any) -> Any:
    """The tensor among arguments whose memory a result shows; None for none."""
    made = [
        x for x in _pytree.tree_leaves(result) if isinstance(x, tensor.Tensor) and x.layout is tensor.strided
    ]
    places = {x.untyped_storage().data_ptr() for x in made if x.numel()}
    for x in _pytree.tree_leaves(args):
        strided = isinstance(x, tensor.Tensor) and x.layout is tensor.strided and x.numel()
        if strided and x.untyped_storage().data_ptr() in places and not any(x is one for one in made):
            return x
    return None


def _keeps(args: Any) -> bool:
    given = [x for x in _pytree.tree_leaves(args) if isinstance(x, tensor.Tensor)]
    return all(
        x.dim() == 0 or tensor.promote_types(given[0].dtype, x.dtype) == given[0].dtype for x in given[1:]
    )


class _Above(tensor.library.Layer):  # type: ignore[misc, name-defined]
    """Meets operators before what they consist of."""

    def __init__(self, run: Run) -> None:
        self._run = run
        super().__init__("graph of operators", "tracing")

    def __call__(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._run.paused:
            return op(*args, **kwargs)
        func, given, named = as_told(op, args, kwargs)
        return self._run.call(func, given, named, lambda: op(*args, **kwargs))


class _Below(TorchDispatchMode):  # type: ignore[misc]
    """Meets what operators consist of."""

    def __init__(self, run: Run, instead: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__()
        self._run, self._instead = run, instead

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._run.paused:
            return func(*args, **kwargs)
        if (instead := self._instead.get(func)) is not None:
            with self:
                result = instead(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return self._run.call(func, args, kwargs, lambda: func(*args, **kwargs))


class Run(Interpreter):
    """One run of a recorded program.

    Args:
        program: A module of a graph of public functions, or of operators.
        number: Which of several runs it is: numbers out of tensors are larger by it, so that they are known as such.
        mode: Makes the fake tensors that results are kept as.
        apart: Let the graph have what operators consist of.
        instead: Functions that stand for operators.

    Attributes:
        calls: Operators in their order.
        constants: Tensors that come from elsewhere, in the order of use.
        renewed: Statistics of normalisations that are new values, by what they were.
        result: What the program gave, with a `Ref` for each tensor; and its form with all containers.
    """

    def __init__(
        self,
        program: GraphModule,
        number: int,
        mode: FakeTensorMode,
        apart: bool,
        instead: Mapping[Any, Any] | None,
    ) -> None:
        super().__init__(program)
        self.mode, self.apart = mode, apart
        self.number, self.instead, self.paused = number, instead, False
        self.calls: list[Call] = []
        self.constants: list[Any] = []
        self.result: Any = None
        self.renewed: dict[Ref, Ref] = {}
        self.source: Node | None = None
        self._refs: dict[int, tuple[Ref, Any]] = {}
        self.extra_traceback = False

    def trace(self, held: list[Any], inputs: list[Any]) -> Run:
        """Run with these inputs; `held` are the tensors of the program.

        Raises:
            CannotTrace: It does what no operator does.
        """
        for home, values in (("held", held), ("input", inputs)):
            for index, value in enumerate(values):
                if isinstance(value, tensor.Tensor):
                    self._know(value, Ref(home, index))
        mode = _Below(self, self.instead or {}) if self.apart else _Above(self)
        with tensor.no_grad(), mode:
            given = self.run(*inputs, enable_io_processing=False)
        whole = self.graph.process_outputs(given)
        self.spec = _pytree.tree_structure(whole)
        self.result = [self._arg(leaf) for leaf in _pytree.tree_leaves(whole)]
        return self

    # --- nodes ---

    def run_node(self, n: Node) -> Any:
        if n.target in _vmap.STEPS:
            raise CannotTrace("operators of a vmap are those of one example")
        self.source = n
        before = len(self.calls)
        result = super().run_node(n)
        if n.target in ("item", tensor.ops.aten.item.default) and type(result) is int:
            return self._item(n, result)
        if n.op in ("call_function", "call_method") and len(self.calls) == before:
            self._without_operators(n, result)
        return result

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if target in (tensor.cond, tensor.while_loop):
            return self._with_graphs(target, args)
        instead = None if self.apart else (self.instead or {}).get(target)
        if instead is not None and (result := instead(*args, **kwargs)) is not NotImplemented:
            return result
        if isinstance(target, tensor.library.Named) or getattr(target, "_kept_whole", False):
            return self.whole(target, args, kwargs)
        return super().call_function(target, args, kwargs)

    def _with_graphs(self, target: Any, args: tuple[Any, ...]) -> Any:
        """The result of a branch or a loop, whose functions are graphs of their own."""
        graphs, given = [], []
        for value in args:
            (graphs if isinstance(value, GraphModule) else given).append(value)
        inputs = given[-1] if target is tensor.cond else [x for part in given for x in part]
        nodes = [node for node in self.source.all_input_nodes if node.op == "get_attr"]  # type: ignore[union-attr]
        subs = [
            Sub(str(node.target), self._within(graph, list(inputs)), list(inputs))
            for node, graph in zip(nodes, graphs, strict=False)
        ]
        rest = iter(subs)
        kept = tuple(next(rest) if isinstance(value, GraphModule) else value for value in args)
        return self.whole(target, args, {}, kept)

    def _within(self, graph: GraphModule, inputs: list[Any]) -> Run:
        """What a graph does with these inputs, of which nothing stands in this run's."""
        before, self.paused = self.paused, True
        try:
            run = Run(graph, self.number, self.mode, self.apart, self.instead).trace([], inputs)
        finally:
            self.paused = before
        if run.constants:
            raise CannotTrace("a branch makes tensors of numbers")
        return run

    def whole(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], kept: Any = None) -> Any:
        """The result of a function that is kept as one call, whatever it calls; `kept` are arguments to be kept."""

        def run() -> Any:
            self.paused = True
            try:
                return target(*args, **kwargs)
            finally:
                self.paused = False

        return self.call(target, args if kept is None else kept, kwargs, run)

    def _item(self, n: Node, result: int) -> int:
        """A number out of a tensor: another in each run."""
        value = self.env[n.args[0]]
        if self.number:
            result += self.number if result < 2 else -self.number % result or self.number
        self.calls.append(Call(tensor.ops.aten.item.default, (self._arg(value),), {}, result, n))
        return result

    def _without_operators(self, n: Node, result: Any) -> None:
        """What a node that calls no operator gives: what is known, or a tensor of Python's numbers."""
        for leaf in _pytree.tree_leaves(result):
            if not isinstance(leaf, tensor.Tensor) or id(leaf) in self._refs:
                continue
            if any(isinstance(self.env.get(used), tensor.Tensor) for used in n.all_input_nodes):
                raise CannotTrace(f"{n.target} calls no operator")
            self.paused = True
            kept = leaf.clone()
            self.paused = False
            self.call(tensor.ops.aten.lift_fresh_copy.default, (kept,), {}, lambda leaf=leaf: leaf)

    # --- operators ---

    def call(self, target: Any, args: Any, kwargs: Any, run: Callable[[], Any]) -> Any:
        """Run an operator and keep it."""
        given = self._arg(tuple(args)), self._arg(dict(kwargs))
        result = run()
        if self.apart and str(target) == "aten.native_batch_norm.default" and args[5] and args[3] is not None:
            return self._normalised(args, given[0], result)
        if result is None or any(isinstance(leaf, tensor.Tensor) for leaf in _pytree.tree_leaves(result)):
            self._know(result, Ref("call", len(self.calls)))
            call = Call(target, *given, self._faked(result), self.source)
            if self.apart:
                before, self.paused = self.paused, True
                shares, call.keeps = _shared(args, result), _keeps(args)
                call.shares, self.paused = None if shares is None else self._arg(shares), before
            self.calls.append(call)
        return result

    def _normalised(self, args: Any, given: tuple[Any, ...], result: Any) -> Any:
        """A normalisation that renews its statistics: they are results of it."""
        index = len(self.calls)
        self._know(result, Ref("call", index))
        for way, (value, ref) in enumerate(zip(args[3:5], given[3:5], strict=True), 3):
            first = next((old for old, new in self.renewed.items() if new == ref), ref)
            self.renewed[first] = Ref("call", index, (way,))
            self._know(value, self.renewed[first])
        target = tensor.ops.aten._native_batch_norm_legit_functional.default
        self.calls.append(Call(target, given, {}, self._faked((*result, *args[3:5])), self.source))
        return result

    def _faked(self, value: Any) -> Any:
        """A result without its memory."""
        before, self.paused = self.paused, True
        try:
            return _pytree.tree_map_only(tensor.Tensor, self.mode.from_tensor, value)
        finally:
            self.paused = before

    def _know(self, value: Any, ref: Ref) -> None:
        if isinstance(value, tensor.Tensor):
            number = id(value)  # which another tensor may have when this one is gone
            self._refs[number] = ref, weakref.ref(value, lambda _: self._refs.pop(number, None))
        elif isinstance(value, (list, tuple)):
            for index, item in enumerate(value):
                self._know(item, ref._replace(way=(*ref.way, index)))

    def _arg(self, value: Any) -> Any:
        """An argument as it is kept."""
        if isinstance(value, tensor.Tensor):
            if id(value) not in self._refs:
                self._know(value, Ref("constant", len(self.constants)))
                self.constants.append(value)
            return self._refs[id(value)][0]
        if isinstance(value, Sub):
            return value
        if isinstance(value, tensor.Size):
            return list(value)
        if isinstance(value, (list, tuple)):
            return (
                type(value)(map(self._arg, value))
                if type(value) in (list, tuple)
                else [*map(self._arg, value)]
            )
        if isinstance(value, dict):
            return {key: self._arg(item) for key, item in value.items()}
        return value
