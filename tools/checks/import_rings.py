"""Check that packages are imported before what is below them, where both import each other.

A package that imports its files at its top has a ring: who imports a file first waits, with the file's lock, for the
package. A thread that imports the package meanwhile waits, with the package's lock, for the file, and Python ends one
of the imports in an error. PyTorch imports nearly all of itself at once; here modules come when they are first used,
which may be in several threads. So an import from outside of the ring takes the package itself first.

Run as `python tools/checks/import_rings.py`; prints one line per violation and fails when there is any.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# Imported by whatever runs, or used by tests and tools in one thread.
SAFE = ("taeda_registry", "taeda_tensor_core", "taeda_testing")


class Import(NamedTuple):
    """One import: the module that has it, what it imports, its line, and whether it stands in a function."""

    module: str
    target: str
    line: int
    late: bool


class Modules:
    """The modules of all packages below a folder, and what they import of one another."""

    def __init__(self, root: Path) -> None:
        self.files = dict(_files(root))
        self.imports = {name: [*self._imports(name, path)] for name, path in self.files.items()}
        self.needs = {name: self._needs(name) for name in self.files}
        self._closures: dict[str, frozenset[str]] = {}

    def _known(self, name: str) -> str:
        while name and name not in self.files:
            name = name.rpartition(".")[0]
        return name

    def _imports(self, module: str, path: Path) -> Iterator[Import]:
        for node, late in _walk(ast.parse(path.read_text(encoding="utf-8")), late=False):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for target in dict.fromkeys(map(self._known, names)):
                if target:
                    yield Import(module, target, node.lineno, late)

    def _needs(self, module: str) -> set[str]:
        early = {one.target for one in self.imports[module] if not one.late}
        return {name for name in (*early, module.rpartition(".")[0]) if name} - {module}

    def closure(self, module: str) -> frozenset[str]:
        """The module and all that it has imported when its functions run."""
        if module not in self._closures:
            seen, waiting = set(), [module] if module else []
            while waiting:
                name = waiting.pop()
                if name not in seen:
                    seen.add(name)
                    waiting += self.needs[name]
            self._closures[module] = frozenset(seen)
        return self._closures[module]

    def before(self, module: str) -> frozenset[str]:
        """What has been imported when a module begins; a package that imports it may have imported no more."""
        parent = module.rpartition(".")[0]
        while parent and module in self.closure(parent):
            module, parent = parent, parent.rpartition(".")[0]
        return self.closure(parent)

    def ring(self, package: str) -> frozenset[str]:
        """What a package imports that imports the package."""
        return frozenset(name for name in self.closure(package) if package in self.closure(name))


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    for source in root.glob("packages/*/src"):
        for path in source.rglob("*.py"):
            parts = path.relative_to(source).with_suffix("").parts
            if parts[0].isidentifier():
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def _walk(node: ast.AST, late: bool) -> Iterator[tuple[ast.AST, bool]]:
    yield node, late
    for child in ast.iter_child_nodes(node):
        typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
        function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        if not typing:
            yield from _walk(child, late or function)


def _enters_badly(modules: Modules, one: Import, package: str, ring: frozenset[str]) -> bool:
    """Whether an import is the first of a ring in its module, and not of the package."""
    if one.target not in ring or one.target == package or one.module in ring:
        return False
    had = modules.closure(one.module) if one.late else modules.before(one.module)
    others = [other for other in modules.imports[one.module] if other.late == one.late]
    nearest = one.line - 6 if one.late else 0  # in a function: on the lines just above
    for other in others:
        if nearest <= other.line <= one.line and (other.target == package or other.target not in ring):
            had |= modules.closure(other.target)
    return package not in had


def check(root: Path = ROOT) -> list[str]:
    """Return all complaints about the packages below ``root``."""
    modules = Modules(root)
    complaints = []
    for package, path in sorted(modules.files.items()):
        ring = modules.ring(package)
        if path.name != "__init__.py" or package in SAFE or package.startswith("taeda_testing."):
            continue
        if min(ring, key=len) != package or len(ring) == 1:
            continue
        for one in (one for imports in modules.imports.values() for one in imports):
            if _enters_badly(modules, one, package, ring):
                complaints.append(
                    f"{one.module}:{one.line}: imports {one.target} before {package}, which imports it"
                )
    return complaints


if __name__ == "__main__":
    problems = check()
    print("\n".join(problems) or "import rings: fine")
    sys.exit(bool(problems))
