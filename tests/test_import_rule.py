"""The layering holds, nothing enters a ring of imports but by its package, and the checks find what breaks that."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

CHECKS = Path(__file__).resolve().parents[1] / "tools" / "checks"


def _check(name: str):
    spec = importlib.util.spec_from_file_location(name, CHECKS / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rule():
    return _check("import_rule")


@pytest.fixture(scope="module")
def rings():
    return _check("import_rings")


def test_all_packages_keep_the_rule(rule):
    assert rule.check() == []


@pytest.mark.parametrize(
    "source",
    [
        "import taeda_tensor_core",
        "import taeda_tensor_core.linalg as linalg",
        "from taeda_autograd import grad",
        "def late():\n    from taeda_optim import SGD",
        "import importlib\nimportlib.import_module('taeda_data')",
        "if TYPE_CHECKING:\n    from taeda_tensor_core import Tensor",
        "import torch",
        "from torch.nn import functional",
    ],
)
def test_breaches_in_nn_are_found(rule, source):
    assert len(rule.violations(source, "taeda_nn")) == 1


@pytest.mark.parametrize(
    "source",
    [
        "from taeda_registry.slots import tensor, autograd",
        "from . import functional",
        "from .modules import Linear",
        "import taeda_nn.functional",
        "import numpy, math",
        "name = 'taeda_tensor_core'",
    ],
)
def test_what_nn_may_do_is_not_complained_about(rule, source):
    assert rule.violations(source, "taeda_nn") == []


def test_arrows_point_one_way(rule):
    for package, allowed in rule.ALLOWED.items():
        assert all(package not in rule.ALLOWED[below] for below in allowed), package


def test_no_ring_is_entered_but_by_its_package(rings):
    assert rings.check() == []


@pytest.mark.parametrize(
    ("source", "bad"),
    [
        ("from ring.part import f", True),
        ("import ring.part", True),
        ("def late():\n    from ring.part import f", True),
        ("def late():\n    from ring import g\n    from ring.part import f", False),
        ("from ring import g\nfrom ring.part import f", False),
        ("import beside\nfrom ring.part import f", False),
        ("from ring import part", False),
        ("from ring.alone import h", False),
        ("if TYPE_CHECKING:\n    from ring.part import f", False),
    ],
)
def test_entries_into_rings(rings, tmp_path, source, bad):
    files = {
        "ring/__init__.py": "from ring.part import f\ndef g(): ...",
        "ring/part.py": "def f(): ...",
        "ring/alone.py": "def h(): ...",
        "beside.py": "import ring",
        "enters.py": source,
    }
    for name, text in files.items():
        path = tmp_path / "packages" / "one" / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert len(rings.check(tmp_path)) == bad
