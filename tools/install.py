"""Build and install the repository's packages, in dependency order, into the running interpreter's environment.

python tools/install.py                       every package whose needs are met here
python tools/install.py --editable nn optim   these and what they depend on, importable from the source tree
python tools/install.py --wheels dist         keep the wheels in dist/
python tools/install.py --with test           also what the packages' tests need
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Package:
    """One package of the repository, as its pyproject.toml describes it."""

    folder: Path
    name: str
    build_requirements: tuple[str, ...]
    requirements: tuple[str, ...]
    extras: dict[str, list[str]]
    needs: tuple[str, ...] = ()  # programs without which it is built only when it is named

    @classmethod
    def read(cls, folder: Path) -> Package:
        """Read a package's description."""
        content = tomllib.loads(folder.joinpath("pyproject.toml").read_text(encoding="utf-8"))
        project = content["project"]
        return cls(
            folder,
            project["name"],
            tuple(content["build-system"]["requires"]),
            tuple(project.get("dependencies", ())),
            project.get("optional-dependencies", {}),
            tuple(content.get("tool", {}).get("taeda-install", {}).get("needs", ())),
        )


def requirement_name(requirement: str) -> str:
    """The normalised distribution name at the head of a requirement."""
    return re.sub(r"[-_.]+", "-", re.match(r"[A-Za-z0-9._-]+", requirement).group()).lower()


def read_packages() -> dict[str, Package]:
    """All packages of the repository by distribution name."""
    found = (Package.read(file.parent) for file in sorted(ROOT.glob("packages/*/pyproject.toml")))
    return {package.name: package for package in found}


def in_order(packages: dict[str, Package], wanted: list[str], extras: list[str]) -> list[Package]:
    """The wanted packages and the siblings they need, dependencies first."""
    order: list[Package] = []
    open_names: list[str] = []

    def visit(name: str) -> None:
        package = packages[name]
        if package in order:
            return
        if name in open_names:
            raise SystemExit(f"packages depend on each other in a circle: {' -> '.join([*open_names, name])}")
        open_names.append(name)
        for requirement in (*package.requirements, *package.build_requirements):
            if requirement_name(requirement) in packages:
                visit(requirement_name(requirement))
        open_names.pop()
        order.append(package)

    for name in wanted:
        visit(name)
    # What only an extra needs may depend on the package itself, so it comes afterwards.
    for requirement in third_party_of_extras(order, extras):
        if requirement_name(requirement) in packages:
            visit(requirement_name(requirement))
    return order


def third_party_of_extras(order: list[Package], extras: list[str]) -> list[str]:
    """Requirements of the named extras of all packages in ``order``."""
    return [item for package in order for extra in extras for item in package.extras.get(extra, ())]


def outsiders(packages: dict[str, Package], requirements: list[str]) -> list[str]:
    """Requirements that are not packages of this repository, each once."""
    return sorted({item for item in requirements if requirement_name(item) not in packages})


def pip(*arguments: str) -> None:
    """Run pip in this environment; end the program when it fails."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    print("+", " ".join(command), flush=True)
    status = subprocess.run(command, check=False).returncode
    if status != 0:
        raise SystemExit(status)


def install_editable(package: Package) -> None:
    """Install a package so that its source tree is what gets imported."""
    pip("install", "--no-build-isolation", "--no-deps", "--editable", str(package.folder))


def install_wheel(package: Package, wheels: Path) -> None:
    """Build a package's wheel into ``wheels`` and install it, replacing what is there."""
    stem = package.name.replace("-", "_")
    for old in wheels.glob(f"{stem}-*.whl"):
        old.unlink()
    pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(wheels), str(package.folder))
    built = next(wheels.glob(f"{stem}-*.whl"))
    pip("install", "--no-deps", "--force-reinstall", str(built))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        prog="python tools/install.py",
    )
    parser.add_argument(
        "packages", nargs="*", metavar="PACKAGE", help="folder or distribution name; default: all"
    )
    parser.add_argument("--editable", action="store_true", help="install the source trees instead of copies")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="keep the wheels that are built in DIR")
    parser.add_argument(
        "--with", dest="extras", action="append", default=[], metavar="EXTRA", help="also install an extra"
    )
    options = parser.parse_args(arguments)
    if options.editable and options.wheels:
        parser.error("--editable and --wheels exclude each other")
    return options


def select(packages: dict[str, Package], names: list[str]) -> list[str]:
    """Translate folder or distribution names into distribution names."""
    by_folder = {package.folder.name: name for name, package in packages.items()}
    unknown = [name for name in names if name not in by_folder and name not in packages]
    if unknown:
        raise SystemExit(f"unknown package {', '.join(unknown)}; there are: {', '.join(by_folder)}")
    if names:
        return [by_folder.get(name, name) for name in names]
    return [name for name, package in packages.items() if has_needs(package)]


def has_needs(package: Package) -> bool:
    """Whether the programs that a package needs are here; says what it is left out for."""
    absent = [program for program in package.needs if shutil.which(program) is None]
    if absent:
        print(f"{package.name} is left out: there is no {', '.join(absent)}; name it to build it", flush=True)
    return not absent


def main(arguments: list[str] | None = None) -> None:
    """Install what the command line asks for."""
    options = parse(arguments)
    packages = read_packages()
    order = in_order(packages, select(packages, options.packages), options.extras)
    needs = [item for package in order for item in (*package.build_requirements, *package.requirements)]
    pip("install", *outsiders(packages, needs + third_party_of_extras(order, options.extras)))
    with tempfile.TemporaryDirectory() as scratch:
        wheels = options.wheels.resolve() if options.wheels else Path(scratch)
        wheels.mkdir(parents=True, exist_ok=True)
        for package in order:
            if options.editable:
                install_editable(package)
            else:
                install_wheel(package, wheels)


if __name__ == "__main__":
    main()
