"""Objects of loaded TorchScript programs: modules, plain objects, named tuples and enumerations."""

from __future__ import annotations

import enum
from collections import namedtuple
from typing import TYPE_CHECKING, Any

from taeda.jit._modules import RecursiveScriptModule, _tell
from taeda_registry.slots import nn, tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taeda.jit._archives._program import Program

#: Attributes of a module that programs may not have, because they are the machinery's.
_MACHINERY = frozenset(vars(nn.Module())) - {"training", "_is_full_backward_hook"}


class LoadedModule(RecursiveScriptModule):
    """A module of a TorchScript archive. Each class of the archive is a class derived from this one."""

    _script_program: Program
    _script_name = ""
    _script_methods: frozenset[str] = frozenset()
    _script_fields: frozenset[str] = frozenset()
    _script_types: dict[str, Any] = {}
    _script_hooks: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def __getattr__(self, name: str) -> Any:
        return super(RecursiveScriptModule, self).__getattr__(name)  # there is no other module behind it

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            _tell(error)
            raise

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What a class that defines none has for it."""
        raise NotImplementedError(f"the script's module {self.original_name} has no method 'forward'")

    @property
    def original_name(self) -> str:
        """Name of the class that was scripted or traced."""
        return self._script_name.rpartition(".")[2]

    @property
    def code(self) -> str:
        """The program of `forward`, as the archive has it."""
        return self._script_program.source(f"{self._script_name}.forward")

    def extra_repr(self) -> str:
        """The name of the module's class."""
        return f"original_name={self.original_name}"

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        return self._modules[index] if isinstance(index, str) else list(self._modules.values())[index]

    def __contains__(self, item: Any) -> bool:
        return item in self._modules

    def __dir__(self) -> list[str]:
        return nn.Module.__dir__(self)  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(
            "a module of a TorchScript archive cannot be pickled; write it with taeda.jit.save, or its state_dict "
            "with taeda.save"
        )

    def __copy__(self) -> Any:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        import copy

        made = memo[id(self)] = type(self).__new__(type(self))
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made


class LoadedObject:
    """An object of a script class that is no module."""

    _script_name = ""
    _script_methods: frozenset[str] = frozenset()
    _script_fields: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"<object of script class {self._script_name}>"


# --- classes, from what the program says of them ---


def module_class(name: str, program: Program, parts: dict[str, Any]) -> type:
    """The class of modules of a name; `parts` are its methods, constants and facts."""
    return type("RecursiveScriptModule", (LoadedModule,), {
        "__module__": "taeda.jit", "_script_name": name, "_script_program": program, **parts
    })  # fmt: skip


def object_class(name: str, program: Program, parts: dict[str, Any]) -> type:
    """The class of other objects."""
    return type(name.rpartition(".")[2], (LoadedObject,), {
        "__module__": "taeda.jit", "_script_name": name, "_script_program": program, **parts
    })  # fmt: skip


def tuple_class(name: str, fields: list[str], defaults: list[Any]) -> type:
    """A class of named tuples."""
    return namedtuple(name.rpartition(".")[2], fields, defaults=defaults, module="taeda.jit")  # type: ignore[no-any-return, misc]


def enum_class(name: str, members: dict[str, Any]) -> type:
    """An enumeration."""
    made: Any = enum.Enum(name.rpartition(".")[2], members, module="taeda.jit")  # type: ignore[misc]
    made._script_name = name
    return made  # type: ignore[no-any-return]


# --- objects, from what the archive says of them ---


def restored(kind: type, state: Any) -> Any:
    """An object of a class in the state that the archive gives it."""
    made = kind.__new__(kind)
    is_module = isinstance(made, LoadedModule)
    if is_module:
        LoadedModule.__init__(made)
    if "__setstate__" in kind._script_methods:  # type: ignore[attr-defined]
        made.__setstate__(state)
    elif isinstance(state, dict):
        for name in sorted(state, key=lambda name: name not in getattr(kind, "_script_parameters", ())):
            (_set_in_module if is_module else setattr)(made, name, state[name])
    if is_module:
        _hook(made)
    return made


def _set_in_module(module: Any, name: str, value: Any) -> None:
    if name in _MACHINERY or not isinstance(name, str):
        raise RuntimeError(f"load: the archive's module has an attribute {name!r}, which no module may have")
    kind = type(module)
    if name in kind._script_parameters:
        module.register_parameter(name, None if value is None else kind._script_program.parameter(value))
    elif name in kind._script_buffers:
        module.register_buffer(name, value)
    elif isinstance(value, nn.Module):
        module.add_module(name, value)
    elif name != "_is_full_backward_hook":
        if type(value) is list:  # a list of parameters holds them, not tensors beside them
            value[:] = map(kind._script_program.known_parameter, value)
        object.__setattr__(module, name, value)


def _hook(module: Any) -> None:
    """Hooks of the program run where the module is called."""
    before, after = type(module)._script_hooks
    for name in before:
        module.register_forward_pre_hook(_before(name))
    for name in after:
        module.register_forward_hook(_after(name))


def _before(name: str) -> Callable[..., Any]:
    return lambda module, given: getattr(module, name)(given)


def _after(name: str) -> Callable[..., Any]:
    return lambda module, given, result: getattr(module, name)(given, result)


# --- what programs do with objects ---


def get(owner: Any, name: str) -> Any:
    """An attribute that the class of an object says it has."""
    kind = type(owner)
    declared = name in getattr(kind, "_script_fields", ()) or name in getattr(kind, "_fields", ())
    if declared or (isinstance(owner, enum.Enum) and name in ("name", "value")):
        return getattr(owner, name)
    if isinstance(owner, LoadedModule) and name in owner._modules:
        return owner._modules[name]
    raise AttributeError(f"the script asks {kind.__name__} for {name!r}, which it does not have")


def set_(owner: Any, name: str, value: Any) -> None:
    """Set an attribute that the class of an object says it has."""
    if name not in getattr(type(owner), "_script_fields", ()):
        raise AttributeError(f"the script sets {name!r} of {type(owner).__name__}, which it does not have")
    setattr(owner, name, value)


def method(owner: Any, name: str) -> Callable[..., Any]:
    """A method that the class of an object says it has, or a tensor's `tolist`."""
    if name in getattr(type(owner), "_script_methods", ()):
        return getattr(owner, name)  # type: ignore[no-any-return]
    if name == "tolist" and isinstance(owner, tensor.Tensor):
        return owner.tolist  # type: ignore[no-any-return]
    raise AttributeError(f"the script calls {name!r} of {type(owner).__name__}, which it does not have")


def new(kind: Any) -> Any:
    """An object of a script class, before its `__init__`."""
    if not (isinstance(kind, type) and issubclass(kind, (LoadedObject, LoadedModule))):
        raise TypeError(f"the script makes an object of {kind!r}")
    return kind.__new__(kind)


def entered(owner: Any) -> Any:
    """What stands behind `with`: an object of a script class."""
    if not {"__enter__", "__exit__"} <= getattr(type(owner), "_script_methods", frozenset()):
        raise TypeError(f"the script enters {type(owner).__name__}, which is no script class for it")
    return owner
