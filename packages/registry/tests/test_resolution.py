"""Resolution of slots: laziness, errors and their causes."""

from __future__ import annotations

import pytest

USE = "from taeda_registry.slots import {slot}; {slot}.anything"


def test_unknown_slot_lists_the_known_ones(sandbox):
    text = sandbox.failure("import taeda_registry; taeda_registry.resolve('optimm')")
    assert (
        "UnknownSlotError: no slot is called 'optimm'; "
        "known slots: tensor, autograd, nn, optim, data, multiprocessing, profiler" in text
    )


@pytest.mark.parametrize(
    ("slot", "module"), [("tensor", "taeda_tensor_core"), ("optim", "taeda_optim"), ("data", "taeda_data")]
)
def test_missing_first_party_provider_names_the_pip_command(sandbox, slot, module):
    block = f"import sys; sys.modules[{module!r}] = None\n"
    text = sandbox.failure(block + USE.format(slot=slot))
    assert f"ProviderNotFoundError: slot '{slot}': provider 'taeda' (chosen by default)" in text
    assert f"'{module}'" in text
    assert f"pip install {module.replace('_', '-')}" in text


def test_missing_chosen_provider_lists_what_is_installed(lion):
    text = lion.failure(USE.format(slot="optim"), TAEDA_OPTIM="tiger")
    assert "provider 'tiger' (chosen by environment variable TAEDA_OPTIM) was not found" in text
    assert "lion (lion_optim, from lion-optim 2.5)" in text
    assert text.rstrip().endswith(
        "; try: 'taeda' or 'lion', which are installed, or pip install the package that provides 'tiger'"
    )


def test_advice_against_a_mistyped_provider_names_the_near_one(lion):
    text = lion.failure(USE.format(slot="optim"), TAEDA_OPTIM="lyon")
    assert text.rstrip().endswith(
        "; try: 'lion', which is installed, or pip install the package that provides 'lyon'"
    )


def test_advice_names_what_is_installed_alone(sandbox):
    text = sandbox.failure(USE.format(slot="tensor"), TAEDA_TENSOR="unknown")
    assert text.rstrip().endswith(
        "; try: 'taeda', which is installed, or pip install the package that provides 'unknown'"
    )


def test_entry_point_to_nowhere(sandbox):
    sandbox.distribution("lion-optim", "2.5", {"optim.lion": "lion_missing"})
    text = sandbox.failure(USE.format(slot="optim"), TAEDA_OPTIM="lion")
    assert "there is no module 'lion_missing'" in text
    assert "pip install --force-reinstall lion-optim" in text


def test_failure_of_a_provider_is_kept_and_chained(sandbox):
    sandbox.module("lion_optim", "raise OSError('no such library: libroar')")
    sandbox.distribution("lion-optim", "2.5", {"optim.lion": "lion_optim"})
    text = sandbox.failure(USE.format(slot="optim"), TAEDA_OPTIM="lion")
    assert "OSError: no such library: libroar" in text
    assert "The above exception was the direct cause" in text
    assert "ProviderFailedError: slot 'optim': provider 'lion'" in text


def test_provider_that_lacks_its_own_dependency_has_failed_rather_than_been_missing(sandbox):
    sandbox.module("lion_optim", "import savannah_of_lions")
    text = sandbox.failure(USE.format(slot="optim"), TAEDA_OPTIM="lion_optim")
    assert "ProviderFailedError" in text
    assert "No module named 'savannah_of_lions'" in text


def test_broken_provider_breaks_nothing_else(sandbox):
    sandbox.module("taeda_optim", "raise RuntimeError('broken')")
    sandbox.module("taeda_data", "NAME = 'data'")
    assert sandbox.program("from taeda_registry.slots import data, optim; print(data.NAME)") == "data"


def test_one_name_offered_twice(lion):
    lion.distribution("second-lion", "1.0", {"optim.lion": "lion_optim"})
    text = lion.failure(USE.format(slot="optim"), TAEDA_OPTIM="lion")
    assert "offered more than once" in text
    assert "lion-optim 2.5" in text
    assert "second-lion 1.0" in text


@pytest.mark.parametrize(
    ("stated", "remedy"),
    [("2.0", "--upgrade taeda-registry"), ("0.9", "--upgrade lion-optim"), ("one", "expected 'major.minor'")],
)
def test_wrong_interface_version_names_both(sandbox, stated, remedy):
    sandbox.module("lion_optim", f"__taeda_interface__ = {{'optim': {stated!r}}}")
    sandbox.distribution("lion-optim", "2.5", {"optim.lion": "lion_optim"})
    text = sandbox.failure(USE.format(slot="optim"), TAEDA_OPTIM="lion")
    assert "InterfaceMismatchError" in text
    assert stated in text
    assert remedy in text


def test_an_earlier_minor_version_is_taken_and_named_where_a_name_is_missing(sandbox):
    sandbox.module("lion_parts", "__taeda_interface__ = {'audio': '1.0'}; OLD = 'old'")
    sandbox.distribution("lion-parts", "2.5", {"audio.lion": "lion_parts"})
    shown = sandbox.program(
        """
        import taeda_registry
        taeda_registry.add_slot(taeda_registry.Slot("audio", (1, 2), "taeda_audio", "taeda-audio"))
        from taeda_registry.slots import audio
        print(audio.OLD)
        try:
            audio.NEW
        except AttributeError as error:
            print(error)
        """,
        TAEDA_AUDIO="lion",
    )
    old, new = shown.splitlines()
    assert old == "old"
    assert "has no attribute 'NEW'; it implements interface 1.0, the current one is 1.2" in new
    assert "pip install --upgrade lion-parts" in new


def test_a_later_minor_version_is_taken(sandbox):
    sandbox.module("lion_optim", "__taeda_interface__ = {'optim': '1.7'}; NAME = 'later'")
    program = "from taeda_registry.slots import optim; print(optim.NAME)"
    assert sandbox.program(program, TAEDA_OPTIM="lion_optim") == "later"


def test_interface_is_kept_by_active_and_resolve(lion):
    shown = lion.program(
        """
        import taeda_registry
        print(taeda_registry.active("optim"))
        module = taeda_registry.resolve("optim")
        active = taeda_registry.active("optim")
        print(module.NAME, active.module is module, active.name, active.origin)
        """,
        TAEDA_OPTIM="lion",
    )
    assert shown.splitlines() == ["None", "lion True lion environment variable TAEDA_OPTIM"]


def test_entry_point_may_name_an_attribute(sandbox):
    sandbox.module("animals", "import types\nlion = types.ModuleType('lion')\nlion.NAME = 'attribute'")
    sandbox.distribution("animals", "1.0", {"optim.lion": "animals:lion"})
    assert (
        sandbox.program("from taeda_registry.slots import optim; print(optim.NAME)", TAEDA_OPTIM="lion")
        == "attribute"
    )


def test_added_slot_resolves_like_the_others(sandbox):
    sandbox.module("my_charts", "NAME = 'charts'")
    shown = sandbox.program(
        """
        import taeda_registry
        slot = taeda_registry.Slot("charts", (1, 0), "my_charts", "my-charts")
        taeda_registry.add_slot(slot)
        taeda_registry.add_slot(slot)
        from taeda_registry.slots import charts
        print(charts.NAME, taeda_registry.slot_names()[-1])
        """
    )
    assert shown == "charts charts"


def test_conflicting_slot_is_refused(sandbox):
    text = sandbox.failure(
        "from taeda_registry import Slot, add_slot; add_slot(Slot('optim', (1, 0), 'mine', 'my-optim'))"
    )
    assert "ValueError: add_slot: 'optim' is already declared" in text
