"""Lazy stand-ins for the active providers: ``from taeda_registry.slots import tensor, nn``.

Importing a stand-in imports nothing. Its first use resolves the slot; each attribute is then kept, so that later
uses cost what an attribute of any module costs.
"""

from __future__ import annotations

from types import ModuleType

from taeda_registry import table
from taeda_registry.resolution import lag, resolve
from taeda_registry.submodules import submodule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["resolve"]

# Asked by tools that inspect modules; they must not trigger an import.
_INSPECTED = frozenset({"__path__", "__wrapped__", "__file__"})


class SlotModule(ModuleType):
    """Stand-in for the module that provides one slot."""

    def __init__(self, slot: str) -> None:
        super().__init__(f"{__name__}.{slot}", f"Lazy stand-in for the provider of slot {slot!r}.")
        self.__dict__["_slot"] = slot

    def __getattr__(self, name: str) -> object:
        if name in _INSPECTED:
            raise AttributeError(name)
        value = _lookup(self._slot, resolve(self._slot), name)
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return dir(resolve(self._slot))

    def __repr__(self) -> str:
        return f"<lazy module of slot {self._slot!r}>"

    def __reduce__(self) -> tuple[object, ...]:
        """Stored by its name."""
        return _stand_in, (self._slot,)


def _stand_in(slot: str) -> object:
    return globals().get(slot) or __getattr__(slot)


def _lookup(slot: str, module: ModuleType, name: str) -> object:
    """Return an attribute of a provider, or its submodule of that name."""
    try:
        return getattr(module, name)
    except AttributeError as error:
        found = submodule(module, name)
        if found is None:
            raise AttributeError(
                f"the provider of slot {slot!r}, module {module.__name__!r}, has no attribute {name!r}"
                f"{lag(slot, module)}",
                name=name,
                obj=module,
            ) from error
        return found


def __getattr__(name: str) -> Any:  # what a provider offers is not known to type checkers
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        slot = table.get_slot(name)
    except table.UnknownSlotError as error:
        raise AttributeError(str(error)) from error
    return globals().setdefault(name, SlotModule(slot.name))


def __dir__() -> list[str]:
    return [*table.slot_names(), "resolve"]
