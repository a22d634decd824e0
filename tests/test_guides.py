"""Code in the guides is that of the files it is taken from, and the check notices when it is not."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guides" / "replace-a-component.md"


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("guide_code", ROOT / "tools" / "checks" / "guide_code.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_guides_are_up_to_date(check, capsys):
    assert check.main([]) == 0, capsys.readouterr().out


def test_changed_code_is_noticed_and_renewed(check):
    text = GUIDE.read_text()
    spoiled = text.replace("momentum.mul_(beta2)", "momentum.mul_(beta1)")
    assert spoiled != text
    renewed, complaints = check.renewed(spoiled)
    assert renewed == text
    assert complaints == [
        "code differs from examples/plugins/taeda-optim-lion/src/taeda_optim_lion/lion.py Lion._move"
    ]


@pytest.mark.parametrize(
    ("guide", "complaint"),
    [
        ("<!-- code: README.md nothing -->\n```\n```\n", "README.md has no part 'nothing'"),
        ("<!-- code: no/such/file.py -->\n```\n```\n", "no/such/file.py"),
        ("<!-- code: README.md -->\ntext\n", "without a fenced block"),
    ],
)
def test_wrong_places_are_complaints(check, guide, complaint):
    text, complaints = check.renewed(guide)
    assert text == guide
    assert complaint in complaints[0]


def test_marked_parts_of_any_file(check, tmp_path):
    file = tmp_path / "kernel.c"
    file.write_text("int a;\n// begin hello\nint b;\n// end hello\n")
    assert check.excerpt(file, "hello") == "int b;\n"
