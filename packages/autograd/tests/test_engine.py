"""The engine: deep, wide and tangled graphs, nested and failing backwards, threads, accumulators."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_autograd import Function, grad
from taeda_autograd.graph import get_gradient_edge


@pytest.fixture
def x():
    return taeda.tensor([1.0, 2.0, 3.0], dtype=taeda.float64, requires_grad=True)


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


def test_threads_add_into_one_leaf():
    x = taeda.ones(1000, requires_grad=True)

    def work(_):
        for _ in range(50):
            (x * 2).sum().backward()

    run_in_threads(4, work)
    assert x.grad.tolist() == [400.0] * 1000


def test_threads_make_and_drop_graphs_of_one_leaf(x):
    def work(number):
        for _ in range(300):
            assert (x * 2).grad_fn.next_functions[0][0].name() == "AccumulateGrad"

    run_in_threads(6, work)


def test_leaves_and_their_place(x):
    y = x * 2
    assert x.is_leaf and x.grad_fn is None and not y.is_leaf
    assert y.grad_fn.name() == "MulBackward0"
    (edge, *_) = y.grad_fn.next_functions
    assert edge[0].name() == "AccumulateGrad" and edge[0].variable is x
    # What programs ask that draw graphs.
    assert not hasattr(y.grad_fn, "variable") and type(y.grad_fn).__name__ == "MulBackward0"
    assert type(edge[0]).__name__ == "AccumulateGrad" and type((x * 3).grad_fn) is type(y.grad_fn)
    assert isinstance(edge[0], type(y.grad_fn).__mro__[1])
    with pytest.raises(TypeError):
        type(y.grad_fn)()
    assert y.detach().is_leaf and not y.detach().requires_grad


def test_a_leaf_has_one_accumulator_while_a_graph_lives(x):
    y, z = x * 2, x * 3
    a, b = y.grad_fn.next_functions[0][0], z.grad_fn.next_functions[0][0]
    assert a == b and a.variable is x
    assert get_gradient_edge(x).node == a


@pytest.mark.parametrize("dtype", [taeda.int64, taeda.uint8, taeda.bool])
def test_whole_numbers_are_weights_of_real_roots(x, dtype):
    weight = taeda.ones(x.shape, dtype=dtype)
    (x * 3).backward(weight)
    assert x.grad.dtype is x.dtype and (x.grad == 3).all()
    (found,) = grad([x.sum(), x * 2], x, [None, weight])
    assert found.dtype is x.dtype and (found == 3).all()
    with pytest.raises(RuntimeError, match="gradient"):
        x.to(taeda.complex64).backward(weight)


def test_accumulator_follows_data_of_another_shape(x):
    (x * 2).sum().backward()
    x.grad = None
    x.data = taeda.ones(2, 2, dtype=taeda.float64)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [[2, 2], [2, 2]]


def test_parts_of_a_tensor_add_to_one_gradient(x):
    y = x * taeda.tensor([2.0, 3.0, 4.0], dtype=taeda.float64)
    seen = []
    y.register_hook(lambda grad: seen.append(grad.numpy().copy()))
    (y[:2].sum() + y[1] * y[2] + y[::2].sum()).backward()
    np.testing.assert_allclose(seen, [[2, 1 + 12, 6 + 1]])
    np.testing.assert_allclose(x.grad.numpy(), [4, 39, 28])


def test_parts_of_a_leaf_add_to_its_gradient_once_more(x):
    for count in (1, 2):
        (x[:2].sum() + x[1] * x[2]).backward()
        np.testing.assert_allclose(x.grad.numpy(), np.multiply(count, [1, 4, 2]))
    kept = x.grad
    (derived,) = grad((x[:2] ** 3).sum() + x[1] ** 3, x, create_graph=True)
    derived.sum().backward()
    np.testing.assert_allclose(kept.numpy(), [2 + 6, 8 + 24, 4])


@pytest.mark.parametrize("padding", [None, 7])
def test_a_table_that_is_read_and_multiplied_by(padding):
    rng = np.random.default_rng(3)
    values, numbers = rng.standard_normal((50, 4)), np.array([[3, 3, 7], [7, 0, 49]])
    table = taeda.from_numpy(values.copy()).requires_grad_()
    rows = taeda.ops.embedding(table, taeda.from_numpy(numbers), -1 if padding is None else padding)
    (rows @ table.t()).sum().backward()
    expected = np.tile(values[numbers].sum((0, 1)), (50, 1))
    for number in numbers.ravel():
        if number != padding:
            expected[number] += values.sum(0)
    np.testing.assert_allclose(table.grad.numpy(), expected, rtol=1e-12)


def test_leaves_given_another_dtype_get_gradients_of_it_while_an_older_graph_lives():
    leaf = taeda.tensor([1.0, 2.0], requires_grad=True)
    older = leaf * 3  # keeps the leaf's place in the graph alive, as weights made at a layer's birth do
    leaf.data = leaf.data.to(taeda.float64)
    (leaf * leaf).sum().backward()
    assert leaf.grad.dtype == taeda.float64 and leaf.grad.tolist() == [2.0, 4.0]
    assert older.dtype == taeda.float32 and older.tolist() == [3.0, 6.0]
