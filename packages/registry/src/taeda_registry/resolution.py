"""From a slot's name to the provider's module: find, import, compare versions, remember."""

from __future__ import annotations

import sys

# Not when it is first needed: threads that import `importlib` and a module below it for the first time at once leave
# Python with a second, unfinished copy of its import system.
from importlib import import_module

from taeda_registry import discovery, table
from taeda_registry.errors import (
    InterfaceMismatchError,
    ProviderFailedError,
    ProviderNotFoundError,
    RegistryError,
)
from taeda_registry.selection import Choice, choose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from taeda_registry.table import Slot

# A provider states the interface it was written for as {slot: "major.minor"} under this name.
INTERFACE_ATTRIBUTE = "__taeda_interface__"


class Active:
    """The provider that a slot resolved to."""

    __slots__ = ("module", "name", "origin", "slot")

    def __init__(self, slot: str, name: str, origin: str, module: ModuleType) -> None:
        self.slot = slot
        self.name = name
        self.origin = origin
        self.module = module

    def satisfies(self, choice: Choice, slot: Slot) -> bool:
        """Whether ``choice`` asks for what is active anyway."""
        if not isinstance(choice.provider, str):
            return choice.provider is self.module
        module = slot.module if choice.provider == table.FIRST_PARTY else choice.provider
        return choice.provider == self.name or module == self.module.__name__


_active: dict[str, Active] = {}


def active(slot: str) -> Active | None:
    """Return what ``slot`` has resolved to, or None while it has not been used."""
    table.get_slot(slot)
    return _active.get(slot)


def resolve(slot: str) -> ModuleType:
    """Return the module that provides ``slot``, importing it at the first call.

    Raises:
        UnknownSlotError: No such slot.
        ProviderNotFoundError: The chosen provider is not installed.
        ProviderFailedError: Importing it raised; the cause is chained.
        InterfaceMismatchError: It implements another major, or an older minor, version of the interface.

    Example:
        >>> import taeda_registry
        >>> taeda_registry.resolve("tensr")
        Traceback (most recent call last):
        taeda_registry.errors.UnknownSlotError: no slot is called 'tensr'; known slots: ...
    """
    present = _active.get(slot)
    if present is not None:
        return present.module
    declared = table.get_slot(slot)
    choice = choose(slot)
    module = load(declared, choice)
    require_interface(declared, choice.label, module)
    # Another thread may have been here meanwhile; everybody shall see the first result.
    return _active.setdefault(slot, Active(slot, choice.label, choice.origin, module)).module


def load(slot: Slot, choice: Choice) -> ModuleType:
    """Import the module that ``choice`` names, without making it active."""
    if not isinstance(choice.provider, str):
        return choice.provider
    if choice.provider == table.FIRST_PARTY:
        return _import(slot, choice, slot.module, slot.distribution)
    found = [item for item in discovery.candidates(slot.name) if item.name == choice.provider]
    if len(found) > 1:
        raise RegistryError(
            f"slot {slot.name!r}: provider {choice.provider!r} (chosen by {choice.origin}) is offered more than once: "
            f"{', '.join(map(repr, found))}; uninstall all but one, or choose a module name"
        )
    if found:
        return _import(slot, choice, found[0].entry_point.value, found[0].distribution)
    if all(part.isidentifier() for part in choice.provider.split(".")):
        return _import(slot, choice, choice.provider, None)
    raise ProviderNotFoundError(_not_found(slot, choice, choice.provider, None))


def require_interface(slot: Slot, provider: str, module: ModuleType) -> None:
    """Refuse a module that says it was written for another major version of the interface of ``slot``.

    One written for an earlier minor version is taken: it lacks some names, and says so where one of them is used.
    """
    stated = stated_interface(slot, provider, module)
    if stated is None or stated[0] == slot.interface[0]:
        return
    remedy = (
        "pip install --upgrade taeda-registry"
        if stated > slot.interface
        else f"pip install --upgrade {distribution_of(module)}"
    )
    raise InterfaceMismatchError(
        f"slot {slot.name!r}: provider {provider!r} ({module.__name__}) implements interface {stated[0]}.{stated[1]}, "
        f"but this taeda-registry needs {slot.interface_text} or another minor version of it; try: {remedy}"
    )


def stated_interface(slot: Slot, provider: str, module: ModuleType) -> tuple[int, int] | None:
    """Return the version of the interface that a provider says it implements, None when it says nothing.

    Raises:
        InterfaceMismatchError: It says it in a form that is no version.
    """
    versions = vars(module).get(INTERFACE_ATTRIBUTE, {})
    if not isinstance(versions, dict):
        raise InterfaceMismatchError(
            f"slot {slot.name!r}: provider {provider!r}: {INTERFACE_ATTRIBUTE} must be a dict from slot to version, "
            f"got {type(versions).__name__}"
        )
    stated = versions.get(slot.name)
    if stated is None:
        return None
    try:
        major, minor = (int(part) for part in str(stated).split("."))
    except ValueError:
        raise InterfaceMismatchError(
            f"slot {slot.name!r}: provider {provider!r} states interface {stated!r}, expected 'major.minor'; "
            f"try: pip install --upgrade {distribution_of(module)}"
        ) from None
    return major, minor


def lag(slot_name: str, module: ModuleType) -> str:
    """Return what to tell about a missing name when the provider's interface is an earlier minor version."""
    slot = table.get_slot(slot_name)
    stated = stated_interface(slot, module.__name__, module)
    if stated is None or stated >= slot.interface:
        return ""
    return (
        f"; it implements interface {stated[0]}.{stated[1]}, the current one is {slot.interface_text}; "
        f"try: pip install --upgrade {distribution_of(module)}"
    )


def _import(slot: Slot, choice: Choice, target: str, distribution: str | None) -> ModuleType:
    """Import ``module`` or ``module:attribute`` and translate failures into the registry's errors."""
    module_name, _, attribute = target.partition(":")
    try:
        module = import_module(module_name)
        return getattr(module, attribute) if attribute else module
    except (Exception, SystemExit) as error:
        # A module that ends the interpreter at import must not end everybody's program.
        if _is_absent(error, module_name):
            raise ProviderNotFoundError(_not_found(slot, choice, module_name, distribution)) from error
        remedy = f"; try: pip install --upgrade --force-reinstall {distribution}" if distribution else ""
        raise ProviderFailedError(
            f"slot {slot.name!r}: provider {choice.label!r} (chosen by {choice.origin}) is installed, but loading "
            f"{target!r} raised {type(error).__name__}: {error}{remedy}"
        ) from error


def _is_absent(error: BaseException, module_name: str) -> bool:
    """Whether an import failed because the module itself, not something it needs, does not exist."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return False
    return module_name == error.name or module_name.startswith(error.name + ".")


def _not_found(slot: Slot, choice: Choice, module_name: str, distribution: str | None) -> str:
    installed = [repr(item) for item in discovery.candidates(slot.name)]
    if module_exists(slot.module):
        installed.insert(0, f"{table.FIRST_PARTY} ({slot.module})")
    shown = ", ".join(installed) if installed else "none"
    if distribution is None:
        remedy = _remedy(slot, choice)
    elif choice.provider == table.FIRST_PARTY:
        remedy = f"pip install {distribution}"
    else:
        remedy = f"pip install --force-reinstall {distribution}"
    return (
        f"slot {slot.name!r}: provider {choice.label!r} (chosen by {choice.origin}) was not found: there is no module "
        f"{module_name!r}; installed providers: {shown}; try: {remedy}"
    )


def _remedy(slot: Slot, choice: Choice) -> str:
    """What helps against a provider's name that nothing answers to."""
    import difflib

    names = [item.name for item in discovery.candidates(slot.name)]
    present = [table.FIRST_PARTY, *names] if module_exists(slot.module) else names
    near = difflib.get_close_matches(choice.label, present, 1)
    package = f"pip install the package that provides {choice.label!r}"
    if near:
        return f"{near[0]!r}, which is installed, or {package}"
    if present:
        return f"{' or '.join(map(repr, present))}, which {'are' if names else 'is'} installed, or {package}"
    return f"{package}, or the first-party one: pip install {slot.distribution}"


def module_exists(module_name: str) -> bool:
    """Whether a module could be imported; packages around it are, it is not."""
    from importlib.util import find_spec

    try:
        return module_name in sys.modules or find_spec(module_name) is not None
    except (ImportError, ValueError):
        return False


def distribution_of(module: ModuleType) -> str:
    """Name of the distribution a module came with, for use in a pip command."""
    from importlib.metadata import packages_distributions

    top = module.__name__.partition(".")[0]
    return next(iter(packages_distributions().get(top, ())), top.replace("_", "-"))
