"""Operators over lists of tensors: each is its operator on every tensor."""

import math

import numpy as np
import pytest

import taeda
from taeda_tensor_core import foreach

UNARY = [name for name in foreach.FUNCTIONS if name.removeprefix("_foreach_").rstrip("_") in foreach._UNARY]
SCALED = ["_foreach_add", "_foreach_sub"]
BINARY = [
    f"_foreach_{name}" for name in ("mul", "div", "clamp_max", "clamp_min", "maximum", "minimum", "pow")
]


def lists(seed=0):
    taeda.manual_seed(seed)
    return [taeda.rand(3) + 0.1, taeda.rand(2, 4).t() + 0.1, taeda.rand(()) + 0.1]


def same(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        taeda.testing.assert_close(a, b, equal_nan=True)


def in_place(name, *arguments, **options):
    """What the form that writes gives; the list itself comes back."""
    targets = lists()
    assert getattr(taeda, name + "_")(targets, *arguments, **options) is targets
    return targets


@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name):
    method, given = name.removeprefix("_foreach_"), lists()
    expected = [getattr(x.clone(), method)() for x in lists()]
    found = getattr(taeda, name)(given)
    same(found, expected)
    assert found is given if name.endswith("_") else isinstance(found, tuple)


@pytest.mark.parametrize("name", SCALED + BINARY)
@pytest.mark.parametrize("kind", ["number", "numbers", "tensors"])
def test_two_operands(name, kind):
    operator = getattr(taeda, name.removeprefix("_foreach_"))
    other = {"number": 0.5, "numbers": [0.5, 1.0, 2.0], "tensors": lists(1)}[kind]
    others = [other] * 3 if kind == "number" else other
    numbers = [taeda.tensor(y) if kind != "tensors" else y for y in others]
    expected = [operator(x, y) for x, y in zip(lists(), numbers, strict=True)]
    same(getattr(taeda, name)(lists(), other), expected)
    same(in_place(name, other), expected)


@pytest.mark.parametrize("name", SCALED)
def test_alpha(name):
    operator = getattr(taeda, name.removeprefix("_foreach_"))
    expected = [operator(x, y, alpha=3) for x, y in zip(lists(), lists(1), strict=True)]
    same(getattr(taeda, name)(lists(), lists(1), alpha=3), expected)
    same(in_place(name, lists(1), alpha=3), expected)
    with pytest.raises(TypeError, match="alpha"):
        getattr(taeda, name)(lists(), [1, 2, 3], alpha=3)


@pytest.mark.parametrize("name", ["_foreach_add", "_foreach_mul", "_foreach_div"])
def test_one_tensor_for_all(name):
    number = taeda.tensor(2.0)
    same(
        getattr(taeda, name)(lists(), number),
        [getattr(taeda, name.removeprefix("_foreach_"))(x, 2.0) for x in lists()],
    )
    with pytest.raises(RuntimeError, match="expected to be 0 dim"):
        getattr(taeda, name)(lists(), taeda.ones(3))


@pytest.mark.parametrize("number", [np.float32(2), np.int64(2), taeda.tensor(2.0)], ids=repr)
@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "div", "pow", "clamp_min", "clamp_max", "maximum", "minimum"]
)
def test_numpy_scalars_and_tensors_stand_for_numbers(name, number):
    expected = getattr(taeda, f"_foreach_{name}")(lists(), 2)
    same(getattr(taeda, f"_foreach_{name}")(lists(), number), expected)
    same(in_place(f"_foreach_{name}", number), expected)
    same(taeda._foreach_lerp(lists(), lists(1), number), taeda._foreach_lerp(lists(), lists(1), 2))
    if name in ("sub", "pow"):
        with pytest.raises(TypeError, match="must be a list or tuple of Tensors"):
            getattr(taeda, f"_foreach_{name}")(lists(), taeda.tensor(2.0, requires_grad=True))


@pytest.mark.parametrize("name", ["_foreach_addcmul", "_foreach_addcdiv"])
@pytest.mark.parametrize("value", [None, 0.5, [0.5, 1.0, 2.0], "vector"])
def test_three_operands(name, value):
    operator, numbers = getattr(taeda, name.removeprefix("_foreach_")), value or 1.0
    if value == "vector":
        numbers, value = [0.5, 1.0, 2.0], taeda.tensor([0.5, 1.0, 2.0])
    numbers = numbers if isinstance(numbers, list) else [numbers] * 3
    rows = zip(lists(), lists(1), lists(2), numbers, strict=True)
    expected = [operator(x, a, b, value=v) for x, a, b, v in rows]
    given = () if value is None else (value,)
    same(getattr(taeda, name)(lists(), lists(1), lists(2), *given), expected)
    same(in_place(name, lists(1), lists(2), *given), expected)


@pytest.mark.parametrize("weight", [0.25, [0.1, 0.2, 0.3], "tensors"])
def test_lerp(weight):
    weight = lists(2) if weight == "tensors" else weight
    weights = weight if isinstance(weight, list) else [weight] * 3
    expected = [taeda.lerp(x, y, w) for x, y, w in zip(lists(), lists(1), weights, strict=True)]
    same(taeda._foreach_lerp(lists(), lists(1), weight), expected)
    same(in_place("_foreach_lerp", lists(1), weight), expected)


def test_single_ones():
    x = lists()
    same(taeda._foreach_norm(x), [taeda.linalg.vector_norm(t) for t in x])
    same(taeda._foreach_norm(x, math.inf, taeda.float64), [t.abs().max().double() for t in x])
    same(taeda._foreach_powsum(x, 3), [(t**3).sum() for t in x])
    same(taeda._foreach_max(x), [t.max() for t in x])
    same(taeda._foreach_pow(2.0, x), [2.0**t for t in x])
    same(taeda._foreach_mm([taeda.ones(2, 3)], [taeda.ones(3, 2)]), [taeda.full((2, 2), 3.0)])
    copies = taeda._foreach_clone(x)
    assert taeda._foreach_zero_(x) is x and all(not t.any() for t in x)
    assert taeda._foreach_copy_(x, copies) is x
    same(x, copies)


def test_gradients_go_through():
    x = [t.requires_grad_() for t in lists()]
    sum(t.sum() for t in taeda._foreach_mul(x, [1.0, 2.0, 3.0])).backward()
    assert [t.grad.flatten()[0].item() for t in x] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: taeda._foreach_sqrt(x[0]), TypeError, "must be a list or tuple of Tensors, found Tensor"),
        (lambda x: taeda._foreach_sqrt(iter(x)), TypeError, "must be a list or tuple"),
        (lambda x: taeda._foreach_sqrt([1.0]), TypeError, "has a float, expected Tensors"),
        (lambda x: taeda._foreach_sqrt([]), RuntimeError, "at least one tensor"),
        (lambda x: taeda._foreach_add(x, x[:1]), RuntimeError, "same number of tensors, got 3 and 1"),
        (lambda x: taeda._foreach_add(x, [1, 2]), RuntimeError, "same number of elements as scalar list"),
        (lambda x: taeda._foreach_add(x), TypeError, "missing argument 'other'"),
        (lambda x: taeda._foreach_add(x, 1, wrong=2), TypeError, "unexpected keyword argument 'wrong'"),
        (lambda x: taeda._foreach_add(x, 1, scalar=2), TypeError, "more than once"),
        (lambda x: taeda._foreach_addcmul(x, x, x, taeda.ones(2)), RuntimeError, "length of scalars"),
        (lambda x: taeda._foreach_addcmul(x, x, x, x), TypeError, "must be numbers"),
    ],
)
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(lists())


def test_other_names_of_the_kind_are_not_there():
    with pytest.raises(AttributeError):
        _ = taeda._foreach_nothing
