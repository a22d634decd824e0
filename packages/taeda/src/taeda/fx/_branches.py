"""The functions of `cond` and `while_loop` in the graph of a program, each as a graph module of its own.

They may use what they were not given: tensors and sizes that the program around them has. These become inputs of both,
after the operands, so that the node tells everything that its result depends on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda.fx._record import _active, _CannotRecordError, _finished, _Float, _Int, _Recording
from taeda.utils import _pytree
from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda.fx.node import Node

__all__ = ["record_cond", "record_while_loop"]


class _Branch(_Recording):
    """What one branch does; tensors of the program around it become further inputs."""

    def __init__(self, outer: _Recording, operands: list[Any], further: list[Node]) -> None:
        super().__init__(None, outer.data_dependent)
        self.outer, self.further = outer, further
        self.inputs: dict[Node, Node] = {}
        self.last: Node | None = None
        for value in operands:
            self.know(value, self._input(outer.arg(value)))
        for node in further:
            self.inputs[node] = self._input(node)

    def _input(self, node: Node) -> Node:
        """A placeholder after the last one, named after the node outside."""
        if self.last is None:
            self.last = self.graph.placeholder(f"{node.name}_1")
        else:
            with self.graph.inserting_after(self.last):
                self.last = self.graph.placeholder(f"{node.name}_1")
        return self.last

    def lifted(self, node: Node) -> Node:
        """The input of the branch for a node outside."""
        if node not in self.inputs:
            if node not in self.further:
                self.further.append(node)
            self.inputs[node] = self._input(node)
        return self.inputs[node]

    def arg(self, value: Any) -> Any:
        if isinstance(value, (_Int, _Float)) and value.recording is self.outer:
            return self.lifted(value.node)
        return super().arg(value)

    def _tensor(self, value: Any) -> Node:
        return self.nodes.get(id(value)) or self.lifted(self.outer._tensor(value))

    def run(self, function: Callable[..., Any], args: Any) -> Any:
        """The branch's result."""
        _active.append(self)
        try:
            with self:
                return function(*args)
        finally:
            _active.remove(self)


def _followed(
    outer: _Recording, functions: tuple[Any, Any], operands: Any, further: list[Node]
) -> tuple[list[tuple[_Branch, Any]], list[Any]]:
    """Two functions' recordings with their results, and the operands' tensors; `further` gets what else they use."""
    inputs = [leaf for leaf in _pytree.tree_leaves(operands) if isinstance(leaf, tensor.Tensor)]
    done = []
    for function in functions:
        branch = _Branch(outer, inputs, further)
        done.append((branch, branch.run(function, tuple(operands))))
    return done, inputs


def _modules(
    outer: _Recording, done: list[tuple[_Branch, Any]], kinds: tuple[str, str], further: list[Node], name: str
) -> list[Node]:
    """The nodes of their graph modules, which take the same inputs."""
    modules = []
    for (branch, result), kind in zip(done, kinds, strict=True):
        for node in further:
            branch.lifted(node)
        made = _finished(branch, result, f"{kind}_graph")
        if made.module is None:
            raise _CannotRecordError(f"a branch of {name}: {made.failure}")
        modules.append(outer.attach(f"{kind}_graph", made.module))
    return modules


def _checked(result: Any) -> Any:
    leaves = _pytree.tree_leaves(result)
    if not leaves or not all(isinstance(leaf, tensor.Tensor) for leaf in leaves):
        raise RuntimeError(f"cond: a branch gave {result!r}, expected tensors, or tuples and lists of them")
    return [(leaf.dim(), leaf.dtype) for leaf in leaves]


def record_cond(outer: _Recording, pred: Any, branches: tuple[Any, Any], operands: Any) -> Any:
    """The result of a `cond` of which both branches stand in the graph.

    Args:
        outer: The recording of the program.
        pred: A tensor of one element.
        branches: What is called where it holds, and where not.
        operands: Their arguments; tensors in them are inputs of the branches.

    Raises:
        RuntimeError: The branches give different numbers, dimensions or dtypes of tensors.
        GuardOnDataDependentSymNode: A branch branches itself on elements.
    """
    further: list[Node] = []
    done, inputs = _followed(outer, branches, operands, further)
    first, second = (_checked(result) for _, result in done)
    if first != second:
        raise RuntimeError(
            f"cond: the branches gave {first} and {second} (dimensions, dtype), expected the same"
        )
    modules = _modules(outer, done, ("true", "false"), further, "cond")
    node = outer.graph.call_function(
        tensor.cond, (outer.arg(pred), *modules, (*(outer.arg(value) for value in inputs), *further))
    )
    taken = done[0 if bool(pred) else 1][1]
    outer.know(taken, node)
    return taken


def record_while_loop(
    outer: _Recording,
    cond_fn: Callable[..., Any],
    body_fn: Callable[..., Any],
    carried: Any,
    additional: Any = (),
) -> Any:
    """The result of a `while_loop` whose condition and body stand in the graph.

    Args:
        outer: The recording of the program.
        cond_fn, body_fn: What is asked and called each round.
        carried: Tensors, of which the body gives the next ones.
        additional: Further arguments of both.

    Raises:
        RuntimeError: The condition gives no tensor of one element, or the body other numbers, shapes or dtypes than
            it was given.
        GuardOnDataDependentSymNode: The body or the condition branches itself on elements.
    """
    carried, further = tuple(carried), []
    if not carried or not all(isinstance(value, tensor.Tensor) for value in carried):
        raise RuntimeError(f"while_loop: found {carried!r:.80} as carried_inputs, expected tensors")
    done, inputs = _followed(outer, (cond_fn, body_fn), (*carried, *additional), further)
    (asking, holds), (body, made) = done
    made = tuple(made) if isinstance(made, (tuple, list)) else (made,)
    if not isinstance(holds, tensor.Tensor) or holds.numel() != 1:
        raise RuntimeError(f"while_loop: cond_fn gave {holds!r:.80}, expected a tensor of one element")
    before, after = ([(tuple(x.shape), x.dtype) for x in values] for values in (carried, made))
    if before != after:
        raise RuntimeError(f"while_loop: body_fn gave {after} (shape, dtype) of {before}, expected the same")
    modules = _modules(outer, [(asking, holds), (body, made)], ("cond", "body"), further, "while_loop")
    given = [outer.arg(value) for value in inputs]
    node = outer.graph.call_function(
        tensor.while_loop, (*modules, tuple(given[: len(carried)]), (*given[len(carried) :], *further))
    )
    taken = tensor.while_loop(cond_fn, body_fn, carried, additional)
    outer.know(taken, node)
    return taken
