"""A sandbox in which stand-in providers are 'installed' and a fresh interpreter uses them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import taeda_registry


class Sandbox:
    """A folder of importable modules and distributions, and a way to run programs that see them."""

    def __init__(self, root: Path) -> None:
        self.site = root / "site"
        self.work = root / "work"
        self.site.mkdir()
        self.work.mkdir()

    def module(self, name: str, source: str = "") -> None:
        """Write a module, for instance ``"pkg.part"``."""
        path = self.site.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))

    def distribution(
        self, name: str, version: str, entry_points: dict[str, str], group: str = "taeda.components"
    ) -> None:
        """Write the metadata of a distribution with entry points in a group."""
        folder = self.site / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        folder.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = [f"{key} = {value}" for key, value in entry_points.items()]
        folder.joinpath("entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the interpreter with ``arguments`` in the sandbox."""
        source = Path(taeda_registry.__file__).parents[1]
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("TAEDA_", "PYTHON"))}
        # -S with an explicit path would lose the environment's packages; the sandbox comes first instead.
        path = os.pathsep.join([str(self.site), str(source)])
        return subprocess.run(
            [sys.executable, *arguments],
            env={**clean, "PYTHONPATH": path, **environment},
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def program(self, source: str, **environment: str) -> str:
        """Run a program that must succeed; return what it printed."""
        result = self.run("-c", textwrap.dedent(source), **environment)
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    def failure(self, source: str, **environment: str) -> str:
        """Run a program that must raise; return its traceback."""
        result = self.run("-c", textwrap.dedent(source), **environment)
        assert result.returncode == 1, result.stdout
        return result.stderr


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """An empty sandbox."""
    return Sandbox(tmp_path)


@pytest.fixture
def lion(sandbox: Sandbox) -> Sandbox:
    """A sandbox in which a provider called ``lion`` is installed for slot ``optim``."""
    sandbox.module("lion_optim", "NAME = 'lion'\n__taeda_interface__ = {'optim': '1.3'}\n")
    sandbox.distribution("lion-optim", "2.5", {"optim.lion": "lion_optim"})
    return sandbox
