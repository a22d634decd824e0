"""Holds the provider of one slot against its interface and its behaviour suite."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import numpy as np

import taeda_registry
from taeda_registry.interface import Interface, interface
from taeda_registry.submodules import submodule
from taeda_testing.conformance.capability import Lacks, of_provider
from taeda_testing.conformance.checks import Check, chosen, equal, run_check
from taeda_testing.conformance.devices import load_autograd
from taeda_testing.conformance.report import Item, Report
from taeda_testing.suites import checks_of


def run_provider(
    slot: str, provider: str | None = None, lacks: dict[str, str] | None = None, only: Iterable[str] = ()
) -> Report:
    """Makes a provider the one in force for its slot and runs the slot's suite on it, the other slots as chosen.

    Args:
        slot: name of the slot.
        provider: an installed provider's name or a module; the one in force by default.
        lacks: capabilities that it does not have, with reasons, beside those that it declares itself.
        only: behaviours to run; all when empty.

    Returns:
        The report; its ``core`` score is over the interface's names, ``everything`` also over behaviours.

    Raises:
        taeda_registry.RegistryError: the provider cannot be had, or the slot is in use with another one.
        ValueError: an unknown capability or behaviour.

    Example:
        >>> run_provider("optim").core.percent
        100.0
    """
    if provider:
        taeda_registry.use(slot, provider)
    module = taeda_registry.resolve(slot)
    return check_module(slot, module, taeda_registry.active(slot).name, lacks, only)


def check_module(
    slot: str,
    module: ModuleType,
    name: str | None = None,
    lacks: dict[str, str] | None = None,
    only: Iterable[str] = (),
) -> Report:
    """Holds a module against a slot's interface and suite without making it the provider in force.

    Args:
        slot, lacks, only: as for `run_provider`.
        module: what implements the interface.
        name: how the report calls it; the module's name by default.

    Returns:
        The report.
    """
    missing = Lacks({**_beneath(slot), **of_provider(module, slot), **(lacks or {})})
    subject = f"{slot}:{name or module.__name__}"
    report = Report("provider", subject, _facts(slot, module), missing.declared, core_groups=("interface",))
    declared = interface(slot)
    absent = set(declared.missing(module))
    for required, meaning in declared.required.items():
        item = Item(required, "interface", slot, checks=1, note=meaning)
        item.needs = [required] if required in absent else []
        report.items.append(item.settle())
    for check in chosen([*_imports(declared), *checks_of(slot)], only, "behaviour"):
        report.items.append(_behaviour(check, module, slot, absent, missing))
    return report


def _beneath(slot: str) -> dict[str, str]:
    """What the slots underneath lack, which nobody above can have."""
    if slot == "autograd":
        return {}
    beneath = load_autograd()
    below = ("autograd",) if slot == "tensor" else ("autograd", "tensor")
    for name in below:
        present = taeda_registry.active(name)
        beneath = {**beneath, **(of_provider(present.module, name) if present is not None else {})}
    return beneath


def _behaviour(check: Check, module: ModuleType, slot: str, absent: set[str], lacks: Lacks) -> Item:
    """One check; names that the module does not offer make it missing instead of failed."""
    needs = [covered for covered in check.covers if covered in absent]
    if needs:
        return Item(check.name, "behaviour", slot, needs=needs, note=check.meaning).settle()
    item = run_check(check, lacks, lambda: check.run(module))
    item.family = slot
    return item


def _imports(declared: Interface) -> list[Check]:
    """The check that programs can import the slot's submodules, for slots that have some."""

    def run(module: ModuleType) -> None:
        for name in declared.submodules:
            path = f"{declared.path}.{name}"
            found = _imported(declared, module, name)
            equal(f"import {path}", found, getattr(module, name, None))
            equal(f"further modules of the file of {path}", _copies(found), [])

    meaning = f"Submodules can be imported below `{declared.path}`, and are those of the provider."
    return [Check("imports", meaning, run, declared.submodules)] if declared.submodules else []


def _copies(module: ModuleType | None) -> list[str]:
    """Names of other modules that were made of the same file: their classes are not those of the module."""
    file = vars(module).get("__file__") if module is not None else None
    modules = [(name, item) for name, item in sys.modules.items() if isinstance(item, ModuleType)]
    return [
        name for name, item in modules if file and item is not module and vars(item).get("__file__") == file
    ]


def _imported(declared: Interface, module: ModuleType, name: str) -> ModuleType | None:
    """What `import` finds; for a module that is not in force, or without taeda, what it would find."""
    active = taeda_registry.active(declared.slot)
    if active is not None and active.module is module and find_spec("taeda") is not None:
        return import_module(f"{declared.path}.{name}")
    return submodule(module, name)


def _facts(slot: str, module: ModuleType) -> dict[str, str]:
    return {
        "interface": f"{slot} {taeda_registry.get_slot(slot).interface_text}",
        "module": f"{module.__name__} {getattr(module, '__version__', '')}".strip(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
