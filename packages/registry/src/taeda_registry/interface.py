"""Interfaces: the names a provider of a slot must offer, and how a module is held against them."""

from __future__ import annotations

from types import ModuleType

from taeda_registry.errors import RegistryError
from taeda_registry.submodules import submodule


class Interface:
    """Required names of one slot with their meaning.

    Attributes:
        slot: Name of the slot.
        version: ``(major, minor)``; a name added raises minor, a name removed or changed raises major.
        required: Dotted name to its meaning, for instance ``{"Optimizer.step": "apply one update ..."}``.
        path: Where programs import the slot from, for instance ``"taeda.optim"``; empty when nowhere.
        submodules: Those of the required names that are modules: ``import <path>.<name>`` finds them.
    """

    __slots__ = ("path", "required", "slot", "submodules", "version")

    def __init__(
        self,
        slot: str,
        version: tuple[int, int],
        required: dict[str, str],
        path: str = "",
        submodules: tuple[str, ...] = (),
    ) -> None:
        self.slot = slot
        self.version = version
        self.required = required
        self.path = path
        self.submodules = submodules

    def missing(self, module: ModuleType) -> list[str]:
        """Return the required names that ``module`` does not offer, in the interface's order."""
        return [name for name in self.required if not self._offered(module, name)]

    def _offered(self, module: ModuleType, name: str) -> bool:
        if name in self.submodules:
            return submodule(module, name) is not None
        return _has(module, name)


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
    return Interface(
        slot,
        (major, minor),
        dict(content["required"]),
        content.get("path", ""),
        tuple(content.get("submodules", ())),
    )


def _has(module: ModuleType, dotted: str) -> bool:
    value: object = module
    for part in dotted.split("."):
        if hasattr(value, part):
            value = getattr(value, part)
        elif isinstance(value, ModuleType) and (found := submodule(value, part)) is not None:
            # A required submodule counts whether or not the package imports it by itself.
            value = found
        else:
            return False
    return True
