"""Changes of a module in several steps that happen as a whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda_nn._hooks import HookSet
from taeda_nn.modules._state import attributes

if TYPE_CHECKING:
    from taeda_nn._bind import Tensor
    from taeda_nn.modules.module import Module

_BOOKS = ("_parameter_names", "_buffer_names", "_module_names")


class Whole:
    """Gives modules back their members, hooks and attributes when its block does not come to its end.

    Ctrl-C may end it anywhere, and so may what a program's own methods raise.

    Args:
        *modules: The modules that the block changes.
        data: Tensors whose memory it exchanges.
    """

    def __init__(self, *modules: Module, data: tuple[Tensor, ...] = ()) -> None:
        self._data = [(one, one.data) for one in data]
        self._modules = [(one, type(one), dict(attributes(one)), _tables(one)) for one in modules]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            return
        for module, owner, before, tables in self._modules:
            if type(module) is not owner:
                module.__class__ = owner
            for table, held in tables:
                table.clear()
                table.update(held)
            values = attributes(module)
            values |= before  # first, so that no name is without a value
            for name in values.keys() - before.keys():
                del values[name]
        for tensor, data in self._data:
            tensor.data = data


def _tables(module: Module) -> list[tuple[Any, Any]]:
    """What is looked up in a module beside its attributes, each with what it holds now."""
    values, hooks = attributes(module), module._hook_set
    found = [values[book] for book in _BOOKS]
    found += [] if hooks is None else [getattr(hooks, kind) for kind in HookSet.attributes]
    found += (module._state_hooks or {}).values()
    return [(table, table.copy()) for table in found]
