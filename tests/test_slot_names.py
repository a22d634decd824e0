"""The check of what the parts take from the tensor slot sees what it must."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
spec = importlib.util.spec_from_file_location("slot_names", ROOT / "tools" / "checks" / "slot_names.py")
slot_names = importlib.util.module_from_spec(spec)
sys.modules["slot_names"] = slot_names
spec.loader.exec_module(slot_names)

HEAD = "from taeda_nn._bind import op, tensor\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tensor.zeros(1)", [("zeros", True)]),
        ("def f(x):\n    return tensor.randint(3)", [("randint", False)]),
        ('f = op("linear")', [("linear", False)]),
        ("def fill(tensor):\n    return tensor.shape", []),
        ("g = lambda tensor: tensor.shape\nh = tensor.ones", [("ones", True)]),
        ("other.tensor.zeros(1)", []),
    ],
)
def test_uses_are_found(text, expected):
    assert [(use.name, use.at_import) for use in slot_names.uses(HEAD + text)] == expected


def test_names_without_declaration_are_complained_of(tmp_path):
    module = tmp_path / "packages" / "nn" / "src" / "part.py"
    module.parent.mkdir(parents=True)
    module.write_text(HEAD + "a = tensor.known\nb = tensor.unknown\nc = tensor.rare\nd = op('rare')\n")
    found = list(slot_names.complaints(tmp_path, {"known"}, {"rare"}))
    assert len(found) == 2
    assert "part.py:3: 'unknown' of slot 'tensor' is not in its interface" in found[0]
    assert "part.py:4: 'rare' of slot 'tensor' is optional" in found[1]


def test_what_nn_composes_needs_no_declaration(tmp_path):
    package = tmp_path / "packages" / "nn" / "src" / "taeda_nn"
    (package / "_decompose").mkdir(parents=True)
    (package / "_decompose" / "shape.py").write_text('__all__ = ["composed"]\n')
    (package / "part.py").write_text(
        HEAD + "a = op('composed')\nb = op('composed_')\nc = op('known_')\nd = op('other_')\n"
    )
    (complaint,) = slot_names.complaints(tmp_path, {"known"}, set())
    assert "part.py:5: 'other_'" in complaint
