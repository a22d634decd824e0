"""backward and grad: every argument, accumulation, what is freed, higher orders, dtypes and shapes."""

from __future__ import annotations

import time

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_autograd import backward, grad


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


def test_several_roots_with_weights(x):
    backward([x * 2, (x * x).sum()], [taeda.tensor([1.0, 1, 0], dtype=taeda.float64), None])
    assert x.grad.tolist() == [4, 6, 6]


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
    (x + 0).backward(weight)
    assert weight.tolist() == [1, 1, 1] and x.grad.tolist() == [2, 2, 2]
    weight.mul_(100)
    assert x.grad.tolist() == [2, 2, 2]


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


def test_inputs_limits_the_accumulation(x):
    w = taeda.ones(3, dtype=taeda.float64, requires_grad=True)
    y = x * w
    backward((y * y).sum(), inputs=[w])
    assert x.grad is None and w.grad.tolist() == [2, 8, 18]
    y = x * w
    (y * 3).sum().backward(inputs=[y])
    assert y.grad.tolist() == [3, 3, 3] and x.grad is None


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: (x * 2).backward(), RuntimeError, "scalar"),
        (lambda x: x.detach().sum().backward(), RuntimeError, "does not require grad"),
        (
            lambda x: (x * 2).backward(taeda.ones(4)),
            RuntimeError,
            r"shape of \(4,\) and output\[0\] has a shape of \(3,\)",
        ),
        (lambda x: (x * 2).backward("one"), TypeError, "str"),
        (lambda x: backward([x.sum(), x.sum()], [None]), RuntimeError, "1.*2"),
        (lambda x: backward(x.sum(), inputs=[]), RuntimeError, "inputs"),
        (lambda x: (x.sum() * 1j).backward(), RuntimeError, "complex|real"),
        (lambda x: grad(x.sum(), []), RuntimeError, "inputs"),
        (lambda x: grad((x * 2).sum(), x.detach()), RuntimeError, "input 0.*require grad"),
        (
            lambda x: grad(x.sum(), x, materialize_grads=True, allow_unused=False),
            ValueError,
            "materialize_grads",
        ),
        (lambda x: grad(3.0, x), TypeError, "float"),
        (lambda x: grad(x.sum(), "x"), TypeError, "str"),
    ],
)
def test_wrong_calls_change_nothing(call, error, words, x):
    with pytest.raises(error, match=words):
        call(x)
    assert x.grad is None and (x * 1).requires_grad


@pytest.mark.parametrize(
    ("function", "derivatives"),
    [
        (lambda x: x**5, [lambda v: 5 * v**4, lambda v: 20 * v**3, lambda v: 60 * v**2, lambda v: 120 * v]),
        (lambda x: (x * 2).exp(), [lambda v, n=n: 2**n * np.exp(2 * v) for n in (1, 2, 3, 4)]),
    ],
)
def test_derivatives_of_higher_order(function, derivatives):
    x = taeda.tensor(0.7, dtype=taeda.float64, requires_grad=True)
    y = function(x)
    for derivative in derivatives:
        (y,) = grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(derivative(0.7), rel=1e-12)


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


@pytest.mark.parametrize("name", ["elu", "celu"])
def test_the_second_derivative_at_the_kink_belongs_to_the_line(name):
    x = taeda.tensor([-1.0, 0.0, 1.0], dtype=taeda.float64, requires_grad=True)
    (slope,) = grad(getattr(taeda.ops, name)(x).sum(), x, create_graph=True)
    (bend,) = grad(slope.sum(), x)
    assert slope.tolist() == pytest.approx([np.exp(-1), 1, 1])
    assert bend.tolist() == pytest.approx([np.exp(-1), 0, 0])


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


def let_go_by_detach(leaf):
    leaf.detach_()


def let_go_by_requires_grad(leaf):
    leaf.requires_grad_(False)


@pytest.mark.parametrize("let_go", [let_go_by_detach, let_go_by_requires_grad])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("hooked", [False, True])
def test_a_leaf_that_was_let_go_gets_no_gradient(let_go, create_graph, hooked):
    """A graph made before does not fill its .grad; the other leaves get theirs."""
    x, other = (taeda.ones(2, requires_grad=True) for _ in range(2))
    called = []
    if hooked:
        x.register_post_accumulate_grad_hook(lambda leaf: called.append(1))
    y = (x * 3 * other).sum()
    let_go(x)
    y.backward(create_graph=create_graph)
    assert x.grad is None and other.grad.tolist() == [3, 3] and not called
    x.requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_gradients_of_a_dtype_of_their_own():
    """They are kept and added up in it; the computation is in the leaf's."""
    x = taeda.ones(3, dtype=taeda.bfloat16, requires_grad=True)
    assert x.grad_dtype is taeda.bfloat16
    x.grad_dtype = taeda.float32
    for _ in range(3):
        (x * 1.5).sum().backward()
    assert x.grad.dtype is taeda.float32 and x.grad.tolist() == [4.5] * 3
    with pytest.raises(RuntimeError, match="already"):
        x.grad_dtype = taeda.float64
    x.grad = None
    with pytest.raises(RuntimeError, match="expected a tensor of dtype float32, found bfloat16"):
        x.grad = taeda.ones(3, dtype=taeda.bfloat16)
    x.grad_dtype = None
    assert x.grad_dtype is None
    x.grad = taeda.ones(3, dtype=taeda.float64)
    assert x.grad.dtype is taeda.float64
    with pytest.raises(RuntimeError, match="leaf tensors"):
        (x * 2).grad_dtype  # noqa: B018


def test_classes_answer_for_gradients():
    class Sums(taeda.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, len(args) + len(kwargs or {})

    x = taeda.ones(2, requires_grad=True)
    sums = taeda.ones(2).as_subclass(Sums)
    assert grad(sums, x) == grad([sums], x) == grad(x, [sums]) == ("grad", 2)
    assert backward(sums) == backward([x, sums]) == ("backward", 1)
    assert grad((x * x).sum(), x)[0].tolist() == [2, 2]


def test_the_gradient_by_its_private_name(x):
    x._grad = taeda.ones(3, dtype=taeda.float64)
    (x * 2).sum().backward()
    assert x.grad.tolist() == x._grad.tolist() == [3, 3, 3]
    x._grad = None
    assert x.grad is None
    with pytest.raises(TypeError, match="expected a Tensor or None"):
        x._grad = 1.0


def test_gradients_by_name(x):
    weights = {"w": x, "unused": taeda.ones(2, requires_grad=True)}
    found = grad((x * x).sum(), weights, allow_unused=True)
    assert list(found) == ["w", "unused"] and found["unused"] is None
    assert found["w"].tolist() == (2 * x).tolist()
    filled = grad((x * x).sum(), weights, materialize_grads=True)
    assert filled["unused"].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="empty"):
        grad((x * x).sum(), {})


def test_weights_behind_those_of_the_roots_are_left(x):
    weights = (taeda.full_like(x, 2.0), taeda.ones(7))
    assert (grad([x * 3], x, weights)[0] == 6).all()
    backward([x * 3], (weights[0], None))
    assert (x.grad == 6).all()


def test_weights_are_as_many_as_the_roots(x):
    (x * 2).backward([taeda.ones(3) * 2])
    assert x.grad.tolist() == [4, 4, 4]
    for weights in ((), (taeda.tensor(1.0),)):
        with pytest.raises(RuntimeError, match="expected one for each"):
            grad([(x * 2).sum(), x.sum()], x, weights)
        with pytest.raises(RuntimeError, match="expected one for each"):
            backward([(x * 2).sum(), x.sum()], weights)


@pytest.mark.parametrize(
    ("change", "shape"),
    [(lambda x: x.unsqueeze_(0), (1, 3)), (lambda x: setattr(x, "data", taeda.ones(2, 3)), (2, 3))],
)
def test_a_leaf_of_another_shape_gets_gradients_of_that_shape(change, shape):
    x = taeda.ones(3, requires_grad=True)
    before = x * 2  # a graph that stays
    with taeda.no_grad():
        change(x)
    x.backward(taeda.full(shape, 5.0))
    assert x.grad.shape == shape and set(x.grad.flatten().tolist()) == {5.0}
    x.grad = None
    (x * 3)[..., 1:].sum().backward()
    assert x.grad.tolist() == [[0, 3, 3]] * shape[0] and before.grad_fn is not None


def test_gradients_for_a_late_value_do_not_walk_the_graph_before_it():
    def seconds(earlier: int) -> float:
        y = taeda.ones(3, requires_grad=True)
        for _ in range(earlier):
            y = y * 1.0
        best = float("inf")
        for _ in range(5):
            total = (y * y).sum()
            begin = time.perf_counter()
            (found,) = grad(total, y, create_graph=True)
            best = min(best, time.perf_counter() - begin)
        assert found.tolist() == [2, 2, 2]
        return best

    assert seconds(50_000) < 30 * seconds(5)


def test_gradients_for_values_of_different_ages():
    x = taeda.tensor([2.0, 3.0], requires_grad=True)
    early = x * x
    late = (early * x).sin()
    loss = (late * early).sum()
    by_late, by_early, by_x = grad(loss, [late, early, x], retain_graph=True)
    assert by_late.equal(early)
    x0 = x.detach()
    expected = (x0**3).sin() + x0**3 * (x0**3).cos()
    assert taeda.allclose(by_early, expected)
    assert taeda.allclose(by_x, expected * 2 * x0 + x0**4 * (x0**3).cos())
    other = (early * 2).sum()  # recorded after `late`, which it does not come from
    assert grad(other, [late], allow_unused=True) == (None,)


def test_capsules_of_tensors_that_require_gradients(x):
    for given in (x, x * 2):
        shown = taeda.from_dlpack(taeda.to_dlpack(given))
        assert (
            shown.equal(given.detach()) and not shown.requires_grad and shown.data_ptr() == given.data_ptr()
        )
        with pytest.raises(BufferError, match="requires grad"):
            given.__dlpack__()
