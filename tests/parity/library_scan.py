"""Which names of PyTorch installed libraries use that taeda does not have, read from their sources.

    python tests/parity/library_scan.py kornia gpytorch      # the missing names, with counts, by library
    python tests/parity/library_scan.py --folder PATH        # of every package in a folder
    python tests/parity/library_scan.py --all kornia         # those under `try`, too

Nothing of the libraries runs. A name counts when it is reached from an import: `torch.linalg.svd`, `F.relu` after
`import torch.nn.functional as F`, `from torch.optim import Adam`, `import torch.nn.modules.loss`. Attributes of other
objects count when PyTorch's tensors have them, taeda's do not, and nothing else in the standard library is likely to.
Keyword arguments count when PyTorch's function takes them and taeda's, written in Python, does not.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import importlib
import importlib.util
import inspect
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MISSING = object()


@functools.cache
def value(dotted: str) -> Any:
    """The object of a dotted name; MISSING if there is none."""
    head, *parts = dotted.split(".")
    found: Any = importlib.import_module(head)
    path = head
    for part in parts:
        path += "." + part
        try:
            found = getattr(found, part)
        except Exception:  # a lazy name may fail in any way
            with contextlib.suppress(Exception):
                found = importlib.import_module(path)
                continue
            return MISSING
    return found


def ours(dotted: str) -> str:
    return "taeda" + dotted.removeprefix("torch")


def _of_torch(node: ast.ImportFrom) -> bool:
    return node.level == 0 and (node.module or "").partition(".")[0] == "torch"


class Uses(ast.NodeVisitor):
    """The names of one file that are reached from imports of torch, the attributes of anything, and keywords."""

    def __init__(self, tree: ast.AST) -> None:
        self.aliases: dict[str, str] = {}
        self.names: Counter[tuple[str, bool]] = Counter()
        self.attributes: Counter[str] = Counter()
        self.keywords: Counter[tuple[str, str]] = Counter()
        self._guards = 0
        for node in ast.walk(tree):
            self._bind(node)
        self.visit(tree)

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for item in node.names:
                if item.name.partition(".")[0] == "torch":
                    self.aliases[item.asname or "torch"] = item.name if item.asname else "torch"
        elif isinstance(node, ast.ImportFrom) and _of_torch(node):
            for item in node.names:
                self.aliases[item.asname or item.name] = f"{node.module}.{item.name}"

    def _count(self, name: str) -> None:
        self.names[name, self._guards > 0] += 1

    def visit_Import(self, node: ast.Import) -> None:
        for item in node.names:
            if item.name.partition(".")[0] == "torch":
                self._count(item.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if _of_torch(node):
            for item in node.names:
                self._count(node.module if item.name == "*" else f"{node.module}.{item.name}")

    def visit_Try(self, node: ast.Try) -> None:
        self._guards += 1
        for part in node.body:
            self.visit(part)
        self._guards -= 1
        for part in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(part)

    def visit_If(self, node: ast.If) -> None:
        typing_only = "TYPE_CHECKING" in ast.dump(node.test)
        self._guards += typing_only
        self.generic_visit(node)
        self._guards -= typing_only

    def dotted(self, node: ast.AST) -> str | None:
        """The full name that a chain of attributes stands for, when it begins at an import of torch."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id in self.aliases:
            return ".".join([self.aliases[node.id], *reversed(parts)])
        return None

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self.dotted(node)
        if name is not None:
            if isinstance(node.ctx, ast.Load):
                self._count(name)
            return
        self.attributes[node.attr] += 1
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = self.dotted(node.func)
        if name is not None:
            for keyword in node.keywords:
                if keyword.arg:
                    self.keywords[name, keyword.arg] += 1
        self.generic_visit(node)


@functools.cache
def first_missing(dotted: str) -> str | None:
    """The shortest part of a name that PyTorch has and taeda has not; None when nothing is missing."""
    parts = dotted.split(".")
    for end in range(2, len(parts) + 1):
        part = ".".join(parts[:end])
        theirs = value(part)
        if theirs is MISSING:
            return None  # of another release, or of an object
        if value(ours(part)) is MISSING:
            return part
    return None


@functools.cache
def lacks_keyword(dotted: str, keyword: str) -> bool:
    """Whether PyTorch's function takes an argument that taeda's does not."""
    theirs, mine = value(dotted), value(ours(dotted))
    if mine is MISSING or theirs is MISSING:
        return False
    try:
        parameters = inspect.signature(mine).parameters
        known = inspect.signature(theirs).parameters
    except (TypeError, ValueError):
        return False
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()) or keyword in parameters:
        return False
    return keyword in known


@functools.cache
def tensor_gaps() -> frozenset[str]:
    """Attributes of PyTorch's tensors that taeda's lack."""
    torch, taeda = importlib.import_module("torch"), importlib.import_module("taeda")
    named = (n for n in dir(torch.Tensor) if not n.startswith("__"))
    return frozenset(n for n in named if not hasattr(taeda.Tensor, n))


def sources(path: Path) -> Iterator[Path]:
    for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
        if not {"tests", "test", "testing", "node_modules"} & set(file.relative_to(path.parent).parts[:-1]):
            yield file


def scan(path: Path, everything: bool) -> Counter[str]:
    """The missing names of one library."""
    found: Counter[str] = Counter()
    for file in sources(path):
        try:
            tree = ast.parse(file.read_text(encoding="utf-8", errors="replace"))
        except SyntaxError:
            continue
        uses = Uses(tree)
        for (name, guarded), count in uses.names.items():
            missing = first_missing(name)
            if missing is not None and (everything or not guarded):
                found[missing] += count
        if uses.aliases:
            for name in tensor_gaps() & uses.attributes.keys():
                found[f"Tensor .{name}"] += uses.attributes[name]
        for (name, keyword), count in uses.keywords.items():
            if lacks_keyword(name, keyword):
                found[f"{name}({keyword}=)"] += count
    return found


def folder_of(library: str) -> Path:
    """Where a library's sources stand; it is not imported."""
    spec = importlib.util.find_spec(library)
    if spec is None or spec.origin is None:
        sys.exit(f"{library} is not installed")
    place = Path(spec.origin)
    return place.parent if place.name == "__init__.py" else place


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("libraries", nargs="*", help="names as they are imported")
    parser.add_argument("--folder", type=Path, help="every package and module in it")
    parser.add_argument("--all", action="store_true", help="names under `try` and TYPE_CHECKING too")
    options = parser.parse_args()
    paths = {name: folder_of(name) for name in options.libraries}
    if options.folder:
        paths |= {p.stem: p for p in sorted(options.folder.iterdir()) if p.is_dir() or p.suffix == ".py"}
    totals: Counter[str] = Counter()
    users: defaultdict[str, Counter[str]] = defaultdict(Counter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for library, path in paths.items():
            for name, count in scan(path, options.all).items():
                totals[name] += count
                users[name][library] += count
    for name in sorted(users, key=lambda n: (-len(users[n]), -totals[n], n)):
        print(f"{name}: " + ", ".join(f"{library} {count}" for library, count in users[name].most_common(8)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
