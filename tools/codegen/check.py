"""Checks that what is declared of operators agrees: `python tools/codegen/check.py`.

Every operator needs a kernel or an implementation, a derivative or a reason to have none, and a sample record in the
file of its family. Prints one line per violation and fails when there is any.
"""

from __future__ import annotations

import ast
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
    "special_airy_ai": "its derivative is no operator",
} | dict.fromkeys(
    [
        *(f"special_{shifted}chebyshev_polynomial_{k}" for k in "tuvw" for shifted in ("", "shifted_")),
        *(f"special_{name}" for name in ("hermite_polynomial_h", "hermite_polynomial_he")),
        *(f"special_{name}" for name in ("laguerre_polynomial_l", "legendre_polynomial_p")),
    ],
    "PyTorch differentiates no polynomial by its argument",
)
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
    lines = re.findall(r"^TAEDA_\w+\((\w+), \w+, (\w+)", sources(core / "scalar", pattern="*.inc"), re.M)
    kernels |= {name for name, kind in lines if kind != "ByHand"}
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


def recorded(family: str) -> set[str]:
    """Names of the operators that a family's file has records of: the first words of the items of RECORDS.

    Read, not imported: the records need NumPy. An item is a call whose first argument is the name, also behind a star,
    or such a call for each of several names.
    """
    path = PACKAGES / "testing" / "src" / "taeda_testing" / "records" / f"{family}.py"
    if not path.exists():
        return set()
    found = set()
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "RECORDS":
            for item in getattr(statement.value, "elts", []):
                found |= names_of(item.value if isinstance(item, ast.Starred) else item)
    return found


def names_of(item: ast.expr) -> set[str]:
    """The names that one item of RECORDS makes records of."""
    if isinstance(item, ast.GeneratorExp):
        cases = getattr(item.generators[0].iter, "elts", [])
        firsts = [case.elts[0] if isinstance(case, ast.Tuple) else case for case in cases]
    else:
        firsts = item.args[:1] if isinstance(item, ast.Call) else []
    return {first.value for first in firsts if isinstance(first, ast.Constant)}


def check_records(ops: list[Operator]) -> list[str]:
    """Operators without a sample record."""
    known = {family: recorded(family) for family in {op.family for op in ops}}
    return [
        f"{op.family}.yaml: {op.name}: no sample record in taeda_testing/records/{op.family}.py"
        for op in ops
        if op.name.partition(".")[0] not in known[op.family]
    ]


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
    problems = check_kernels(ops) + check_derivatives(ops, known) + check_records(ops)
    print("\n".join(problems) or f"operators: {len(ops)} declared, all consistent")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
