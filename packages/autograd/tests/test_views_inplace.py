"""Recorded programs of views and in-place operations: values, first and second gradients."""

from __future__ import annotations

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_autograd import grad, gradcheck, gradgradcheck
from taeda_tensor_core import no_grad, ops

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


@program
def double_column(x):
    y = x * 1
    y[:, 1].mul_(2)
    return y * y


@program
def write_through_two_views(x):
    y = x.clone()
    y[0].add_(y[1].clone())
    y.t()[2].mul_(x[0, 0])
    return y.sin()


@program
def view_of_view(x):
    y = x * 1
    y[:2].t()[1:].pow_(3)
    return y


@program
def assign_slice(x):
    y = x * 1
    y[1:, ::2] = x[:2, 1::2] * 3
    return y * x


@program
def strided_and_flipped(x):
    y = x * 1
    y[::-1, ::2].mul_(x[:, ::2])
    return y


@program
def diagonal_write(x):
    y = x * 1
    y.diagonal().sigmoid_()
    return y


@program
def joined_in_place(x):
    y = x * 1
    y += x
    y *= x
    y -= 1
    y /= x * x + 1
    return y


@program
def in_place_composites(x):
    y = x * 1.5
    ops.relu6_(y)
    z = x * 1
    ops.selu_(z)
    w = x * 2
    ops.celu_(w)
    return y + z + w


@program
def masked(x):
    y = x * 1
    y.masked_fill_(x > 0, 0.5)
    y.clamp_(-1.5, 1.5)
    return y * x


@program
def write_reals_read_complex_view(x):
    y = x * 1
    view = taeda.view_as_complex(y.reshape(3, 2, 2))
    y.mul_(x)
    return taeda.view_as_real(view * view) * x[0, 0]


@program
def write_complex_view_of_reals(x):
    y = x * 1
    view = taeda.view_as_complex(y.reshape(3, 2, 2))
    view.mul_(2 + 1j)
    view.t()[1].mul_(taeda.complex(x[:, 0], x[:, 1]))
    return y * x


@program
def write_complex_view_of_some_reals(x):
    y = x * 1
    taeda.view_as_complex(y[:, 2:]).copy_(taeda.complex(x[:, 1], x[:, 0] * x[:, 3]))
    return y.sin()


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_agree_with_differences(name, make):
    assert gradcheck(PROGRAMS[name], (make(3, 4),))


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_gradients_agree_with_differences(name, make):
    assert gradgradcheck(PROGRAMS[name], (make(3, 4),))


@pytest.mark.parametrize("name", PROGRAMS)
def test_recording_changes_no_value(name, make):
    x = make(3, 4)
    with no_grad():
        expected = PROGRAMS[name](x)
    np.testing.assert_array_equal(PROGRAMS[name](x).detach().numpy(), expected.numpy())


def test_gradient_of_a_written_column_by_hand():
    x = taeda.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    double_column(x).sum().backward()
    # column 0: d(x^2) = 2x; column 1: d(4 x^2) = 8x
    np.testing.assert_array_equal(x.grad.numpy(), [[2, 16], [6, 32]])


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


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: taeda.slice_scatter(x, y, 1, 1, 3),
        lambda x, y: x.select_scatter(y[:, 0], 1, -1),
        lambda x, y: x.diagonal_scatter(y[0], -1),
        lambda x, y: x.put(taeda.tensor([0, 5, 5, 1, 2, 3]), y, True),
        lambda x, y: x.T.put(taeda.tensor([0, 5, 7, 1, 2, 3]), y),
        lambda x, y: x.index_reduce(1, taeda.tensor([0, 2]), y, "mean"),
        lambda x, y: taeda.block_diag(x, y * x[0, 0]),
        lambda x, y: taeda.trapezoid(x, dx=0.5) + y.sum(),
        lambda x, y: taeda.cartesian_prod(x[0], y[0]).prod(1),
        lambda x, y: (x * 1).t_() * y.sum(),
    ],
)
def test_gradients_of_programs_of_operators(function):
    taeda.manual_seed(3)
    x = taeda.randn(3, 4, dtype=taeda.float64, requires_grad=True)
    y = taeda.randn(3, 2, dtype=taeda.float64, requires_grad=True)
    assert gradcheck(function, (x, y)) and gradgradcheck(function, (x, y))


@pytest.mark.parametrize("part", ["real", "imag"])
def test_writes_to_the_parts_of_complex_numbers(part):
    """Gradients of what was written and of what was there: as if the parts were put together anew."""
    z = taeda.tensor([[1 + 2j, 3 - 1j], [0.5j, -2 + 1j]], dtype=taeda.complex128, requires_grad=True)
    x = taeda.tensor([[0.5, -1.0], [2.0, 3.0]], dtype=taeda.float64, requires_grad=True)

    def written(z, x):
        whole = (z * (2 - 1j))[:, 1:]
        shown = getattr(whole, part)
        shown.mul_(x[:, 1:]).add_(x[:, :1])
        return whole, shown * 3

    def apart(z, x):
        whole = (z * (2 - 1j))[:, 1:]
        changed = getattr(whole, part) * x[:, 1:] + x[:, :1]
        parts = (changed, whole.imag) if part == "real" else (whole.real, changed)
        return taeda.complex(*parts), changed * 3

    found = grad([r.abs().sum() for r in written(z, x)], [z, x])
    expected = grad([r.abs().sum() for r in apart(z, x)], [z, x])
    for a, b in zip(found, expected, strict=True):
        assert taeda.allclose(a, b)
    assert gradcheck(written, (z, x))
    assert gradgradcheck(written, (z, x))


OVERWRITES = {
    "fill_": lambda y: y.fill_(2.0),
    "fill_ with a tensor": lambda y: y.fill_(taeda.tensor(2.0)),
    "zero_": lambda y: y.zero_(),
    "copy_": lambda y: y.copy_(taeda.ones(3, dtype=taeda.float64)),
    "copy_ of another dtype": lambda y: y.copy_(taeda.ones(3, dtype=taeda.int64)),
    "a view of all": lambda y: y[:].fill_(1.0),
    "eq_": lambda y: y.eq_(1.0),
    "heaviside_": lambda y: y.heaviside_(taeda.ones(3, dtype=taeda.float64)),
    **{
        name: (lambda y, name=name: getattr(y, name)())
        for name in ("uniform_", "normal_", "cauchy_", "exponential_", "log_normal_", "bernoulli_", "random_")
    },
    "geometric_": lambda y: y.geometric_(0.5),
}


@pytest.mark.parametrize("overwrite", OVERWRITES.values(), ids=OVERWRITES)
def test_what_was_overwritten_has_the_gradient_zero(overwrite):
    x = taeda.ones(3, dtype=taeda.float64, requires_grad=True)
    y = x * 2
    overwrite(y)
    assert y.requires_grad
    (found,) = grad([y.sum()], [x], retain_graph=True)
    assert found.tolist() == [0.0, 0.0, 0.0]
    (y * x).sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_what_takes_the_place_of_a_part_has_its_gradient():
    x = taeda.ones(3, dtype=taeda.float64, requires_grad=True)
    w = taeda.ones(2, dtype=taeda.float64, requires_grad=True)
    y = x * 2
    y[1:].copy_(w * 3)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]
    assert w.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("show", [lambda t: t.view(-1), lambda t: t[1:], lambda t: t.t()])
def test_a_view_of_a_leaf_that_is_itself_a_view_is_not_written_to(show):
    memory = taeda.ones(6)
    x = memory.view(3, 2).requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        show(x).mul_(2.0)
    assert memory.tolist() == [1.0] * 6
    with no_grad():
        show(x).mul_(2.0)
    (x * x).sum().backward()
    assert x.grad.tolist() == (2 * x).tolist()


def _written_view(leaf):
    """A view of memory without gradients, into which a leaf was copied; nobody has asked it for its history yet."""
    view = taeda.zeros(4, 4, dtype=leaf.dtype)[1:3, 1:3]
    view.copy_(leaf)
    return view


@pytest.mark.parametrize("values", ["svdvals", "eigvalsh"])
def test_values_of_a_matrix_that_became_recorded_through_its_view(values):
    leaf = taeda.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=taeda.float64, requires_grad=True)
    of = getattr(taeda.linalg, values)
    (found,) = grad(of(_written_view(leaf)).sum(), leaf)
    (expected,) = grad(of(leaf).sum(), leaf)
    np.testing.assert_allclose(found.tolist(), expected.tolist())


@pytest.mark.parametrize("read", [lambda t: t.numpy(), memoryview, np.from_dlpack])
def test_memory_that_became_recorded_through_its_view_is_not_shared(read):
    leaf = taeda.ones(2, 2, requires_grad=True)
    with pytest.raises((RuntimeError, BufferError), match="requires grad"):
        read(_written_view(leaf))


def test_filling_what_became_recorded_through_its_view_sends_zeros_back():
    leaf = taeda.ones(2, 2, requires_grad=True)
    (found,) = grad(taeda.fill(_written_view(leaf), 3.0).sum(), leaf)
    assert found.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_what_needs_no_change_of_shape_is_the_tensor_itself():
    """Leaves stay leaves: `flatten` of one dimension and `broadcast_tensors` of one shape, as in PyTorch."""
    leaf, other = taeda.ones(2, 3, requires_grad=True), taeda.ones(3)
    assert leaf.flatten(1, 1) is leaf and leaf.flatten(-2, 0) is leaf
    same, spread = taeda.broadcast_tensors(leaf, other)
    assert same is leaf and tuple(spread.shape) == (2, 3) and spread.data_ptr() == other.data_ptr()
    (same * spread).sum().backward()
    assert leaf.grad.tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize("shape", [(), (3,)])
def test_the_transpose_of_what_has_no_two_dimensions_is_a_view(shape):
    leaf = taeda.ones(shape, requires_grad=True)
    shown = leaf.t()
    assert shown is not leaf and not shown.is_leaf and shown.data_ptr() == leaf.data_ptr()
    plain = taeda.ones(shape)
    plain.t().unsqueeze_(0)
    assert tuple(plain.shape) == shape
    before = plain._version
    assert plain.t_() is plain and plain._version > before
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.t_()
