"""Records of a plug-in's operators: found, checked like taeda's own, and refused where they are none."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from taeda_testing import Failure, add_records, all_records, find_record, record, record_cases
from taeda_testing.conformance import devices, run_backend

EXAMPLE = Path(__file__).parents[3] / "examples" / "operators" / "squareplus.py"


@pytest.fixture
def example():
    """The example's operator and records, gone afterwards."""
    devices.load(str(EXAMPLE))
    module = sys.modules["squareplus"]
    yield module
    module.lib.remove()
    add_records("squareplus", ())


def test_records_of_a_plugin_get_every_check(example):
    cases = record_cases([r for r in all_records() if r.family == "squareplus"])
    kinds = {case.name.partition("-squareplus")[0] for case in cases}
    assert {
        "forward",
        "gradient",
        "second gradient",
        "gradient with its graph",
        "half precision",
        "error",
    } <= kinds
    for case in cases:
        case.run()


def test_the_kit_runs_them_under_the_full_name(example):
    (item,) = run_backend("cpu", only=["example::squareplus"]).items
    assert (item.outcome, item.family) == ("passed", "squareplus") and item.checks > 20


def test_a_wrong_reference_is_found(example):
    wrong = record.replace(example.RECORDS[0], reference=lambda x, b: x)
    with pytest.raises(Failure, match="squareplus"):
        record_cases([wrong])[0].run()


def test_what_is_no_record_is_refused():
    with pytest.raises(TypeError, match=r"records of family 'mine'.*'scale'"):
        add_records("mine", ["scale"])
    assert "mine" not in {r.family for r in all_records()}


@pytest.fixture
def point(monkeypatch):
    """Makes a module's records those of an installed plug-in."""

    def install(value):
        found = [EntryPoint("mine", value, record.GROUP)]
        monkeypatch.setattr(record, "installed", lambda group: found if group == record.GROUP else [])
        all_records.cache_clear()

    yield install
    monkeypatch.undo()
    all_records.cache_clear()


def test_installed_records_are_found(point):
    point("taeda_testing.records.embedding")
    found = [r.name for r in all_records() if r.family == "mine"]
    assert found and found == [r.name for r in all_records() if r.family == "embedding"]
    assert find_record("embedding").family == "embedding"


@pytest.mark.parametrize("value", ["no_such_module", "taeda_testing.arrays"])
def test_installed_records_that_cannot_be_loaded_say_whose_they_are(point, value):
    point(value)
    with pytest.raises(RuntimeError, match=rf"records of 'mine' \({value}\) cannot be loaded"):
        all_records()
