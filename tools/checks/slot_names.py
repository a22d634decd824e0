"""Checks that nn, optim and data use of the tensor slot only what its interface declares.

A provider with the required names can then never be refused: the optional ones are asked for by the functions that need
them, when they are called, and whatever else a part would like to have it asks for with something in its place: an
operator (``op("name")``) that nn has a decomposition of, ``getattr(tensor, "name", default)``, ``hasattr``.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("nn", "optim", "data")
DECOMPOSITIONS = "packages/nn/src/taeda_nn/_decompose"
INTERFACE = ROOT / "packages/registry/src/taeda_registry/interfaces/tensor.toml"


@dataclass(frozen=True)
class Use:
    """A name that is taken from the slot without a fallback, and whether that happens at import."""

    line: int
    name: str
    at_import: bool


class Reader(ast.NodeVisitor):
    """Collects the uses of one module; a parameter called as the slot hides it."""

    def __init__(self, slots: set[str]) -> None:
        self.slots = slots
        self.depth = 0
        self.uses: list[Use] = []

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        arguments = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        hidden = self.slots & arguments
        self.slots -= hidden
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1
        self.slots |= hidden

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and node.value.id in self.slots:
            self.uses.append(Use(node.lineno, node.attr, self.depth == 0))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        plain = isinstance(node.func, ast.Name) and node.func.id == "op" and len(node.args) == 1
        if plain and isinstance(node.args[0], ast.Constant):
            # What `op` returns for a name that is not there complains when it is called.
            self.uses.append(Use(node.lineno, node.args[0].value, False))
        self.generic_visit(node)


def uses(text: str) -> list[Use]:
    """What a module takes from the tensor slot."""
    tree = ast.parse(text)
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module)
    slots = {
        item.asname or item.name
        for node in imports
        if node.module.endswith(("slots", "_bind"))
        for item in node.names
        if item.name == "tensor"
    }
    reader = Reader(slots)
    reader.visit(tree)
    return reader.uses


def decomposed(root: Path) -> set[str]:
    """Operators that nn composes where a provider lacks them."""
    names: set[str] = set()
    for path in sorted((root / DECOMPOSITIONS).glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                names |= set(ast.literal_eval(node.value))
    return names


def complaints(root: Path, required: set[str], optional: set[str]) -> Iterator[str]:
    """One line for each name that is used otherwise than the interface says."""
    composed = decomposed(root)
    in_place = {f"{name}_" for name in composed | required}
    for part in PARTS:
        for path in sorted((root / "packages" / part / "src").rglob("*.py")):
            for use in uses(path.read_text(encoding="utf-8")):
                place = f"{path.relative_to(root)}:{use.line}: {use.name!r} of slot 'tensor'"
                if use.name in required | composed | in_place or use.name.startswith("__"):
                    continue
                if use.name not in optional:
                    yield f"{place} is not in its interface"
                elif use.at_import:
                    yield f"{place} is optional, so it cannot be asked for at import"


def main() -> int:
    """Print what is wrong; the exit status."""
    content = tomllib.loads(INTERFACE.read_text(encoding="utf-8"))
    found = list(complaints(ROOT, set(content["required"]), set(content["optional"])))
    print("\n".join(found) or "slot names: all declared")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
