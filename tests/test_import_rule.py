"""The layering holds, and its check finds what breaks it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[1] / "tools" / "checks" / "import_rule.py"


@pytest.fixture(scope="module")
def rule():
    spec = importlib.util.spec_from_file_location("import_rule", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
