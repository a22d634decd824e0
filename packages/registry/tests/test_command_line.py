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


def test_devices_are_listed_without_loading_any(sandbox):
    sandbox.module("fast_device", "raise RuntimeError('imported')")
    sandbox.distribution("fast", "1.5", {"fast": "fast_device"}, "taeda.backends")
    result = sandbox.run("-m", "taeda_registry", "devices")
    assert result.returncode == 0, result.stderr
    assert "cpu (built in)" in result.stdout
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("fast ")]
    assert line.split() == ["fast", "fast_device", "fast", "1.5", "ready"]


def test_devices_that_cannot_be_say_why(sandbox):
    sandbox.module("twice_device")
    sandbox.distribution("gone", "1.0", {"gone": "gone_device"}, "taeda.backends")
    sandbox.distribution("one", "1.0", {"twice": "twice_device"}, "taeda.backends")
    sandbox.distribution("two", "1.0", {"twice": "twice_device", "my-dev": "twice_device"}, "taeda.backends")
    result = sandbox.run("-m", "taeda_registry", "devices")
    assert result.returncode == 1
    assert "there is no module 'gone_device'; try: pip install --force-reinstall gone" in result.stdout
    assert result.stdout.count("offered more than once; uninstall all but one") == 2
    assert "no name for a device" in result.stdout


def test_the_doctor_explains_choices(lion):
    lion.work.joinpath("pyproject.toml").write_text("[tool.taeda]\noptim = 'taeda'\n")
    result = lion.run("-m", "taeda_registry", "doctor", TAEDA_OPTIM="lion")
    shown = result.stdout.splitlines()
    place = shown.index(
        "optim: lion (lion_optim of lion-optim 2.5), chosen by environment variable TAEDA_OPTIM"
    )
    assert shown[place + 1].startswith("  stronger than [tool.taeda] in ") and shown[place + 1].endswith(
        ": taeda"
    )
    assert any(line.startswith("nn: taeda (taeda_nn of taeda-nn), chosen by default") for line in shown)


def test_the_doctor_finds_what_stands_against_choices(sandbox):
    sandbox.distribution("lion-optim", "2.5", {"optim.lion": "lion_missing", "nonsense": "x"})
    sandbox.distribution("gone", "1.0", {"gone": "gone_device"}, "taeda.backends")
    environment = {"TAEDA_OPTIM": "lion", "TAEDA_DATA": "tiger", "TAEDA_NNN": "x"}
    result = sandbox.run("-m", "taeda_registry", "doctor", **environment)
    assert result.returncode == 1
    problems = [line for line in result.stdout.splitlines() if line.startswith("problem: ")]
    for words in (
        "slot 'optim': there is no module 'lion_missing'; try: pip install --force-reinstall lion-optim",
        "slot 'data': there is no module 'tiger'",
        "entry point 'nonsense' is ignored",
        "device gone: gone_device of gone 1.0: there is no module",
    ):
        assert any(words in line for line in problems), (words, problems)
    assert "environment variable TAEDA_NNN: no slot is called 'nnn'" in result.stderr
    sandbox.work.joinpath("pyproject.toml").write_text("[tool.taeda\n")
    broken = sandbox.run("-m", "taeda_registry", "doctor").stdout
    assert "problem: cannot read [tool.taeda]" in broken


def test_the_doctor_imports_no_provider(sandbox):
    sandbox.module("lion_optim", "raise RuntimeError('imported')")
    sandbox.distribution("lion-optim", "2.5", {"optim.lion": "lion_optim"})
    result = sandbox.run("-m", "taeda_registry", "doctor", TAEDA_OPTIM="lion")
    assert "optim: lion (lion_optim of lion-optim 2.5)" in result.stdout and result.stderr == ""
