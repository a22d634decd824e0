"""Check that type checkers understand the packages: mypy on the programs in tests/typing and on the stubs.

Run as `python tools/checks/typed_programs.py`; needs mypy and PyYAML.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "packages" / "tensor-core"


def generate(out: Path) -> None:
    """Write the stub of the operators, which a build would install."""
    generator = ROOT / "tools" / "codegen" / "generate.py"
    command = [sys.executable, str(generator), "--ops", str(CORE / "ops"), "--out", str(out)]
    subprocess.run(command, check=True)


def main() -> int:
    """Print mypy's findings; its exit status."""
    generated = CORE / "generated"
    generate(generated)
    package = CORE / "src" / "taeda_tensor_core"
    package.joinpath("_ops.pyi").write_bytes(generated.joinpath("_ops.pyi").read_bytes())
    programs = sorted(ROOT.glob("tests/typing/*.py"))
    stubs = [package / name for name in ("__init__.pyi", "_C.pyi", "_ops.pyi")]
    # Only what is named is held to account; the packages' own code is seen through its annotations.
    options = ["--strict", "--follow-imports=silent", "--python-version=3.11", "--no-error-summary"]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(map(str, sorted(ROOT.glob("packages/*/src"))))}
    command = [sys.executable, "-m", "mypy", *options, *map(str, [*programs, *stubs])]
    status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    print("typed programs: fine" if status == 0 else "typed programs: see above")
    return status


if __name__ == "__main__":
    sys.exit(main())
