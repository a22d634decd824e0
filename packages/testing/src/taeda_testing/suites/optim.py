"""Behaviour of an optimizer provider: steps held against formulas in NumPy, groups, states and errors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing.conformance.checks import Suite, array_of, close, equal, raises, true

suite = Suite("optim")
CHECKS = suite.checks
_STEPS = 4


def _parameter(array: Any) -> Any:
    return tensor.tensor(np.asarray(array, np.float64)).requires_grad_(True)


def _inputs() -> tuple[np.ndarray, list[np.ndarray]]:
    source = np.random.default_rng(11)
    return source.standard_normal((3, 2)), [source.standard_normal((3, 2)) for _ in range(_STEPS)]


def _step(optimizer: Any, parameter: Any, grad: np.ndarray) -> None:
    parameter.grad = tensor.tensor(grad)
    optimizer.step()


def _compare(part: Any, kind: str, options: dict[str, Any], formula: Callable[..., np.ndarray]) -> None:
    """Steps with given gradients against a formula, after each step."""
    start, grads = _inputs()
    parameter = _parameter(start)
    optimizer = getattr(part, kind)([parameter], **options)
    for done in range(1, _STEPS + 1):
        _step(optimizer, parameter, grads[done - 1])
        expected = formula(start, grads[:done], **options)
        close(f"{kind}({options}) after step {done}", parameter, expected, 1e-7, 1e-9)


def sgd(
    p: np.ndarray,
    grads: list[np.ndarray],
    lr: float,
    momentum: float = 0,
    dampening: float = 0,
    weight_decay: float = 0,
    nesterov: bool = False,
    maximize: bool = False,
) -> np.ndarray:
    """Gradient descent as a formula."""
    buffer = None
    for grad in grads:
        d = (-grad if maximize else grad) + weight_decay * p
        if momentum:
            buffer = d if buffer is None else momentum * buffer + (1 - dampening) * d
            d = d + momentum * buffer if nesterov else buffer
        p = p - lr * d
    return p


def adam(
    p: np.ndarray,
    grads: list[np.ndarray],
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0,
    amsgrad: bool = False,
    decoupled: bool = False,
) -> np.ndarray:
    """Adam as a formula; ``decoupled`` makes it AdamW."""
    m, v, top = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    for t, grad in enumerate(grads, 1):
        p = p * (1 - lr * weight_decay) if decoupled else p
        grad = grad if decoupled else grad + weight_decay * p
        m, v = betas[0] * m + (1 - betas[0]) * grad, betas[1] * v + (1 - betas[1]) * grad**2
        top = np.maximum(top, v)
        second = (top if amsgrad else v) / (1 - betas[1] ** t)
        p = p - lr / (1 - betas[0] ** t) * m / (np.sqrt(second) + eps)
    return p


@suite.check("SGD", "Optimizer.step")
def plain_descent(part: Any) -> None:
    """SGD without options is p - lr * g; weight decay and maximize enter the gradient."""
    for options in ({"lr": 0.1}, {"lr": 0.1, "weight_decay": 0.2}, {"lr": 0.1, "maximize": True}):
        _compare(part, "SGD", options, sgd)


@suite.check("SGD")
def momentum(part: Any) -> None:
    """SGD with momentum, dampening and Nesterov's variant."""
    for extra in ({}, {"dampening": 0.3}, {"nesterov": True}, {"weight_decay": 0.1}):
        _compare(part, "SGD", {"lr": 0.1, "momentum": 0.9, **extra}, sgd)


@suite.check("Adam")
def adam_steps(part: Any) -> None:
    """Adam with its options equals the formula."""
    for extra in ({}, {"betas": (0.8, 0.95)}, {"weight_decay": 0.1}, {"amsgrad": True}, {"eps": 0.01}):
        _compare(part, "Adam", {"lr": 0.05, **extra}, adam)


@suite.check("AdamW")
def decoupled_weight_decay(part: Any) -> None:
    """AdamW shrinks the parameter itself, by 0.01 by default."""

    def formula(*args: Any, **options: Any) -> np.ndarray:
        return adam(*args, **{"weight_decay": 0.01, **options}, decoupled=True)

    for extra in ({}, {"weight_decay": 0.3}):
        _compare(part, "AdamW", {"lr": 0.05, **extra}, formula)


@suite.check("Optimizer.zero_grad")
def clearing_gradients(part: Any) -> None:
    """`zero_grad` drops gradients, or fills them with zeros when told so."""
    parameter = _parameter([1.0, 2.0])
    optimizer = part.SGD([parameter], lr=0.1)
    parameter.grad = tensor.ones(2, dtype=tensor.float64)
    optimizer.zero_grad(set_to_none=False)
    close("grad after zero_grad(set_to_none=False)", parameter.grad, [0, 0])
    optimizer.zero_grad()
    equal("grad after zero_grad()", parameter.grad, None)


@suite.check("Optimizer.step")
def parameters_without_gradients(part: Any) -> None:
    """Parameters without a gradient stay as they are, and get no state."""
    first, second = _parameter([1.0]), _parameter([1.0])
    for kind in ("SGD", "Adam"):
        optimizer = getattr(part, kind)([first, second], lr=0.1)
        _step(optimizer, first, np.array([1.0]))
        close(f"{kind}: the parameter without gradient", second, [1.0], 0, 0)


@suite.check("Optimizer", "Optimizer.add_param_group")
def groups(part: Any) -> None:
    """Groups have options of their own, defaults fill the rest, more can be added."""
    a, b, c = _parameter([1.0]), _parameter([1.0]), _parameter([1.0])
    optimizer = part.SGD([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.1)
    optimizer.add_param_group({"params": [c], "lr": 0.25})
    equal("lr of the groups", [group["lr"] for group in optimizer.param_groups], [0.1, 0.5, 0.25])
    for p in (a, b, c):
        p.grad = tensor.ones(1, dtype=tensor.float64)
    optimizer.step()
    close("parameters after a step", [array_of(p)[0] for p in (a, b, c)], [0.9, 0.5, 0.75])
    optimizer.param_groups[0]["lr"] = 1.0
    optimizer.step()
    close("after lr was changed in the group", a, [-0.1])


@suite.check("Optimizer.step", needs=["closure"])
def closures(part: Any) -> None:
    """`step` calls a closure with recording on and returns its loss."""
    parameter = _parameter([2.0])
    optimizer = part.SGD([parameter], lr=0.5)
    seen = []

    def closure() -> float:
        seen.append(tensor.is_grad_enabled())
        parameter.grad = tensor.ones(1, dtype=tensor.float64)
        return 7.5

    equal("step(closure)", optimizer.step(closure), 7.5)
    equal("is_grad_enabled() in the closure", seen, [True])
    close("the parameter", parameter, [1.5])


@suite.check("Optimizer.state_dict", "Optimizer.load_state_dict", needs=["saving"])
def state_round_trip(part: Any) -> None:
    """An optimizer that loads another's state goes on exactly as the other."""
    start, grads = _inputs()
    for kind, options in (
        ("SGD", {"lr": 0.1, "momentum": 0.9}),
        ("Adam", {"lr": 0.05}),
        ("AdamW", {"lr": 0.05}),
    ):
        first = _parameter(start)
        optimizer = getattr(part, kind)([first], **options)
        for grad in grads[:2]:
            _step(optimizer, first, grad)
        second = _parameter(array_of(first))
        other = getattr(part, kind)([second], lr=0.7)
        other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        for grad in grads[2:]:
            _step(optimizer, first, grad)
            _step(other, second, grad)
        close(f"{kind} restored after two steps, two steps later", second, array_of(first), 0, 0)
        equal(f"{kind}: lr after load_state_dict", other.param_groups[0]["lr"], options["lr"])


@suite.check("Optimizer.load_state_dict", needs=["saving"])
def wrong_states(part: Any) -> None:
    """A state of another number of parameters is a ValueError that changes nothing."""
    one, two = _parameter([1.0]), _parameter([2.0])
    saved = part.SGD([one, two], lr=0.3).state_dict()
    optimizer = part.SGD([_parameter([1.0])], lr=0.1)
    with raises("load_state_dict of two parameters into one", ValueError):
        optimizer.load_state_dict(saved)
    equal("lr afterwards", optimizer.param_groups[0]["lr"], 0.1)


@suite.check("Optimizer", "SGD")
def wrong_arguments(part: Any) -> None:
    """No parameters, a bare tensor, things that are no tensors, a parameter twice and a negative rate are errors."""
    parameter = _parameter([1.0])
    with raises("SGD([])", ValueError):
        part.SGD([], lr=0.1)
    with raises("SGD(tensor)", TypeError):
        part.SGD(parameter, lr=0.1)
    with raises("SGD([1.0])", TypeError):
        part.SGD([1.0], lr=0.1)
    with raises("SGD(lr=-1)", ValueError):
        part.SGD([parameter], lr=-1.0)
    with raises("the same parameter in two groups", ValueError):
        part.SGD([{"params": [parameter]}, {"params": [parameter]}], lr=0.1)


@suite.check("Optimizer", "lr_scheduler")
def schedules(part: Any) -> None:
    """`lr_scheduler.StepLR` multiplies the rate every given number of steps."""
    parameter = _parameter([1.0])
    optimizer = part.SGD([parameter], lr=1.0)
    schedule = part.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
    rates = []
    for _ in range(5):
        rates.append(optimizer.param_groups[0]["lr"])
        _step(optimizer, parameter, np.array([0.0]))
        schedule.step()
    close("rates of StepLR(2, 0.1)", rates, [1, 1, 0.1, 0.1, 0.01])


@suite.check("Optimizer")
def own_optimizers(part: Any) -> None:
    """A subclass with its own `step` finds groups, defaults and state."""

    class Signs(part.Optimizer):
        def step(self, closure: Any = None) -> None:
            with tensor.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        state = self.state[p]
                        state["steps"] = state.get("steps", 0) + 1
                        p.add_(p.grad.sign(), alpha=-group["lr"])

    parameter = _parameter([1.0, 1.0])
    optimizer = Signs([parameter], {"lr": 0.5})
    for _ in range(2):
        _step(optimizer, parameter, np.array([3.0, -4.0]))
    close("parameter after two steps", parameter, [0.0, 2.0])
    equal("its state", dict(optimizer.state[parameter]), {"steps": 2})
    true("Signs([...])", isinstance(optimizer, part.Optimizer), "an Optimizer")


@suite.check("SGD", "Adam", needs=["gradients"])
def fitting(part: Any) -> None:
    """Both algorithms fit a linear model from its own gradients."""
    source = np.random.default_rng(5)
    wanted = np.array([[1.0], [-2.0]])
    x = tensor.tensor(source.standard_normal((50, 2)))
    y = tensor.tensor(array_of(x) @ wanted)
    for kind, lr in (("SGD", 0.2), ("Adam", 0.1)):
        w = _parameter(np.zeros((2, 1)))
        optimizer = getattr(part, kind)([w], lr=lr)
        for _ in range(200):
            optimizer.zero_grad()
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            optimizer.step()
        close(f"weights fitted by {kind}", w, wanted, 0, 1e-2)
