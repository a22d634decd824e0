"""Modules inside of PyTorch's packages, by which programs import names that stand in the packages here."""

import importlib
import inspect
import subprocess
import sys

import pytest

import taeda
from taeda import _inner_names


def _same(one, other):
    return one is other or (
        inspect.ismethod(one) and one == other
    )  # methods of devices are bound when asked for


@pytest.mark.parametrize("name", sorted(_inner_names._HOMES))
def test_every_one_has_the_names_of_its_home(name):
    made, home = importlib.import_module(name), importlib.import_module(_inner_names._HOMES[name])
    public = [
        each for each in made.__all__ if f"{name}.{each}" not in sys.modules
    ]  # a module of that name hides it
    assert all(_same(getattr(made, each), getattr(home, each)) for each in public)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        made.nothing  # noqa: B018


def test_names_of_programs():
    from taeda.masked.maskedtensor.core import MaskedTensor
    from taeda.nn.quantized.modules.linear import Linear
    from taeda.profiler.profiler import profile
    from taeda.quantization.observer import MinMaxObserver
    from taeda.utils.data.datapipes.iter.combining import ZipperIterDataPipe

    assert MaskedTensor is taeda.masked.MaskedTensor and Linear is taeda.ao.nn.quantized.Linear
    assert profile is taeda.profiler.profile and MinMaxObserver is taeda.ao.quantization.MinMaxObserver
    assert ZipperIterDataPipe.__name__ == "ZipperIterDataPipe"


def test_under_the_name_torch():
    program = (
        "import sys, taeda; sys.modules['torch'] = taeda; from torch.utils.benchmark.utils.timer import Timer; "
        "import torch.optim._multi_tensor as m; from torch.signal.windows.windows import *; "
        "assert m.Adam is torch.optim.Adam if 'torch' in globals() else m.Adam is taeda.optim.Adam; hann(3)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_what_is_nowhere_is_not_found():
    for name in ("taeda.quantization.nothing", "taeda.optim._nothing", "taeda.masked.maskedtensor.nothing"):
        with pytest.raises(ModuleNotFoundError, match="nothing"):
            importlib.import_module(name)


FUNCTIONS = """
import importlib, sys, types
import taeda
from taeda import _aliases
sys.modules[sys.argv[1]] = taeda
for home, names in _aliases.FUNCTIONS.items():
    home = home.replace("taeda", sys.argv[1])
    for name in names:
        module = importlib.import_module(f"{home}.{name}")
        found = getattr(importlib.import_module(home), name)
        assert isinstance(module, types.ModuleType), module
        assert callable(found) and not isinstance(found, types.ModuleType), found
        assert callable(getattr(module, name, found))
"""


@pytest.mark.parametrize("name", ["taeda", "torch"])
def test_a_module_does_not_hide_the_function_of_its_name(name):
    """In a process of its own, which has imported none before."""
    subprocess.run([sys.executable, "-c", FUNCTIONS, name], check=True)
