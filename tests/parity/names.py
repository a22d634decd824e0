"""Which public names of PyTorch taeda has: of `torch`, of `torch.Tensor` and of the public submodules, name by name.

    python tests/parity/names.py                 # counts by module, and the missing names that no reason is given for
    python tests/parity/names.py torch.nn        # the missing names of one module
    python tests/parity/names.py --write         # writes docs/parity_names.md

Reasons of names that are left out on purpose, or for now, stand in names.yaml as shell patterns of full names.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import functools
import importlib
import inspect
import pkgutil
import sys
import types
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import yaml

import taeda

PAGE = Path(__file__).parents[2] / "docs" / "parity_names.md"
REASONS = Path(__file__).with_name("names.yaml")
# Names that a module has from elsewhere, or that are no part of what it offers.
FOREIGN = (
    "typing",
    "collections",
    "abc",
    "enum",
    "functools",
    "contextlib",
    "dataclasses",
    "warnings",
    "typing_extensions",
)


@functools.cache
def reasons() -> list[tuple[str, str]]:
    """Patterns of full names, each with why they are left out."""
    return [
        (name, entry["reason"]) for entry in yaml.safe_load(REASONS.read_text()) for name in entry["names"]
    ]


def reason_for(name: str) -> str | None:
    return next((why for pattern, why in reasons() if fnmatch.fnmatchcase(name, pattern)), None)


def own(module: types.ModuleType, name: str) -> bool:
    """Whether a name is the module's own, not one that it imported to work with."""
    value = getattr(module, name)
    if isinstance(value, types.ModuleType):
        return False
    home = getattr(value, "__module__", None)
    if home is None or not isinstance(home, str):
        return not inspect.isclass(value)
    return home.partition(".")[0] not in FOREIGN and home.startswith(("torch", "builtins"))


def public(module: types.ModuleType) -> list[str]:
    """The names that a module offers: its `__all__`, else its own names without an underscore."""
    listed = getattr(module, "__all__", None)
    if listed is not None and module is not torch:
        return sorted(name for name in listed if hasattr(module, name))
    names = (name for name in dir(module) if not name.startswith("_"))
    return sorted(name for name in names if own(module, name))


def submodules(package: str = "torch") -> list[str]:
    """The public modules below a package, without those that a reason leaves out or that cannot be imported here."""
    try:
        path = importlib.import_module(package).__path__
    except Exception:  # a part that needs what is not installed here
        return []
    found = []
    for info in pkgutil.iter_modules(path, package + "."):
        if info.name.rpartition(".")[2].startswith("_") or reason_for(info.name + ".*") is not None:
            continue
        found += [info.name, *(submodules(info.name) if info.ispkg else [])]
    return found


@dataclass
class Part:
    """A module or class: how many of its names taeda has, and the others."""

    name: str
    present: int = 0
    missing: list[str] = field(default_factory=list)

    @property
    def unexplained(self) -> list[str]:
        return [n for n in self.missing if reason_for(f"{self.name}.{n}") is None]

    def line(self) -> str:
        total = self.present + len(self.missing)
        listed = len(self.missing) - len(self.unexplained)
        return f"{self.name}: {self.present} of {total}" + (f", {listed} listed" if listed else "")


def counterpart(name: str) -> Any:
    """What taeda calls torch's module of that name; None if there is none."""
    with contextlib.suppress(
        ImportError
    ):  # a function may hide its module's name, as `autograd.gradcheck` does
        return importlib.import_module("taeda" + name.removeprefix("torch"))
    found: Any = taeda
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def compare(name: str, theirs: Any, names: list[str]) -> Part:
    ours, part = counterpart(name), Part(name)
    for item in names:
        if ours is not None and hasattr(ours, item):
            part.present += 1
        else:
            part.missing.append(item)
    return part


def parts() -> list[Part]:
    """Every public part of PyTorch."""
    methods = [n for n in dir(torch.Tensor) if not n.startswith("_") or n.startswith("__")]
    inherited = set(dir(object)) | {"__module__", "__dict__", "__weakref__", "__torch_dispatch__"}
    found = [
        compare("torch", torch, public(torch)),
        compare("torch.Tensor", torch.Tensor, [n for n in methods if n not in inherited]),
    ]
    for name in submodules():
        try:
            module = importlib.import_module(name)
        except Exception:  # a part that needs what is not installed here
            continue
        if names := public(module):
            found.append(compare(name, module, names))
    return found


def page(found: list[Part]) -> str:
    lines = [
        "# Names of PyTorch",
        "",
        "Written by `python tests/parity/names.py --write` (`nox -s parity`): the public names of PyTorch 2.13, by",
        "module, and which of them taeda has. Reasons stand in `tests/parity/names.yaml`; names without one are still",
        "to be done.",
        "",
        "| module | present | names | missing with a reason | missing |",
        "|---|---|---|---|---|",
    ]
    for p in found:
        total, rest = p.present + len(p.missing), len(p.unexplained)
        lines.append(f"| {p.name} | {p.present} | {total} | {len(p.missing) - rest} | {rest} |")
    lines += ["", "## Reasons", "", "| names | reason |", "|---|---|"]
    for entry in yaml.safe_load(REASONS.read_text()):
        lines.append(f"| {', '.join(f'`{n}`' for n in entry['names'])} | {entry['reason']} |")
    lines += ["", "## Missing", ""]
    for p in found:
        if p.unexplained:
            lines.append(f"* **{p.name}**: {', '.join(p.unexplained)}")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", help="only these modules, with their names in full")
    parser.add_argument("--write", action="store_true", help="write docs/parity_names.md")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [p for p in parts() if not options.modules or p.name in options.modules]
    for p in found:
        print(p.line())
        if p.unexplained:
            print("   ", ", ".join(p.unexplained))
    total = sum(p.present + len(p.missing) for p in found)
    rest = sum(len(p.unexplained) for p in found)
    print(f"{sum(p.present for p in found)} of {total} names; {rest} missing without a reason")
    if options.write:
        PAGE.write_text(page(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
