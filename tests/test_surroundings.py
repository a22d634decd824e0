"""Programs in unusual surroundings: a locale of plain ASCII, bytecode without docstrings, ignored signals."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# A locale whose encoding has no letters but ASCII's, and where text read or written in it is an error.
ASCII = {
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONWARNDEFAULTENCODING": "1",
    "PYTHONWARNINGS": "error::EncodingWarning",
}


def run(tmp_path: Path, source: str, *options: str, **environment: str) -> str:
    """What a program prints."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(source), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *options, str(program)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_files_of_the_library_do_not_depend_on_the_locale(tmp_path, monkeypatch):
    source = """
        import locale, sys
        import taeda as torch

        class Checked(torch.nn.Module):
            def forward(self, x):
                torch._assert(x.sum() > 0, "größer als null")
                return x + 1

        torch.fx.symbolic_trace(Checked()).to_folder("written", "Checked")
        sys.path.insert(0, ".")
        from written import Checked
        assert Checked()(torch.ones(2)).tolist() == [2, 2]
        try:
            Checked()(-torch.ones(2))
        except AssertionError as error:
            assert str(error) == "größer als null", ascii(error)
        assert torch.func.vmap(torch.sin)(torch.zeros(2)).tolist() == [0, 0]
        print(locale.getencoding())
    """
    monkeypatch.chdir(tmp_path)
    assert run(tmp_path, source, **ASCII) == "ANSI_X3.4-1968\n"


@pytest.fixture
def rules():
    spec = importlib.util.spec_from_file_location("house_rules", ROOT / "tools" / "checks" / "house_rules.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_repositorys_check_finds_locks_that_fork_does_not_know(rules):
    breaches = "a = threading.Lock()\nclass A:\n    b: Any = threading.RLock()\nc = threading.Condition()"
    assert rules.kept_locks(breaches) == [1, 3, 4]
    assert (
        rules.kept_locks("a = held_at_fork(threading.Lock())\ndef f(self):\n    self.a = threading.Lock()")
        == []
    )
    assert rules.kept_locks(f"{breaches}\nos.register_at_fork(after_in_child=f)") == []


def test_the_repositorys_check_finds_references_to_notes_that_are_not_there(rules):
    there = {"a.h": "/// Note [Long\n/// titles]\n/// text", "b.py": '"""Note [Short]. Text"""'}
    asked = {"c.cpp": "// see Note [Long titles]; Note [Short] too", "d.md": "(`Note [Gone]` in a.h)"}
    assert rules.lost_notes({**there, **asked}) == ["d.md: there is no Note [Gone]"]


def test_the_repositorys_check_finds_text_in_the_locales_encoding(rules):
    breaches = [
        "open(a)",
        "open(a, 'w')",
        "open(a, mode='r')",
        "p.read_text()",
        "p.write_text('x', errors='replace')",
    ]
    sound = ["open(a, 'rb')", "open(a, encoding='utf-8')", "p.read_text(encoding='ascii')", "Image.open(a)"]
    assert rules.by_locale("\n".join([*breaches, *sound])) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("options", [(), ("-O",), ("-OO",)], ids=" ".join)
def test_bytecode_without_docstrings_and_assertions(tmp_path, options):
    source = """
        import sys
        import taeda as torch
        import taeda_testing.conformance
        from taeda._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode

        report = taeda_testing.conformance.run_provider("optim", only=["plain descent"])
        assert report.passed or sys.exit("plain descent")
        with FakeTensorMode():
            x = torch.ones(3)
            try:
                x.nonzero()
            except DynamicOutputShapeException as error:
                print(error)
    """
    text = "nonzero: the shape of the result hangs on elements, which a fake tensor does not have\n"
    assert run(tmp_path, source, *options).endswith(text)
