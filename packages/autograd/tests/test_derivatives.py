"""Every derivative formula under `gradcheck` and `gradgradcheck`, on the calls of the operators' records."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import grad, gradcheck, gradgradcheck
from taeda_testing import OpRecord, Sample, all_records
from taeda_testing.cases import SEED, samples_of, size_of, smooth
from taeda_testing.runner import differentiated, function_of, to_tensors

#: Samples of a record that are checked here: whole Jacobians take long, and other tests take directions of all samples.
MOST, LARGEST = 5, 24


def samples(record: OpRecord, dtype: str) -> Iterator[Sample]:
    """Small ones whose every gradient is one of values."""
    print("seed", SEED)
    fit = (
        sample
        for sample in samples_of(record, dtype)
        if smooth(record, sample) and not sample.cut and 0 < size_of(sample) <= LARGEST
    )
    return (s for s in itertools.islice(fit, MOST) if differentiated(record, s))


def program(record: OpRecord, sample: Sample) -> tuple[Callable[..., Any], tuple[taeda.Tensor, ...]]:
    """The operator as a function of the arguments that it is differentiated by, and these."""
    places = differentiated(record, sample)

    def call(*leaves: taeda.Tensor) -> tuple[taeda.Tensor, ...]:
        args = [to_tensors(value) for value in sample.args]
        for place, leaf in zip(places, leaves, strict=True):
            place.put(args, leaf)
        kwargs = {key: to_tensors(value) for key, value in sample.kwargs.items()}
        results = function_of(record)(*args, **kwargs)
        results = results if isinstance(results, (list, tuple)) else (results,)
        return tuple(r for r in results if r.is_floating_point() or r.is_complex())

    return call, tuple(to_tensors(place.of(sample.args)).requires_grad_() for place in places)


def cases(second: bool) -> list[Any]:
    chosen = [r for r in all_records() if r.second or not second]
    return [pytest.param(r, d, id=f"{r.family}-{r.name}-{d}") for r in chosen for d in r.differentiated]


@pytest.mark.parametrize(("record", "dtype"), cases(second=False))
def test_gradient_agrees_with_differences(record, dtype):
    for sample in samples(record, dtype):
        assert gradcheck(*program(record, sample))


@pytest.mark.parametrize(("record", "dtype"), cases(second=True))
def test_second_gradient_agrees_with_differences(record, dtype):
    for sample in samples(record, dtype):
        call, leaves = program(record, sample)
        if any(r.requires_grad for r in call(*leaves)):
            assert gradgradcheck(call, leaves)


INDEX = taeda.tensor([[0, 2], [1, 0], [2, 2]])
MASK = taeda.tensor([[True, False, True, False], [False, True, True, False], [True, True, False, False]])

#: What is no single call of an operator: views of views, Python's own syntax, zeros in the middle of a program.
PROGRAMS = {
    "as_strided of a view": lambda a: a.t().as_strided((2, 3), (4, 1), 2),
    "reshape of a view": lambda a: a.t().reshape(12),
    "contiguous of a view": lambda a: a.t().contiguous(),
    "slices": lambda a: a[1:, ::2],
    "slices backwards": lambda a: a[::-1, 3:0:-2],
    "an index beside a slice": lambda a: a[:, taeda.tensor([2, 0, 2])],
    "a mask": lambda a: a[MASK],
    "powers": lambda a: 2**a + (a * a) ** 1.5 + 3 - a,
    "products with zeros": lambda a: (a * MASK).prod(1),
    "running products with zeros": lambda a: (a * MASK).cumprod(0),
    "a filled mask": lambda a: a.masked_fill(MASK, a[0, 0]),
    "filled rows": lambda a: a.index_fill(0, INDEX[:, 0], a[0, 0]),
    "scattered means": lambda a: a.scatter_reduce(1, INDEX, a[:, :2] * 2, "mean"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, make):
    assert gradcheck(PROGRAMS[name], make(3, 4))
    assert gradgradcheck(PROGRAMS[name], make(3, 4))


def test_scattered_products_with_zeros(make):
    """Second derivatives too, where one factor or several at a place are zero, `self` among them or not."""
    for include_self in (True, False):

        def call(a, b, own=include_self):
            return (a * MASK).scatter_reduce(1, INDEX, b * MASK[:, :2], "prod", include_self=own)

        assert gradcheck(call, (make(3, 4), make(3, 2)))
        assert gradgradcheck(call, (make(3, 4), make(3, 2)))


@pytest.mark.parametrize(
    "function", [taeda.igamma, taeda.igammac, taeda.ops.special_zeta], ids=lambda f: f.__name__
)
def test_an_argument_without_derivative_is_refused_where_its_gradient_is_asked_for(function):
    """Not before: values, and gradients of the other argument, do not need it."""
    a, x = taeda.tensor(2.5, requires_grad=True), taeda.tensor(1.5, requires_grad=True)
    result = function(a, x)
    assert result.requires_grad and result.item() == function(a.detach(), x.detach()).item()
    function(a.detach(), x).backward()
    assert grad(result, x, retain_graph=True)[0].item() == x.grad.item()
    with pytest.raises(NotImplementedError, match=function.__name__):
        result.backward()
