"""backward and grad: arguments, accumulation, higher orders, deep and wide graphs, nesting and threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_autograd import Function, backward, grad
from taeda_autograd.graph import get_gradient_edge


@pytest.fixture
def x():
    return taeda.tensor([1.0, 2.0, 3.0], dtype=taeda.float64, requires_grad=True)


def test_backward_needs_a_weight_for_several_elements(x):
    y = x * x
    with pytest.raises(RuntimeError, match="scalar"):
        y.backward()
    y.backward(taeda.tensor([1.0, 0.0, -1.0], dtype=taeda.float64))
    assert x.grad.tolist() == [2, 0, -6]


def test_one_element_of_any_shape_is_a_scalar(x):
    (x.sum().reshape(1, 1) * 2).backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_weight_of_another_shape_is_an_error(x):
    with pytest.raises(RuntimeError, match=r"shape \(2,\), expected \(3,\)"):
        (x * x).backward(taeda.ones(2, dtype=taeda.float64))
    assert x.grad is None


def test_several_roots_with_weights(x):
    backward([x * 2, (x * x).sum()], [taeda.tensor([1.0, 1, 0], dtype=taeda.float64), None])
    assert x.grad.tolist() == [4, 6, 6]


def test_root_without_history_is_an_error():
    with pytest.raises(RuntimeError, match="does not require grad"):
        taeda.ones(1).backward()


def test_a_leaf_can_be_the_root(x):
    x.sum().backward()
    leaf = taeda.tensor(3.0, requires_grad=True)
    leaf.backward()
    assert leaf.grad.item() == 1


def test_gradients_accumulate_in_place_until_reset(x):
    x.sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first and first.tolist() == [3, 5, 7]
    x.grad = None
    x.sum().backward()
    assert x.grad.tolist() == [1, 1, 1] and first.tolist() == [3, 5, 7]


def test_gradient_does_not_share_memory_with_what_the_user_gave(x):
    weight = taeda.ones(3, dtype=taeda.float64)
    (x + 0).backward(weight)
    weight.mul_(100)
    assert x.grad.tolist() == [1, 1, 1]


def test_two_leaves_do_not_share_a_gradient(x):
    y = taeda.zeros(3, dtype=taeda.float64, requires_grad=True)
    (x + y).sum().backward()
    x.grad.mul_(5)
    assert y.grad.tolist() == [1, 1, 1]


def test_graph_is_freed_unless_retained(x):
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match=r"MulBackward0.*freed.*retain_graph"):
        y.backward()
    assert x.grad.tolist() == [4, 8, 12]


def test_graph_without_saved_tensors_can_run_again(x):
    y = (x + x).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [4, 4, 4]


def test_grad_leaves_dot_grad_alone(x):
    (g,) = grad((x * x).sum(), x)
    assert g.tolist() == [2, 4, 6] and x.grad is None


def test_grad_of_inner_tensors_and_of_the_root_itself(x):
    y = x * 2
    z = (y * y).sum()
    gz, gy, gx = grad(z, [z, y, x])
    assert (gz.item(), gy.tolist(), gx.tolist()) == (1, [4, 8, 12], [8, 16, 24])


def test_the_same_input_twice(x):
    a, b = grad((x * 3).sum(), [x, x])
    assert a.tolist() == b.tolist() == [3, 3, 3]


def test_unused_inputs(x):
    other = taeda.ones(2, requires_grad=True)
    y = x.sum()
    with pytest.raises(RuntimeError, match=r"input 1.*allow_unused"):
        grad(y, [x, other], retain_graph=True)
    assert grad(y, [x, other], allow_unused=True, retain_graph=True)[1] is None
    zeros = grad(y, [x, other], materialize_grads=True)[1]
    assert zeros.tolist() == [0, 0] and zeros.dtype is other.dtype


def test_wrong_arguments(x):
    with pytest.raises(ValueError, match="inputs"):
        grad(x.sum(), [])
    with pytest.raises(RuntimeError, match="inputs"):
        backward(x.sum(), inputs=[])
    with pytest.raises(RuntimeError, match=r"input 0.*require grad"):
        grad(x.sum(), taeda.ones(1))
    with pytest.raises(ValueError, match="materialize_grads"):
        grad(x.sum(), x, materialize_grads=True, allow_unused=False)
    with pytest.raises(TypeError):
        grad(3.0, x)
    with pytest.raises(TypeError):
        grad(x.sum(), "x")


def test_inputs_limits_the_accumulation(x):
    w = taeda.ones(3, dtype=taeda.float64, requires_grad=True)
    y = x * w
    backward((y * y).sum(), inputs=[w])
    assert x.grad is None and w.grad.tolist() == [2, 8, 18]
    y = x * w
    (y * 3).sum().backward(inputs=[y])
    assert y.grad.tolist() == [3, 3, 3] and x.grad is None


def test_third_derivative_of_a_polynomial(x):
    y = (x**4 + 2 * x**3).sum()
    (d1,) = grad(y, x, create_graph=True)
    (d2,) = grad(d1.sum(), x, create_graph=True)
    (d3,) = grad(d2.sum(), x, create_graph=True)
    (d4,) = grad(d3.sum(), x)
    v = np.array([1.0, 2, 3])
    for found, expected in (
        (d1, 4 * v**3 + 6 * v**2),
        (d2, 12 * v**2 + 12 * v),
        (d3, 24 * v + 12),
        (d4, 24 + 0 * v),
    ):
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["sin", "exp", "tanh", "sigmoid", "log", "sqrt", "reciprocal"])
def test_third_derivatives_of_functions(name):
    derivatives = {
        "sin": lambda v: -np.cos(v),
        "exp": np.exp,
        "tanh": lambda v: -2 * (1 - np.tanh(v) ** 2) * (1 - 3 * np.tanh(v) ** 2),
        "sigmoid": lambda v: (s := 1 / (1 + np.exp(-v))) * (1 - s) * (1 - 6 * s + 6 * s * s),
        "log": lambda v: 2 / v**3,
        "sqrt": lambda v: 3 / 8 * v**-2.5,
        "reciprocal": lambda v: -6 / v**4,
    }
    v = np.array([0.3, 0.9, 1.7])
    x = taeda.tensor(v).requires_grad_()
    y = getattr(taeda, name)(x)
    for _ in range(3):
        (y,) = grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(y.detach().numpy(), derivatives[name](v), rtol=1e-9)


def test_backward_with_create_graph_gives_a_differentiable_grad(x):
    (x**3).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    first, x.grad = x.grad, None
    first.sum().backward()
    assert x.grad.tolist() == [6, 12, 18]


def test_gradients_are_not_recorded_without_create_graph(x):
    (g,) = grad((x**3).sum(), x)
    assert not g.requires_grad


def test_broadcast_inputs_get_gradients_of_their_shape(x):
    row, column = taeda.ones(1, 4, requires_grad=True), taeda.ones(3, 1, requires_grad=True)
    (row * column).sum().backward()
    assert row.grad.tolist() == [[3, 3, 3, 3]] and column.grad.tolist() == [[4], [4], [4]]


def test_gradients_have_the_dtype_of_their_leaf(x):
    low = taeda.ones(3, requires_grad=True)
    (low * x).sum().backward()
    assert low.grad.dtype is taeda.float32 and x.grad.dtype is taeda.float64


def test_integers_and_comparisons_carry_no_gradient(x):
    assert not (x > 1).requires_grad and not x.argmax().requires_grad
    with pytest.raises(RuntimeError, match="floating"):
        taeda.tensor([1, 2]).requires_grad_()


def test_argument_without_formula_is_an_error_when_it_needs_a_gradient():
    scores = taeda.tensor([[0.1, 0.9], [0.7, 0.2]], requires_grad=True)
    weight = taeda.tensor([1.0, 2.0], requires_grad=True)
    target = taeda.tensor([0, 1])
    with pytest.raises(NotImplementedError, match=r"nll_loss.*'weight'"):
        taeda.ops.nll_loss(scores, target, weight)
    assert scores.grad is None
    with taeda.no_grad():
        taeda.ops.nll_loss(scores, target, weight)
    taeda.ops.nll_loss(scores, target, weight.detach()).backward()
    np.testing.assert_allclose(scores.grad.numpy(), [[-1 / 3, 0], [0, -2 / 3]], rtol=1e-6)


def test_chain_of_a_hundred_thousand_nodes():
    x = taeda.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1
    del y


def test_deep_graph_dies_without_backward():
    y = taeda.tensor(1.0, requires_grad=True)
    for _ in range(100_000):
        y = y * 1
    node = y.grad_fn
    del y
    del node


def test_deep_graph_is_searched_for_inputs():
    x = taeda.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(50_000):
        y = y + x
    (g,) = grad(y, x)
    assert g.item() == 50_001


def test_wide_graph():
    leaves = [taeda.tensor(float(i), requires_grad=True) for i in range(2_000)]
    taeda.stack([leaf * leaf for leaf in leaves]).sum().backward()
    assert [leaf.grad.item() for leaf in leaves] == [2.0 * i for i in range(2_000)]


def test_diamonds_run_each_node_once(x):
    calls = []
    y = x * 1
    for level in range(40):  # 2**40 paths
        y = y * 0.5 + y * 0.5
        y.register_hook(lambda g, n=level: calls.append(n))
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 1, rtol=1e-12)
    assert calls == list(range(39, -1, -1))


class Nested(Function):
    """x**3, whose backward runs a backward of its own."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with taeda.enable_grad():
            inner = x.detach().requires_grad_()
            (inner**3).sum().backward()
        return g * inner.grad


def test_backward_inside_backward(x):
    Nested.apply(x * 2).sum().backward()
    assert x.grad.tolist() == [24, 96, 216]


def test_deeply_nested_backward():
    def call(depth):
        class Deep(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, g):
                if depth:
                    with taeda.enable_grad():
                        y = taeda.tensor(1.0, requires_grad=True)
                        call(depth - 1).apply(y).backward()
                        return g * y.grad
                return g

        return Deep

    x = taeda.tensor(2.0, requires_grad=True)
    call(30).apply(x).backward()
    assert x.grad.item() == 1


def test_nested_backward_through_the_same_graph(x):
    shared = x * x
    results = []

    def hook(g):
        results.append(grad(shared, x, taeda.ones_like(shared), retain_graph=True)[0].tolist())

    y = shared * 2
    y.register_hook(hook)
    y.sum().backward()
    assert results == [[2, 4, 6]] and x.grad.tolist() == [4, 8, 12]


def test_error_in_the_middle_leaves_leaves_that_were_not_reached(x):
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        (Bad.apply(x) * 2).sum().backward()
    assert x.grad is None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def run_in_threads(count, work):
    errors = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_threads_with_graphs_of_their_own():
    def work(number):
        x = taeda.tensor([float(number)], requires_grad=True)
        for _ in range(50):
            x.grad = None
            (x * x * x).sum().backward()
            assert x.grad.tolist() == [3.0 * number**2]

    run_in_threads(6, work)


def test_threads_share_leaves_and_a_graph(x):
    shared = x * x

    def work(number):
        for _ in range(50):
            (g,) = grad((shared * number).sum(), x, retain_graph=True)
            np.testing.assert_array_equal(g.numpy(), 2.0 * number * np.array([1, 2, 3]))

    run_in_threads(6, work)


def test_threads_make_and_drop_graphs_of_one_leaf(x):
    def work(number):
        for _ in range(300):
            assert (x * 2).grad_fn.next_functions[0][0].name() == "AccumulateGrad"

    run_in_threads(6, work)


def test_a_leaf_has_one_accumulator_while_a_graph_lives(x):
    y, z = x * 2, x * 3
    a, b = y.grad_fn.next_functions[0][0], z.grad_fn.next_functions[0][0]
    assert a == b and a.variable is x
    assert get_gradient_edge(x).node == a


def test_accumulator_follows_data_of_another_shape(x):
    (x * 2).sum().backward()
    x.grad = None
    x.data = taeda.ones(2, 2, dtype=taeda.float64)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [[2, 2], [2, 2]]
