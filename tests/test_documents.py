"""Programs shown in READMEs and guides run as they stand, and print what the comment beside `print` says.

The blocks of one document are one program, in order. What is taken from a file (`<!-- code: -->`) or added to one
(`<!-- add: -->`) is checked elsewhere; a block that cannot run alone says why above it: `<!-- not run: REASON -->`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(?:^<!-- (code|add|not run): [^\n]*-->\n+)?^```python\n(.*?)^```$", re.M | re.S)
SHOWN = re.compile(r"^print\(.*\)  # (.+)$", re.M)


def program(document: Path) -> str:
    """The blocks of a document that are to be run."""
    found = BLOCK.findall(document.read_text(encoding="utf-8"))
    return "\n".join(code for kind, code in found if not kind)


DOCUMENTS = sorted(
    path
    for pattern in ("README.md", "packages/*/README.md", "examples/**/README.md", "docs/**/*.md")
    for path in ROOT.glob(pattern)
    if program(path)
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_programs_run(document, tmp_path):
    code = program(document)
    named = set(re.findall(r"^(?:import|from) (taeda_\w+)", code, re.M))
    plugins = {name: next(ROOT.glob(f"examples/plugins/*/src/{name}"), None) for name in named}
    path = [str(folder.parent) for folder in plugins.values() if folder]
    absent = sorted(name for name in named if not plugins[name] and find_spec(name) is None)
    if absent:
        pytest.skip(f"{', '.join(absent)} is not installed")
    file = tmp_path / "program.py"
    file.write_text(code, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "TAEDA_EXTENSIONS_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(file)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    for text in SHOWN.findall(code):
        assert text in done.stdout.splitlines(), done.stdout


def test_documents_are_found():
    assert ROOT / "README.md" in DOCUMENTS
    assert len(DOCUMENTS) > 10
