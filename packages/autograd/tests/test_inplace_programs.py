"""In-place operations on recorded tensors and views: values and gradients against NumPy and numeric differences."""

from __future__ import annotations

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_autograd import grad, gradcheck
from taeda_tensor_core import no_grad, ops


def double_column(x):
    y = x * 1
    y[:, 1].mul_(2)
    return y * y


def write_through_two_views(x):
    y = x.clone()
    y[0].add_(y[1].clone())
    y.t()[2].mul_(x[0, 0])
    return y.sin()


def base_then_view(x):
    y = x * 2
    view = y[1:]
    y.mul_(x)
    return view.exp()


def view_of_view(x):
    y = x * 1
    y[:2].t()[1:].pow_(3)
    return y


def assign_slice(x):
    y = x * 1
    y[1:, ::2] = x[:2, 1::2] * 3
    return y * x


def assign_index(x):
    y = x * 1
    y[taeda.tensor([2, 0])] = x[:2] * x[1:]
    return y


def fill_and_zero(x):
    y = x * 1
    y[0].fill_(5.0)
    y[1].zero_()
    return y * x


def strided_and_flipped(x):
    y = x * 1
    y[::-1, ::2].mul_(x[:, ::2])
    return y


def diagonal_write(x):
    y = x * 1
    y.diagonal().sigmoid_()
    return y


def joined_in_place(x):
    y = x * 1
    y += x
    y *= x
    y -= 1
    y /= x * x + 1
    return y


def copy_into(x):
    y = taeda.zeros(3, 4, dtype=taeda.float64)
    y[1:].copy_(x[:2])
    return y * x


def in_place_composites(x):
    y = x * 1.5
    ops.relu6_(y)
    z = x * 1
    ops.selu_(z)
    w = x * 2
    ops.celu_(w)
    return y + z + w


def masked(x):
    y = x * 1
    y.masked_fill_(x > 0, 0.5)
    y.clamp_(-1.5, 1.5)
    return y * x


PROGRAMS = [
    double_column, write_through_two_views, base_then_view, view_of_view, assign_slice, assign_index, fill_and_zero,
    strided_and_flipped, diagonal_write, joined_in_place, copy_into, in_place_composites, masked,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_agree_with_differences(program, make):
    assert gradcheck(program, make(3, 4))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_recording_changes_no_value(program, make):
    x = make(3, 4)
    with no_grad():
        expected = program(x)
    np.testing.assert_array_equal(program(x).detach().numpy(), expected.numpy())


def test_gradient_of_a_written_column_by_hand():
    x = taeda.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    double_column(x).sum().backward()
    # column 0: d(x^2) = 2x; column 1: d(4 x^2) = 8x
    np.testing.assert_array_equal(x.grad.numpy(), [[2, 16], [6, 32]])


def test_views_share_the_version_of_their_base():
    x = taeda.zeros(3, 4)
    view, cut = x[1], x.detach()
    before = x._version
    view.add_(1)
    assert x._version == view._version == cut._version == before + 1
    x.clone().add_(1)
    assert x._version == before + 1


def test_stale_version_names_operator_culprit_and_versions():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError) as error:
        z.sum().backward()
    for word in ("MulBackward0", "inplace", "add_", "version 1", "version 0"):
        assert word in str(error.value)
    assert x.grad is None


def test_stale_output_is_found():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.mul_(2)
    with pytest.raises(RuntimeError, match=r"ExpBackward0.*mul_"):
        y.sum().backward()


def test_write_through_a_view_is_found_in_the_base():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = y.sin()
    y[0].zero_()
    with pytest.raises(RuntimeError, match=r"SinBackward0.*version 1, expected version 0"):
        z.sum().backward()


def test_write_to_a_tensor_that_no_formula_needs_is_fine():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = y + 1
    y.mul_(10)
    (z + y).sum().backward()
    assert x.grad.tolist() == [11, 11]


def test_leaf_and_its_views_refuse_writes_and_stay_as_they_are():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    for target in (x, x[0], x.view(2, 1)):
        with pytest.raises(RuntimeError, match=r"mul_.*leaf"):
            target.mul_(2)
    assert x.tolist() == [1, 2] and x._version == 0
    with no_grad():
        x.mul_(2)
    assert x.tolist() == [2, 4] and x.is_leaf


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


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_of_views_and_writes(seed):
    """Random chains of views and writes: gradients against differences of the same program."""

    def program(x):
        rng = np.random.default_rng(seed)
        y = x * 1
        for _ in range(5):
            view = y
            for _ in range(rng.integers(0, 3)):
                kind = rng.integers(0, 4)
                if kind == 0 and view.dim():
                    view = view[rng.integers(0, view.shape[0])]
                elif kind == 1 and view.dim():
                    view = view[..., rng.integers(0, 2) :: 2]
                elif kind == 2:
                    view = view.unsqueeze(0)
                elif view.dim() == 2:
                    view = view.t()
            write = rng.integers(0, 4)
            if write == 0:
                view.mul_(x[0, 1])
            elif write == 1:
                view.sin_()
            elif write == 2:
                view.copy_(x[1, 0] * x[2, 2])
            else:
                view.add_(y.sum())
        return y

    rng = np.random.default_rng(1000 + seed)
    assert gradcheck(program, taeda.tensor(rng.uniform(-1, 1, (3, 4))).requires_grad_())
