"""Extending taeda from Python: operators, kernels, devices and layers of your own.

What is added here is added to the one operator table that everything uses, so that it works with gradients,
with `nn` and on every device. Each registration is a handle: `handle.remove()` takes it away again, and
`with handle:` does so at the end of the block. Built-in operators are not slowed by any of this.

Example:
    >>> lib = taeda.library.Library("mypkg")
    >>> @lib.operator("mypkg::scale(Tensor self, float k) -> Tensor")
    ... def scale(self, k):
    ...     return self * k
    >>> taeda.ops.mypkg.scale(taeda.ones(2), 3.0)
    tensor([3., 3.])
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor

__all__ = [
    "Backend",
    "Kernel",
    "Layer",
    "Library",
    "NewOperator",
    "Operator",
    "Registration",
    "below",
    "op",
    "operators",
]

#: Positions of layers by name; a call meets the highest first.
POSITIONS = {"autograd": 0, "transform": 4, "autocast": 8, "tracing": 10, "profiler": 14}


#: What a device may declare missing; the conformance kit skips what needs it.
CAPABILITIES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "complex"),
    *(
        "gradients",
        "higher-order",
        "in-place",
        "out",
        "negative-strides",
        "shared-memory",
        "random",
        "streams",
    ),
    *("events", "event-timing", "pinned-memory", "sharing", "convolution", "recurrent", "pickle", "saving"),
    *("closure", "threads"),
)


class Argument(NamedTuple):
    """One argument of a schema. `type` is a word such as "Tensor" or "int"; `list` and `optional` say the rest."""

    name: str
    type: str
    list: bool
    optional: bool
    keyword_only: bool
    has_default: bool
    default: Any


class Result(NamedTuple):
    """One result of a schema."""

    name: str
    type: str
    list: bool


class Operator:
    """One form of one operator ("add", "add_", "add.out", "mypkg::scale"): callable, and what is known of it.

    Attributes:
        name: Its unique name.
        schema: Arguments, defaults and results as text.
        kind: "structured" (the core makes the outputs, a kernel fills them), "direct" (a kernel does
        everything), "view" or "composite" (written in terms of others).
        core: Whether a backend must implement it.
    """

    __slots__ = ("_facts", "core", "kind", "name", "schema")

    def __init__(self, name: str, schema: str, kind: str, core: bool) -> None:
        self.name, self.schema, self.kind, self.core = name, schema, kind, core
        self._facts: tuple[tuple[Argument, ...], tuple[Result, ...]] | None = None

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call it with arguments in the order of `arguments`, or by name."""
        return _C._call_operator(self.name, args, kwargs)

    def _read(self) -> tuple[tuple[Argument, ...], tuple[Result, ...]]:
        if self._facts is None:
            arguments, results = _C._schema_facts(self.name)
            self._facts = tuple(Argument(*a) for a in arguments), tuple(Result(*r) for r in results)
        return self._facts

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Arguments in calling order; an out= form takes its outputs first."""
        return self._read()[0]

    @property
    def results(self) -> tuple[Result, ...]:
        """Results; forms that write into an argument have none."""
        return self._read()[1]

    @property
    def form(self) -> str:
        """ "function", "inplace" or "out"."""
        if self.name.endswith(".out") or self.name.endswith("_out"):
            return "out"
        return "inplace" if self.name.endswith("_") else "function"

    def kernels(self) -> dict[str, str]:
        """Who registered its kernel, by device type."""
        found = {}
        for device in _devices():
            if (owner := _C._kernel_owner(self.name, device)) is not None:
                found[device] = owner
        return found

    def __repr__(self) -> str:
        return f"<operator {self.name}: {self.schema}>"

    def __reduce__(self) -> tuple:
        return op, (self.name,)


_known: dict[str, Operator] = {}


def _devices() -> list[str]:
    return [name for name in _C._backend_names() if name != "meta"]


def _fill() -> None:
    for name, schema, kind, core in _C._operators():
        if name not in _known:
            _known[name] = Operator(name, schema, kind, core)


def op(name: str) -> Operator:
    """The operator of this name.

    Raises:
        LookupError: There is none; names that look like it are listed.

    Example:
        >>> taeda.library.op("add").core
        True
    """
    if name not in _known:
        _fill()
    if name not in _known:
        import difflib

        near = difflib.get_close_matches(name, _known, 3)
        raise LookupError(
            f"there is no operator named {name!r}" + (f"; did you mean {', '.join(near)}?" if near else "")
        )
    return _known[name]


def operators() -> Iterator[Operator]:
    """All operators of the table, in its order."""
    _fill()
    return iter(tuple(_known.values()))


class _Collected:
    """What one thread has registered during a block of `_collecting()`."""

    def __init__(self) -> None:
        self._made: list[Any] = []

    def undo(self) -> None:
        """Take it all away, the last first; what is gone already stays so."""
        while self._made:
            self._made.pop().remove()


class _Open(threading.local):
    """The blocks that this thread is in, the innermost last."""

    def __init__(self) -> None:
        self.blocks: list[_Collected] = []


_open = _Open()


def _note(made: Any) -> None:
    if _open.blocks:
        _open.blocks[-1]._made.append(made)


@contextlib.contextmanager
def _collecting() -> Iterator[_Collected]:
    """Collects registrations that this thread makes through this module, for a start that may fail half-way.

    Of nested blocks the innermost has them: what another plug-in has registered well is not the outer one's to undo.
    """
    collected = _Collected()
    _open.blocks.append(collected)
    try:
        yield collected
    finally:
        _open.blocks.remove(collected)


class Registration:
    """Something that stands in the operator table until `remove()`; also a context manager."""

    def __init__(self, text: str, undo: Callable[[], None]) -> None:
        self._text, self._undo = text, undo
        self.active = True
        _note(self)

    def remove(self) -> None:
        """Take it away; a second call does nothing. Calls that are running on other threads finish as they began."""
        if self.active:
            self.active = False
            self._undo()

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<registration {self._text}{'' if self.active else ' (removed)'}>"


class Kernel(Registration):
    """The registration of one function as the kernel of one or several operators. Calling it calls the function."""

    def __init__(self, function: Callable, text: str, numbers: Iterable[int]) -> None:
        super().__init__(text, lambda: _remove_all(numbers))
        self.function = function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def _remove_all(numbers: Iterable[int]) -> None:
    for number in numbers:
        _C._remove_registration(number)


def _owner(function: Callable, library: str) -> str:
    code = getattr(function, "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    return f"{library}{place}"


def _add_kernel(names: Sequence[str], device: str, function: Callable, library: str, replace: bool) -> Kernel:
    if isinstance(function, Kernel):
        function = function.function  # decorators may stand above one another
    numbers: list[int] = []
    try:
        for name in names:
            numbers.append(_C._add_kernel(name, device, function, _owner(function, library), replace))
    except BaseException:
        _remove_all(numbers)
        raise
    return Kernel(function, f"kernel of {', '.join(names)} on {device}", numbers)


class NewOperator(Registration):
    """An operator defined from Python; callable, with decorators for what it consists of.

    Removing it takes its functions, kernels and layers away; calls then raise RuntimeError.
    """

    def __init__(self, schema: str, library: str, composite: Callable | None = None) -> None:
        self.name: str = _C._define_operator(schema, _owner(composite, library) if composite else library)
        super().__init__(f"operator {self.name}", self._remove)
        self.schema = schema
        self._library = library
        self._functions: dict[str, Callable | None] = {
            "infer": None,
            "composite": None,
            "derivative": None,
            "batching": None,
        }
        self._kernels: list[Kernel] = []
        self.op = op(self.name)
        self._set("composite", composite)
        _publish(self.name, self.op)

    def _set(self, part: str, function: Callable | None) -> Callable | None:
        self._functions[part] = function
        _C._set_operator_functions(self.name, *self._functions.values())
        return function

    def _remove(self) -> None:
        for kernel in self._kernels:
            kernel.remove()
        _C._remove_operator(self.name)
        _unpublish(self.name)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return _C._call_operator(self.name, args, kwargs)

    def infer(self, function: Callable) -> Callable:
        """Shapes and dtypes: `function(*arguments)` gives `(shape, dtype)`, or a list of these for several results.

        With it the core makes the outputs, kernels fill them, and tensors on "meta" work.
        """
        return self._set("infer", function)

    def composite(self, function: Callable) -> Callable:
        """The operator in terms of others, `function(*arguments)`: for devices that have no kernel of it."""
        return self._set("composite", function)

    def derivative(self, function: Callable) -> Callable:
        """`function(grads, arguments, results)` gives a tuple with one gradient, or None, for each argument.

        All three are tuples; a gradient in `grads` is None where the result had none.
        """
        return self._set("derivative", function)

    def batching(self, function: Callable) -> Callable:
        """The operator over a batch: `function(arguments, dims)` gives `(results, dims)`.

        `dims` says for each argument which dimension is the batch, None for those without; the second
        result says the same, as a list of ints, of the results.
        """
        return self._set("batching", function)

    def kernel(self, device: str, *, replace: bool = False) -> Callable[[Callable], Kernel]:
        """Decorator for the kernel on a device: `function(outputs, inputs)`.

        With `infer`, `outputs` are made tensors to be filled. Without, `outputs` is empty and the function
        returns the results.
        """

        def take(function: Callable) -> Kernel:
            made = _add_kernel([self.name], device, function, self._library, replace)
            self._kernels.append(made)
            return made

        return take


def _publish(name: str, target: Operator) -> None:
    package, short = name.split("::", 1)
    space = vars(_C.ops).get(package)
    if space is None:
        space = types.ModuleType(f"{_C.ops.__name__}.{package}", f"Operators of {package}.")
        space.__getattr__ = functools.partial(_find_compiled, package)
        setattr(_C.ops, package, space)
        sys.modules[space.__name__] = space
    setattr(space, short, target)


def _find_compiled(package: str, short: str) -> Operator:
    """Attribute `short` of `ops.<package>`: an operator that a compiled plug-in has defined."""
    name = f"{package}::{short}"
    if any(known == name for known, *_ in _C._operators()) and _C._operator_functions(name)[1]:
        _publish(name, op(name))
        return op(name)
    raise AttributeError(f"module '{_C.ops.__name__}.{package}' has no attribute {short!r}")


def _find_package(package: str) -> types.ModuleType:
    """Attribute of `ops` that is not there yet: a package whose operators a compiled plug-in has defined."""
    for name, *_ in _C._operators():
        if name.startswith(f"{package}::") and _C._operator_functions(name)[1]:
            _publish(name, op(name))
    if package not in vars(_C.ops):
        raise AttributeError(f"module {_C.ops.__name__!r} has no attribute {package!r}")
    return vars(_C.ops)[package]


def _unpublish(name: str) -> None:
    package, short = name.split("::", 1)
    vars(vars(_C.ops)[package]).pop(short, None)


class Library:
    """What one package registers; the name stands in messages about conflicts.

    Example:
        >>> with taeda.library.Library("mypkg") as lib:
        ...     kernel = lib.kernel("relu", "cpu", replace=True)(my_relu)
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.registrations: list[Registration] = []

    def _keep(self, made: Any) -> Any:
        self.registrations.append(made)
        return made

    def operator(self, schema: str) -> Callable[[Callable | None], NewOperator]:
        """Decorator that defines an operator; the function is its composite form.

        Raises:
            ValueError: The schema cannot be read, or its name has no "package::".
            RuntimeError: The name is taken; both owners are named.
        """

        def take(function: Callable | None = None) -> NewOperator:
            return self._keep(NewOperator(schema, self.name, function))

        return take

    def define(self, schema: str) -> NewOperator:
        """Define an operator without a composite form: `operator(schema)()`."""
        return self.operator(schema)()

    def kernel(
        self, name: str, device: str = "cpu", *, replace: bool = False
    ) -> Callable[[Callable], Kernel]:
        """Decorator: a kernel, `function(outputs, inputs)`, for an operator on a device.

        Args:
            name: Operator, by the name of its function form.
            device: Device type.
            replace: Take the place of a kernel that is there; removing brings the former one back.

        Raises:
            RuntimeError: There is one already and `replace` is false; both owners are named.
        """

        def take(function: Callable) -> Kernel:
            return self._keep(_add_kernel([name], device, function, self.name, replace))

        return take

    def remove(self) -> None:
        """Take away all that was registered, the last first."""
        while self.registrations:
            self.registrations.pop().remove()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def _missing(capabilities: Mapping[str, str] | Iterable[str]) -> dict[str, str]:
    if isinstance(capabilities, str):
        raise TypeError(
            f"Backend: argument 'capabilities' must be names or a dict of reasons, found {capabilities!r}"
        )
    named = dict(capabilities) if isinstance(capabilities, Mapping) else dict.fromkeys(capabilities, "")
    if unknown := [name for name in named if name not in CAPABILITIES]:
        raise ValueError(
            f"Backend: argument 'capabilities': there is none named {', '.join(map(repr, unknown))}; "
            f"expected some of: {', '.join(CAPABILITIES)}"
        )
    for name, reason in named.items():
        if not isinstance(reason, str):
            raise TypeError(
                f"Backend: argument 'capabilities': the reason why {name!r} is missing must be a str, found {reason!r}"
            )
    return named


def _json(properties: dict[str, Any]) -> str:
    try:
        return json.dumps(properties)
    except (TypeError, ValueError) as error:
        raise TypeError(f"Backend: argument 'properties' must hold what JSON can say: {error}") from None


class Backend(Library):
    """A device whose memory is the host's and whose kernels are Python functions.

    The core allocates (and counts) the memory; `array` shows it to NumPy without a copy. A kernel receives
    outputs that have their shape and dtype and inputs of any strides and dtypes, broadcast or not; an
    output may be one of the inputs.

    Args:
        name: Device type, as in `device="name"`.
        device_count: How many devices there are.
        capabilities: Which of `CAPABILITIES` are missing, as names or as a dict that gives reasons, for example
            `{"bfloat16": "NumPy has no such type"}`. `taeda.backends.lacks` shows them, and the conformance kit skips
            what needs them.
        properties: Facts for users, shown by `taeda.backends.properties`; whatever JSON can say.

    Raises:
        ValueError: The name, the count or a capability cannot be.
        TypeError: The properties are nothing that JSON can say.
        RuntimeError: There is a device of that name; both owners are named.

    Example:
        >>> backend = taeda.library.Backend("mydev")
        >>> @backend.kernel("add")
        ... def add(outputs, inputs):
        ...     a, b, alpha = inputs
        ...     backend.array(outputs[0])[...] = backend.array(a) + alpha * backend.array(b)
    """

    def __init__(
        self,
        name: str,
        *,
        device_count: int = 1,
        capabilities: Mapping[str, str] | Iterable[str] = (),
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name)
        self.device_count = device_count
        self.capabilities = _missing(capabilities)
        self.properties = {"name": name, "memory": "host", **(properties or {})}
        frame = sys._getframe(1)
        owner = f"{name} ({frame.f_code.co_filename}:{frame.f_lineno})"
        facts = _json(self.properties)
        self.index: int = _C._host_backend(name, device_count, owner, self.capabilities, facts)
        _note(self)

    @staticmethod
    def array(tensor: Tensor) -> Any:
        """NumPy's view of a tensor's memory, on this device or the cpu; bfloat16 shows as its bits in uint16."""
        return _C._host_array(tensor)

    def remove(self) -> None:
        """Take the kernels away, and the device's name, which may then be given again."""
        super().remove()
        _C._remove_host_backend(self.index)

    def kernel(self, *names: str, replace: bool = False) -> Callable[[Callable], Kernel]:
        """Decorator: the kernel of one or several operators on this device; calling what it gives calls the function.

        Raises:
            RuntimeError: One has a kernel already and `replace` is false; then none of them is registered.
        """

        def take(function: Callable) -> Kernel:
            return self._keep(_add_kernel(names, self.name, function, self.name, replace))

        return take

    def missing(self) -> list[str]:
        """Core operators that have no kernel here yet."""
        return [
            o.name
            for o in operators()
            if o.core
            and (o.form == "function" or o.kind == "direct")
            and not _C._kernel_owner(o.name, self.name)
        ]


class below:
    """Context in which a layer is switched off on this thread, so that calls go on below it."""

    def __init__(self, position: int | str) -> None:
        self._position = _place(position)

    def __enter__(self) -> None:
        self._before = _C._exclude_layer(self._position, True)

    def __exit__(self, *_: object) -> None:
        _C._exclude_layer(self._position, self._before)


def _place(position: int | str) -> int:
    if isinstance(position, str):
        if position not in POSITIONS:
            raise ValueError(
                f"position must be a number or one of {', '.join(POSITIONS)}, found {position!r}"
            )
        return POSITIONS[position]
    return position


class Layer:
    """Code that stands between callers and kernels: sees calls, and may change, replace or only watch them.

    Derive from it and write `__call__(op, args, kwargs)`. `op` is an `Operator`, `args` holds all
    positional arguments of its schema, defaults included, `kwargs` the keyword-only ones. Inside, this
    layer is off: `op(*args, **kwargs)` goes on below it. The result must be what the operator gives, on the
    same device; forms that write into an argument give None.

    A layer runs on the threads that entered it (`with layer:`). At the position "autograd" it runs for
    tensors that require gradients, without being entered. It stands in the table from when it is made until `remove()`,
    or until the last thread leaves its `with`; entering it again puts it back.

    Args:
        name: Stands in messages.
        position: A number from 0 to 15 or a name of POSITIONS. Higher ones are met first. There is one
            layer at a position.
        operators: Operators or names it sees; None for all.

    Example:
        >>> class Count(taeda.library.Layer):
        ...     calls = 0
        ...     def __call__(self, op, args, kwargs):
        ...         self.calls += 1
        ...         return op(*args, **kwargs)
    """

    def __init__(
        self,
        name: str,
        position: int | str = "profiler",
        operators: Iterable[Operator | str] | None = None,
    ) -> None:
        self.name = name
        self.position = _place(position)
        self._operators = None if operators is None else tuple(operators)
        self._numbers: list[int] = []
        self._lock = threading.Lock()
        self._threads = 0  # how often it is entered, on all threads
        self._before = _Before()
        self._register()
        _note(self)

    def _register(self) -> None:
        chosen = operators() if self._operators is None else self._operators
        try:
            for each in chosen:
                target = each if isinstance(each, Operator) else op(each)
                number = _C._add_layer(target.name, self.position, self._entry(target), self.name)
                self._numbers.append(number)
        except BaseException:
            self._remove()
            raise

    def _entry(self, target: Operator) -> Callable:
        names = [a.name for a in target.arguments if a.keyword_only]
        positional = len(target.arguments) - len(names)

        def call(*args: Any) -> Any:
            return self(target, args[:positional], dict(zip(names, args[positional:], strict=True)))

        return call

    def __call__(self, op: Operator, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Goes on below; override it."""
        return op(*args, **kwargs)

    def __enter__(self) -> Layer:
        with self._lock:
            if not self._numbers:
                self._register()
            self._threads += 1
        self._before.states.append(_C._include_layer(self.position, True))
        return self

    def __exit__(self, *_: object) -> None:
        _C._include_layer(self.position, self._before.states.pop())
        with self._lock:
            self._threads -= 1
            if self._threads == 0:
                self._remove()

    def remove(self) -> None:
        """Take the layer out of the table."""
        with self._lock:
            self._remove()

    def _remove(self) -> None:
        _remove_all(self._numbers)
        self._numbers.clear()


class _Before(threading.local):
    """Whether a layer was in force on this thread before each of its entries."""

    def __init__(self) -> None:
        self.states: list[bool] = []


def install_autograd(provider: Any) -> None:
    """Let a Python object answer what the core asks of automatic differentiation.

    Args:
        provider: Has `set_requires_grad(tensor, value)`, `grad(tensor)`, `set_grad(tensor, grad)`,
            `is_leaf(tensor)`, `grad_fn(tensor)`, and as attributes whatever methods it adds to tensors
            (`backward`, `register_hook` ...).

    Raises:
        RuntimeError: A compiled provider is loaded already.
    """
    _C._install_autograd(provider)


def attach_state(tensor: Tensor, state: Any) -> None:
    """Keep an object with a tensor, for the installed Python autograd provider; None takes it off."""
    _C._attach_state(tensor, state)


def attached_state(tensor: Tensor) -> Any:
    """What `attach_state` kept, or None."""
    return _C._attached_state(tensor)


def mark_tracked(tensor: Tensor, tracked: bool = True) -> None:
    """Say whether a tensor requires gradients: its calls then pass the layer at position "autograd"."""
    _C._mark_tracked(tensor, tracked)
