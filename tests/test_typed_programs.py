"""The programs that type checkers are shown (tests/typing, checked by lint) also run; stubs show every public name."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PROGRAMS = sorted(Path(__file__).parent.joinpath("typing").glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_runs(path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", str(path)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


STUBBED = ("taeda_tensor_core", "taeda", "taeda.nn", "taeda.optim", "taeda.distributions", "taeda.models")
# What Python's own modules leave in a namespace.
NO_NAMES = {"TYPE_CHECKING", "annotations"}


def shown_to_checkers(module: str) -> set[str]:
    """The names that a stub, or else the module's source, binds; those of `import *` with them."""
    top, *inner = module.split(".")
    place = Path(find_spec(top).origin).parent.joinpath(*inner)
    files = [
        place / "__init__.pyi",
        place.with_suffix(".pyi"),
        place / "__init__.py",
        place.with_suffix(".py"),
    ]
    tree = ast.parse(next(filter(Path.is_file, files)).read_text(encoding="utf-8"))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            names |= shown_to_checkers(node.module)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name for alias in node.names}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            names |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    return names


@pytest.mark.parametrize("module", STUBBED)
def test_checkers_see_every_public_name(module: str) -> None:
    program = f"import {module} as m; print(*(n for n in getattr(m, '__all__', dir(m)) if n[0] != '_'))"
    listed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert not set(listed.split()) - shown_to_checkers(module) - NO_NAMES
