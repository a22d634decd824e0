"""``python -m taeda_registry``."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

import taeda_registry
from taeda_registry.interface import interface


def test_list_shows_slots_providers_and_choice(lion):
    result = lion.run("-m", "taeda_registry", TAEDA_OPTIM="lion")
    assert result.returncode == 0, result.stderr
    for slot in taeda_registry.slot_names():
        assert f"{slot} (interface 1.0)" in result.stdout
    assert "* lion" in result.stdout
    assert "lion-optim 2.5" in result.stdout
    assert "chosen by environment variable TAEDA_OPTIM" in result.stdout


def test_list_imports_no_provider(sandbox):
    sandbox.module("lion_optim", "raise RuntimeError('imported')")
    sandbox.distribution("lion-optim", "2.5", {"optim.lion": "lion_optim", "nonsense": "lion_optim"})
    result = sandbox.run("-m", "taeda_registry", "list")
    assert result.returncode == 0, result.stderr
    assert "lion_optim" in result.stdout
    assert "ignored entry point 'nonsense'" in result.stderr


def test_check_names_what_is_missing(lion):
    result = lion.run("-m", "taeda_registry", "check", "optim:lion")
    assert result.returncode == 1
    assert "missing Optimizer.step: apply one update" in result.stdout


def test_check_of_a_complete_provider(sandbox):
    names = interface("optim").required
    classes = sorted({name.partition(".")[0] for name in names})
    source = "".join(f"class {name}:\n    pass\n" for name in classes)
    source += "".join(f"{name} = print\n" for name in names if "." in name)
    sandbox.module("full_optim", source)
    result = sandbox.run("-m", "taeda_registry", "check", "optim:full_optim")
    assert (
        "9 of 10 required names\n  missing lr_scheduler: module" in result.stdout
    )  # a class cannot be imported
    sandbox.module("full_optim", source + "import types as lr_scheduler\n")
    result = sandbox.run("-m", "taeda_registry", "check", "optim:full_optim")
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(names)} of {len(names)} required names" in result.stdout


def test_check_of_an_absent_provider(sandbox):
    result = sandbox.run("-m", "taeda_registry", "check", "optim:tiger")
    assert result.returncode == 1
    assert result.stderr.startswith("error: slot 'optim': provider 'tiger'")


@pytest.mark.parametrize("slot", taeda_registry.slot_names())
def test_every_slot_documents_its_interface(slot):
    declared = interface(slot)
    assert declared.version == taeda_registry.get_slot(slot).interface
    assert declared.required
    assert all(meaning for meaning in declared.required.values())


def test_every_interface_file_belongs_to_a_slot():
    folder = files("taeda_registry").joinpath("interfaces")
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".toml"))
    assert names == sorted(f"{slot}.toml" for slot in taeda_registry.slot_names())
    for name in names:
        tomllib.loads(folder.joinpath(name).read_text(encoding="utf-8"))
