"""What is installed, what would be chosen, and why. Nothing is imported for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from taeda_registry import discovery, selection, table
from taeda_registry.errors import RegistryError
from taeda_registry.resolution import module_exists
from taeda_registry.selection import Choice

# Entry points of devices; the tensor core loads them when a device is asked for by its name.
DEVICES = "taeda.backends"


class Device(NamedTuple):
    """A device that some distribution offers.

    Attributes:
        name: As in ``device="name"``.
        module: Where its plug-in is.
        origin: Name and version of the distribution.
        state: "ready", or what stands against it; a device that is ready may still fail to start.
    """

    name: str
    module: str
    origin: str
    state: str


def devices() -> list[Device]:
    """The devices that are installed beside the cpu, in the order of their names.

    Example:
        >>> from taeda_registry.doctor import devices
        >>> [device.state for device in devices() if device.name == "nothing"]
        []
    """
    points = sorted(discovery.installed(DEVICES), key=lambda point: point.name)
    names = [point.name for point in points]
    found = []
    for point in points:
        offered = discovery.Candidate("", point.name, point)
        if not point.name.isidentifier():
            state = "no name for a device: letters, digits and underscores only"
        elif names.count(point.name) > 1:
            state = "offered more than once; uninstall all but one"
        elif not module_exists(point.value.partition(":")[0]):
            state = f"there is no module {point.value!r}; try: pip install --force-reinstall {offered.distribution}"
        else:
            state = "ready"
        found.append(Device(point.name, point.value, f"{offered.distribution} {offered.version}", state))
    return found


def explained(slot_name: str) -> tuple[list[str], list[str]]:
    """What a slot would use and why, and what stands against it, as lines."""
    slot = table.get_slot(slot_name)
    try:
        first, *weaker = _asked(slot_name)
    except RegistryError as error:
        return [f"{slot_name}: undecided"], [str(error)]
    module, origin, problems = _found(slot, first)
    lines = [f"{slot_name}: {first.label} ({module}{origin}), chosen by {first.origin}"]
    lines += [
        f"  stronger than {choice.origin}: {choice.label}" for choice in weaker if choice.origin != "default"
    ]
    return lines, problems


def _asked(slot_name: str) -> list[Choice]:
    """All that was asked for, the strongest first; the default is the last."""
    found = [selection.choose(slot_name)]
    variable = table.get_slot(slot_name).variable
    environment = os.environ.get(variable, "").strip()
    project = selection.project_choices().get(slot_name, "")
    for provider, origin in (
        (environment, f"environment variable {variable}"),
        (project, f"[tool.taeda] in {os.path.abspath(selection.PROJECT_FILE)}"),
    ):
        if provider and origin != found[0].origin:
            found.append(Choice(provider, origin))
    return found


def _found(slot: table.Slot, choice: Choice) -> tuple[str, str, list[str]]:
    """Module and origin of a choice, and what stands against it."""
    if not isinstance(choice.provider, str):
        return choice.label, "", []
    offered = [item for item in discovery.candidates(slot.name) if item.name == choice.provider]
    if choice.provider == table.FIRST_PARTY:
        module, origin, remedy = slot.module, f" of {slot.distribution}", f"pip install {slot.distribution}"
    elif offered:
        first = offered[0]
        module, origin = first.entry_point.value, f" of {first.distribution} {first.version}"
        remedy = f"pip install --force-reinstall {first.distribution}"
    else:
        module, origin = choice.provider, ", no registered provider"
        remedy = "choose another one, or install the package that provides it"
    problems = []
    if len(offered) > 1:
        problems.append(
            f"slot {slot.name!r}: {choice.label!r} is offered more than once: {offered}; uninstall all but one"
        )
    if not module_exists(module.partition(":")[0]):
        problems.append(f"slot {slot.name!r}: there is no module {module!r}; try: {remedy}")
    return module, origin, problems


def report() -> Iterator[tuple[bool, str]]:
    """(is it a problem, a line) of every slot and device."""
    for slot_name in table.slot_names():
        lines, problems = explained(slot_name)
        yield from ((False, line) for line in lines)
        yield from ((True, problem) for problem in problems)
    for name in discovery.misnamed():
        yield True, f"entry point {name!r} is ignored: the name must have the form <slot>.<provider>"
    for device in devices():
        yield (
            device.state != "ready",
            f"device {device.name}: {device.module} of {device.origin}: {device.state}",
        )
