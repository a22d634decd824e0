"""What nn composes where a provider lacks an operator is that operator: its arguments, the results of its record."""

from __future__ import annotations

import inspect
import json
from importlib import import_module, resources
from numbers import Number

import numpy as np
import pytest

from taeda_nn import _decompose
from taeda_registry.slots import tensor
from taeda_testing import all_records
from taeda_testing.runner import compare, to_tensors

SEED = 20251122
DECLARED = json.loads((resources.files("taeda_tensor_core") / "ops.json").read_text())
NAMES = [
    (family, name)
    for family in _decompose.FAMILIES
    for name in import_module(f"taeda_nn._decompose.{family}").__all__
]
# By each of their names: an overload has an alias of its own.
OPERATORS = {name: op for op in DECLARED for name in (op["name"], *op["aliases"])}
RECORDS = {
    name: [r for r in all_records() if r.name == OPERATORS[name]["name"].partition(".")[0]]
    for _, name in NAMES
}


def _default(text):
    """A default as it stands in a declaration; `[]` and `[n]` are lists, for which one number may stand."""
    if text is None:
        return inspect.Parameter.empty
    value = {"None": None, "True": True, "False": False}.get(text, text)
    if isinstance(value, str):
        value = json.loads(value.replace("'", '"'))
    return value[0] if isinstance(value, list) and len(value) == 1 else tuple(value) if value == [] else value


@pytest.mark.parametrize(("family", "name"), NAMES)
def test_arguments_are_those_of_the_operator(family, name):
    declared = OPERATORS[name]["arguments"]
    function = getattr(import_module(f"taeda_nn._decompose.{family}"), name)
    own = list(inspect.signature(function).parameters.values())
    assert len(own) == len(declared)
    for ours, theirs in zip(own, declared, strict=True):
        assert ours.name == theirs["name"] or theirs["name"] == "self"
        assert (ours.kind is ours.KEYWORD_ONLY) == theirs["keyword_only"]
        expected = _default(theirs["default"])
        if isinstance(expected, Number) and not isinstance(expected, bool):
            assert ours.default == pytest.approx(expected, rel=1e-12), ours.name
        else:
            assert ours.default == expected, ours.name


def _takes(name, given):
    """Overloads share a record: what takes padding by its name has the samples that give it so."""
    return not name.endswith("_padding") or isinstance(given.get("padding"), str)


@pytest.mark.parametrize(("family", "name"), NAMES)
def test_results_are_those_of_the_operator(family, name):
    function = getattr(import_module(f"taeda_nn._decompose.{family}"), name)
    print("seed", SEED)
    tried = 0
    for record in RECORDS[name]:
        for sample in record.samples("float64", np.random.default_rng(SEED)):
            if sample.note or not _takes(name, sample.kwargs):
                continue
            expected = record.reference(*sample.args, **sample.kwargs)
            args = to_tensors(sample.args)
            found = function(*args, **to_tensors(sample.kwargs))
            if found is None:  # the operator exists only in place
                found = args[0]
            compare(record, found, expected, f"{name} {sample.args[1:]} {sample.kwargs}")
            tried += 1
    assert tried


def test_forms_in_place_are_made_of_the_others():
    x = tensor.tensor([-1.0, 0.0, 2.0])
    in_place = _decompose.find("tanhshrink_")
    assert in_place(x) is x
    np.testing.assert_allclose(x.numpy(), [-1 + np.tanh(1), 0, 2 - np.tanh(2)], rtol=1e-6)
    assert _decompose.find("no_such_operator") is None
