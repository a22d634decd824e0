"""Modules may be imported in any order: none needs another to have been there first, none defines what another did."""

import importlib.util
import os
import pkgutil
import random
import subprocess
import sys

import pytest

SEED = int(os.environ.get("TAEDA_TEST_SEED", "1"))
PACKAGES = (
    "taeda", "taeda_registry", "taeda_tensor_core", "taeda_autograd", "taeda_nn", "taeda_optim", "taeda_data",
    "taeda_multiprocessing", "taeda_profiler", "taeda_models", "taeda_distributions",
)  # fmt: skip
# Events are written through the package tensorboard, which asks to be installed.
FOREIGN = "taeda.utils.tensorboard"
PROGRAM = """
import importlib, sys, traceback
for name in sys.stdin.read().split():
    try:
        importlib.import_module(name)
    except BaseException:
        print(name, traceback.format_exc())
"""


def modules(package):
    """The names of a package's modules, found without importing any."""
    folders = [(package, list(importlib.util.find_spec(package).submodule_search_locations))]
    while folders:
        parent, paths = folders.pop()
        yield parent
        for found in pkgutil.iter_modules(paths):
            name = f"{parent}.{found.name}"
            if found.ispkg:
                folders.append((name, [f"{path}/{found.name}" for path in paths]))
            elif found.name != "__main__":
                yield name


@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
def test_modules_are_imported_in_any_order(seed):
    names = [name for package in PACKAGES for name in modules(package) if not name.startswith(FOREIGN)]
    assert len(names) > 700
    random.Random(seed).shuffle(names)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input="\n".join(names), capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-2000:]
