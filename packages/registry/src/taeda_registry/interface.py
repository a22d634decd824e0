"""Interfaces: the names a provider of a slot must offer, and how a module is held against them."""

from __future__ import annotations

from taeda_registry.errors import RegistryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


class Interface:
    """Required names of one slot with their meaning.

    Attributes:
        slot: Name of the slot.
        version: ``(major, minor)``; a name added raises minor, a name removed or changed raises major.
        required: Dotted name to its meaning, for instance ``{"Optimizer.step": "apply one update ..."}``.
    """

    __slots__ = ("required", "slot", "version")

    def __init__(self, slot: str, version: tuple[int, int], required: dict[str, str]) -> None:
        self.slot = slot
        self.version = version
        self.required = required

    def missing(self, module: ModuleType) -> list[str]:
        """Return the required names that ``module`` does not offer, in the interface's order."""
        return [name for name in self.required if not _has(module, name)]


def interface(slot: str) -> Interface:
    """Read the interface of a slot from ``interfaces/<slot>.toml``.

    Raises:
        RegistryError: The slot has no documented interface.
    """
    import tomllib
    from importlib.resources import files

    file = files("taeda_registry").joinpath("interfaces", f"{slot}.toml")
    if not file.is_file():
        raise RegistryError(f"slot {slot!r} has no documented interface to check against")
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    major, minor = (int(part) for part in content["version"].split("."))
    return Interface(slot, (major, minor), dict(content["required"]))


def _has(module: ModuleType, dotted: str) -> bool:
    from importlib import import_module

    value: object = module
    for part in dotted.split("."):
        if not hasattr(value, part) and hasattr(value, "__path__"):
            # A required submodule counts whether or not the package imports it by itself.
            try:
                import_module(f"{value.__name__}.{part}")
            except ModuleNotFoundError:
                return False
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True
