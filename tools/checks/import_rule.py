"""Check of the layering: which package may import which sibling, and that nobody imports a rival library.

Run as `python tools/checks/import_rule.py`; prints one line per violation and fails when there is any.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Siblings that each package may import; the others ask the registry for what they need.
ALLOWED: dict[str, frozenset[str]] = {
    "taeda_registry": frozenset(),
    "taeda_tensor_core": frozenset({"taeda_registry"}),
    "taeda_tensor_cuda": frozenset({"taeda_registry", "taeda_tensor_core"}),
    "taeda_autograd": frozenset({"taeda_registry", "taeda_tensor_core"}),
    "taeda_nn": frozenset({"taeda_registry"}),
    "taeda_optim": frozenset({"taeda_registry"}),
    "taeda_data": frozenset({"taeda_registry"}),
    "taeda_multiprocessing": frozenset({"taeda_registry"}),
    "taeda_testing": frozenset({"taeda_registry"}),
    "taeda_distributions": frozenset({"taeda_registry"}),
    "taeda_models": frozenset({"taeda_registry"}),
    "taeda_profiler": frozenset({"taeda_registry"}),
    "taeda": frozenset({"taeda_registry"}),
}
FORBIDDEN = frozenset({"torch", "tensorflow", "jax"})


def imports(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Yield (line, absolute module) for every import, at any depth, also through ``import_module("...")``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, package if node.level else node.module or package
        elif isinstance(node, ast.Call) and _called(node) in {"import_module", "__import__"}:
            argument = node.args[0] if node.args else None
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield node.lineno, argument.value


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def violations(source: str, package: str) -> list[tuple[int, str]]:
    """Return (line, complaint) for every import in ``source`` that ``package`` may not have."""
    complaints = []
    for line, module in imports(source, package):
        top = module.partition(".")[0]
        if top in FORBIDDEN:
            complaints.append((line, f"{package} imports {top}; no package may"))
        elif top in ALLOWED and top != package and top not in ALLOWED[package]:
            complaints.append(
                (line, f"{package} imports its sibling {top}; ask taeda_registry.slots instead")
            )
    return complaints


def undeclared(folder: Path) -> list[str]:
    """Sibling dependencies in a package's metadata that the layering does not have."""
    project = tomllib.loads(folder.joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]
    package = project["name"].replace("-", "_")
    if package == "taeda":  # the meta-package installs everything and imports nothing of it
        return []
    names = (item.split(">")[0].split("=")[0].strip().replace("-", "_") for item in project["dependencies"])
    return [
        f"{package} depends on its sibling {name}"
        for name in names
        if name in ALLOWED and name not in ALLOWED[package]
    ]


def check(root: Path = ROOT) -> list[str]:
    """Return all complaints about the packages below ``root``."""
    complaints = []
    for folder in sorted(root.glob("packages/*")):
        name = folder.name.replace("-", "_")
        package = name if name == "taeda" else f"taeda_{name}"
        if package not in ALLOWED:
            complaints.append(f"{folder.name}: not in the table of tools/checks/import_rule.py")
            continue
        complaints += [f"{folder.name}/pyproject.toml: {text}" for text in undeclared(folder)]
        for file in sorted(folder.glob("src/**/*.py")):
            found = violations(file.read_text(encoding="utf-8"), package)
            complaints += [f"{file.relative_to(root)}:{line}: {text}" for line, text in found]
    return complaints


if __name__ == "__main__":
    problems = check()
    print("\n".join(problems) or "import rule: fine")
    sys.exit(bool(problems))
