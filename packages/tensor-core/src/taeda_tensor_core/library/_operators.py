"""Operators defined from Python, their place in `ops`, and the library that owns them."""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core.library import _packets
from taeda_tensor_core.library._aten_names import define, other_name, plain
from taeda_tensor_core.library._registration import Kernel, Registration, add_kernel, owner_text
from taeda_tensor_core.library._schemas import translated
from taeda_tensor_core.library._table import Operator, has, op, read_anew
from taeda_tensor_core.library._tags import give_tags

_defined: dict[str, NewOperator] = {}


#: What is to be done to operators that are not defined yet, by name.
awaited: dict[str, list[Callable[[NewOperator], Any]]] = {}


def defined(name: str) -> NewOperator | None:
    """The operator of this name that Python has defined."""
    return _defined.get(name)


def batched_operators() -> list[str]:
    """Names of the operators that have been given a rule for batches."""
    return [name for name, made in _defined.items() if made.batching_rule is not None]


class NewOperator(Registration):
    """An operator defined from Python; callable, with decorators for what it consists of.

    Removing it takes its functions, kernels and layers away; calls then raise RuntimeError.
    """

    def __init__(self, schema: str, library: str, composite: Callable | None = None) -> None:
        self.name: str = _C._define_operator(schema, owner_text(composite, library) if composite else library)
        self.schema = schema
        self._library = library
        self._functions: dict[str, Callable | None] = {
            "infer": None,
            "composite": None,
            "derivative": None,
            "batching": None,
        }
        self._kernels: list[Kernel] = []
        self._recorded = False  # the composite form is for calls that are recorded
        self._parts: Callable | None = None
        try:
            super().__init__(f"operator {self.name}", self._remove)
            read_anew(self.name)
            self.op = op(self.name)
            self._set("composite", composite)
            publish(self.name, self.op)
            _defined[self.name] = self
            for act in awaited.pop(self.name, ()):
                act(self)
        except BaseException:  # nobody else could take it away
            self._remove()
            raise

    def _set(self, part: str, function: Callable | None) -> Callable | None:
        self._functions[part] = function
        _C._set_operator_functions(self.name, *self._functions.values())
        return function

    def _remove(self) -> None:
        for kernel in self._kernels:
            kernel.remove()
        _C._remove_operator(self.name)
        unpublish(self.name)
        _defined.pop(self.name, None)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)

    def infer(self, function: Callable) -> Callable:
        """Shapes and dtypes: `function(*arguments)` gives `(shape, dtype)`, or a list of these for several results.

        With it the core makes the outputs, kernels fill them, and tensors on "meta" work.
        """
        return self._set("infer", function)

    def composite(self, function: Callable) -> Callable:
        """The operator in terms of others, `function(*arguments)`: for devices that have no kernel of it."""
        return self._set("composite", function)

    def compose(self, kernel: Callable, recorded: bool) -> None:
        """A composite form from `kernel(outputs, inputs)`, for calls that are recorded or for all.

        Where both are given, the one for all serves as the kernel of the cpu, which others fall back to.
        """
        for_all = kernel
        if recorded:
            before = None if self._recorded else self._functions["composite"]
            for_all = None if before is None else lambda _, inputs: before(*inputs)
            self._recorded = True
        if self._recorded and for_all is not None and "cpu" not in self.op.kernels():
            self.kernel("cpu")(for_all)
        if recorded or not self._recorded:
            self._set("composite", lambda *arguments: kernel((), arguments))

    @property
    def parts(self) -> Callable | None:
        """The function whose calls are met in the operator's place, unless a device has a kernel of its own."""
        return None if self._parts is None or set(self.op.kernels()) - {"meta"} else self._parts

    def consists_of(self, function: Callable) -> None:
        """Say that modes and classes which answer for operators meet those that `function(*arguments)` calls."""
        self._parts = function

    def derivative(self, function: Callable) -> Callable:
        """`function(grads, arguments, results)` gives a tuple with one gradient, or None, for each argument.

        All three are tuples; a gradient in `grads` is None where the result had none.
        """
        return self._set("derivative", function)

    @property
    def batching_rule(self) -> Callable | None:
        """What `batching` was given."""
        return self._functions["batching"]

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
            made = add_kernel([self.name], device, function, self._library, replace)
            self._kernels.append(made)
            return made

        return take


_BUILT_IN = ("taeda", "aten")


def publish(name: str, target: Any) -> None:
    """Let `ops.<package>.<operator>` be this."""
    package, short = name.split("::", 1)
    if package in _BUILT_IN:
        find_package(package)  # what is defined beside the built-in operators does not stand in their way
    space = vars(_C.ops).get(package)
    if space is None:
        space = Namespace(package)
        space.__getattr__ = functools.partial(_find_compiled, package)
        setattr(_C.ops, package, space)
        sys.modules[space.__name__] = space
    _packets.put(space, package, short, target)


#: By package: the module that defines its operators when one is asked for.
homes: dict[str, str] = {}


def _find_compiled(package: str, short: str) -> Operator:
    """Attribute `short` of `ops.<package>`: an operator of the package's home, or one that a plug-in has defined."""
    name = f"{package}::{short}"
    if not short.startswith("__") and (home := homes.pop(package, None)):
        importlib.import_module(home)
        if (space := vars(_C.ops).get(package)) is not None and short in vars(space):
            return vars(space)[short]
    if any(known == name for known, *_ in _C._operators()) and _C._operator_functions(name)[1]:
        publish(name, op(name))
        return op(name)
    raise AttributeError(f"module '{_C.ops.__name__}.{package}' has no attribute {short!r}")


def find_package(package: str) -> types.ModuleType:
    """Attribute of `ops` that is not there yet: a package whose operators a compiled plug-in has defined.

    Programs name PyTorch's packages before they ask for operators, so one of these is found without any.
    """
    if package in _BUILT_IN:
        if package not in vars(_C.ops):
            setattr(_C.ops, package, _built_in(package))
        return vars(_C.ops)[package]
    for name, *_ in _C._operators():
        if name.startswith(f"{package}::") and _C._operator_functions(name)[1]:
            publish(name, op(name))
    if package not in vars(_C.ops):
        if package not in _THEIRS:
            raise AttributeError(f"module {_C.ops.__name__!r} has no attribute {package!r}")
        return _Empty(package)
    return vars(_C.ops)[package]


_THEIR_NAMES = (
    "c10d c10d_functional debugprims export fsdp higher_order inductor inductor_prims mkl mkldnn mkldnn_prepacked "
    "onednn prepacked prim prims rngprims sparse static_runtime streams symm_mem xnnpack _c10d_functional "
    "_c10d_functional_autograd _dtensor _quantized"
)
#: Packages of operators that are always there in PyTorch.
_THEIRS = frozenset(_THEIR_NAMES.split())


class Namespace(types.ModuleType):
    """The operators of one package, which is its `name`: an attribute of `ops`."""

    def __init__(self, package: str, text: str | None = None) -> None:
        super().__init__(f"{_C.ops.__name__}.{package}", text or f"Operators of {package}.")
        self.name = package


class _Empty(Namespace):
    """A package that nothing has been defined in; what is defined later is found."""

    def __getattr__(self, name: str) -> Any:
        if self.name in vars(_C.ops):
            return getattr(vars(_C.ops)[self.name], name)
        return _find_compiled(self.name, name)


def _built_in(package: str) -> types.ModuleType:
    """Built-in operators as `Operator` objects; "aten" is what PyTorch calls them."""
    space = Namespace(package, "Built-in operators as objects.")

    def find(name: str) -> Any:
        try:
            return op(name)
        except LookupError as error:
            if package == "aten" and define(name):
                return op(f"aten::{name}")
            if package == "aten" and (known := other_name(name)):
                return find(known)
            if package == "aten" and (found := plain(name)) is not None:
                return vars(space).setdefault(name, found)
            raise AttributeError(str(error)) from None

    space.__getattr__ = find
    return space


def unpublish(name: str) -> None:
    """Take it away again."""
    package, short = name.split("::", 1)
    if (space := vars(_C.ops).get(package)) is not None:
        _packets.drop(space, short)


# By name: functions of operators that nobody has defined yet, each with its library and key.
_waiting: dict[str, list[tuple[Any, ...]]] = {}


class Library:
    """What one package registers; the name stands in messages about conflicts.

    Args:
        name: Package.
        kind: As PyTorch has it: with "DEF" or "FRAGMENT" names in `define` and `impl` belong to the package, with
            "IMPL" nothing is
            defined. None means that names stand in full.
        dispatch_key: What `impl` registers for unless told.

    Example:
        >>> with taeda.library.Library("mypkg") as lib:
        ...     kernel = lib.kernel("relu", "cpu", replace=True)(my_relu)
    """

    def __init__(self, name: str, kind: str | None = None, dispatch_key: str = "") -> None:
        if kind not in (None, "DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Library: argument 'kind' must be 'DEF', 'FRAGMENT' or 'IMPL', found {kind!r}")
        self.name = name
        self.kind = kind
        self.dispatch_key = dispatch_key
        self.registrations: list[Registration] = []

    @property
    def ns(self) -> str:
        """The package, under PyTorch's name for it."""
        return self.name

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
            made = self._keep(NewOperator(schema, self.name, function))
            for owner, *given in _waiting.pop(schema.partition("(")[0].strip(), ()):
                owner.impl(*given)
            return made

        return take

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> Any:
        """Define an operator without a composite form: `operator(schema)()`.

        `alias_analysis` is not used: the schema says what is written. `tags` are what `Overload.tags` tells besides.
        """
        if self.kind == "IMPL":
            raise RuntimeError(
                f"Library: '{self.name}' has the kind 'IMPL' and defines no operator: {schema}"
            )
        if self.kind is not None and "::" not in schema.partition("(")[0]:
            schema = f"{self.name}::{schema.strip()}"
        from taeda_tensor_core.library import _custom_results

        if _custom_results.gives_others(schema) or _custom_results.gives_argument(schema):
            name, bracket, rest = schema.strip().partition("(")
            special = self._keep(_custom_results.ResultsOpDef(name, bracket + rest))
            for owner, *given in _waiting.pop(name, ()):
                owner.impl(*given)
            return special
        made = self.operator(translated(schema))()
        give_tags(made.name, tags)
        return made

    def impl(
        self,
        op_name: Any,
        fn: Callable,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> Registration | None:
        """Give an operator's function, `fn(*arguments)`, for a device or one of PyTorch's dispatch keys.

        Args:
            op_name: Name, with or without its package, or the operator.
            fn: Returns the results.
            dispatch_key: "CPU", "Meta" or another device; "CompositeImplicitAutograd",
                "CompositeExplicitAutograd" or "" for every device that has no function of its own; "Autograd",
                "AutogradCPU" and the like for calls that are recorded: what the function calls is; "AutocastCPU" and
                the like for blocks of autocast. A function for a kind of device that is not there is never asked;
                one of another package's operator waits until that is defined.
            with_keyset: Must be false: there is no key set to give.
            allow_override: Take the place of the function that a device has already.

        Raises:
            NotImplementedError: The key is one of automatic differentiation, and the operator built in.
        """
        from taeda_tensor_core.library import _custom_results
        from taeda_tensor_core.library._custom import _is_there, as_kernel

        if with_keyset:
            raise NotImplementedError(
                "Library.impl: with_keyset=True is not supported: functions get arguments alone"
            )
        name = op_name if isinstance(op_name, str) else getattr(op_name, "operator", op_name).name
        if "::" not in name and defined(f"{self.name}::{name}"):
            name = f"{self.name}::{name}"
        name = name.removeprefix("aten::").removeprefix("taeda::")
        key = dispatch_key or self.dispatch_key
        full = name if "::" in name else f"{self.name}::{name}"
        if (special := _custom_results.known(full)) is not None:
            special.give(key, fn)
            return None
        if "::" not in name and not has(name):
            name = full
        if "::" in name and not has(name) and defined(name) is None:
            _waiting.setdefault(name, []).append((self, name, fn, key))
            return None
        if key.startswith("Autocast"):
            from taeda_tensor_core.library import _autocast

            kind = key.removeprefix("Autocast").lower()
            _autocast.give(op(name), kind, fn)
            return None
        recorded = key.startswith("Autograd")
        of_device = bool(key) and not recorded and not key.startswith("Composite")
        if of_device and not _is_there(key.lower()):
            return None
        function = as_kernel(op(name), fn, plain=of_device, may_return_arguments=True)
        if of_device:
            return self.kernel(name, key.lower(), replace=allow_override or defined(name) is None)(function)
        if (made := defined(name)) is None:
            if recorded:
                raise NotImplementedError(
                    f"Library.impl: {name} is built in: the key {key!r} is for operators of one's own"
                )
            raise RuntimeError(
                f"Library.impl: {name} is built in; name the device of the kernel that takes its place"
            )
        made.compose(function, recorded)
        if key in ("", "CompositeImplicitAutograd"):
            made.consists_of(fn)
        return None

    def kernel(
        self,
        name: str,
        device: str = "cpu",
        *,
        replace: bool = False,
        schema: str | None = None,
        recorded: bool = False,
    ) -> Callable[[Callable], Kernel]:
        """Decorator: a kernel, `function(outputs, inputs)`, for an operator on a device.

        Args:
            name: Operator, by the name of its function form.
            device: Device type.
            replace: Take the place of a kernel that is there; removing brings the former one back.
            schema: What the function was written for, as in `Backend.kernel`.
            recorded: Of an operator that is made of others, as in `Backend.kernel`.

        Raises:
            RuntimeError: There is one already and `replace` is false; both owners are named.
        """

        def take(function: Callable) -> Kernel:
            return self._keep(add_kernel([name], device, function, self.name, replace, schema, recorded))

        return take

    def remove(self) -> None:
        """Take away all that was registered, the last first."""
        for name in list(_waiting):
            _waiting[name] = [each for each in _waiting[name] if each[0] is not self]
        while self.registrations:
            self.registrations.pop().remove()

    def _destroy(self) -> None:
        self.remove()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()
