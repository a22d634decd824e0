"""What goes wrong inside a composite is told in the words of the operator that was called."""

from __future__ import annotations

import json
import re
from importlib import resources

import pytest

import taeda
from taeda_testing import all_records
from taeda_testing.runner import function_of, to_tensors

DECLARED: dict[str, list[dict]] = {}
for _op in json.loads((resources.files("taeda_tensor_core") / "ops.json").read_text()):
    DECLARED.setdefault(_op["name"].partition(".")[0], []).append(_op)
# Python takes each for the others.
SPELLINGS = ({"self", "input", "x"}, {"dim", "axis"})


def composites():
    for record in all_records():
        kinds = {op["kind"] for op in DECLARED.get(record.name, ())}
        for number, error in enumerate(record.errors):
            if kinds == {"composite"}:
                yield pytest.param(record, error, id=f"{record.family}-{record.name}-{number}")


def names_of(name: str) -> set[str]:
    """What the arguments of an operator may be called."""
    names = {argument["name"] for op in DECLARED[name] for argument in op["arguments"]}
    for same in SPELLINGS:
        names |= same if names & same else set()
    return names


@pytest.mark.parametrize(("record", "error"), list(composites()))
def test_errors_name_the_operator_and_its_arguments(record, error):
    with pytest.raises(Exception) as caught:
        function_of(record)(*to_tensors(error.args), **to_tensors(error.kwargs))
    text = str(caught.value)
    assert text.startswith((f"{record.name}: ", f"{record.name}(")), text
    named = re.search(r"argument '(\w+)'", text)
    assert named is None or named[1] in names_of(record.name), text
    inside = re.match(rf"{record.name}: (\w+): ", text)
    # Of what is missing for a dtype or a device, the operator inside has to be told.
    assert inside is None or inside[1] not in DECLARED or isinstance(caught.value, NotImplementedError), text


def test_a_whole_nest_is_told_in_the_words_of_the_outermost():
    with pytest.raises(
        RuntimeError, match=r"^reshape_as: argument 'other' \(4,\) has 4 elements, expected 6"
    ):
        taeda.zeros(2, 3).reshape_as(taeda.zeros(4))
    with pytest.raises(NotImplementedError, match=r"^softmin: softmax: .*int64"):
        taeda.ops.softmin(taeda.tensor([1, 2]), 0)
