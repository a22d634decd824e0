"""Classes and functions say the home that PyTorch gives them, where taeda stands under torch's name."""

from __future__ import annotations

import fnmatch
import functools
import importlib
import importlib.util
import json
import subprocess
import sys
import types
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the homes are PyTorch's")
yaml = pytest.importorskip("yaml", reason="the exceptions are YAML")

HERE = Path(__file__).parent


KINDS = (type, types.FunctionType, types.BuiltinFunctionType, functools._lru_cache_wrapper)


@pytest.fixture(scope="module")
def homes():
    """By full name: PyTorch's home and taeda's."""
    place = importlib.util.spec_from_file_location("names_of_pytorch", HERE / "names.py")
    names = sys.modules[place.name] = importlib.util.module_from_spec(place)
    place.loader.exec_module(names)
    asked, theirs = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in ("torch", *names.submodules()):
            try:
                found = importlib.import_module(module)
            except Exception:  # a part that needs what is not installed here
                continue
            for item in names.public(found):
                value = getattr(found, item)
                home = getattr(value, "__module__", None)
                if isinstance(value, KINDS) and isinstance(home, str) and home.startswith("torch"):
                    asked.setdefault(module, []).append(item)
                    theirs[f"{module}.{item}"] = home
    run = subprocess.run(
        [sys.executable, HERE / "homes_worker.py"],
        input=json.dumps(asked), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name: (theirs[name], ours) for name, ours in json.loads(run.stdout).items()}


def test_homes_are_pytorchs_or_have_a_reason(homes):
    reasons = [
        (name, entry["reason"])
        for entry in yaml.safe_load(HERE.joinpath("homes.yaml").read_text())
        for name in entry["names"]
    ]
    other = {name: pair for name, pair in homes.items() if pair[0] != pair[1]}
    unexplained = {
        name: pair
        for name, pair in other.items()
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern, _ in reasons)
    }
    assert not unexplained
    idle = [pattern for pattern, _ in reasons if not any(fnmatch.fnmatchcase(n, pattern) for n in other)]
    assert not idle
    assert len(homes) > 2000
