"""Functions that a compiler of the program's own runs: it gets graphs of what they do; guards say when each holds."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from taeda._dynamo import exc
from taeda._dynamo._follow import follow
from taeda._dynamo.utils import counters
from taeda.fx import _record
from taeda.utils import _pytree
from taeda_registry.slots import nn, tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["compiled", "known_backend"]

#: Compilers that programs have registered, by name.
REGISTERED: dict[str, Any] = {}
#: Names for which a function runs as it is.
PLAIN = frozenset({
    "inductor", "eager", "eager_noexcept", "eager_debug", "aot_eager", "aot_eager_decomp_partition",
    "aot_eager_default_partitioner", "aot_ts", "ts", "cudagraphs", "tvm", "openxla", "openxla_eval", "onnxrt",
    "ipex", "hpu_backend", "pre_dispatch_eager", "invoke_subgraph",
})  # fmt: skip
_SIMPLE = (bool, int, float, str, type(None))
_LIMIT = 8
_in_force: list[Any] = []
#: Stances under which functions run as they are, for as long as they are in force.
forced: list[Any] = []


def known_backend(backend: Any) -> Any:
    """The compiler that a name stands for; None where functions run as they are.

    Raises:
        InvalidBackend: Nobody has registered the name.
    """
    if not isinstance(backend, str):
        return backend if callable(backend) else None
    if backend in REGISTERED:
        return REGISTERED[backend]
    if backend not in PLAIN:
        raise exc.InvalidBackend(
            f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` for available backends."
        )
    return None


def _simple(value: Any) -> bool:
    return isinstance(value, _SIMPLE) and not isinstance(value, (_record._Int, _record._Float))


class _Reads(NamedTuple):
    """What a function can read beside its arguments: modules by label, and simple values in the places they stand."""

    modules: dict[str, Any]
    variables: list[tuple[Any, Any]]
    containers: list[Any]

    @classmethod
    def of(cls, function: Any) -> _Reads:
        modules: dict[str, Any] = {}
        variables: list[tuple[Any, Any]] = []
        containers: list[Any] = []
        owner = function if isinstance(function, nn.Module) else getattr(function, "__self__", None)
        if isinstance(owner, nn.Module):
            modules["self"] = owner
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if code is not None:
            plain = getattr(function, "__func__", function)
            cells = dict(zip(code.co_freevars, plain.__closure__ or (), strict=False))
            for name, cell in cells.items():
                cls._variable(name, cell, "cell_contents", modules, variables, containers)
            for name in code.co_names:
                if name in plain.__globals__:
                    cls._variable(name, plain.__globals__, name, modules, variables, containers)
        return cls(modules, variables, containers)

    @staticmethod
    def _variable(
        name: str, holder: Any, key: str, modules: Any, variables: Any, containers: list[Any]
    ) -> None:
        try:
            value = _look((holder, key))
        except ValueError:  # an empty cell
            return
        if isinstance(value, nn.Module):
            modules[name] = value
        elif _simple(value) or isinstance(value, tensor.Tensor):
            variables.append((holder, key))
        elif isinstance(value, (list, dict, set)):
            containers.append(value)

    def values(self) -> list[tuple[Any, Any, Any]]:
        """Where simple values and tensors stand, and what they are now."""
        places = list(self.variables)
        for module in self.modules.values():
            for inner in module.modules():
                places += [
                    (inner, key) for key in vars(inner) if key == "training" or not key.startswith("_")
                ]
        found = [(holder, key, _look((holder, key))) for holder, key in places]
        return [entry for entry in found if _simple(entry[2]) or isinstance(entry[2], tensor.Tensor)]

    def lengths(self) -> list[tuple[int, int]]:
        """How many items the lists, dicts and sets have that stand in modules or in names of the function."""
        held = [vars(inner).values() for module in self.modules.values() for inner in module.modules()]
        found = [*self.containers, *(item for items in held for item in items)]
        return [(id(item), len(item)) for item in found if isinstance(item, (list, dict, set))]

    def tensors(self) -> Iterator[tuple[str, tuple[Any, str], Any]]:
        """Parameters and buffers: label, place and value."""
        for label, module in self.modules.items():
            for path, inner in module.named_modules():
                start = "".join(f"_modules_{part}" for part in path.split(".") if part)
                for kind, members in (("parameters", inner._parameters), ("buffers", inner._buffers)):
                    for name, value in members.items():
                        if value is not None:
                            yield f"{label}{start}_{kind}_{name}", (inner, name), value


def _look(place: tuple[Any, str]) -> Any:
    holder, key = place
    return holder[key] if isinstance(holder, dict) else getattr(holder, key)


def _same(now: Any, then: Any) -> bool:
    return now is then or (_simple(then) and type(now) is type(then) and now == then)


def _unchanged(now: tuple[Any, Any, Any], then: tuple[Any, Any, Any]) -> bool:
    return now[0] is then[0] and now[1] == then[1] and _same(now[2], then[2])


def _leaf_key(leaf: Any) -> Any:
    if isinstance(leaf, tensor.Tensor):
        return (type(leaf), leaf.shape, leaf.dtype, leaf.device, leaf.requires_grad)
    return (type(leaf), leaf) if _simple(leaf) else id(leaf)


class _Entry(NamedTuple):
    """One graph, for arguments of one kind."""

    values: list[tuple[Any, Any, Any]]
    inputs: list[Any]
    run: Callable[..., Any]
    rebuild: Callable[[Any, Any], Any]
    kept: list[Any]

    def holds(self) -> bool:
        """Whether what it was made with is as it was."""
        return all(_same(_look((holder, key)), value) for holder, key, value in self.values)


class _Compiled:
    """Calls of a function through graphs that a compiler has made of it."""

    def __init__(self, function: Any, backend: Any, name: str, fullgraph: bool) -> None:
        self.function, self.backend, self.fullgraph = function, backend, fullgraph
        self.name = name
        self.entries: dict[Any, list[_Entry]] = {}
        self.count = 0
        self.given_up = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.given_up or _in_force or forced or _record.is_recording():
            return self.function(*args, **kwargs)
        leaves, spec = _pytree.tree_flatten((args, kwargs))
        key = (
            str(spec),
            tensor.is_grad_enabled(),
            tensor.is_autocast_enabled("cpu"),
            *map(_leaf_key, leaves),
        )
        for entry in self.entries.get(key, ()):
            if entry.holds():
                return self._run(entry, leaves)
        return self._first(key, args, kwargs, leaves)

    @staticmethod
    def _run(entry: _Entry, leaves: list[Any]) -> Any:
        inputs = [
            leaves[source]
            if isinstance(source, int)
            else source
            if isinstance(source, tensor.Tensor)
            else _look(source)
            for source in entry.inputs
        ]
        return entry.rebuild(inputs, entry.run(*inputs))

    def _first(self, key: Any, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
        if self.count >= _LIMIT:
            return self._give_up(f"it was compiled {_LIMIT} times for arguments of other kinds")(
                *args, **kwargs
            )
        reads = _Reads.of(self.function)
        values, lengths = reads.values(), reads.lengths()
        given, sources = self._given(reads, args, kwargs)
        _in_force.append(self)
        try:
            done = follow(lambda: self.function(*args, **kwargs), given)
        finally:
            _in_force.pop()
        if done.module is None:
            self._give_up(str(done.failure))
            return done.result
        after = reads.values()
        if len(after) != len(values) or lengths != reads.lengths() or not all(map(_unchanged, after, values)):
            self._give_up("it changes attributes of modules or variables")
            return done.result
        if all(node.op in ("placeholder", "output") for node in done.module.graph.nodes):
            return done.result  # nothing to compile
        done.undo()
        entry = self._compile(done, values, sources, leaves)
        self.entries.setdefault(key, []).append(entry)
        self.count += 1
        return self._run(entry, leaves)

    def _given(self, reads: _Reads, args: Any, kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The tensors that the function may read by label, and where each stands at later calls."""
        names = _record._names(getattr(self.function, "forward", self.function), args, kwargs)
        given: dict[str, Any] = {}
        sources: dict[str, Any] = {}
        ways, _ = _pytree.tree_flatten_with_path((*args, *kwargs.values()))
        for index, (way, leaf) in enumerate(ways):
            if isinstance(leaf, tensor.Tensor):
                label = _record._input_name(names, way)
                given[label], sources[label] = leaf, index
        for label, place, value in reads.tensors():
            given.setdefault(label, value)
            sources.setdefault(label, place)
        return given, sources

    def _compile(self, done: Any, values: Any, sources: Any, leaves: list[Any]) -> _Entry:
        inputs = [sources[source] if isinstance(source, str) else source for source in done.inputs]
        examples = [
            leaves[s] if isinstance(s, int) else s if isinstance(s, tensor.Tensor) else _look(s)
            for s in inputs
        ]
        try:
            run = self.backend(done.module, examples)
        except Exception as error:
            raise exc.BackendCompilerFailed(
                f"backend={self.name!r} raised:\n{type(error).__name__}: {error}"
            ) from error
        if not callable(run):
            raise exc.BackendCompilerFailed(
                f"backend={self.name!r} gave a {type(run).__name__}, expected a function"
            )
        counters["stats"]["calls_captured"] += sum("call" in node.op for node in done.module.graph.nodes)
        counters["stats"]["unique_graphs"] += 1
        counters["frames"].update(("total", "ok"))
        kept = [leaf for leaf in leaves if not isinstance(leaf, tensor.Tensor)]
        return _Entry(values, inputs, run, done.rebuild, kept)

    def _give_up(self, reason: str) -> Any:
        self.given_up = True
        if self.fullgraph:
            raise exc.Unsupported(f"compile: {self.function!r} has no single graph: {reason}")
        warnings.warn(f"compile: {_title(self.function)} runs as it is: {reason}", UserWarning, stacklevel=4)
        return self.function


def _title(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


def compiled(
    function: Any, backend: Any, fullgraph: bool = False, options: Any = None, mode: Any = None
) -> Any:
    """A function that calls the given one through the graphs that `backend` makes of it.

    `backend` is called with a graph module and the list of tensors that are its inputs, and gives a function of these
    that returns a tuple of tensors. That happens at the first call, and again where the arguments are of another kind.

    Args:
        function: A function, a method of a module, or a module.
        backend: The compiler.
        fullgraph: Raise where the function has no single graph; else it runs as it is then, and a warning tells why.
        options: Passed to the compiler where there are any.
        mode: Passed to the compiler where there is one.
    """
    given = {key: value for key, value in (("options", options), ("mode", mode)) if value}
    made = _Compiled(
        function, functools.partial(backend, **given) if given else backend, _title(backend), fullgraph
    )
    if isinstance(function, nn.Module) or not (
        inspect.isfunction(function) or isinstance(function, types.MethodType)
    ):
        return made

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return made(*args, **kwargs)

    call._torchdynamo_orig_callable = function  # type: ignore[attr-defined]
    return call
