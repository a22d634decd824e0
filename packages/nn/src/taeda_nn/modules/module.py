"""Module: the base class of layers and models.

Note [Where a module keeps its members]
Parameters, buffers and submodules live in the instance's ``__dict__`` like any other attribute, so reading one is an
ordinary attribute access. Three ordered name tables beside them say which attribute is of which kind. ``_parameters``,
``_buffers`` and ``_modules`` are live views over both; they hold nothing themselves, so no reference cycle arises.
Views stand in the ``__dict__`` under these names too, from the first time that a program asks for it.

Note [The dict of a module is asked for late]
Until somebody asks for an instance's ``__dict__`` the interpreter (CPython 3.11, 3.12) keeps its attributes in an array
and reads them in a third of the time. So layers without members are made, walked and called without it: `attributes`
stands only where members are.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from taeda_nn._bind import Tensor, no_grad
from taeda_nn._errors import note_module
from taeda_nn._hooks import (
    HookSet,
    HookView,
    RemovableHandle,
    _WrappedHook,
    add_hook,
    backward_hooks,
    call_hooked,
    hook_property,
)
from taeda_nn.modules._convert import Converting
from taeda_nn.modules._members import (
    REGISTRATION_HOOKS,
    Hidden,
    Members,
    as_pickled,
    ask_own_lookup,
    drop_member,
    forget_members,
    has_own_lookup,
    have_lookup,
    is_shown,
    keep_member,
    keep_tables,
    look_behind_property,
    pickled_state,
    registered,
    replace_members,
    replace_shown,
    set_member,
    show_members,
    shown_attributes,
    take_pickled_state,
)
from taeda_nn.modules._state import _EXTRA_STATE_KEY_SUFFIX as _EXTRA_STATE_KEY_SUFFIX
from taeda_nn.modules._state import (
    IncompatibleKeys,
    Stateful,
    attributes,
    attributes_with,
)
from taeda_nn.parameter import Parameter

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_MISSING: Any = object()
# The hooks for all modules; None while there are none. With the first one the code of `Module.__call__` is exchanged
# for one that looks here, so that other calls need not; the function, which programs hold and replace, stays the same.
_everywhere: HookSet | None = None
_NO_HOOKS = HookSet()
# PyTorch's names of the hooks at registrations.
_global_parameter_registration_hooks = REGISTRATION_HOOKS["parameter"]
_global_buffer_registration_hooks = REGISTRATION_HOOKS["buffer"]
_global_module_registration_hooks = REGISTRATION_HOOKS["module"]


def _members_of(table: str) -> Callable[[Module], Iterable[tuple[str, Any]]]:
    """What gives the members of a module whose name table is called ``table``."""

    def members(module: Module) -> Iterable[tuple[str, Any]]:
        names = tuple(getattr(module, table))
        values = attributes_with(module, names)
        return [(name, values[name]) for name in names]

    return members


_parameters_of, _buffers_of = _members_of("_parameter_names"), _members_of("_buffer_names")


def _each_member(root: Module, table: str, recurse: bool) -> Iterator[Any]:
    """As ``named_parameters`` and ``named_buffers``, whose names take half of the time."""
    seen, met, waiting = {id(None)}, set(), [root]
    while waiting:
        module = waiting.pop()
        if module in met:
            continue
        met.add(module)
        names = tuple(getattr(module, table))
        below = tuple(module._module_names) if recurse else ()
        values = attributes_with(module, names or below)
        for name in names:
            member = values[name]
            if id(member) not in seen:
                seen.add(id(member))
                yield member
        for name in reversed(below):
            if values[name] is not None:
                waiting.append(values[name])


class Module(Converting, Stateful):
    """Base class of all layers and models.

    A subclass calls ``super().__init__()``, assigns parameters, buffers and submodules to its attributes, and defines
    ``forward``. Calling the module runs ``forward`` and the registered hooks.

    Raises:
        An exception raised inside ``forward`` passes through unchanged, with a note naming the submodule.

    Example:
        >>> class Net(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.head = nn.Linear(8, 2)
        ...     def forward(self, x):
        ...         return self.head(x).relu()
    """

    training: bool = True
    call_super_init: bool = False
    dump_patches: bool = False
    T_destination = TypeVar("T_destination", bound=dict[str, Any])
    _version: int = 1
    _compiled_call_impl: Callable[..., Any] | None = None
    _hook_set: HookSet | None = None
    # Of a module that is not initialised.
    _parameter_names: Any = None
    _buffer_names: Any = None
    _module_names: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            raise TypeError(
                f"{type(self).__name__}.__init__: Module takes no arguments, got {len(args)} positional and "
                f"{sorted(kwargs)} by keyword"
            )
        if self._parameter_names is not None:
            forget_members(self)
        setter = object.__setattr__
        setter(self, "training", True)
        setter(self, "_hook_set", None)
        setter(self, "_parameter_names", {})
        setter(self, "_buffer_names", {})
        setter(self, "_module_names", {})
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not has_own_lookup(cls):
            have_lookup(Module, cls)
        keep_tables(cls)
        show_members(cls, vars(Module)["__dict__"])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the module's result; every subclass defines it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, input: Any = _MISSING, /, *args: Any, **kwargs: Any) -> Any:
        # The first argument stands apart because packing and unpacking it would cost more than the rest of the call.
        if args or kwargs or input is _MISSING or self._hook_set is not None:
            given = args if input is _MISSING else (input, *args)
            return self._call_in_full(given, kwargs, self._compiled_call_impl)
        try:
            return self.forward(input)
        except Exception as error:
            note_module(error, self)
            raise

    def _call_in_full(self, args: tuple, kwargs: dict, compiled: Callable[..., Any] | None = None) -> Any:
        if compiled is not None:
            return compiled(*args, **kwargs)
        hooks = (
            self._hook_set or _NO_HOOKS
        )  # a set without hooks stays: another thread may be about to add one
        try:
            if hooks is _NO_HOOKS and _everywhere is None:
                return self.forward(*args, **kwargs)
            return call_hooked(self, hooks, _everywhere or _NO_HOOKS, args, kwargs)
        except Exception as error:
            note_module(error, self)
            raise

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return self._call_in_full(args, kwargs)

    def _wrapped_call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return self._call_in_full(args, kwargs, self._compiled_call_impl)

    def _slow_forward(self, *input: Any, **kwargs: Any) -> Any:
        """`forward`: what programs call that replace `__call__`."""
        return self.forward(*input, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compiles the calls of the module, in its place, by `taeda.compile` with these arguments.

        Raises:
            NotImplementedError: A backend is given and `taeda`, whose function it is, is not imported.
        """
        library = sys.modules.get("taeda")
        if library is not None:
            self._compiled_call_impl = library.compile(self._call_impl, *args, **kwargs)
            self._own_hooks()  # plain calls look no further while there is none
        elif "backend" in kwargs:
            raise NotImplementedError(
                f"{type(self).__name__}.compile: backend {kwargs['backend']!r} is run by taeda.compile; import taeda"
            )

    # Copies and pickles

    def __getstate__(self) -> dict[str, Any]:
        return pickled_state(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        take_pickled_state(self, state)

    def __reduce_ex__(self, protocol: Any) -> Any:
        made = super().__reduce_ex__(protocol)
        if isinstance(made, tuple) and len(made) > 2 and is_shown(made[2]):
            return *made[:2], as_pickled(made[2]), *made[3:]
        return made

    # Members

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        return shown_attributes(self)

    @__dict__.setter
    def __dict__(self, values: dict[str, Any]) -> None:
        replace_shown(self, values)

    __setattr__ = set_member

    def __delattr__(self, name: str) -> None:
        if not drop_member(self, name):
            object.__delattr__(self, name)

    @property
    def _parameters(self) -> Members:
        return Members(self, "parameter")

    @_parameters.setter
    def _parameters(self, members: Mapping[str, Any]) -> None:
        replace_members(self, "parameter", members)

    @property
    def _buffers(self) -> Members:
        return Members(self, "buffer")

    @_buffers.setter
    def _buffers(self, members: Mapping[str, Any]) -> None:
        replace_members(self, "buffer", members)

    @property
    def _modules(self) -> Members:
        return Members(self, "module")

    @_modules.setter
    def _modules(self, members: Mapping[str, Any]) -> None:
        replace_members(self, "module", members)

    @property
    def _non_persistent_buffers_set(self) -> set[str]:
        return Hidden(self._buffer_names)

    @_non_persistent_buffers_set.setter
    def _non_persistent_buffers_set(self, names: Iterable[str]) -> None:
        hidden = Hidden(self._buffer_names)
        hidden.clear()
        hidden.update(names)

    def _check_new_name(self, what: str, name: Any, known: dict[str, Any] | None) -> None:
        if self._parameter_names is None:
            raise AttributeError(
                f"register_{what}: cannot assign {what} before Module.__init__() call of {type(self).__name__}"
            )
        if not isinstance(name, str):
            raise TypeError(f"register_{what}: name must be a str, got {type(name).__name__}")
        if "." in name or name == "":
            raise KeyError(f"register_{what}: name must not be empty or contain '.', got {name!r}")
        if name not in known and hasattr(self, name):
            raise KeyError(f"register_{what}: attribute {name!r} already exists in {type(self).__name__}")
        look_behind_property(type(self), name)
        ask_own_lookup(type(self), name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under ``name``; None reserves the name for a parameter that is absent.

        Raises:
            KeyError: The name is taken, empty, or contains a dot.
            TypeError: ``param`` is no Parameter.
            ValueError: ``param`` was computed from others, so it is no leaf.
        """
        self._check_new_name("parameter", name, self._parameter_names)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"register_parameter: cannot assign {type(param).__name__!r} object to parameter {name!r} "
                "(Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"register_parameter: {name!r} is the result of a computation; a parameter must be a leaf"
            )
        if param is not None:
            param = registered("parameter", self, name, param)
        keep_member(self, "parameter", name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is state but not learned; ``persistent`` says whether ``state_dict`` holds it.

        Raises:
            KeyError: The name is taken, empty, or contains a dot.
            TypeError: ``tensor`` is no Tensor.
        """
        self._check_new_name("buffer", name, self._buffer_names)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"register_buffer: {name!r} must be a Tensor or None, got {type(tensor).__name__}"
            )
        if tensor is not None:
            tensor = registered("buffer", self, name, tensor)
        keep_member(self, "buffer", name, tensor, persistent)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule under ``name``.

        Raises:
            KeyError: The name is taken, empty, or contains a dot.
            TypeError: ``module`` is no Module.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"add_module: {name!r} must be a Module or None, got {type(module).__name__}")
        self._check_new_name("module", name, self._module_names)
        if module is not None:
            module = registered("module", self, name, module)
        keep_member(self, "module", name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as ``add_module``."""
        self.add_module(name, module)

    # Walking

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yields (name, submodule) of the direct submodules, each module once."""
        seen: set[int] = set()
        names = tuple(self._module_names)
        values = attributes_with(self, names)
        for name in names:
            module = values[name]
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """Yields the direct submodules, each once."""
        for _name, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yields (dotted name, module) of this module, whose name is ``prefix``, and all below it."""
        memo = set() if memo is None else memo
        waiting: list[tuple[str, Module]] = [(prefix, self)]
        above: list[Module] = []  # of the module that comes next, where it may come more than once
        depths: list[int] = [0]
        while waiting:
            path, module = waiting.pop()
            if not remove_duplicate:
                del above[depths.pop() :]
            if module in memo:
                continue
            if remove_duplicate:
                memo.add(module)
            else:
                if any(module is one for one in above):
                    raise RecursionError(f"named_modules: module {path!r} contains itself")
                above.append(module)
            yield path, module
            names = module._module_names
            values = attributes_with(module, names)
            dot = f"{path}." if path else ""
            for name in reversed(names):
                below = values[name]
                if below is not None:
                    waiting.append((dot + name, below))
                    if not remove_duplicate:
                        depths.append(len(above))

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yields this module and all below it, each once unless ``remove_duplicate`` is False."""
        for _name, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Yields (dotted name, member) of what ``get_members_fn`` gives of each module."""
        seen: set[int] = set()
        if recurse:
            holders = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        else:
            holders = iter([(prefix, self)])
        for path, module in holders:
            for name, member in get_members_fn(module):
                if member is None or (remove_duplicate and id(member) in seen):
                    continue
                seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yields (dotted name, parameter) of this module and, if ``recurse``, of all below it."""
        return self._named_members(_parameters_of, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yields the parameters of this module and, if ``recurse``, of all below it, each once."""
        if self._walks_as_ever(self.named_parameters, Module.named_parameters):
            return _each_member(self, "_parameter_names", recurse)
        return (param for _name, param in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yields (dotted name, buffer) of this module and, if ``recurse``, of all below it."""
        return self._named_members(_buffers_of, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yields the buffers of this module and, if ``recurse``, of all below it, each once."""
        if self._walks_as_ever(self.named_buffers, Module.named_buffers):
            return _each_member(self, "_buffer_names", recurse)
        return (buffer for _name, buffer in self.named_buffers(recurse=recurse))

    def _walks_as_ever(self, method: Any, own: Any) -> bool:
        """Whether a program has put nothing in the place of ``method`` and of what it calls."""
        kind = type(self)
        return (
            getattr(method, "__func__", None) is own
            and kind._named_members is Module._named_members
            and kind.named_modules is Module.named_modules
        )

    def get_submodule(self, target: str) -> Module:
        """Returns the module of dotted name ``target``; AttributeError when a part of the path is missing."""
        module: Module = self
        for part in target.split(".") if target else ():
            found = getattr(module, part, _MISSING)
            if found is _MISSING:
                raise AttributeError(
                    f"get_submodule: {type(module).__name__} has no {part!r} (in {target!r})"
                )
            if not isinstance(found, Module):
                raise AttributeError(f"get_submodule: {part!r} (in {target!r}) is a {type(found).__name__}")
            module = found
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts ``module`` at dotted name ``target``; with ``strict`` there must be one already."""
        if not target:
            raise ValueError("set_submodule: target must not be empty")
        if not isinstance(module, Module):
            raise ValueError(f"set_submodule: module must be a Module, got {type(module).__name__}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and name not in parent._module_names:
            raise AttributeError(f"set_submodule: {type(parent).__name__} has no submodule {name!r}")
        if name not in parent._module_names and hasattr(parent, name):
            raise AttributeError(f"set_submodule: {name!r} of {type(parent).__name__} is no module")
        setattr(parent, name, module)

    def _get_member(self, what: str, target: str) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if name not in getattr(owner, f"_{what}_names"):
            raise AttributeError(f"get_{what}: {type(owner).__name__} has no {what} {name!r} (in {target!r})")
        return attributes(owner)[name]

    def get_parameter(self, target: str) -> Parameter:
        """Returns the parameter of dotted name ``target``; AttributeError when there is none."""
        return self._get_member("parameter", target)

    def get_buffer(self, target: str) -> Tensor:
        """Returns the buffer of dotted name ``target``; AttributeError when there is none."""
        return self._get_member("buffer", target)

    # Modes

    def apply(self, fn: Callable[[Module], Any]) -> Module:
        """Calls ``fn`` on every submodule, children first, then on this module, and returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Module:
        """Switches this module and all below it to training (or, with False, evaluation) behaviour."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: mode must be a bool, got {type(mode).__name__}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Module:
        """Switches this module and all below it to evaluation behaviour."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Sets ``requires_grad`` of every parameter."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradient of every parameter, or fills it with zeros when ``set_to_none`` is False."""
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                with no_grad():
                    param.grad = grad.detach().zero_()

    # Hooks

    def _own_hooks(self) -> HookSet:
        if self._hook_set is None:
            self._hook_set = HookSet()
        return self._hook_set

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, args)`` before forward; what it returns, unless None, replaces the arguments."""
        return self._own_hooks().add_forward_pre(hook, prepend, with_kwargs)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls ``hook(module, args, output)`` after forward; what it returns, unless None, replaces the output."""
        return self._own_hooks().add_forward(hook, prepend, with_kwargs, always_call)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(module, grad_input, grad_output)`` once the gradients of the inputs are known.

        What it returns, unless None, replaces ``grad_input``. Both are tuples with None for what is no tensor.

        Raises:
            RuntimeError: The module has a hook of the other kind.
        """
        return self._add_backward_hook("register_full_backward_hook", hook, True, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Deprecated: calls ``hook(module, grad_input, grad_output)`` with the gradients of the last operation."""
        return self._add_backward_hook("register_backward_hook", hook, False, False)

    def _add_backward_hook(
        self, name: str, hook: Callable[..., Any], full: bool, prepend: bool
    ) -> RemovableHandle:
        hooks = self._own_hooks()
        if hooks.is_full_backward() is not full and hooks.backward:
            raise RuntimeError(
                f"{name}: Cannot use both regular backward hooks and full backward hooks on a single Module"
            )
        return hooks.add_backward(hook, full, prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, grad_output)`` before the module's gradients are computed."""
        return add_hook(self._own_hooks().backward_pre, hook, prepend)

    _forward_pre_hooks = hook_property("forward_pre")
    _forward_hooks = hook_property("forward")
    _backward_pre_hooks = hook_property("backward_pre")
    _backward_hooks = hook_property("backward")
    _forward_pre_hooks_with_kwargs = hook_property("forward_pre_with_kwargs")
    _forward_hooks_with_kwargs = hook_property("forward_with_kwargs")
    _forward_hooks_always_called = hook_property("forward_always_called")

    @property
    def _is_full_backward_hook(self) -> bool | None:
        return None if self._hook_set is None else self._hook_set.is_full_backward()

    def _get_backward_hooks(self) -> tuple[list[Callable[..., Any]], list[Callable[..., Any]]]:
        """The backward hooks that a call meets: the full ones and the deprecated ones."""
        return backward_hooks(*(hooks for hooks in (_everywhere, self._hook_set) if hooks is not None))

    def _get_backward_pre_hooks(self) -> list[Callable[..., Any]]:
        """The hooks before the backward pass that a call meets."""
        sets = [hooks.backward_pre for hooks in (_everywhere, self._hook_set) if hooks is not None]
        return [hook for hooks in sets for hook in hooks.values()]

    def _replicate_for_data_parallel(self) -> Module:
        """A copy without parameters, for programs that share a batch out among replicas and set these themselves."""
        replica = copy.copy(self)
        replica._parameters = {}
        replica._is_replica = True
        return replica

    # Text

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The text between the parentheses of the representation; subclasses return their settings."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indent(repr(module))}" for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        if not lines and not children:
            return f"{self._get_name()}()"
        return "\n  ".join([f"{self._get_name()}(", *lines, *children]) + "\n)"


have_lookup(Module, Module)
_plain_call: Any = Module.__call__


def _call_with_hooks_everywhere(module: Module, input: Any = _MISSING, /, *args: Any, **kwargs: Any) -> Any:
    given = args if input is _MISSING else (input, *args)
    return module._call_in_full(given, kwargs, module._compiled_call_impl)


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")


#: Names under which programs and pickles written for PyTorch look for these.
_IncompatibleKeys = IncompatibleKeys
_WrappedHook = _WrappedHook


def _addindent(s_: str, numSpaces: int) -> str:
    return s_.replace("\n", "\n" + " " * numSpaces)


def _hooks_everywhere() -> HookSet:
    global _everywhere
    if _everywhere is None:
        _everywhere = HookSet()
        _plain_call.__code__ = _call_with_hooks_everywhere.__code__
    return _everywhere


class _Everywhere:
    """All modules, as `HookView` asks one."""

    @property
    def _hook_set(self) -> HookSet | None:
        return _everywhere

    def _own_hooks(self) -> HookSet:
        return _hooks_everywhere()


# PyTorch's names of the hooks for all modules.
_global_forward_pre_hooks = HookView(_Everywhere(), "forward_pre")
_global_forward_hooks = HookView(_Everywhere(), "forward")
_global_backward_pre_hooks = HookView(_Everywhere(), "backward_pre")
_global_backward_hooks = HookView(_Everywhere(), "backward")


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Like ``Module.register_forward_pre_hook``, for all modules."""
    return _hooks_everywhere().add_forward_pre(hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Like ``Module.register_forward_hook``, for all modules."""
    return _hooks_everywhere().add_forward(hook, False, with_kwargs, always_call)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Like ``Module.register_full_backward_hook``, for all modules."""
    return _add_backward_everywhere("register_module_full_backward_hook", hook, True)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Deprecated: like ``Module.register_backward_hook``, for all modules."""
    return _add_backward_everywhere("register_module_backward_hook", hook, False)


def _add_backward_everywhere(name: str, hook: Callable[..., Any], full: bool) -> RemovableHandle:
    hooks = _hooks_everywhere()
    if hooks.is_full_backward() is not full and hooks.backward:
        raise RuntimeError(f"{name}: there are hooks for all modules of the other kind already")
    return hooks.add_backward(hook, full)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Like ``Module.register_full_backward_pre_hook``, for all modules."""
    return add_hook(_hooks_everywhere().backward_pre, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, param)`` when any module registers one; what it returns, unless None, is taken."""
    return add_hook(REGISTRATION_HOOKS["parameter"], hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, buffer)`` when any module registers one; what it returns, unless None, is taken."""
    return add_hook(REGISTRATION_HOOKS["buffer"], hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, submodule)`` when any module registers one; what it returns, unless None, is taken."""
    return add_hook(REGISTRATION_HOOKS["module"], hook)
