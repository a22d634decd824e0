"""Function: how mistakes in a user's own operation are told, and what they leave behind."""

from __future__ import annotations

import subprocess
import sys

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import Function, grad, once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


@pytest.fixture
def x():
    return taeda.tensor([1.0, 2.0], requires_grad=True)


def test_once_differentiable(x):
    class Once(Function):
        @staticmethod
        def forward(ctx, t):
            ctx.save_for_backward(t)
            return t * t

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    (g,) = grad(Once.apply(x).sum(), x)
    assert g.tolist() == [2, 4]
    (g,) = grad((Once.apply(x) * x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


def test_intermediate_of_forward_has_no_silent_second_derivative(x):
    class Hidden(Function):
        @staticmethod
        def forward(ctx, t):
            square = t * t
            ctx.save_for_backward(square)
            return t * square

        @staticmethod
        def backward(ctx, g):
            return 3 * ctx.saved_tensors[0] * g

    (g,) = grad(Hidden.apply(x).sum(), x, create_graph=True)
    assert g.tolist() == [3, 12]
    with pytest.raises(RuntimeError, match="second derivative"):
        g.sum().backward()


@pytest.mark.parametrize("alias", [False, True])
def test_saved_input_that_changed_is_found(x, alias):
    y = x * 1
    z = Cube.apply(y)
    (y.detach() if alias else y).add_(1)
    with pytest.raises(RuntimeError, match=r"CubeBackward.*modified.*version"):
        z.sum().backward()


def test_saved_tensors_are_freed_by_backward(x):
    y = Cube.apply(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=r"Cube.*freed.*retain_graph"):
        y.backward()


def returning(value):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * 1

        @staticmethod
        def backward(ctx, g):
            return value(g)

    return Wrong


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (lambda g: g, RuntimeError, r"incorrect number of gradients \(expected 2, .*got 1\)"),
        (lambda g: (g, None, g), RuntimeError, r"incorrect number of gradients \(expected 2, .*got 3\)"),
        (lambda g: (g, g), RuntimeError, "argument 1 of forward, which is no tensor"),
        (lambda g: ("text", None), TypeError, "returned str for argument 0"),
        (lambda g: (taeda.ones(7), None), RuntimeError, "Wrong.*shape"),
        (lambda g: (g[:1], None), RuntimeError, "Wrong.*shape"),
    ],
)
def test_wrong_results_of_backward(x, value, error, words):
    y = returning(value).apply(x, 3)
    with pytest.raises(error, match=words):
        y.sum().backward()
    assert x.grad is None


def test_trailing_none_results_are_allowed(x):
    returning(lambda g: (g, None, None)).apply(x, 3).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_no_gradient_at_all_is_allowed(x):
    returning(lambda g: (None, None)).apply(x, 3).sum().backward()
    assert x.grad is None


def test_a_function_without_a_rule_for_vmap_says_so():
    with pytest.raises(NotImplementedError, match="'vmap'"):
        Function.vmap(None, (0,), taeda.ones(2))


def test_misuse():
    with pytest.warns(DeprecationWarning, match=r"Cube.*apply"):
        made = Cube()
    with pytest.raises(RuntimeError, match=r"Cube.*apply"):
        made(taeda.ones(1))
    with pytest.raises(NotImplementedError, match=r"Empty.*forward"):
        type("Empty", (Function,), {}).apply(taeda.ones(1, requires_grad=True))

    class Half(Function):
        @staticmethod
        def forward(ctx, t):
            return t * 1

    with pytest.raises(NotImplementedError, match=r"Half.*backward"):
        Half.apply(taeda.ones(1, requires_grad=True)).backward()

    class Saves(Half):
        @staticmethod
        def forward(ctx, t):
            ctx.save_for_backward("text")
            return t

    with pytest.raises(
        TypeError, match="save_for_backward can only save tensors and None, but argument 0 is of"
    ):
        Saves.apply(taeda.ones(1, requires_grad=True))
    assert Saves.apply(taeda.ones(1)).tolist() == [1]  # no graph, nothing is saved


@pytest.mark.parametrize("place", ["forward", "setup", "backward"])
def test_errors_of_users_pass_through_and_leave_the_mode(x, place):
    class Stop(Exception):
        pass

    class Raises(Function):
        @staticmethod
        def forward(t):
            if place == "forward":
                raise Stop
            return t * 1

        @staticmethod
        def setup_context(ctx, inputs, output):
            if place == "setup":
                raise Stop

        @staticmethod
        def backward(ctx, g):
            raise Stop

    with pytest.raises(Stop):
        Raises.apply(x).sum().backward()
    assert taeda.is_grad_enabled() and x.grad is None
    assert (x * 2).requires_grad


@pytest.mark.parametrize("show", [lambda x: x.view(-1), lambda x: x[0], lambda x: x])
def test_views_of_inputs_that_a_function_returned_are_not_modified(show):
    class Show(Function):
        @staticmethod
        def forward(ctx, x):
            return show(x)

        @staticmethod
        def backward(ctx, grad):
            return grad.expand(2, 2).reshape(2, 2) if grad.numel() == 2 else grad.reshape(2, 2)

    x = taeda.ones(2, 2, requires_grad=True) * 1
    y = Show.apply(x)
    with pytest.raises(
        RuntimeError, match=r"^mul_: .* was returned by a Function and shows one of its inputs"
    ):
        y.mul_(5)
    assert x.tolist() == [[1, 1], [1, 1]]
    y.clone().mul_(5).sum().backward()


def test_one_name_for_the_gradient(make):
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

        vjp = backward

    with pytest.raises(RuntimeError, match="Both: Implementing both 'backward' and 'vjp' is not allowed"):
        Both.apply(make(1)).backward()


REFUSED = """
import _testcapi, sys
import taeda_autograd as autograd
from taeda_registry.slots import tensor

class Product(autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x

x = tensor.tensor([2.0], requires_grad=True)
refused = 0
for number in range(1, 80):
    _testcapi.set_nomemory(number, number + 1)
    try:
        made = Product.apply(x, x)
    except MemoryError:
        made = None
    finally:
        _testcapi.remove_mem_hooks()
    if made is None:
        refused += 1
    else:
        x.grad = None
        made.backward()
        assert x.grad.tolist() == [4.0], number
print(refused)
"""


def test_what_is_saved_is_there_or_memory_was_refused():
    """Each of the interpreter's own requests for memory in turn."""
    pytest.importorskip("_testcapi", reason="the interpreter's own tests are not installed")
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and int(done.stdout) > 3, done.stderr
