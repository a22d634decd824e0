"""Questions about compiling, and marks for a compiler that is not there: functions run as they are."""

from __future__ import annotations

import contextlib
import copy
import functools
import pickle
import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from taeda import _absent
from taeda.compiler import _settings
from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "config", "cudagraph_mark_step_begin", "disable",
    "get_default_backend", "is_compiling", "is_dynamo_compiling",
    "is_exporting", "keep_portable_guards_unsafe", "keep_tensor_guards_unsafe", "list_backends",
    "load_cache_artifacts", "load_compiled_function", "nested_compile_region", "reset",
    "save_cache_artifacts", "set_default_backend", "set_enable_guard_collectives",
    "set_stance", "skip_all_guards_unsafe", "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe", "substitute_in_graph",
    "wrap_numpy",
]  # fmt: skip

T = TypeVar("T")


#: Modes of PyTorch's compiler; all are the same here.
_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    **others: Any,
) -> Any:
    """The function itself, or a module that calls the given one: what is compiled elsewhere runs here as it is.

    A `backend` that is a function, or the name of a registered one, is called with the graph of what the function does
    and the tensors that it reads, and runs in its place (`taeda._dynamo._compiled`).

    Args:
        model: Function or module; without it the result is a decorator.
        fullgraph: With such a backend, raise where the function reads numbers out of tensors or does what no graph
            says; else it runs as it is then, and a warning tells why.
        dynamic: Accepted and of no effect.
        backend: A function of a graph module and a list of tensors that gives a function, or a name.
        mode: Passed to such a backend, as are `options`.
        disable: Whether a module too is returned as it is.

    Returns:
        For a module an `taeda._dynamo.OptimizedModule`, whose parameters' names begin with ``_orig_mod.``.

    Raises:
        RuntimeError: `model` cannot be called, both `mode` and `options` are given, or nobody knows the mode.
        taeda._dynamo.exc.InvalidBackend: Nobody has registered the name.

    Example:
        >>> @taeda.compile
        ... def f(x):
        ...     return x * 2
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if backend == "inductor" and mode not in (None, *_MODES):
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if model is None:
        given = {"fullgraph": fullgraph, "backend": backend, "mode": mode, "options": options}
        return _itself if disable else lambda function: compile(function, **given)
    if not callable(model):
        raise RuntimeError(f"compile: expected a function or a module, found {type(model).__name__}")
    if disable:
        return model
    from taeda._dynamo import OptimizedModule
    from taeda._dynamo._compiled import compiled, known_backend

    chosen = known_backend(backend)
    if chosen is not None:
        within = model._orig_mod if isinstance(model, OptimizedModule) else model
        made = compiled(within, chosen, fullgraph, options, mode)
        return OptimizedModule(within, made) if isinstance(within, nn.Module) else made
    if isinstance(model, nn.Module) and not isinstance(model, OptimizedModule):
        return OptimizedModule(model)
    return model


def _itself(obj: T) -> T:
    return obj


def is_compiling() -> bool:
    """Whether this code is being compiled or exported: it is exported at most."""
    return is_exporting()


def is_dynamo_compiling() -> bool:
    """Whether this code is being compiled: False."""
    return False


_export = threading.local()


def is_exporting() -> bool:
    """Whether this code is being exported."""
    return getattr(_export, "depth", 0) > 0


@contextlib.contextmanager
def _exporting() -> Iterator[None]:
    """A block whose code is being exported."""
    _export.depth = getattr(_export, "depth", 0) + 1
    try:
        yield
    finally:
        _export.depth -= 1


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Mark of a function that is not to be compiled: the function itself, used with or without parentheses."""
    return _itself if fn is None else fn


def allow_in_graph(fn: T) -> T:
    """Mark of a function that a compiler takes as it is: the function itself."""
    return fn


def assume_constant_result(fn: T) -> T:
    """Mark of a function that always gives the same: the function itself."""
    return fn


def nested_compile_region(fn: Any = None, **_: Any) -> Any:
    """Mark of a part that is compiled once: the function itself."""
    return _itself if fn is None else fn


def substitute_in_graph(
    original_fn: Any, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable[[T], T]:
    """Decorator for what a compiler takes in the place of `original_fn`: it gives the function itself."""
    return _itself


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy arrays as one of tensors; no gradients go through it.

    Example:
        >>> taeda.compiler.wrap_numpy(lambda a: a + 1)(taeda.ones(2))
        tensor([2., 2.])
    """
    import functools

    import numpy

    from taeda.utils._pytree import tree_map
    from taeda_registry.slots import tensor

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(
            lambda item: item.numpy() if isinstance(item, tensor.Tensor) else item, (args, kwargs)
        )
        return tree_map(
            lambda item: tensor.from_numpy(item) if isinstance(item, numpy.ndarray) else item,
            fn(*args, **kwargs),
        )

    return wrapped


def reset() -> None:
    """Forget what was compiled: nothing was."""


#: The names that PyTorch lists.
_OFFERED = ("cudagraphs", "inductor", "openxla", "tvm")


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Names of compilers: those that programs have registered, and PyTorch's, with which functions run as they are.

    Args:
        exclude_tags: Without "debug" among them, those are named that are there to find faults, such as "eager".
    """
    from taeda._dynamo._compiled import PLAIN, REGISTERED

    debugging = set() if "debug" in (exclude_tags or ()) else PLAIN
    return sorted({*REGISTERED, *_OFFERED, *debugging})


def cudagraph_mark_step_begin() -> None:
    """Mark of a step; nothing is replayed."""


class set_stance:
    """How calls of compiled functions run: with "force_eager" as they are, not through graphs.

    It is in force from when it is made, to the end of a `with` block or, as a decorator, while the function runs.
    """

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        self.stance = stance
        self._before = self._put()

    def _put(self) -> list[Any]:
        from taeda._dynamo._compiled import forced

        before = list(forced)
        forced[:] = [self] if self.stance == "force_eager" else []
        return before

    def _take_back(self) -> None:
        from taeda._dynamo._compiled import forced

        forced[:] = self._before

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._take_back()

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        self._take_back()

        @functools.wraps(fn)
        def within(*args: Any, **kwargs: Any) -> Any:
            self._before = self._put()
            try:
                return fn(*args, **kwargs)
            finally:
                self._take_back()

        return within


@contextlib.contextmanager
def set_enable_guard_collectives(enabled: bool) -> Iterator[None]:
    """A block that runs as it would without."""
    yield


def _all_true(guard_entries: list[Any]) -> list[bool]:
    return [True] * len(guard_entries)


def keep_portable_guards_unsafe(guard_entries: list[Any]) -> list[bool]:
    """Which guards are kept: all."""
    return _all_true(guard_entries)


skip_all_guards_unsafe = skip_guard_on_inbuilt_nn_modules_unsafe = keep_portable_guards_unsafe
skip_guard_on_all_nn_modules_unsafe = skip_guard_on_globals_unsafe = keep_portable_guards_unsafe
keep_tensor_guards_unsafe = keep_portable_guards_unsafe

_default_backend: list[Any] = ["inductor"]


def get_default_backend() -> Any:
    """What `set_default_backend` was given; "inductor" at first. Functions run as they are in any case."""
    return _default_backend[0]


def set_default_backend(backend: Any) -> None:
    """Kept and given back; None sets "inductor" again.

    Raises:
        TypeError: Neither a name nor a function.
    """
    if backend is None:
        backend = "inductor"
    if not (isinstance(backend, str) or callable(backend)):
        raise TypeError(f"set_default_backend: expected a name or a function, found {type(backend).__name__}")
    _default_backend[0] = backend


globals().update(
    _absent.functions(
        "taeda.compiler",
        "save_cache_artifacts load_cache_artifacts load_compiled_function",
        "there is no compiler, and nothing to keep",
    )
)


class _Config(ModuleType):
    """Settings that programs make for a compiler; nothing reads them.

    They can be imported as a module of the given name.
    """

    def __init__(self, name: str, **values: Any) -> None:
        super().__init__(name)
        self.__dict__.update(values)
        sys.modules[name] = self

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    @contextlib.contextmanager
    def patch(self, *args: Any, **changes: Any) -> Iterator[None]:
        """A block with other settings, given as a dict, as a name and a value, or by name; as a decorator too."""
        given = dict([args]) if len(args) == 2 else {**(args[0] if args else {}), **changes}
        before = self.to_dict()
        self.load_config(given)
        try:
            yield
        finally:
            for name in self.to_dict().keys() - before.keys():
                place, last = self._place(name)
                del place.__dict__[last]
            self.load_config(before)

    def _place(self, name: str) -> tuple[_Config, str]:
        """Where a setting stands, and its name there; parts of settings are made where they are missing."""
        place, (*parts, last) = self, name.split(".")
        for part in parts:
            if not isinstance(place.__dict__.get(part), _Config):
                place.__dict__[part] = _Config(f"{place.__name__}.{part}")
            place = place.__dict__[part]
        return place, last

    def to_dict(self) -> dict[str, Any]:
        """All settings; those of parts under names with a dot."""
        found: dict[str, Any] = {}
        for name, value in self.__dict__.items():
            if isinstance(value, _Config):
                found |= {f"{name}.{inner}": own for inner, own in value.to_dict().items()}
            elif not name.startswith("__"):
                found[name] = value
        return found

    shallow_copy_dict = to_dict

    def get_config_copy(self) -> dict[str, Any]:
        """All settings, copied."""
        return copy.deepcopy(self.to_dict())

    def save_config(self) -> bytes:
        """All settings as bytes."""
        return pickle.dumps(self.to_dict(), protocol=2)

    def load_config(self, maybe_pickled_config: bytes | dict[str, Any]) -> None:
        """Make settings, given as a dict or as `save_config` gives them: bytes can run code, so take only your own."""
        given = maybe_pickled_config
        for name, value in (pickle.loads(given) if isinstance(given, bytes) else given).items():
            place, last = self._place(name)
            place.__dict__[last] = value


config = _Config("taeda.compiler.config", **_settings.COMPILER)
