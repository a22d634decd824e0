"""Generates autograd's layer: `python tools/codegen/generate_autograd.py --ops DIR --derivatives DIR --out DIR`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import derivatives
import emit_autograd
from generate import write
from schema import DeclarationError, load


def outputs(ops_dir: Path, derivatives_dir: Path) -> dict[str, str]:
    """Path below the output folder -> content."""
    families = load(ops_dir)
    known = derivatives.load(derivatives_dir, {op.name: op for ops in families.values() for op in ops})
    return {f"layer_{family}.cpp": emit_autograd.emit(family, ops, known) for family, ops in families.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=Path, required=True, help="folder of <family>.yaml")
    parser.add_argument("--derivatives", type=Path, required=True, help="folder of derivative formulas")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    arguments = parser.parse_args()
    try:
        files = outputs(arguments.ops, arguments.derivatives)
    except DeclarationError as error:
        print(f"codegen: {error}", file=sys.stderr)
        return 1
    write(files, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
