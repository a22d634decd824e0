"""The check of eager texts finds what a check that holds would make, and lets pass what is written later."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPEC = importlib.util.spec_from_file_location("eager_texts", ROOT / "tools/checks/eager_texts.py")
eager_texts = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(eager_texts)


def test_a_described_tensor_is_found():
    text = '\n  check(t.dim() == 1, ErrorKind::Value, op, ": found ",\n        describe(t));\n'
    assert eager_texts.check_text(text) == [
        "2: a check that holds makes 'describe('; write if (...) fail(...)"
    ]


def test_joined_strings_are_found():
    assert eager_texts.check_text('check(ok, kind, "a" + name);\n')


def test_shapes_and_words_in_literals_pass():
    assert eager_texts.check_text('check(ok, kind, shape_text(sizes), "use describe(t) + more");\n') == []
    assert eager_texts.check_text("if (!ok) fail(kind, describe(t));\n") == []


def test_the_sources_pass():
    assert eager_texts.check() == []
