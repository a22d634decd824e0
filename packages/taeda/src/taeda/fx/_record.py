"""Graphs of what a program did once, with given inputs.

Unlike a symbolic trace this runs the program on its values, so that it branches as it likes; the graph has the way that
it went. Sizes of tensors are followed too: a size that the program reads is an int that knows which node it came from,
and so are sums and products of such, so that the graph serves other sizes of inputs as well.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from taeda.func import _levels, _vmap
from taeda.fx._code import _PyTreeCodeGen, _PyTreeInfo
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule, _assign_attr, _copy_attr, _has_attr
from taeda.fx.node import Node, has_side_effect, writes
from taeda.fx.proxy import _is_constant
from taeda.utils import _pytree
from taeda_registry.slots import nn, tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda.fx._notes import Notes

__all__ = ["Recorded", "is_recording", "record"]

_active: list[Any] = []
#: Which argument of a vmap's steps is the number of the vmap.
_LEVEL_AT = {_vmap._add_batch_dim: 2, _vmap._remove_batch_dim: 1}
for _step in (_vmap._vmap_increment_nesting, _vmap._vmap_decrement_nesting):
    has_side_effect(_step)
#: Methods and attributes whose result is a number of elements.
_SIZES = frozenset({"size", "numel", "nelement"})
#: Methods whose result is an element, and questions about elements that a program branches by.
_NUMBERS = frozenset({"item"})
_BRANCHES = frozenset({
    "__bool__", "__int__", "__index__", "__float__", "tolist", "is_nonzero", "equal", "allclose",
    "_pack_padded_sequence", "_pad_packed_sequence", "run_packed",  # of as many steps as elements say
})  # fmt: skip
#: Questions that leave no trace when nobody uses the answer.
_PURE = frozenset({"size", "numel", "nelement", "shape", "data", "detach", "grad"})


class Recorded(NamedTuple):
    """What a program did.

    Attributes:
        result: Its result.
        module: The graph module; None where there is none.
        failure: Why there is none.
        constants: Paths of the tensors that the graph module holds besides parameters and buffers.
    """

    result: Any
    module: GraphModule | None
    failure: str | None
    constants: tuple[str, ...] = ()


class _CannotRecordError(Exception):
    pass


class _BranchError(Exception):
    """A branch on elements of a tensor; its argument is the question that was asked."""


class _Origin:
    """What a number that knows the node it came from has besides."""

    recording: Any
    node: Any

    @classmethod
    def of(cls, value: Any, recording: Any, node: Node) -> Any:
        """A number with its origin."""
        made: Any = cls(value)  # type: ignore[call-arg]
        made.recording, made.node = recording, node
        return made

    def __reduce__(self) -> Any:
        plain = _PLAIN[type(self)]
        return plain, (plain(self),)


class _Int(_Origin, int):
    """A size, and the node that it came from."""


class _Float(_Origin, float):
    """A number that was computed of sizes, and the node that it came from."""


#: What a number without its origin is, by the class that knows it.
_PLAIN: dict[type, Any] = {int: int, float: float, _Int: int, _Float: float}


def _followed(name: str, swapped: bool) -> Any:
    function = getattr(operator, name)

    def method(self: _Int | _Float, other: Any, *modulus: Any) -> Any:
        left, right = (other, self) if swapped else (self, other)
        plain = _PLAIN[type(self)]
        if modulus or type(other) not in _PLAIN:
            return getattr(plain, f"__{'r' if swapped else ''}{name}__")(plain(self), other, *modulus)
        value = function(_PLAIN[type(left)](left), _PLAIN[type(right)](right))
        if self.recording not in _active or type(value) not in _PLAIN:
            return value
        kind = _Int if type(value) is int else _Float
        return kind.of(value, self.recording, self.recording.call(function, left, right))

    return method


for _kind, _name in itertools.product(
    (_Int, _Float), ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
):
    setattr(_kind, f"__{_name}__", _followed(_name, False))
    setattr(_kind, f"__r{_name}__", _followed(_name, True))


def _compared(name: str) -> Any:
    plain = getattr(int, f"__{name}__")

    def method(self: _Int, other: Any) -> Any:
        answer = plain(self, other)
        if type(answer) is bool and self.recording in _active:
            self.recording.settle(name, self, other, answer)
        return answer

    return method


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(_Int, f"__{_name}__", _compared(_name))
_Int.__hash__ = int.__hash__  # type: ignore[method-assign]


def _asked(self: _Int) -> bool:
    answer = int(self) != 0
    if self.recording in _active:
        self.recording.settle("ne", self, 0, answer)
    return answer


_Int.__bool__ = _asked  # type: ignore[method-assign]


class SizeDecidedError(Exception):
    """A program took a way by a size, and does not go it with another."""


def holds(question: str, left: int, right: int, answer: bool) -> None:
    """A step of a graph: the program asked this of sizes ("lt" and the like) and went on by the answer.

    Raises:
        SizeDecidedError: The answer is another.
    """
    if getattr(operator, question)(int(left), int(right)) is not answer:
        raise SizeDecidedError(f"{left} {question} {right} is not {answer}, as it was in the example")


def _is_element(node: Node) -> bool:
    """Whether a number comes from an element of a tensor."""
    if node.target in _ARITHMETIC and node.target is not operator.getitem:
        return any(isinstance(arg, Node) and _is_element(arg) for arg in node.args)
    return node.target == "item"


def _named(items: list[Any], kind: Any) -> tuple[Any, ...]:
    """A named tuple of nodes; a plain one where the class asks its arguments for what nodes are not."""
    try:
        return kind(*items)
    except Exception:
        return tuple(items)


def is_recording() -> bool:
    """Whether a program is being recorded."""
    return bool(_active)


def _unsaved(root: Any) -> set[str]:
    """The paths of buffers that a module's state is without."""
    return {
        f"{path}.{name}" if path else name
        for path, module in root.named_modules(remove_duplicate=False)
        for name in module._non_persistent_buffers_set
    }


class _Recording(tensor.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
    """Keeps every public function that is called, and lets it run."""

    def __init__(self, root: Any, data_dependent: bool = True, notes: Notes | None = None) -> None:
        super().__init__()
        self.data_dependent, self.notes = data_dependent, notes
        self.settles, self.within = False, 0  # calls of public functions, whose own questions are theirs
        self.graph = Graph()
        self.nodes: dict[int, Node] = {}
        self.kept: list[Any] = []
        self.failure: str | None = None
        self.holder = nn.Module()
        self.paths: dict[int, str] = {}
        self.attributes: dict[int, str] = {}
        self.constants: list[str] = []
        if root is not None:
            self.holder.training = root.training
            unsaved = _unsaved(root)
            for path, value in [*root.named_parameters(), *root.named_buffers()]:
                self.paths[id(value)] = path
                _assign_attr(value, self.holder, path, path not in unsaved)
            self.attributes = _tensors_of(root)
        self.outside = len(_levels.levels())
        self.vmaps: list[Node] = []  # those in force, the innermost last: the nodes of their numbers

    # --- values and nodes ---

    def know(self, value: Any, node: Node) -> None:
        """Note that a node's result is a value, and the values in it."""
        if isinstance(value, tensor.Tensor):
            self.nodes[id(value)] = node
            self.kept.append(value)
        elif isinstance(value, (tuple, list)):
            for index, item in enumerate(value):
                if _has_tensor(item):
                    self.know(item, self.graph.call_function(operator.getitem, (node, index)))

    def arg(self, value: Any) -> Any:
        """A value as it stands in the arguments of a node."""
        if isinstance(value, tensor.Tensor):
            return self._tensor(value)
        if isinstance(value, (_Int, _Float)):
            return value.node if value.recording is self else _PLAIN[type(value)](value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return _named([self.arg(item) for item in value], type(value))
        if isinstance(value, (tuple, list)):
            kind = list if isinstance(value, list) else tuple
            return kind(self.arg(item) for item in value)
        if isinstance(value, dict):
            return {key: self.arg(item) for key, item in value.items()}
        if isinstance(value, slice):
            return slice(*(self.arg(item) for item in (value.start, value.stop, value.step)))
        if _is_constant(value) or isinstance(value, (range, type)):
            return value
        raise _CannotRecordError(f"a value of type {type(value).__name__} cannot stand in a graph")

    def _tensor(self, value: Any) -> Node:
        node = self.nodes.get(id(value))
        if node is not None:
            return node
        path = self.paths.get(id(value))
        if path is None:
            if value.grad_fn is not None:
                raise _CannotRecordError("a tensor came from a computation that was not seen")
            path = self.attributes.get(id(value))
            if path is None or _has_attr(self.holder, path):
                unnamed = sum(known.startswith("_tensor_constant") for known in self.constants)
                path = f"_tensor_constant{unnamed}"
            self.constants.append(path)
            _assign_attr(value, self.holder, path, persistent=False)
        node = self.graph.get_attr(path)
        self.know(value, node)
        return node

    def call(self, function: Callable[..., Any], *args: Any) -> Node:
        """A node of a function."""
        return self.graph.call_function(function, tuple(self.arg(item) for item in args))

    def settle(self, question: str, left: _Int, right: Any, answer: bool) -> None:
        """Keep what the program asked of a size, where other sizes shall be allowed."""
        if self.settles and not self.within and not _is_element(left.node) and type(right) in (int, _Int):
            self.call(holds, question, left, right, answer)

    def vmap_step(self, step: Callable[..., Any], args: tuple[Any, ...], result: Any) -> None:
        """Note that a vmap began or ended, or what it made of a tensor."""
        if self.within or self.failure is not None:
            return
        if step is _vmap._vmap_decrement_nesting:
            self.vmaps.pop()
        given, number = list(args), _LEVEL_AT.get(step)
        try:
            if number is not None and given[number] > self.outside:
                node = self.vmaps[given[number] - self.outside - 1]
                given[number] = _Int.of(given[number], self, node)
            node = self.call(step, *given)
        except _CannotRecordError as error:
            self.failure = str(error)
            return
        if step is _vmap._vmap_increment_nesting:
            self.vmaps.append(node)
        elif isinstance(result, tensor.Tensor):
            self.know(result, node)

    # --- calls ---

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is tensor.cond:
            return self._cond(*args)
        if func is tensor.while_loop:
            return self._while_loop(*args)
        if not self.data_dependent and getattr(func, "__name__", "") in _BRANCHES:
            self._refuse_branch(func, args)
        if self.failure is not None:
            return func(*args, **kwargs)
        for kind in types:
            if issubclass(kind, tensor.Tensor):
                continue
            with self:  # what the class makes of the call is recorded: a graph knows no such class
                result = kind.__torch_function__(func, types, args, kwargs)
            if result is not NotImplemented:
                return result
        ready = self._prepared(func, args, kwargs)
        self.within += 1
        try:
            result = func(*args, **kwargs)
        finally:
            self.within -= 1
        last = self.graph._root._prev
        try:
            result = self._noted(func, ready, result)
            if self.notes is not None:
                self._annotate(last, func)
            return result
        except _CannotRecordError as error:
            self.failure = str(error)
            return result

    def _annotate(self, last: Node, func: Any) -> None:
        """Say of all nodes after one where they come from."""
        node = self.graph._root._prev
        while node is not last:
            if node.op in ("call_function", "call_method"):
                self.notes.note(node, func)  # type: ignore[union-attr]
            node = node._prev

    def _refuse_branch(self, func: Any, args: Any) -> None:
        """Raise for a question about elements that are only known when the program runs."""
        if any(id(item) in self.nodes for item in args):
            raise _BranchError(func.__name__)

    def attach(self, name: str, module: GraphModule) -> Node:
        """The node of a module that is given to a function, under a name with a number."""
        number = sum(child.startswith(f"{name}_") for child in self.holder._modules)
        self.holder.add_module(f"{name}_{number}", module)
        return self.graph.get_attr(f"{name}_{number}")

    def _cond(self, pred: Any, true_fn: Any, false_fn: Any, operands: Any) -> Any:
        """Both branches where an element decides, else the one that is taken; that too where it is taken for good."""
        from taeda.fx._branches import record_cond

        if self.data_dependent or self.failure is not None or not isinstance(pred, tensor.Tensor):
            with self:
                return (true_fn if bool(pred) else false_fn)(*operands)
        try:
            return record_cond(self, pred, (true_fn, false_fn), operands)
        except _CannotRecordError as error:
            self.failure = str(error)
            return tensor.cond(pred, true_fn, false_fn, operands)

    def _while_loop(self, cond_fn: Any, body_fn: Any, carried: Any, additional: Any = ()) -> Any:
        """The loop, or its rounds where they are taken for good."""
        from taeda.fx._branches import record_while_loop

        if self.data_dependent or self.failure is not None:
            with self, tensor.overrides.DisableTorchFunctionSubclass():
                return tensor.while_loop(cond_fn, body_fn, carried, additional)
        try:
            return record_while_loop(self, cond_fn, body_fn, carried, additional)
        except _CannotRecordError as error:
            self.failure = str(error)
            return tensor.while_loop(cond_fn, body_fn, carried, additional)

    def _prepared(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The arguments as nodes, taken before the function changes any; what cannot be is told when it matters."""
        try:
            return self.arg(args), self.arg(kwargs)
        except _CannotRecordError as error:
            return error

    def _noted(self, func: Any, ready: Any, result: Any) -> Any:
        name = getattr(func, "__name__", "")
        method = tensor.overrides.is_tensor_method_or_property(func)
        if name in ("__get__", "__set__", "__delete__") and method:
            return self._attribute(func.__self__.__name__, name, ready, result)
        if not self.data_dependent and method and name in _NUMBERS and type(result) is int:
            return self._size(result, self.graph.call_method("item", tuple(self._arguments(ready)[0])))
        sizes = method and name in _SIZES and (type(result) is int or isinstance(result, tensor.Size))
        changes = result is None and (
            writes(func) or (method and name.endswith("_") and name not in ("__delitem__",))
        )
        if not (sizes or changes or _has_tensor(result)):
            return result
        args, kwargs = self._arguments(ready)
        if method:
            node = self.graph.call_method(name, tuple(args), kwargs)
        else:
            node = self.graph.call_function(func, tuple(args), kwargs)
        if sizes:
            return self._size(result, node)
        self.know(result, node)
        return result

    @staticmethod
    def _arguments(ready: Any) -> Any:
        if isinstance(ready, _CannotRecordError):
            raise ready
        return ready

    def _attribute(self, name: str, kind: str, ready: Any, result: Any) -> Any:
        if kind == "__set__":
            args, _ = self._arguments(ready)
            self.graph.call_function(setattr, (args[0], name, args[1]))
        elif name == "shape":
            return self._size(result, self.graph.call_function(getattr, (self._arguments(ready)[0][0], name)))
        elif isinstance(result, tensor.Tensor) and name != "grad":
            self.know(result, self.graph.call_function(getattr, (self._arguments(ready)[0][0], name)))
        return result

    def _size(self, result: Any, node: Node) -> Any:
        if type(result) is int:
            return _Int.of(result, self, node)
        items = [
            _Int.of(n, self, self.graph.call_function(operator.getitem, (node, index)))
            for index, n in enumerate(result)
        ]
        return tensor.Size(items)

    def tidy(self) -> None:
        """Remove questions that nobody uses the answers of."""
        for node in reversed(self.graph.nodes):
            target = node.args[1] if node.target is getattr else node.target
            if (
                not node.users
                and node.op in ("call_function", "call_method", "get_attr")
                and (target in _PURE or node.op == "get_attr" or target in _ARITHMETIC)
            ):
                self.graph.erase_node(node)


_ARITHMETIC = frozenset({
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.truediv, operator.pow,
    operator.getitem,
})  # fmt: skip


def _tensors_of(root: Any) -> dict[int, str]:
    """Paths of the tensors that modules have as plain attributes, by the tensors' identity."""
    found: dict[int, str] = {}
    for prefix, module in root.named_modules():
        registered = {*module._parameters, *module._buffers, *module._modules}
        for name, value in vars(module).items():
            if isinstance(value, tensor.Tensor) and name not in registered:
                found.setdefault(id(value), f"{prefix}.{name}" if prefix else name)
    return found


def _has_tensor(value: Any) -> bool:
    if isinstance(value, tensor.Tensor):
        return True
    return isinstance(value, (tuple, list)) and any(map(_has_tensor, value))


def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    """A function's parameters by name; none where Python cannot tell."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def _names(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """The names of the arguments that are given; those of `*rest` are rest_0, rest_1 and so on."""
    parameters = _parameters(function)
    known = [name for name, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((name for name, p in parameters.items() if p.kind is p.VAR_POSITIONAL), None)
    further = [
        f"arg{i}" if rest is None else f"{rest}_{i - len(known)}" for i in range(len(known), len(args))
    ]
    return [*known[: len(args)], *further, *kwargs]


def _input_name(names: list[str], way: tuple[Any, ...]) -> str:
    """What an input is called: its argument, and the way to it inside of the argument."""
    label = "_".join([names[way[0].idx], *(str(key).strip("[].'") for key in way[1:])])
    return label if label.isidentifier() else "".join(c if c.isalnum() else "_" for c in label)


def _free(name: str, taken: set[str]) -> str:
    """The name, or where it is taken the first with a number that is not."""
    numbered = (f"{name}_{number}" for number in itertools.count(1))
    found = name if name not in taken else next(each for each in numbered if each not in taken)
    taken.add(found)
    return found


def record(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    root: Any = None,
    name: str = "GraphModule",
    keep_class: bool = False,
    data_dependent: bool = True,
    notes: Notes | None = None,
    settles: bool = False,
) -> Recorded:
    """Run a function once and give the graph of what it called.

    Args:
        function: The function.
        args: Positional arguments; tensors in them are the inputs of the graph.
        kwargs: Arguments by name.
        root: The module whose parameters and buffers it uses.
        name: Name of the graph module's class.
        keep_class: Let the graph module give a container of the result's own class; else mappings become dicts.
        data_dependent: Take a branch on elements of tensors for good, and numbers out of them for constants.
        notes: Says of nodes where they come from.
        settles: Keep what the program asks of sizes, as calls of `holds`.

    Raises:
        GuardOnDataDependentSymNode: There is such a branch, and it may not be.
    """
    kwargs = kwargs or {}
    recording = _Recording(root, data_dependent, notes)
    recording.settles = settles
    graph = recording.graph
    values = (*args, *kwargs.values())
    names = _names(getattr(root, "forward", function) if root is not None else function, args, kwargs)
    ways, spec = _pytree.tree_flatten_with_path(values)
    leaves = [leaf for _, leaf in ways]
    flat = len(leaves) == len(values) and all(child.is_leaf() for child in spec.children())
    taken: set[str] = set()
    for way, leaf in ways:
        node = graph.placeholder(_free(_input_name(names, way), taken))
        if isinstance(leaf, tensor.Tensor):
            recording.know(leaf, node)
    _active.append(recording)
    _levels._thread.watching.append(recording.vmap_step)
    try:
        with recording, contextlib.nullcontext() if notes is None else notes.watching():
            result = function(*args, **kwargs)
    except _BranchError as error:
        from taeda.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

        raise GuardOnDataDependentSymNode(
            f"Could not guard on data-dependent expression: {name} asks '{error}' of a tensor that its inputs decide; "
            "use taeda.cond or taeda.where, or draft_export, which takes the branch for good"
        ) from error
    except MemoryError:
        raise
    except Exception as error:
        # Something minds that sizes are more than numbers; without them the program says itself what is wrong.
        recording.failure = f"{type(error).__name__}: {error}"
    finally:
        _active.remove(recording)
        _levels._thread.watching.remove(recording.vmap_step)
    if recording.failure is not None and "result" not in locals():
        return Recorded(function(*args, **kwargs), None, recording.failure)
    out_spec = None
    if keep_class and type(result) not in (dict, list, tuple) and not _pytree.tree_is_leaf(result):
        parts, out_spec = _pytree.tree_flatten(result)
    made = _finished(recording, result if out_spec is None else parts, name)
    if made.module is not None and not (flat and out_spec is None):
        made.module.graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, spec, out_spec)))
        made.module.recompile()
    return made._replace(result=result)


def _finished(recording: _Recording, result: Any, name: str) -> Recorded:
    if recording.failure is None:
        try:
            recording.graph.output(recording.arg(dict(result) if isinstance(result, dict) else result))
        except _CannotRecordError as error:
            recording.failure = str(error)
    if recording.failure is not None:
        return Recorded(result, None, recording.failure)
    recording.tidy()
    made = GraphModule(recording.holder, recording.graph, name)
    for path, _ in [*recording.holder.named_parameters(), *recording.holder.named_buffers()]:
        if not _has_attr(made, path):
            _copy_attr(recording.holder, made, path)  # used or not, they belong to the state
    return Recorded(result, made, None, tuple(recording.constants))
