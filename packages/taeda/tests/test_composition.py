"""What ``import taeda`` offers, composed from stand-in providers in a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import taeda
import taeda_registry

PROVIDERS = {
    "taeda_tensor_core/__init__.py": "Tensor = 'Tensor'\nzeros = 'zeros'\nprint('tensor loaded')",
    "taeda_tensor_core/linalg.py": "norm = 'norm'",
    "taeda_autograd/__init__.py": "import taeda_tensor_core\ngrad = 'grad'\nprint('autograd loaded')",
    "taeda_nn/__init__.py": "Linear = 'Linear'\nsave = 'save'\nload = 'load'",
    "taeda_nn/functional/__init__.py": "relu = 'relu'\nprint('functional loaded')",
    "taeda_nn/functional/norms.py": "",
    "taeda_optim/__init__.py": "SGD = 'SGD'",
    "taeda_optim/lr_scheduler.py": "StepLR = 'StepLR'",
    "taeda_data/__init__.py": "DataLoader = 'DataLoader'",
}


@pytest.fixture
def run(tmp_path):
    for name, source in PROVIDERS.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)

    def run_program(source: str, **environment: str) -> list[str]:
        ours = [str(Path(module.__file__).parents[1]) for module in (taeda, taeda_registry)]
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("TAEDA_", "PYTHON"))}
        result = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(source)],
            env={**clean, "PYTHONPATH": os.pathsep.join([str(tmp_path), *ours]), **environment},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout.splitlines()

    return run_program


def test_import_loads_no_provider(run):
    shown = run("import taeda, sys; print(sorted(name for name in sys.modules if name.startswith('taeda_')))")
    assert shown == [repr(sorted(name for name in REGISTRY_MODULES))]


REGISTRY_MODULES = (
    "taeda_registry",
    "taeda_registry.discovery",
    "taeda_registry.errors",
    "taeda_registry.forks",
    "taeda_registry.resolution",
    "taeda_registry.selection",
    "taeda_registry.table",
)


def test_tensor_names_bring_autograd_along_once(run):
    shown = run("import taeda as torch; print(torch.zeros, torch.Tensor, torch.grad)")
    assert shown == ["tensor loaded", "autograd loaded", "zeros Tensor grad"]


def test_names_are_kept(run):
    assert run("import taeda; taeda.zeros; print('zeros' in vars(taeda))")[-1] == "True"


def test_slots_are_the_providers_own_modules(run):
    shown = run(
        """
        import taeda as torch
        import taeda_nn, taeda_nn.functional, taeda_optim, taeda_data, taeda_autograd
        print(torch.nn is taeda_nn, torch.nn.functional is taeda_nn.functional, torch.optim is taeda_optim)
        print(torch.utils.data is taeda_data, torch.autograd is taeda_autograd)
        """
    )
    assert shown[-2:] == ["True True True", "True True"]


def test_import_statements_in_every_form(run):
    shown = run(
        """
        import taeda.nn.functional as F
        import taeda.optim as optim
        from taeda import nn
        from taeda.nn import functional
        from taeda.optim.lr_scheduler import StepLR
        from taeda.utils.data import DataLoader
        import taeda.linalg
        import taeda.autograd, taeda_nn.functional
        import taeda_nn.functional as original
        print(F is original, F is functional, optim.SGD, nn.Linear, StepLR, DataLoader, taeda.linalg.norm)
        """
    )
    assert shown.count("functional loaded") == 1
    assert shown[-1] == "True True SGD Linear StepLR DataLoader norm"


def test_aliased_modules_keep_their_own_identity(run):
    shown = run(
        """
        import importlib, taeda.nn.functional as F
        print(F.__name__, F.__spec__.name, importlib.reload(F) is F)
        """
    )
    assert shown[-1] == "taeda_nn.functional taeda_nn.functional True"


def test_save_and_load_are_top_level_names(run):
    assert run("import taeda; print(taeda.save, taeda.load)")[-1] == "save load"


def test_other_names_of_nn_are_not(run):
    shown = run("import taeda\ntry:\n    taeda.Linear\nexcept AttributeError as error:\n    print(error)")
    assert "module 'taeda' has no attribute 'Linear'" in shown[-1]


def test_missing_submodule_is_an_import_error(run):
    shown = run("try:\n    import taeda.nothing\nexcept ModuleNotFoundError as error:\n    print(error.name)")
    assert shown[-1] == "taeda.nothing"


def test_tensors_work_without_autograd(run):
    shown = run("import sys; sys.modules['taeda_autograd'] = None\nimport taeda; print(taeda.zeros)")
    assert shown[-1] == "zeros"


def test_broken_autograd_is_shown_but_leaves_tensors_usable(run, tmp_path):
    tmp_path.joinpath("taeda_autograd/__init__.py").write_text("raise OSError('libtorn is torn')")
    shown = run(
        """
        import warnings
        import taeda
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(taeda.zeros)
        print(len(caught), caught[0].message)
        try:
            taeda.autograd
        except ImportError as error:
            print(repr(error.__cause__))
        """
    )
    assert shown[1] == "zeros"
    assert shown[2].startswith("1 slot 'autograd'")
    assert shown[3] == "OSError('libtorn is torn')"


def test_a_swapped_slot_shows_under_the_same_name(run, tmp_path):
    tmp_path.joinpath("lion.py").write_text("SGD = 'lion'")
    assert run("import taeda; print(taeda.optim.SGD)", TAEDA_OPTIM="lion")[-1] == "lion"


IMPORTS = """
from taeda.optim.lr_scheduler import StepLR
import taeda.optim.lr_scheduler as schedules
import taeda, taeda_optim.lr_scheduler
print(StepLR, schedules is taeda_optim.lr_scheduler, taeda.optim.lr_scheduler is schedules)
"""


@pytest.mark.parametrize("file", ["lion/__init__.py", "lion.py"])
def test_a_provider_hands_on_submodules_of_another_package(run, tmp_path, file):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("from taeda_optim import SGD, lr_scheduler")
    assert run(IMPORTS, TAEDA_OPTIM="lion")[-1] == "StepLR True True"


def test_a_providers_own_file_comes_before_its_attribute(run, tmp_path):
    tmp_path.joinpath("lion").mkdir()
    tmp_path.joinpath("lion/lr_scheduler.py").write_text("StepLR = 'own'")
    tmp_path.joinpath("lion/__init__.py").write_text("from taeda_optim import lr_scheduler")
    program = "from taeda.optim.lr_scheduler import StepLR; print(StepLR)"
    assert run(program, TAEDA_OPTIM="lion")[-1] == "own"


def test_modules_below_a_handed_on_one_are_found(run, tmp_path):
    tmp_path.joinpath("mynn").mkdir()
    tmp_path.joinpath("mynn/__init__.py").write_text("from taeda_nn import functional")
    program = """
        import taeda.nn.functional.norms as found, taeda_nn.functional.norms as original
        print(found is original)
        for name in ("taeda.nn.nothing", "taeda.nn.functional.nothing"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                print(error.name)
    """
    assert run(program, TAEDA_NN="mynn")[-3:] == ["True", "taeda.nn.nothing", "taeda.nn.functional.nothing"]


def test_paths_are_those_of_the_interfaces():
    from taeda._aliases import SLOTS
    from taeda_registry.interface import interface

    assert all(SLOTS[interface(slot).path] == slot for slot in SLOTS.values())


def test_a_swapped_tensor_does_not_load_first_party_autograd(run, tmp_path):
    tmp_path.joinpath("pure.py").write_text("zeros = 'pure zeros'")
    assert run("import taeda; print(taeda.zeros)", TAEDA_TENSOR="pure") == ["pure zeros"]


def test_dir_lists_tensors_names_and_modules(run):
    shown = run("import taeda; print({'zeros', 'nn', 'optim', 'autograd', 'utils'} <= set(dir(taeda)))")
    assert shown[-1] == "True"


def test_dir_lists_only_what_is_there_and_public(run):
    # Modules of the package itself, and packages outside the slots, may need more of a provider than a stand-in has.
    source = """
        import taeda
        from taeda import _names
        elsewhere = {*_names.OWN, *_names.OWN_NAMES, *_names.PACKAGES}
        names = [n for n in dir(taeda) if n not in elsewhere]
        print([n for n in names if not hasattr(taeda, n) or n.startswith('_')])
    """
    assert run(source)[-1] == "[]"


def test_devices_are_names_of_the_tensor_slot(run, tmp_path):
    source = """
        import types

        class Devices(types.ModuleType):
            def is_available(self): return True

        def get_device_module(name):
            if name != "fastdev":
                raise RuntimeError(f"unknown device {name!r}")
            return Devices(name)
    """
    tensor = tmp_path / "taeda_tensor_core/__init__.py"
    tensor.write_text(tensor.read_text() + "\n" + textwrap.dedent(source))
    shown = run(
        """
        import taeda as torch
        print(torch.fastdev.is_available(), hasattr(torch, "slowdev"))
        import taeda.fastdev
        from taeda import fastdev
        print(fastdev.is_available())
        """
    )
    assert shown[-2:] == ["True False", "True"]


@pytest.mark.parametrize("slot", ["nn", "optim"])
def test_an_error_about_a_missing_name_names_the_slot(slot):
    with pytest.raises(
        AttributeError, match=rf"module 'taeda_{slot}', the provider of slot '{slot}', .*'Linaer'"
    ):
        getattr(getattr(taeda, slot), "Linaer")  # noqa: B009


PROGRAM = """
import sys
import taeda
kept = taeda.ones(2, requires_grad=True)
for name in list(sys.modules):
    if name.startswith("taeda"):
        del sys.modules[name]
import json.tool  # imports of others go on
print((kept * 2).sum().item())
import taeda as again
layer = again.nn.Linear(2, 1, bias=False)
(layer(again.ones(2)) + kept.sum()).backward()
print(layer.weight.grad.tolist(), kept.grad.tolist(), again is taeda)
"""


def test_programs_that_take_the_library_out_of_the_imported_modules():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (done.stdout.split("\n")[:2], done.returncode) == (["4.0", "[[1.0, 1.0]] [1.0, 1.0] False"], 0), (
        done.stderr
    )


def test_a_star_import_leaves_modules_and_built_in_names_alone():
    """Programs have modules and variables of these names themselves."""
    import builtins
    import types

    found = {}
    exec("from taeda import *", found)
    given = {name for name in found if not name.startswith("_")}
    assert not [name for name in given if isinstance(found[name], types.ModuleType)]
    assert {"Tensor", "arange", "float32", "inf", "load", "manual_seed", "no_grad", "save", "vmap"} <= given
    # Operators, dtypes and `compile` have names of built-in functions in PyTorch too.
    shadowed = {"abs", "all", "any", "bool", "compile", "complex", "float", "hash", "int", "max", "min", "pow", "range",
                "round", "sum"}  # fmt: skip
    assert {name for name in given if hasattr(builtins, name)} <= shadowed
