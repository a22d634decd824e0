"""Write docs/design/core-operators.md: what a backend must implement, read from the operators' declarations.

python tools/docs/core_operators.py [--check]
"""

# ruff: noqa: E501 (text of the page)
from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
OPS = ROOT / "packages" / "tensor-core" / "ops"
PAGE = ROOT / "docs" / "design" / "core-operators.md"

HEAD = """# What a backend must implement

Written by `tools/docs/core_operators.py` from the declarations in `packages/tensor-core/ops`; edits are lost.

taeda has {total} operators. A backend writes kernels for the {core} core ones below and gets the {rest} others for nothing:
{composites} composites are written in terms of core operators, {views} views never touch an element. {faster} more have a form in terms of
core operators that a kernel may replace. In-place and `out=` forms
need no kernels of their own. `python -m taeda_testing backend mydev` says what is done and what is left.

## What a kernel may rely on, and what it must do

* **structured**: the core has checked the arguments, inferred shapes and dtypes, and made the outputs. A kernel receives outputs, then
  inputs, and fills the outputs. It never allocates or resizes an output and returns nothing.
* **direct**: the result cannot be shaped beforehand, or the operator writes to its first argument. A kernel receives the inputs and
  returns the results; where the declaration says `-> ()` it returns nothing.
* Outputs have their final shape and dtype. They may be non-contiguous (`out=`, in-place), and for element-wise operators an output may
  be the same tensor as an input.
* Inputs have any strides (also negative and zero), may be of 0 dimensions or empty, and may be of another dtype than the output: the
  kernel converts. A number given in place of a tensor (`Operand`) arrives as a 0-d cpu tensor. `Tensor?` may be absent.
* Empty outputs reach kernels of reductions only: those give the neutral element.
* Integer arithmetic wraps. A zero divisor of integers raises ZeroDivisionError; an index out of range raises IndexError. Negative indices
  count from the end in `index`, `index_put_` and `index_fill`; elsewhere they are out of range. float16 and bfloat16 may be computed in
  float32 and rounded once.
* Random operators draw from the generator they are given, or the device's default one, and repeat after `manual_seed`.
* An error leaves the output unspecified and everything else as it was.

How many of them are needed depends on what is run: a kernel that is missing is an error (or, where the user asks for it, a computation
on the cpu) only when its operator is called. Groups are listed in the order in which they are usually written; `copy_same_`, `fill_`
and `cast` come first, since creating, printing and moving tensors needs them.

"""

#: Families in the order in which an author meets them.
ORDER = [
    "cast",
    "creation",
    "arith",
    "compare",
    "unary",
    "reduce",
    "shape",
    "index",
    "linalg",
    "activation",
    "loss",
    "norm",
    "conv",
    "pool",
    "embedding",
    "random",
    "sort",
    "rnn",
    "optim",
]
DECOMPOSITIONS = ROOT / "packages" / "tensor-core" / "src" / "decompose"


def decomposed() -> set[str]:
    """Operators that the core writes in terms of others where a backend has no kernel."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(DECOMPOSITIONS.glob("*.cpp")))
    named = re.findall(r'^TAEDA_DECOMPOSE\(\w+, "([^"]+)"', text, re.MULTILINE)
    return set(named + re.findall(r"^DECOMPOSE\((\w+)\)", text, re.MULTILINE))


def load() -> list[dict]:
    """Records of all families with their family's name."""
    records = []
    for path in sorted(OPS.glob("*.yaml")):
        for record in yaml.safe_load(path.read_text(encoding="utf-8")) or []:
            records.append({"family": path.stem, **record})
    return records


def place(family: str) -> tuple[int, str]:
    """Sort key: known families in ORDER, others behind them by name."""
    return (ORDER.index(family) if family in ORDER else len(ORDER), family)


def sentence(record: dict) -> str:
    """The description up to its example, on one line."""
    text = str(record.get("doc") or "").split("Example:")[0]
    return " ".join(text.split()).replace("|", "\\|")


def schema(record: dict) -> str:
    return str(record["schema"]).replace("|", "\\|")


def table(records: list[dict]) -> list[str]:
    lines = ["| Operator | Kind | What it gives |", "|---|---|---|"]
    for r in sorted(records, key=lambda r: r["op"]):
        lines.append(f"| `{r['op']}`<br>`{schema(r)}` | {r['kind']} | {sentence(r)} |")
    return [*lines, ""]


def page() -> str:
    records = load()
    core = [r for r in records if r.get("core")]
    kinds = {
        kind: [r for r in records if r["kind"] == kind and not r.get("core")]
        for kind in ("composite", "view")
    }
    optional = [r for r in records if r["kind"] in ("structured", "direct") and not r.get("core")]
    numbers = {"total": len(records), "core": len(core), "rest": len(records) - len(core) - len(optional)}
    numbers["faster"] = sum(r["op"] in decomposed() for r in optional)
    lines = [HEAD.format(**numbers, composites=len(kinds["composite"]), views=len(kinds["view"]))]
    for family in sorted({r["family"] for r in core}, key=place):
        lines += [f"## {family}", "", *table([r for r in core if r["family"] == family])]
    known = decomposed()
    faster = [r for r in optional if r["op"] in known]
    lines += ["## Accelerations", ""]
    lines += [
        "Where a backend has no kernel of these, the core computes them in terms of core operators, below the layers and in float32",
        "for halves. One kernel of its own does in one pass what takes several so: how fast these are decides how fast networks train.",
        "",
    ]
    lines += table(faster)
    lines += ["", "## Optional", "", "Without these kernels only the operators themselves are missing.", ""]
    lines += table([r for r in optional if r["op"] not in known])
    lines += ["## What comes for nothing", ""]
    lines += [
        "Composites call other operators, each of which finds its backend by its arguments; gradients follow the same way.",
        "",
    ]
    for kind, title in (("composite", "Composites"), ("view", "Views")):
        names = ", ".join(f"`{r['op']}`" for r in sorted(kinds[kind], key=lambda r: r["op"]))
        lines += [f"**{title}**: {names}.", ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="fail when the page is not current; write nothing"
    )
    text = page()
    if not parser.parse_args().check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(
        f"{PAGE.relative_to(ROOT)} is not current: run python tools/docs/core_operators.py", file=sys.stderr
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
