"""Check that every package can be built by strangers: its sdist alone, in isolation, gives the same wheel.

python tools/distributions.py --wheels wheels --out dist [PACKAGE ...]

For each package the sdist is built from the repository, unpacked elsewhere and built into a wheel in an environment
that holds nothing but its declared build requirements; the wheel must have the files of the one in ``--wheels``, which
`python tools/install.py --wheels wheels` has built. Needs `build`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from install import Package, in_order, read_packages, select


def run_build(*arguments: str, wheels: Path) -> None:
    """Run `python -m build`; siblings that are build requirements come from ``wheels``."""
    environment = {**os.environ, "PIP_FIND_LINKS": f"{wheels} {os.environ.get('PIP_FIND_LINKS', '')}".strip()}
    command = [sys.executable, "-m", "build", *arguments]
    print("+", " ".join(command), flush=True)
    if status := subprocess.run(command, env=environment, check=False).returncode:
        raise SystemExit(status)


def files(wheel: Path) -> set[str]:
    """Names in a wheel, but for the list of them."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/RECORD")}


def newest(folder: Path, package: Package, ending: str) -> Path:
    """The distribution of a package in a folder."""
    stem = package.name.replace("-", "_")
    found = sorted(folder.glob(f"{stem}-*{ending}"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise SystemExit(
            f"{folder} has no {stem}-*{ending}; build it with tools/install.py --wheels {folder}"
        )
    return found[-1]


def check(package: Package, wheels: Path, out: Path) -> list[str]:
    """Build a package's sdist and from it a wheel; what the wheel lacks or has too much."""
    run_build("--sdist", "--outdir", str(out), str(package.folder), wheels=wheels)
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(newest(out, package, ".tar.gz")) as archive:
            archive.extractall(scratch, filter="data")
        (source,) = Path(scratch).iterdir()
        run_build("--wheel", "--outdir", str(out), str(source), wheels=wheels)
    expected, built = files(newest(wheels, package, ".whl")), files(newest(out, package, ".whl"))
    missing = [f"{package.name}: the wheel of the sdist lacks {name}" for name in sorted(expected - built)]
    return missing + [
        f"{package.name}: only the wheel of the sdist has {name}" for name in sorted(built - expected)
    ]


def main() -> int:
    """Print what differs; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="default: all")
    parser.add_argument("--wheels", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    packages = read_packages()
    chosen = select(packages, options.packages)
    order = [package for package in in_order(packages, chosen, []) if package.name in chosen]
    problems = []
    for package in order:
        problems += check(package, options.wheels.resolve(), options.out.resolve())
    print("\n".join(problems) or f"distributions: {len(order)} packages build alone, from their sdists")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
