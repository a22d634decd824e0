"""Which attributes of a module are parameters, buffers and submodules (see Note in module.py)."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from taeda_nn._bind import Tensor
from taeda_nn.modules._state import Stateful
from taeda_nn.parameter import Buffer, Parameter

if TYPE_CHECKING:
    from taeda_nn.modules.module import Module

_KINDS = ("parameter", "buffer", "module")


class Members(MutableMapping):
    """Live, ordered view of a module's members of one kind."""

    __slots__ = ("_kind", "_module")

    def __init__(self, module: Module, kind: str) -> None:
        self._module, self._kind = module, kind

    @property
    def _names(self) -> dict[str, Any]:
        return self._module.__dict__[f"_{self._kind}_names"]

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._module.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        _claim(self._module, name, self._kind)
        self._names.setdefault(name, True if self._kind == "buffer" else None)
        self._module.__dict__[name] = value

    def __delitem__(self, name: str) -> None:
        del self._names[name]
        del self._module.__dict__[name]

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._names))

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def items(self) -> Any:
        """The members as a list of (name, value), taken now."""
        values = self._module.__dict__
        return [(name, values[name]) for name in self._names]

    def values(self) -> Any:
        """The members as a list, taken now."""
        values = self._module.__dict__
        return [values[name] for name in self._names]

    def __repr__(self) -> str:
        return repr(dict(self.items()))


def _claim(module: Module, name: str, kind: str) -> None:
    """Makes ``name`` free for a member of ``kind`` by forgetting it as one of another kind."""
    values = module.__dict__
    for other in _KINDS:
        if other != kind:
            values[f"_{other}_names"].pop(name, None)


def _kind_of(value: Any) -> str | None:
    if isinstance(value, Parameter):
        return "parameter"
    if isinstance(value, Stateful):  # every Module is, and nothing else
        return "module"
    return "buffer" if isinstance(value, Buffer) else None


def set_member(module: Module, name: str, value: Any) -> None:
    """Assigns an attribute: members are registered, other values must not replace a member of another type."""
    values = module.__dict__
    kind = _kind_of(value)
    if "_parameter_names" not in values:
        if kind is not None:
            raise AttributeError(
                f"cannot assign {kind} {name!r}: call super().__init__() of {type(module).__name__} first"
            )
        object.__setattr__(module, name, value)
    elif kind == "parameter":
        _claim(module, name, kind)
        if name in values["_parameter_names"]:
            values[name] = value
        else:
            values.pop(name, None)
            module.register_parameter(name, value)
    elif kind == "module":
        _claim(module, name, kind)
        values["_module_names"].setdefault(name)
        values[name] = value
    elif name in values["_parameter_names"]:
        _must_be(module, name, value, None, "parameter", "Parameter")
    elif name in values["_module_names"]:
        _must_be(module, name, value, None, "module", "Module")
    elif name in values["_buffer_names"]:
        _must_be(module, name, value, Tensor, "buffer", "Tensor")
        if kind == "buffer":
            values["_buffer_names"][name] = value.persistent
    elif kind == "buffer":
        values.pop(name, None)
        module.register_buffer(name, value, value.persistent)
    else:
        object.__setattr__(module, name, value)


def _must_be(module: Module, name: str, value: Any, allowed: type | None, kind: str, expected: str) -> None:
    if value is not None and (allowed is None or not isinstance(value, allowed)):
        raise TypeError(
            f"{type(module).__name__}.{name} is a {kind}: expected a {expected} or None, got {type(value).__name__}"
        )
    module.__dict__[name] = value
