"""Tries the guide to adding an operator: its examples go into a copy of the sources, which is built and tested.

Each block of code on the page stands below a line `<!-- add: PATH -->` (a record of a YAML file, put into its place by
name) or `<!-- add: PATH after "TEXT" -->` (or before: lines next to the first line that has TEXT). Run as
`python -m nox -s operators`.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import growth
from new_operator import insert_record

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/guides/add-an-operator.md"
BLOCK = re.compile(
    r'^<!-- add: (?P<path>\S+)(?: (?P<side>after|before) "(?P<text>(?:[^"\\]|\\.)*)")? -->\n```\w+\n(?P<code>.*?)^```$',
    re.S | re.M,
)
COPIED = (*growth.COPIED, "packages/autograd")


def insert_beside(text: str, side: str, line: str, code: str) -> str:
    """The code next to the first line that has the text.

    Raises:
        LookupError: no line has it.
    """
    lines = text.splitlines(keepends=True)
    for i, each in enumerate(lines):
        if line in each:
            at = i + (side == "after")
            return "".join([*lines[:at], code, *lines[at:]])
    raise LookupError(f"no line has {line!r}")


def apply(copy: Path) -> dict[str, dict[str, list[str]]]:
    """Adds what the page shows; what was added, by operator and file."""
    added: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    name = ""
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        path, code = copy / block["path"], block["code"]
        text = path.read_text(encoding="utf-8")
        if block["side"] is None:
            name = re.search(r"^- op: (\S+)", code, re.M)[1]
            text = insert_record(text, code)
        else:
            text = insert_beside(text, block["side"], block["text"].replace('\\"', '"'), code)
        path.write_text(text, encoding="utf-8")
        added[name][block["path"]].append(code)
    return added


def build(copy: Path) -> str:
    """Build the copy's native packages in place; the path that they are found by."""
    growth.build(copy)
    path = growth.import_path(copy, COPIED)
    settings = {"PYTHONPATH": path, "CCACHE_BASEDIR": str(copy), "CCACHE_NOHASHDIR": "1"}
    growth.run(
        sys.executable,
        "setup.py",
        "--quiet",
        "build_ext",
        "--inplace",
        folder=copy / "packages/autograd",
        **settings,
    )
    return path


def main() -> None:
    """Add, build and test; any failure ends the program with an error."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument(
        "--folder", type=Path, help="where to build, kept for the next time; default: a temporary one"
    )
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        copy = (chosen.folder or Path(scratch)).resolve() / "copy"
        growth.copy_sources(copy, COPIED)
        names = " or ".join(apply(copy))
        path = build(copy)
        tests = copy / "packages/testing/tests/test_records.py"
        command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", names, tests)
        growth.run(*command, "-c", copy / "packages/testing/pyproject.toml", PYTHONPATH=path)


if __name__ == "__main__":
    main()
