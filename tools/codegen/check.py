"""Checks that what is declared of operators agrees: `python tools/codegen/check.py`.

Every operator needs a kernel or an implementation, a derivative or a reason to have none, and a record or a test that
names it. Prints one line per violation and fails when there is any.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import derivatives
import schema
from schema import DeclarationError, Operator

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "packages"

# Operators without a derivative, each with the reason.
WITHOUT_DERIVATIVE = {
    "_fused_adam_": "updates parameters below autograd",
    "_fused_sgd_": "updates parameters below autograd",
}
# Parts of derivatives: not every one can be differentiated again; autograd then names it in an error.
BACKWARD = re.compile(r"_backward$")


def sources(*folders: Path, pattern: str) -> str:
    """All files of these folders as one text."""
    return "\n".join(
        path.read_text(encoding="utf-8") for folder in folders for path in sorted(folder.rglob(pattern))
    )


def check_kernels(ops: list[Operator]) -> list[str]:
    """Operators that nothing computes."""
    core = PACKAGES / "tensor-core" / "src"
    text = sources(core / "cpu", core / "core", core / "composite", pattern="*.cpp")
    kernels = set(re.findall(r"\bop::(\w+)", text))
    functions = set(re.findall(r"\b(\w+)\s*\(", sources(core / "composite", pattern="*.cpp")))
    functions |= set(re.findall(r"\b(\w+)\s*\(", sources(core / "core", pattern="*.cpp")))
    complaints = []
    for op in ops:
        if op.kind in ("structured", "direct") and op.cxx not in kernels:
            complaints.append(f"{op.family}.yaml: {op.name}: no file registers a kernel for op::{op.cxx}")
        if op.kind in ("view", "composite") and op.cxx not in functions:
            complaints.append(f"{op.family}.yaml: {op.name}: nothing defines impl::{op.cxx}")
    return complaints


def check_derivatives(ops: list[Operator], known: set[str]) -> list[str]:
    """Operators with neither a derivative nor a reason, and reasons that are no longer needed."""
    complaints = []
    for op in ops:
        free = op.kind == "composite" or op.name in known
        if op.name in WITHOUT_DERIVATIVE:
            if free:
                complaints.append(f"check.py: {op.name} has a derivative; drop the reason for having none")
        elif not free and not BACKWARD.search(op.name):
            complaints.append(f"{op.family}.yaml: {op.name}: no record in derivatives/{op.family}.yaml")
    gone = WITHOUT_DERIVATIVE.keys() - {op.name for op in ops}
    return complaints + [f"check.py: {name} is no operator" for name in sorted(gone)]


def check_tests(ops: list[Operator]) -> list[str]:
    """Public operators that neither a record nor a test names."""
    folders = [*PACKAGES.glob("*/tests"), ROOT / "tests", PACKAGES / "testing" / "src"]
    words = set(re.findall(r"\w+", sources(*folders, pattern="*.py")))
    # Layers test their operators under the layer's own name.
    words |= {word.removesuffix("_loss") for word in words}
    complaints = []
    for op in ops:
        names = {*op.names, *(name.rstrip("_") for name in op.names)}
        if op.module == "both" and not BACKWARD.search(op.name) and not names & words:
            complaints.append(f"{op.family}.yaml: {op.name}: neither a record nor a test names it")
    return complaints


def main() -> int:
    """Print what is wrong; the exit status."""
    try:
        families = schema.load(PACKAGES / "tensor-core" / "ops")
        ops = [op for records in families.values() for op in records]
        by_name = {op.name: op for op in ops}
        known = set(derivatives.load(PACKAGES / "autograd" / "derivatives", by_name))
    except DeclarationError as error:
        print(f"check: {error}")
        return 1
    problems = check_kernels(ops) + check_derivatives(ops, known) + check_tests(ops)
    print("\n".join(problems) or f"operators: {len(ops)} declared, all consistent")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
