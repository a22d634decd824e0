"""No kernel sees a negative dimension, whichever form of an operator is called."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import taeda_tensor_core as tc
from taeda_tensor_core import library
from taeda_testing.record import OpRecord, all_records
from taeda_testing.runner import to_tensors

X = tc.arange(24, dtype=tc.float32).reshape(2, 3, 4)
WITH_DIM = [
    o
    for o in library.operators()
    if o.form in ("function", "inplace")
    and o.kind == "structured"
    and "::" not in o.name
    and any(a.name == "dim" for a in o.arguments)
]


def function_form(operator: library.Operator) -> str:
    """Whose kernel an in-place form runs."""
    base, dot, overload = operator.name.partition(".")
    return (base.removesuffix("_") if operator.form == "inplace" else base) + dot + overload


def records_of(operator: library.Operator) -> list[OpRecord]:
    """Those of the overload, else of all overloads of the name."""
    name = function_form(operator)
    own = [record for record in all_records() if record.title == name]
    return own or [record for record in all_records() if record.title == name.partition(".")[0]]


def calls(operator: library.Operator) -> Iterator[tuple[list, dict, list[int]]]:
    """Arguments of its record's samples, every dimension counted from the end, and what the kernel is to see."""
    place = [a.name for a in operator.arguments].index("dim")
    for record in records_of(operator):
        dtype = "float32" if "float32" in record.dtypes else record.dtypes[0]
        for sample in record.samples(dtype, np.random.default_rng(0)):
            args, kwargs = list(to_tensors(sample.args)), dict(sample.kwargs)
            dim = kwargs.get("dim", args[place] if place < len(args) else None)
            first = args[0][0] if isinstance(args[0], list | tuple) else args[0]
            dims = list(dim) if isinstance(dim, tuple | list) else [dim]
            if not dims or any(type(d) is not int for d in dims) or first.dim() * first.numel() == 0:
                continue
            counted = [d % first.dim() for d in dims]
            negative = [d - first.dim() for d in counted]
            given = tuple(negative) if isinstance(dim, tuple | list) else negative[0]
            if "dim" in kwargs:
                kwargs["dim"] = given
            else:
                args[place] = given
            yield args, {name: to_tensors(value) for name, value in kwargs.items()}, counted


class Seen(Exception):
    """What a kernel got."""


def dims_of(name, call):
    place = [a.name for a in library.op(name).arguments].index("dim")

    def kernel(outputs, inputs):
        raise Seen(inputs[place])

    with library.Library("dims") as lib:
        lib.kernel(name, "cpu", replace=True)(kernel)
        with pytest.raises(Seen) as caught:
            call()
    found = caught.value.args[0]
    return list(found) if isinstance(found, tuple | list) else [found]


@pytest.mark.parametrize("operator", WITH_DIM, ids=lambda o: o.name)
def test_dimensions_are_counted_from_the_front(operator):
    seen = [(of_sample(operator, args, kwargs), counted) for args, kwargs, counted in calls(operator)]
    assert any(found is not None for found, _ in seen), f"no sample is a call of {operator.name}"
    assert all(found is None or found == counted for found, counted in seen), seen


def of_sample(operator: library.Operator, args: list, kwargs: dict) -> list | None:
    """Dimensions that the kernel was given; None where the sample is of another overload."""
    try:
        # A bare name would go on to other overloads that take the arguments.
        return dims_of(function_form(operator), lambda: operator.default(*args, **kwargs))
    except (TypeError, RuntimeError) as error:
        assert operator.name in str(error)
        return None


def test_none_and_numbers_without_dimensions():
    assert dims_of("sum", lambda: tc.sum(X)) in ([None], [])
    assert dims_of("argmax", lambda: tc.argmax(X)) == [None]
    assert dims_of("sum", lambda: tc.sum(tc.tensor(3.0), -1)) == [0]
    assert dims_of("cumsum", lambda: tc.cumsum(tc.tensor(3.0), -1)) == [0]
    assert dims_of("amax", lambda: tc.amax(X, (0, -1))) == [0, 2]


def test_layers_see_what_was_written():
    seen = []

    class Note(library.Layer):
        def __call__(self, op, args, kwargs):
            seen.append(args[1])
            return op(*args, **kwargs)

    with Note("note", operators=["softmax"]):
        X.softmax(-1)
    assert seen == [-1]
