"""Views and in-place operations in recorded programs: values of gradients, versions and what is refused."""

from __future__ import annotations

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import gradcheck, gradgradcheck
from taeda_tensor_core import no_grad

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def write_into_copy(x):
    y = x * 1
    y.mul_(x)
    y[0] = x[1] * 3
    return y.exp()


@program
def write_through_view(x):
    y = x * 2
    y[:, 1:3].mul_(x[:, :2])
    return y * x


@program
def write_through_view_of_view(x):
    y = x * 2
    y.t()[1:3][0].add_(x[:, 0] * x[:, 1])
    return y.sin()


@program
def write_base_read_view(x):
    y = x * 2
    view = y[1]
    y.mul_(x)
    return view * x[0]


@program
def write_view_read_sibling(x):
    y = x * 2
    left, right = y[:, :3], y[:, 2:]
    left.mul_(x[:, 1:])
    return right * 3 + left[:, :2]


@program
def assign_constant(x):
    y = x * x
    y[1:, ::2] = 7.0
    return y


@program
def fill_and_zero(x):
    y = x.exp()
    z = y * 2
    z[0].zero_()
    z[:, 3].fill_(2.0)
    return z * x


@program
def copy_between(x):
    y = taeda.zeros(3, 4, dtype=taeda.float64)
    y[1:].copy_(x[:2] * x[1:])
    y.t().add_(x.t())
    return y


@program
def into_leafless_buffer(x):
    buffer = taeda.zeros(2, 3, 4, dtype=taeda.float64)
    buffer[1] = x
    buffer[0].copy_(x * x)
    return buffer.sum(0)


@program
def in_place_chain(x):
    return (x + 0).mul_(3).add_(x).sigmoid_().neg().mul_(x).tanh_()


@program
def masked_and_indexed(x):
    y = x * 1
    y[taeda.tensor([0, 2])] = x[taeda.tensor([1, 1])] ** 2
    y.masked_fill_(taeda.tensor([[True, False, False, True]] * 3), 0.5)
    return y.index_add(0, taeda.tensor([0, 0]), x[:2])


@program
def expanded_then_written(x):
    y = x[:1].expand(3, 4).clone()
    y[2].mul_(x[2])
    return y


@program
def split_then_written(x):
    y = x * 1
    a, b = y.chunk(2, 1)
    return a.exp() * b


@program
def write_into_one_of_several_views(x):
    y = x * 1
    first, _, _ = y.unbind(0)
    first.mul_(x[2])
    return y * first


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_agree_with_differences(name, make):
    assert gradcheck(PROGRAMS[name], (make(3, 4),))


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_gradients_agree_with_differences(name, make):
    assert gradgradcheck(PROGRAMS[name], (make(3, 4),))


@pytest.mark.parametrize(
    ("save", "change"),
    [
        (lambda y: y.exp(), None),
        (lambda y: y * y, lambda y: y.add_(1)),
        (lambda y: y * y, lambda y: y[0].zero_()),
        (lambda y: y * y, lambda y: y.t().mul_(2)),
        (lambda y: y.sigmoid(), "result"),
        (lambda y: y[1:] * 2 * y[1:], lambda y: y.fill_(0)),
    ],
)
def test_a_changed_saved_tensor_is_found(save, change, make):
    x = make(3, 4)
    y = x + 0
    z = save(y)
    if change is None:
        z.add_(1)
    elif change == "result":
        z.mul_(2)
    else:
        change(y)
    with pytest.raises(RuntimeError, match=r"Backward0: .*modified by an inplace operation.*version"):
        z.sum().backward()
    assert x.grad is None


def test_what_is_not_needed_may_be_changed(make):
    x = make(3)
    y = x + 0
    z = y * 2
    y.add_(100)
    z.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_a_leaf_is_not_changed_while_recording(make):
    x = make(3)
    for change in (lambda: x.add_(1), lambda: x[1:].mul_(2), lambda: x.__setitem__(0, 1.0)):
        before, version = x.tolist(), x._version
        with pytest.raises(RuntimeError, match="leaf"):
            change()
        assert (x.tolist(), x._version) == (before, version)
    with no_grad():
        x.add_(1)
    assert x.is_leaf and x.grad_fn is None


def test_in_place_makes_a_constant_part_of_the_graph(make):
    x, y = make(3), taeda.zeros(3, dtype=taeda.float64)
    view = y[1:]
    y.add_(x * 3)
    assert y.requires_grad and view.requires_grad and not y.is_leaf
    view.sum().backward()
    assert x.grad.tolist() == [0, 3, 3]


def test_a_detached_alias_shares_versions(make):
    x = make(3)
    y = x * 1
    z = y * y
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="version"):
        z.sum().backward()
