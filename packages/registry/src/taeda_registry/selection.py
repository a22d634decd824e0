"""Which provider a slot shall have: program, environment, project file, first party, in this order."""

from __future__ import annotations

import os

from taeda_registry import table
from taeda_registry.errors import RegistryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

PROJECT_FILE = "pyproject.toml"


class Choice:
    """A provider (name or module object) and the place where it was chosen."""

    __slots__ = ("origin", "provider")

    def __init__(self, provider: str | ModuleType, origin: str) -> None:
        self.provider = provider
        self.origin = origin

    @property
    def label(self) -> str:
        """The provider's name as text."""
        return self.provider if isinstance(self.provider, str) else self.provider.__name__


_used: dict[str, Choice] = {}


def use(slot: str, provider: str | ModuleType) -> None:
    """Choose the provider of a slot for this process, before the slot's first use.

    Args:
        slot: Name of the slot.
        provider: Name of an installed provider, the import name of a module, a module object, or ``"taeda"``
            for the first-party provider.

    Raises:
        UnknownSlotError: No such slot.
        RegistryError: The slot is in use already with another provider.
        TypeError: ``provider`` is neither a name nor a module.

    Example:
        >>> import taeda_registry
        >>> taeda_registry.use("optim", "taeda")
    """
    from taeda_registry import resolution

    declared = table.get_slot(slot)
    module_type = type(os)
    if not isinstance(provider, (str, module_type)) or provider == "":
        raise TypeError(
            f"use: provider of slot {slot!r} must be a name or a module, got {type(provider).__name__} {provider!r}"
        )
    choice = Choice(provider, f"taeda_registry.use({slot!r}, ...)")
    present = resolution.active(slot)
    if present is not None and not present.satisfies(choice, declared):
        raise RegistryError(
            f"use: slot {slot!r} is already in use with provider {present.name!r} ({present.module.__name__}), "
            f"chosen by {present.origin}; choose {choice.label!r} before the first use of the slot"
        )
    _used[slot] = choice


def choose(slot: str) -> Choice:
    """Return the choice in force for ``slot``."""
    declared = table.get_slot(slot)
    _check_environment()
    chosen = _used.get(slot)
    if chosen is not None:
        return chosen
    from_environment = os.environ.get(declared.variable, "").strip()
    if from_environment:
        return Choice(from_environment, f"environment variable {declared.variable}")
    from_project = project_choices().get(slot)
    if from_project is not None:
        return Choice(from_project, f"[tool.taeda] in {os.path.abspath(PROJECT_FILE)}")
    return Choice(table.FIRST_PARTY, "default")


def project_choices() -> dict[str, str]:
    """Read ``[tool.taeda]`` of the working directory's project file, if there is one."""
    try:
        with open(PROJECT_FILE, "rb") as file:
            text = file.read()
    except OSError:
        return {}
    if b"taeda" not in text:
        return {}
    import tomllib

    place = os.path.abspath(PROJECT_FILE)
    try:
        tools = tomllib.loads(text.decode("utf-8")).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RegistryError(f"cannot read [tool.taeda] from {place}: {error}") from error
    chosen = tools.get("taeda", {}) if isinstance(tools, dict) else {}
    if not isinstance(chosen, dict):
        raise RegistryError(
            f"[tool.taeda] in {place} must be a table of slots and provider names, got {chosen!r}"
        )
    for slot, provider in chosen.items():
        if not isinstance(provider, str) or not provider:
            raise RegistryError(f"[tool.taeda] in {place}: {slot} must be a provider name, got {provider!r}")
        if slot not in table.slot_names():
            _warn_unknown(f"[tool.taeda] in {place}", "the line", slot)
    return chosen


PREFIX = "TAEDA_"


def _check_environment() -> None:
    """Say once which variables look like a slot's and are none. Others beginning like them are plug-ins' own."""
    own = {table.get_slot(slot).variable for slot in table.slot_names()}
    for variable in os.environ:
        if not variable.startswith(PREFIX) or variable in own:
            continue
        slot = variable.removeprefix(PREFIX).lower()
        if _near(slot, 0.8):
            _warn_unknown(f"environment variable {variable}", "it", slot)


def _near(slot: str, cutoff: float) -> list[str]:
    import difflib

    return difflib.get_close_matches(slot, table.slot_names(), 1, cutoff)


_complained: set[tuple[str, str]] = set()


def _warn_unknown(place: str, what: str, slot: str) -> None:
    """Say once that nothing is chosen by it; no error, as a slot may be declared later."""
    if (place, slot) in _complained:
        return
    _complained.add((place, slot))
    import warnings

    near = _near(slot, 0.6)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known slots: {', '.join(table.slot_names())}"
    warnings.warn(
        f"{place}: no slot is called {slot!r}, {what} has no effect{hint}", RuntimeWarning, stacklevel=3
    )
