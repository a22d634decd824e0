"""Behaviour of an autograd provider: gradients of programs over the tensor slot's operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing.conformance.checks import Suite, array_of, close, equal, raises, true

suite = Suite("autograd")
CHECKS = suite.checks


def _leaf(data: Any) -> Any:
    return tensor.tensor(np.asarray(data, np.float64)).requires_grad_(True)


@suite.check("backward")
def backward_of_a_scalar(part: Any) -> None:
    """`backward` of a loss fills `.grad` of its leaves; a second one adds to it."""
    x = _leaf([1.0, 2.0, 3.0])
    (x * x).sum().backward()
    close("grad of sum(x * x)", x.grad, [2, 4, 6])
    part.backward([(3 * x).sum()])
    close("grad after a second backward", x.grad, [5, 7, 9])


@suite.check("backward")
def backward_with_a_weight(part: Any) -> None:
    """A result that is no scalar needs the gradient of itself."""
    x = _leaf([1.0, 2.0])
    y = x * x
    with raises("backward of a vector", RuntimeError):
        y.backward()
    y.backward(tensor.tensor([1.0, 10.0], dtype=tensor.float64))
    close("grad of x * x with weights (1, 10)", x.grad, [2, 40])


@suite.check("backward")
def shared_subexpressions(part: Any) -> None:
    """A value that is used on several ways gets the sum of their gradients."""
    x = _leaf(2.0)
    y = x * x
    (y * y + y.exp() * x).backward()
    expected = 4 * 8 + np.exp(4) * 4 * 2 + np.exp(4)
    close("grad of x^4 + exp(x^2) * x at 2", x.grad, expected)


@suite.check("backward")
def broadcasting(part: Any) -> None:
    """Gradients of broadcast operands have the operands' shapes."""
    a, b = _leaf(np.ones((2, 3))), _leaf(np.ones(3))
    ((a + 2 * b) * a).sum().backward()
    close("gradient of the matrix", a.grad, np.full((2, 3), 4))
    close("gradient of the row", b.grad, np.full(3, 4))


@suite.check("backward")
def network_operators(part: Any) -> None:
    """A small network with a softmax loss against central differences."""
    source = np.random.default_rng(3)
    x, w, v = (source.standard_normal(shape) for shape in ((4, 3), (3, 5), (5, 2)))
    picks = np.eye(2)[[0, 1, 1, 0]]

    def loss(weights: np.ndarray) -> float:
        z = np.tanh(x @ weights) @ v
        return float(-(picks * (z - np.log(np.exp(z).sum(1, keepdims=True)))).sum() / 4)

    weights = _leaf(w)
    hidden = tensor.tanh(tensor.tensor(x) @ weights)
    scores = tensor.log_softmax(hidden @ tensor.tensor(v), 1)
    total = -(tensor.tensor(picks) * scores).sum() / 4
    close("the loss", total, loss(w))
    total.backward()
    numeric = np.zeros_like(w)
    for at in np.ndindex(w.shape):
        up, down = w.copy(), w.copy()
        up[at] += 1e-6
        down[at] -= 1e-6
        numeric[at] = (loss(up) - loss(down)) / 2e-6
    close("gradient of the first layer", weights.grad, numeric, 1e-5, 1e-7)


@suite.check("grad")
def gradients_as_results(part: Any) -> None:
    """`grad` returns gradients and leaves `.grad` alone; unused inputs are an error unless allowed."""
    x, y = _leaf([1.0, 2.0]), _leaf([3.0])
    (found,) = part.grad((x * x).sum(), [x])
    close("grad(sum(x * x), x)", found, [2, 4])
    equal("x.grad afterwards", x.grad, None)
    with raises("grad with an unused input", RuntimeError):
        part.grad((x * x).sum(), [x, y])
    _, unused = part.grad((x * x).sum(), [x, y], allow_unused=True)
    equal("gradient of an unused input", unused, None)


@suite.check("grad")
def intermediate_results(part: Any) -> None:
    """`grad` may be asked of a value in the middle of a program."""
    x = _leaf(3.0)
    middle = x * 2
    (found,) = part.grad(middle * middle, [middle])
    close("d(m^2)/dm at 6", found, 12)


@suite.check("grad", needs=["higher-order"])
def gradients_of_gradients(part: Any) -> None:
    """With create_graph, gradients can be differentiated again."""
    x = _leaf([1.0, 2.0])
    (first,) = part.grad((x * x * x).sum(), [x], create_graph=True)
    close("first derivative of x^3", first, [3, 12])
    (second,) = part.grad(first.sum(), [x], create_graph=True)
    close("second derivative of x^3", second, [6, 12])
    (third,) = part.grad(second.sum(), [x])
    close("third derivative of x^3", third, [6, 6])


@suite.check("backward")
def freed_graphs(part: Any) -> None:
    """A graph is used once; a second backward is an error, unless it was told to keep it."""
    x = _leaf([1.0])
    y = (x * x).exp()
    y.backward(retain_graph=True)
    y.backward()
    with raises("a third backward", RuntimeError):
        y.backward()


@suite.check("no_grad", "enable_grad", "set_grad_enabled", "inference_mode")
def switching_off(part: Any) -> None:
    """Nothing is recorded under `no_grad`, `set_grad_enabled(False)` and `inference_mode`."""
    x = _leaf([1.0])
    for name, mode in (
        ("no_grad()", part.no_grad()),
        ("set_grad_enabled(False)", part.set_grad_enabled(False)),
        ("inference_mode()", part.inference_mode()),
    ):
        with mode:
            equal(f"(x * 2).requires_grad under {name}", (x * 2).requires_grad, False)
    equal("(x * 2).requires_grad afterwards", (x * 2).requires_grad, True)
    with part.no_grad(), part.enable_grad():
        equal("(x * 2).requires_grad under enable_grad()", (x * 2).requires_grad, True)

    @part.no_grad()
    def doubled(value: Any) -> Any:
        return value * 2

    equal("doubled(x).requires_grad as a decorator", doubled(x).requires_grad, False)
    with raises("an exception passes through no_grad", KeyError), part.no_grad():
        raise KeyError("on purpose")
    equal("is_grad_enabled() afterwards", tensor.is_grad_enabled(), True)


@suite.check("backward")
def what_requires_gradients(part: Any) -> None:
    """Results require gradients when an input does; detached ones and integers do not."""
    x = _leaf([1.0, 2.0])
    true("(x + 1).requires_grad", (x + 1).requires_grad, "True")
    equal("x.detach().requires_grad", x.detach().requires_grad, False)
    equal("(x > 1).requires_grad", (x > 1).requires_grad, False)
    equal("x.argmax().requires_grad", x.argmax().requires_grad, False)
    with raises("integers that require gradients", RuntimeError):
        tensor.tensor([1]).requires_grad_(True)
    with raises("backward without anything recorded", RuntimeError):
        tensor.ones(1).sum().backward()


@suite.check("Function")
def own_functions(part: Any) -> None:
    """A user's `Function` is called forward, and backward with what it saved."""

    class Cube(part.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float) -> Any:
            ctx.save_for_backward(x)
            ctx.factor = factor
            return x * x * x * factor

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 5 * x * ctx.factor, None

    x = _leaf([1.0, 2.0])
    y = Cube.apply(x, 2.0)
    close("Cube.apply(x, 2)", y, [2, 16])
    y.sum().backward()
    close("grad by the deliberately other formula 5 x * 2", x.grad, [10, 20])


@suite.check("Function")
def errors_in_functions(part: Any) -> None:
    """An exception in a user's backward arrives with its own type, and later programs work."""

    class Broken(part.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise KeyError("on purpose")

    x = _leaf([1.0])
    with raises("backward through a broken Function", KeyError, words=["on purpose"]):
        Broken.apply(x).sum().backward()
    (x * 3).sum().backward()
    close("grad of 3 x afterwards", x.grad, [3])


@suite.check("backward")
def hooks(part: Any) -> None:
    """A tensor's hook sees its gradient and may replace it; a removed one is not called."""
    x = _leaf([1.0, 2.0])
    seen: list[Any] = []
    first = x.register_hook(lambda grad: seen.append(array_of(grad).tolist()))
    x.register_hook(lambda grad: grad * 10)
    (x * 2).sum().backward()
    equal("gradient that the hook saw", seen, [[2.0, 2.0]])
    close("grad that another hook replaced", x.grad, [20, 20])
    first.remove()
    (x * 2).sum().backward()
    equal("calls of a removed hook", len(seen), 1)


@suite.check("backward")
def in_place_changes(part: Any) -> None:
    """A value changed after it was saved makes backward an error; harmless changes are differentiated."""
    x = _leaf([1.0, 2.0])
    y = x * 2
    y += 1
    y.sum().backward()
    close("grad through y += 1", x.grad, [2, 2])
    middle = x * 2
    out = middle * middle
    middle += 1
    with raises("backward after a saved value changed", RuntimeError):
        out.sum().backward()
    with raises("in-place change of a leaf", RuntimeError):
        x += 1


@suite.check("backward")
def views(part: Any) -> None:
    """Gradients go through slices, reshapes and transposes to the right places."""
    x = _leaf(np.arange(6.0).reshape(2, 3))
    (x[1, ::2] * x.t().reshape(6)[:2]).sum().backward()
    close("grad of sum(x[1, ::2] * x.t().reshape(6)[:2])", x.grad, [[3, 0, 0], [5, 0, 3]])
