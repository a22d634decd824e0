"""Run the examples of PyTorch's own docstrings in both libraries and tell which fail, or give another value, in taeda.

    python tests/parity/docstrings.py                    # the failures by kind, and the counts
    python tests/parity/docstrings.py torch.nn           # only examples of names that begin so
    python tests/parity/docstrings.py --write            # writes the table of docs/parity_programs.md

Nothing of the docstrings is kept: they are read from the installed PyTorch. Why an example differs on purpose stands in
docstrings.yaml, as shell patterns of the documented names.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
WORKER = HERE / "docstring_worker.py"
REASONS = HERE / "docstrings.yaml"
PAGE = HERE.parents[1] / "docs" / "parity_programs.md"
TABLE = "## Examples of PyTorch's documentation\n"
# PyTorch runs twice: what its own seeds change is compared in dtype and shape alone.
RUNS = {"torch": ("torch", 0), "again": ("torch", 1), "taeda": ("taeda", 0)}


@dataclass
class Finding:
    """The first statement of an example that taeda refuses or answers otherwise."""

    name: str
    kind: str
    statement: str
    text: str


def reason_for(name: str) -> str | None:
    entries = yaml.safe_load(REASONS.read_text()) if REASONS.exists() else []
    return next((e["reason"] for e in entries for n in e["names"] if fnmatch.fnmatchcase(name, n)), None)


def close(mine: Any, theirs: Any, again: Any) -> bool:
    """Whether two descriptions agree; numbers of tensors count only where PyTorch gives them twice."""
    if isinstance(theirs, list) and theirs[:1] == ["tensor"]:
        if not isinstance(mine, list) or mine[:4] != theirs[:4]:
            return False
        if theirs[4] is None or mine[4] is None or not (isinstance(again, list) and again == theirs):
            return True
        return all(near(a, b) for a, b in zip(mine[4], theirs[4], strict=True))
    if isinstance(theirs, list):
        pairs = again if isinstance(again, list) and len(again) == len(theirs) else theirs
        return (
            isinstance(mine, list)
            and len(mine) == len(theirs)
            and all(close(*three) for three in zip(mine, theirs, pairs, strict=True))
        )
    if theirs != again or "torch" in str(theirs):
        return type(mine) is type(theirs)
    if isinstance(theirs, float):
        return isinstance(mine, float | int) and near(mine, theirs)
    return bool(mine == theirs)


def near(mine: float, theirs: float) -> bool:
    if math.isnan(theirs) or math.isinf(theirs):
        return str(mine) == str(theirs)
    return math.isclose(mine, theirs, rel_tol=1e-4, abs_tol=1e-5)


def compare(example: dict[str, Any], found: dict[str, list[Any]]) -> Finding | None:
    """The first difference that is not PyTorch's own failure."""
    for number, theirs in enumerate(found["torch"]):
        source = example["statements"][number]
        mine = found["taeda"][number] if number < len(found["taeda"]) else ["error", "Died", "nothing came"]
        if theirs[0] == "error":
            refused = theirs[1] not in ("NameError", "ModuleNotFoundError", "ImportError", "TimeoutError")
            if refused and mine[0] != "error":
                return Finding(example["name"], "accepted", source, f"{theirs[1]}: {theirs[2]}")
            continue
        if mine[0] == "error":
            return Finding(example["name"], "failed", source, f"{mine[1]}: {mine[2]}")
        again = found["again"][number] if number < len(found["again"]) else ["error"]
        if theirs[0] == "value" and not close(mine[1:], theirs[1:], again[1:]):
            return Finding(
                example["name"], "value", source, f"{str(mine[1])[:150]} not {str(theirs[1])[:150]}"
            )
    return None


def results(only: list[str], folder: Path) -> tuple[list[dict[str, Any]], list[Finding]]:
    """All examples that were run, and what differs."""
    listed = folder / "examples.json"
    subprocess.run([sys.executable, "-W", "ignore", str(WORKER), "collect", str(listed)], check=True)
    examples = [e for e in json.loads(listed.read_text()) if not only or e["name"].startswith(tuple(only))]
    listed.write_text(json.dumps(examples))
    for run, (library, seed) in RUNS.items():
        (folder / run).mkdir(exist_ok=True)
        command = [
            sys.executable,
            "-W",
            "ignore",
            str(WORKER),
            library,
            str(listed),
            str(folder / run),
            str(seed),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    findings = []
    for number, example in enumerate(examples):
        found = {run: json.loads((folder / run / f"{number}.json").read_text()) for run in RUNS}
        finding = compare(example, found)
        if finding is not None:
            findings.append(finding)
    return examples, findings


def table(examples: list[dict[str, Any]], findings: list[Finding]) -> str:
    """The part of the page that is written anew."""
    listed = [f for f in findings if reason_for(f.name) is not None]
    rest = [f for f in findings if reason_for(f.name) is None]
    statements = sum(len(e["statements"]) for e in examples)
    lines = [
        TABLE,
        "Written by `python tests/parity/docstrings.py --write`: the examples in the docstrings of the installed",
        "PyTorch 2.13, each in a process of its own in both libraries, statement by statement.",
        "",
        f"{len(examples)} examples with {statements} statements; {len(examples) - len(findings)} agree, {len(listed)} "
        f"differ for a reason that is listed, {len(rest)} for none.",
        "",
        "| differ | examples | reason |",
        "|---|---|---|",
    ]
    by_reason: dict[str, list[str]] = {}
    for f in listed:
        by_reason.setdefault(str(reason_for(f.name)), []).append(f.name)
    lines += [f"| {len(names)} | {', '.join(names)} | {why} |" for why, names in sorted(by_reason.items())]
    # Without the path of a file, which is one machine's.
    texts = [re.sub(r" \(/[^)]*\)?", "", f.text)[:120] for f in rest]
    lines += [
        f"| 1 | {f.name} | none: {f.kind}: {text} |".replace("\n", " ")
        for f, text in zip(rest, texts, strict=True)
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="only examples of names that begin so")
    parser.add_argument("--write", action="store_true", help="write the table of docs/parity_programs.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        examples, findings = results(options.names, Path(folder))
    unexplained = [f for f in findings if reason_for(f.name) is None]
    for f in sorted(unexplained, key=lambda f: (f.kind, f.text)):
        print(f"{f.kind}: {f.name}\n    {f.statement}\n    {f.text}")
    kinds = Counter(f.kind for f in unexplained)
    print(f"{len(examples)} examples, {len(findings) - len(unexplained)} listed; {dict(kinds)} unexplained")
    if options.write:
        PAGE.write_text(PAGE.read_text().partition(TABLE)[0] + table(examples, findings))
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
