"""The graph of operators of a program, from runs of it with inputs of several sizes."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from taeda.export import graph_signature as signature
from taeda.export._functional import without_writes
from taeda.export._runs import CannotTrace, Ref, Sub
from taeda.export._symbols import Expression, fitted, products
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule
from taeda.utils import _pytree
from taeda_registry.slots import nn, tensor

if TYPE_CHECKING:
    from taeda.export._runs import Call, Run
    from taeda.fx.node import Node

__all__ = ["Held", "NeedsRuns", "assembled"]

_KINDS = signature.InputKind
_OPERATIONS = {"add": operator.add, "mul": operator.mul, "floordiv": operator.floordiv}
_SIZE = tensor.ops.aten.sym_size.int
_NOTES = ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "custom")


#: How many runs tell a quotient from others.
_ENOUGH = 7


class NeedsRuns(CannotTrace):
    """The runs are too few to tell how a size hangs on those of inputs."""


class Held(NamedTuple):
    """A tensor that a program holds: what it is to it, its path, and whether the state has it."""

    kind: signature.InputKind
    path: str
    value: Any
    persistent: bool | None

    @property
    def name(self) -> str:
        """The name of its input."""
        start = {_KINDS.PARAMETER: "p", _KINDS.BUFFER: "b"}.get(self.kind, "c")
        return "".join(c if c.isalnum() else "_" for c in f"{start}_{self.path}")


class _Assembly:
    """One graph while it is made."""

    def __init__(self, runs: list[Run], symbols: dict[str, list[int]]) -> None:
        self.runs, self.symbols = runs, dict(symbols)
        self.graph, self.mode = Graph(), runs[0].mode
        self.nodes: dict[Ref, Node] = {}
        self.sizes: dict[Expression, Node] = {}
        self.sources: dict[str, tuple[Node, int]] = {}
        self.inner: dict[str, list[int]] = {}  # sizes within that are no symbols, by their expressions
        self.last: Node | None = None
        self.holder = nn.Module()
        self.current: Call | None = None

    # --- inputs ---

    def input(self, name: str, ref: Ref, values: list[Any]) -> Node:
        """A placeholder of this name."""
        node = self.graph.placeholder(name)
        self.graph._graph_namespace._rename_object(node, name)
        node.name = name
        node.meta["val"] = self.shown(values)
        self.nodes[ref] = self.last = node
        if isinstance(values[0], tensor.Tensor):
            for dim, size in enumerate(node.meta["val"].shape):
                if isinstance(size, tensor.SymInt):
                    self.sources.setdefault(str(size), (node, dim))
        elif isinstance(node.meta["val"], tensor.SymInt):
            self.sizes[self.expression(values)] = node
        return node

    # --- values ---

    def expression(self, values: list[int]) -> Any:
        """A size by its values in the runs."""
        found = fitted(values, self.symbols) if len(values) > 1 else values[0]
        if found is None:
            found = products(values, self.symbols | self.inner)
        if isinstance(found, Expression) and found.divides and len(values) < _ENOUGH:
            raise NeedsRuns
        return found

    def shown(self, values: list[Any]) -> Any:
        """What a node gives, as its `meta["val"]`."""
        first = values[0]
        if isinstance(first, tensor.Tensor):
            fake = self.mode.from_tensor(first)
            dims = [self.shown([value.shape[d] for value in values]) for d in range(first.dim())]
            if any(isinstance(size, tensor.SymInt) for size in dims):
                fake.sizes = tensor.Size(dims)
            return fake
        if isinstance(first, (tuple, list)):
            items = [self.shown(list(each)) for each in zip(*values, strict=True)]
            return items if isinstance(first, list) else tuple(items)
        if type(first) is int:
            found = self.expression(values)
            return tensor.SymInt(first, str(found)) if isinstance(found, Expression) else first
        return first

    def size(self, expression: Expression) -> Node:
        """The node of a size."""
        if expression in self.sizes:
            return self.sizes[expression]
        if expression.kind == "symbol":
            made = self._symbol(expression.parts[0])
        else:
            parts = tuple(self.size(p) if isinstance(p, Expression) else p for p in expression.parts)
            made = self.graph.call_function(_OPERATIONS[expression.kind], parts)
        hint = expression.value({n: values[0] for n, values in (self.symbols | self.inner).items()})
        if self.current is not None and expression.kind != "symbol":
            self._note(made, self.current, [hint])
        made.meta["val"] = tensor.SymInt(hint, str(expression))
        self.sizes[expression] = made
        return made

    def _symbol(self, name: str) -> Node:
        if name not in self.sources:
            raise CannotTrace(f"the size {name} is that of no input")
        node, dim = self.sources[name]
        if node.op != "placeholder":
            return self.graph.create_node("call_function", _SIZE, (node, dim), name="sym_size_int")
        with self.graph.inserting_after(self.last):
            self.last = self.graph.create_node("call_function", _SIZE, (node, dim), name="sym_size_int")
        return self.last

    def argument(self, values: list[Any]) -> Any:
        """An argument by what it was in the runs."""
        first = values[0]
        if any(type(value) is not type(first) for value in values):
            raise CannotTrace(f"an argument is {first!r} in one run and of another type in the next")
        if isinstance(first, Ref):
            if any(value != first for value in values):
                raise CannotTrace("its operators hang on sizes")
            if first not in self.nodes:
                raise CannotTrace("it uses a tensor that no operator gives")
            return self.nodes[first]
        if isinstance(first, Sub):
            return self.graph_of(values)
        if isinstance(first, (list, tuple)) and not hasattr(first, "_fields"):
            if any(len(value) != len(first) for value in values):
                raise CannotTrace("a number of arguments hangs on sizes")
            return type(first)(self.argument(list(each)) for each in zip(*values, strict=True))
        if isinstance(first, dict):
            return {key: self.argument([value[key] for value in values]) for key in first}
        if isinstance(first, int) and not isinstance(first, bool):
            found = self.expression([int(value) for value in values])
            if found is None:
                raise CannotTrace(f"no rule was found for a size that was {values}")
            return self.size(found) if isinstance(found, Expression) else int(found)
        if any(value is not first and value != first for value in values):
            raise CannotTrace(f"an argument was {values}")
        return first

    def graph_of(self, subs: list[Sub]) -> Node:
        """The node of a graph module that is an argument."""
        inner = _Assembly([sub.run for sub in subs], self.symbols)
        names = [node.target for node in subs[0].run.graph.nodes if node.op == "placeholder"]
        for place, name in enumerate(names):
            inner.input(name, Ref("input", place), [sub.inputs[place] for sub in subs])
        inner.calls()
        results = inner.argument([tuple(sub.run.result) for sub in subs])
        inner.graph.output(_pytree.tree_unflatten(results, subs[0].run.spec))
        self.holder.add_module(subs[0].name, GraphModule(inner.holder, inner.graph, "GraphModule"))
        return self.graph.get_attr(subs[0].name)

    # --- calls ---

    def calls(self) -> None:
        """The nodes of all calls."""
        if any(len(run.calls) != len(self.runs[0].calls) for run in self.runs):
            raise CannotTrace("its operators hang on sizes")
        for index, calls in enumerate(zip(*(run.calls for run in self.runs), strict=True)):
            self.call(index, list(calls))

    def call(self, index: int, calls: list[Call]) -> None:
        """The node of a call, and those of the parts of its result."""
        first = calls[0]
        if any(each.target is not first.target for each in calls):
            raise CannotTrace("its operators hang on sizes")
        self.current = first
        args, kwargs = self.argument([c.args for c in calls]), self.argument([c.kwargs for c in calls])
        short = str(first.target).split(".")
        name = short[1] if len(short) > 1 else getattr(first.target, "__name__", "call")
        if first.target is tensor.ops.aten.item.default:
            name = "item"
        node = self.graph.create_node("call_function", first.target, args, kwargs, name=name)
        results = [each.result for each in calls]
        if first.target is tensor.ops.aten.item.default:
            symbol = f"u{sum(name.startswith('u') for name in self.symbols)}"
            self.symbols[symbol] = results
            self.sizes[Expression("symbol", (symbol,))] = node
        self._note(node, first, results)
        self._parts(node, Ref("call", index), first, results)

    def _note(self, node: Node, call: Call, results: list[Any]) -> None:
        node.meta["val"] = self.shown(results)
        if call.source is not None:
            node.meta |= {key: call.source.meta[key] for key in _NOTES if key in call.source.meta}
        if isinstance(results[0], tensor.Tensor):
            for dim, size in enumerate(node.meta["val"].shape):
                if isinstance(size, tensor.SymInt) and str(size) not in self.sources:
                    self.sources[str(size)] = node, dim
                    self.inner[str(size)] = [result.shape[dim] for result in results]

    def _parts(self, node: Node, ref: Ref, call: Call, results: list[Any]) -> None:
        self.nodes[ref] = node
        if not isinstance(results[0], (tuple, list)):
            return
        for place, _ in enumerate(results[0]):
            part = self.graph.call_function(operator.getitem, (node, place))
            within = [each[place] for each in results]
            self._note(part, call, within)
            self._parts(part, ref._replace(way=(*ref.way, place)), call, within)


def assembled(
    runs: list[Run],
    held: list[Held],
    names: list[str],
    inputs: list[list[Any]],
    symbols: dict[str, list[int]],
) -> tuple[GraphModule, signature.ExportGraphSignature, dict[str, Any]]:
    """The graph module, what its inputs and outputs are, and constants by path that it has besides.

    Args:
        runs: Runs of the program.
        held: The tensors that it holds.
        names: Names of what the user gives.
        inputs: What that was in each run.
        symbols: Sizes by symbol, in each run.

    Raises:
        CannotTrace: The runs differ in more than sizes.
        NeedsRuns: They are too few.
    """
    work = _Assembly(runs, symbols)
    specs = []
    taken = set(names)
    lifted = _lifted(runs, held)
    for place, one in enumerate((*held, *lifted)):
        ref = Ref("held", place) if place < len(held) else Ref("constant", place - len(held))
        node = work.input(_free(one.name, taken), ref, [one.value])
        specs.append(
            signature.InputSpec(one.kind, signature.TensorArgument(node.name), one.path, one.persistent)
        )
    for place, name in enumerate(names):
        values = [each[place] for each in inputs]
        node = work.input(name, Ref("input", place), values)
        is_tensor = isinstance(values[0], tensor.Tensor)
        arg = signature.TensorArgument(name) if is_tensor else signature.ConstantArgument(name, values[0])
        specs.append(signature.InputSpec(_KINDS.USER_INPUT, arg, None))
    written = without_writes(runs) if runs[0].apart else {}
    work.calls()
    results = work.argument([tuple(run.result) for run in runs])
    changes = [
        (work.nodes[new], _change(old, held, names)) for old, new in sorted(written.items(), key=_order)
    ]
    work.graph.output((*(node for node, _ in changes), *results))
    outputs = [signature.OutputSpec(kind, _given(node), target) for node, (kind, target) in changes]
    outputs += [signature.OutputSpec(signature.OutputKind.USER_OUTPUT, _given(r), None) for r in results]
    made = GraphModule(work.holder, work.graph, "GraphModule")
    return made, signature.ExportGraphSignature(specs, outputs), {one.path: one.value for one in lifted}


def _order(entry: tuple[Ref, Ref]) -> tuple[bool, int]:
    return entry[0].home != "held", entry[0].index


def _change(written: Ref, held: list[Held], names: list[str]) -> tuple[signature.OutputKind, str]:
    """What kind of output the new value of a tensor is, and of which."""
    if written.home != "held":
        return signature.OutputKind.USER_INPUT_MUTATION, names[written.index]
    one = held[written.index]
    parameter = one.kind == _KINDS.PARAMETER
    kinds = signature.OutputKind
    return kinds.PARAMETER_MUTATION if parameter else kinds.BUFFER_MUTATION, one.path


def _free(name: str, taken: set[str]) -> str:
    """A name that no other input has."""
    found = next(n for n in (name, *(f"{name}_{i}" for i in range(1, len(taken) + 2))) if n not in taken)
    taken.add(found)
    return found


def _lifted(runs: list[Run], held: list[Held]) -> list[Held]:
    """Tensors that the program makes of Python's numbers."""
    first = runs[0].constants
    if any(len(run.constants) != len(first) for run in runs):
        raise CannotTrace("its constants hang on sizes")
    for others in zip(*(run.constants for run in runs), strict=True):
        if any(each.shape != others[0].shape or not tensor.equal(each, others[0]) for each in others[1:]):
            raise CannotTrace("a constant hangs on sizes")
    taken, made = {one.path for one in held}, []
    for value in first:
        number = next(n for n in range(len(taken) + 1) if f"lifted_tensor_{n}" not in taken)
        taken.add(f"lifted_tensor_{number}")
        made.append(Held(_KINDS.CONSTANT_TENSOR, f"lifted_tensor_{number}", value.detach(), None))
    return made


def _given(result: Any) -> Any:
    value = getattr(result, "meta", {}).get("val")
    if isinstance(value, (tensor.Tensor, tuple)):
        return signature.TensorArgument(result.name)
    if isinstance(value, int):
        return signature.SymIntArgument(result.name)
    return signature.ConstantArgument("", result)
