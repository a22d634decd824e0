"""Command line: list slots, providers and devices, explain choices, or hold a provider against its slot's interface."""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import PackageNotFoundError, version

from taeda_registry import RegistryError, get_slot, include_dir, slot_names
from taeda_registry.discovery import candidates, misnamed
from taeda_registry.doctor import devices, report
from taeda_registry.interface import interface
from taeda_registry.resolution import load, require_interface
from taeda_registry.selection import Choice, choose
from taeda_registry.table import FIRST_PARTY, Slot


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m taeda_registry", description=__doc__)
    parser.add_argument("--include", action="store_true", help="print the folder of taeda/abi.h and end")
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("list", help="show slots, providers and versions (the default)")
    check = commands.add_parser("check", help="hold a provider against its slot's interface")
    check.add_argument(
        "provider", metavar="SLOT[:PROVIDER]", help="for instance optim:lion; default: the one in force"
    )
    commands.add_parser("devices", help="show installed devices with their state; none is loaded")
    commands.add_parser("doctor", help="explain what would be chosen and why, and what stands against it")
    options = parser.parse_args(arguments)
    if options.include:
        print(include_dir())
        return 0
    try:
        if options.command == "devices":
            return list_devices()
        if options.command == "doctor":
            return examine()
        return check_provider(options.provider) if options.command == "check" else list_slots()
    except RegistryError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def list_slots() -> int:
    """Print every slot with its providers; a star marks the one in force."""
    for name in slot_names():
        slot = get_slot(name)
        choice = choose(name)
        print(f"{name} (interface {slot.interface_text}): {slot.purpose}")
        rows = [_first_party_row(slot)]
        rows += [
            (item.name, item.entry_point.value, f"{item.distribution} {item.version}")
            for item in candidates(name)
        ]
        if all(choice.label != row[0] for row in rows):
            rows.append((choice.label, choice.label, "not a registered provider"))
        for provider, module, origin in rows:
            mark = "*" if provider == choice.label else " "
            print(f"  {mark} {provider:<16} {module:<24} {origin}")
        if choice.origin != "default":
            print(f"    chosen by {choice.origin}")
    for entry_point in misnamed():
        print(
            f"ignored entry point {entry_point!r}: the name must have the form <slot>.<provider>",
            file=sys.stderr,
        )
    return 0


def list_devices() -> int:
    """Print every installed device; the status is 0 when all are ready."""
    found = devices()
    print("cpu (built in)")
    for device in found:
        print(f"{device.name:<16} {device.module:<24} {device.origin:<24} {device.state}")
    return int(any(device.state != "ready" for device in found))


def examine() -> int:
    """Print what each slot would use and why; the status is 0 when nothing stands against it."""
    status = 0
    for is_problem, line in report():
        print(f"problem: {line}" if is_problem else line)
        status |= is_problem
    return status


def check_provider(text: str) -> int:
    """Print what a provider lacks; the status is 0 when it lacks nothing."""
    slot_name, _, provider = text.partition(":")
    slot = get_slot(slot_name)
    choice = Choice(provider, "the command line") if provider else choose(slot_name)
    module = load(slot, choice)
    require_interface(slot, choice.label, module)
    declared = interface(slot_name)
    missing = declared.missing(module)
    have = len(declared.required) - len(missing)
    print(
        f"{slot_name}:{choice.label} ({module.__name__}): {have} of {len(declared.required)} required names"
    )
    for name in missing:
        print(f"  missing {name}: {declared.required[name]}")
    return 1 if missing else 0


def _first_party_row(slot: Slot) -> tuple[str, str, str]:
    try:
        origin = f"{slot.distribution} {version(slot.distribution)}"
    except PackageNotFoundError:
        origin = f"not installed (pip install {slot.distribution})"
    return FIRST_PARTY, slot.module, origin


if __name__ == "__main__":
    sys.exit(main())
