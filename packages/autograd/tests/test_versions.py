"""What in-place writes do to versions, saved tensors, leaves and the history of views; what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_autograd import grad
from taeda_tensor_core import no_grad


@pytest.mark.parametrize(
    ("save", "change", "words"),
    [
        (lambda y: y.exp(), None, r"ExpBackward0.*add_"),
        (lambda y: y * y, lambda y: y.add_(1), r"MulBackward0.*add_"),
        (lambda y: y * y, lambda y: y[0].zero_(), r"MulBackward0.*zero_"),
        (lambda y: y * y, lambda y: y.t().mul_(2), r"MulBackward0.*mul_"),
        (lambda y: y.sin(), lambda y: y[0, 0].zero_(), r"SinBackward0.*zero_"),
        (lambda y: y[1:] * 2 * y[1:], lambda y: y.fill_(0), r"MulBackward0.*fill_"),
    ],
)
def test_a_changed_saved_tensor_is_found(save, change, words, make):
    x = make(3, 4)
    y = x + 0
    z = save(y)
    if change is None:
        z.add_(1)
    else:
        change(y)
    with pytest.raises(
        RuntimeError, match=r"modified by an inplace operation.*version 1.*version 0"
    ) as error:
        z.sum().backward()
    assert re.search(words, str(error.value))
    assert x.grad is None


def test_a_detached_alias_shares_versions(make):
    x = make(3)
    y = x * 1
    z = y * y
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="version"):
        z.sum().backward()


def test_what_is_not_needed_may_be_changed(make):
    x = make(3)
    y = x + 0
    z = y * 2
    y.add_(100)
    z.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("place", [..., slice(None), [0, 1, 2]])
def test_what_was_copied_from_may_be_changed(place, make):
    x = make(3)
    y, z = x * 3, taeda.zeros_like(x)
    z[place] = y
    y.add_(100)
    z.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def test_parts_are_changed_by_augmented_assignment(make):
    x = make(2, 3)
    y = x * 3
    y[0] *= 2
    y[..., 1] += y[..., 2]
    y[1] /= 3
    y.sum().backward()
    assert x.grad.tolist() == [[6, 6, 12], [1, 1, 2]]


def test_views_share_the_version_of_their_base():
    x = taeda.zeros(3, 4)
    view, cut = x[1], x.detach()
    before = x._version
    view.add_(1)
    assert x._version == view._version == cut._version == before + 1
    x.clone().add_(1)
    assert x._version == before + 1


def test_a_leaf_and_its_views_are_not_changed_while_recording(make):
    x = make(3)
    for change in (
        lambda: x.add_(1),
        lambda: x[1:].mul_(2),
        lambda: x[0].mul_(2),
        lambda: x.view(3, 1).mul_(2),
        lambda: x.__setitem__(0, 1.0),
    ):
        before, version = x.tolist(), x._version
        with pytest.raises(RuntimeError, match="leaf"):
            change()
        assert (x.tolist(), x._version) == (before, version)
    with no_grad():
        x.add_(1)
    assert x.tolist() == [v + 1 for v in before]
    assert x.is_leaf and x.grad_fn is None


def test_in_place_makes_a_constant_part_of_the_graph(make):
    x, y = make(3), taeda.zeros(3, dtype=taeda.float64)
    view = y[1:]
    y.add_(x * 3)
    assert y.requires_grad and view.requires_grad and not y.is_leaf
    view.sum().backward()
    assert x.grad.tolist() == [0, 3, 3]


def test_writes_make_an_untracked_base_tracked():
    base = taeda.zeros(3)
    first, second = base[0], base[1:]
    x = taeda.tensor(2.0, requires_grad=True)
    first.copy_(x)
    assert base.requires_grad and second.requires_grad and not base.is_leaf
    (base * taeda.tensor([5.0, 1.0, 1.0])).sum().backward()
    assert x.grad.item() == 5


def test_old_views_follow_the_new_history_of_their_base():
    x = taeda.tensor([1.0, 2.0, 3.0], requires_grad=True)
    base = x * 1
    view = base[:2]
    old = view.grad_fn.name()
    base.mul_(4)
    assert view.grad_fn.name() != old
    (g,) = grad(view.sum(), x)
    assert g.tolist() == [4, 4, 0]


def test_view_made_under_no_grad_refuses_recorded_writes():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    with no_grad():
        view = y[0]
    with pytest.raises(RuntimeError, match="no_grad"):
        view.mul_(x[0])
    assert y.tolist() == [1, 2]


def test_out_arguments_are_refused_while_recording():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    out = taeda.zeros(2)
    with pytest.raises(RuntimeError, match=r"add.*out="):
        taeda.add(x, 1, out=out)
    assert out.tolist() == [0, 0]


def test_failed_write_leaves_history_and_values(make):
    x = make(3, 4)
    y = x * 1
    name, version = y.grad_fn.name(), y._version
    with pytest.raises(RuntimeError):
        y[0].add_(taeda.ones(7, dtype=taeda.float64))
    assert (y.grad_fn.name(), y._version) == (name, version)
    np.testing.assert_array_equal(y.detach().numpy(), x.detach().numpy())


def test_lengths_of_sequences_may_be_written_before_the_gradient_is_taken():
    scores = taeda.randn(5, 2, 4, dtype=taeda.float64)
    targets = taeda.tensor([[1, 2], [1, 3]])
    found = []
    for change in (False, True):
        x = scores.clone().requires_grad_()
        lengths, sizes = taeda.tensor([5, 4]), taeda.tensor([2, 1])
        loss = taeda.ops.ctc_loss(taeda.ops.log_softmax(x, -1), targets, lengths, sizes)
        if change:
            lengths.fill_(1)
            sizes.fill_(0)
        loss.backward()
        found.append(x.grad)
    assert taeda.equal(*found)
