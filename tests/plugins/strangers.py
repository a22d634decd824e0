"""Distributions made on the fly, and programs run with them installed: what the isolation tests are made of."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "plugins"


def abi_version() -> tuple[int, int]:
    """The major and minor version of the C ABI that its header states."""
    import taeda_registry

    header = (Path(taeda_registry.include_dir()) / "taeda" / "abi.h").read_text()
    found = dict(re.findall(r"#define TAEDA_ABI_(MAJOR|MINOR) (\d+)u", header))
    return int(found["MAJOR"]), int(found["MINOR"])


@dataclass
class Site:
    """A folder of installed distributions that a program can be run with.

    Attributes:
        folder: where distributions and modules are written.
        paths: further folders on the program's path.
        missing: modules that the program shall not find.
    """

    folder: Path
    paths: list[Path] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def install(
        self, distribution: str, points: dict[str, dict[str, str]], modules: dict[str, str] | None = None
    ) -> None:
        """Writes a distribution's metadata with entry points by group, and its modules."""
        info = self.folder / f"{distribution.replace('-', '_')}-1.2.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        lines = []
        for group, entries in points.items():
            lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        for name, source in (modules or {}).items():
            (self.folder / f"{name}.py").write_text(textwrap.dedent(source))

    def provider(self, slot: str, name: str, source: str | None, target: str | None = None) -> str:
        """Installs a provider of one module; None writes no module. Returns the module's name."""
        module = f"stranger_{slot}_{name}"
        modules = {} if source is None else {module: source}
        self.install(
            f"stranger-{slot}-{name}", {"taeda.components": {f"{slot}.{name}": target or module}}, modules
        )
        return module

    def example(self, name: str) -> None:
        """Installs an example plug-in in place, with the entry points of its pyproject.toml."""
        folder = EXAMPLES / name
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        self.install(project["name"], project["entry-points"])
        self.paths.append(folder / "src")

    def run(self, program: str, limit: float = 600, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a program with everything installed here, in an empty working directory, for at most `limit` seconds."""
        work = self.folder / "work"
        work.mkdir(parents=True, exist_ok=True)
        path = [str(self.folder), *map(str, self.paths), os.environ.get("PYTHONPATH", "")]
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("TAEDA_")}
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", _blocker(self.missing) + textwrap.dedent(program)],
            env={**inherited, **environment, "PYTHONPATH": os.pathsep.join(filter(None, path))},
            cwd=work,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )

    def lines(self, program: str, **environment: str) -> list[str]:
        """The output of a program that must end well and print no complaint."""
        result = self.run(program, **environment)
        assert result.returncode == 0, result.stdout + result.stderr
        assert result.stderr == ""
        return result.stdout.splitlines()


def compile_plugin(name: str, folder: Path, *options: str) -> Path:
    """A shared library from packages/tensor-core/tests/abi/<name>.c, compiled against the C ABI's header alone."""
    import taeda_registry

    source = ROOT / "packages" / "tensor-core" / "tests" / "abi" / f"{name}.c"
    library = folder / f"lib{name}.so"
    folder.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
    command += [
        f"-I{taeda_registry.include_dir()}",
        str(source),
        "-o",
        str(library),
        *options,
        "-lm",
        "-lpthread",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return library


def _blocker(missing: list[str]) -> str:
    """Program text that makes some modules impossible to find, as if they were not installed."""
    if not missing:
        return ""
    return textwrap.dedent(
        f"""
        import sys

        class _Absent:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name.partition(".")[0] in {missing!r}:
                    raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

        sys.meta_path.insert(0, _Absent)
        """
    )
