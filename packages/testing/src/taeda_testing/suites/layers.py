"""Behaviour of the kernels of layers and optimizers that no record reaches directly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing.conformance.checks import Suite, array_of, close, equal
from taeda_testing.suites.device import put, rng, slope

suite = Suite("layers")
CHECKS = suite.checks


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _lstm_step(x: np.ndarray, h: np.ndarray, c: np.ndarray, w: list[np.ndarray]) -> tuple[Any, Any]:
    i, f, g, o = np.split(x @ w[0].T + w[2] + h @ w[1].T + w[3], 4, axis=-1)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(c), c


def _gru_step(x: np.ndarray, h: np.ndarray, w: list[np.ndarray]) -> np.ndarray:
    a, b = x @ w[0].T + w[2], h @ w[1].T + w[3]
    (r1, z1, n1), (r2, z2, n2) = np.split(a, 3, axis=-1), np.split(b, 3, axis=-1)
    r, z = _sigmoid(r1 + r2), _sigmoid(z1 + z2)
    n = np.tanh(n1 + r * n2)
    return n + z * (h - n)


def _weights(source: np.random.Generator, gates: int, inputs: int, hidden: int) -> list[np.ndarray]:
    shapes = ((gates * hidden, inputs), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,))
    return [source.standard_normal(shape) * 0.5 for shape in shapes]


@suite.check(needs=["gradients", "recurrent", "float64"])
def lstm_cell(device: str) -> None:
    """One step of an LSTM and its gradients."""
    source = rng()
    x, h, c = (source.standard_normal((2, n)) for n in (3, 4, 4))
    w = _weights(source, 4, 3, 4)
    tx = put(x, device, grad=True)
    ht, ct = tensor.ops.lstm_cell(tx, [put(h, device), put(c, device)], *[put(a, device) for a in w])
    expected = _lstm_step(x, h, c, w)
    close("lstm_cell h", ht, expected[0])
    close("lstm_cell c", ct, expected[1])
    (ht.sum() + 2 * ct.sum()).backward()

    def loss(at: np.ndarray) -> float:
        hidden, cell = _lstm_step(at, h, c, w)
        return hidden.sum() + 2 * cell.sum()

    close("gradient of lstm_cell", tx.grad, slope(loss, x), 1e-4, 1e-5)


@suite.check(needs=["gradients", "recurrent", "float64"])
def gru_cell(device: str) -> None:
    """One step of a GRU and its gradients."""
    source = rng()
    x, h = source.standard_normal((2, 3)), source.standard_normal((2, 4))
    w = _weights(source, 3, 3, 4)
    tx = put(x, device, grad=True)
    found = tensor.ops.gru_cell(tx, put(h, device), *[put(a, device) for a in w])
    close("gru_cell", found, _gru_step(x, h, w))
    found.sum().backward()
    close("gradient of gru_cell", tx.grad, slope(lambda at: _gru_step(at, h, w).sum(), x), 1e-4, 1e-5)


@suite.check(needs=["gradients", "recurrent", "float64"])
def lstm_over_a_sequence(device: str) -> None:
    """An LSTM over several steps and its gradients."""
    source = rng()
    x, w = source.standard_normal((5, 2, 3)), _weights(source, 4, 3, 4)
    zeros = np.zeros((2, 4))

    def run(at: np.ndarray) -> np.ndarray:
        h, c, out = zeros, zeros, []
        for step in at:
            h, c = _lstm_step(step, h, c, w)
            out.append(h)
        return np.stack(out)

    tx, start = put(x, device, grad=True), put(zeros[None], device)
    output, _, _ = tensor.ops.lstm(
        tx, [start, start], [put(a, device) for a in w], True, 1, 0.0, True, False, False
    )
    close("lstm over 5 steps", output, run(x))
    output.sum().backward()
    close("gradient of lstm", tx.grad, slope(lambda at: run(at).sum(), x), 1e-4, 1e-5)


@suite.check(needs=["gradients", "convolution"])
def max_pooling_with_indices(device: str) -> None:
    """Maxima, their places in the plane, and the gradient that goes to these places."""
    array = rng().permutation(36).reshape(1, 1, 6, 6).astype(np.float32)
    x = put(array, device, grad=True)
    values, indices = tensor.ops.max_pool2d_with_indices(x, (2, 2))
    windows = array.reshape(3, 2, 3, 2).transpose(0, 2, 1, 3).reshape(3, 3, 4)
    close("max_pool2d_with_indices values", values, windows.max(-1)[None, None])
    places = [[int(np.flatnonzero(array.ravel() == m)[0]) for m in row] for row in windows.max(-1)]
    close("max_pool2d_with_indices indices", indices, np.array(places)[None, None])
    values.sum().backward()
    close("gradient of max_pool2d_with_indices", x.grad, np.isin(array, windows.max(-1)).astype(np.float32))


@suite.check(needs=["gradients", "higher-order", "convolution", "float64"])
def second_gradient_of_max_pooling(device: str) -> None:
    """The gradient of max pooling can itself be differentiated."""
    array = rng().permutation(16).reshape(1, 1, 4, 4).astype(np.float64)
    x = put(array, device, grad=True)
    tensor.max_pool2d(x * x * x, (2, 2)).sum().backward(create_graph=True)
    x.grad.sum().backward()
    first = np.zeros_like(array)
    tops = array.reshape(2, 2, 2, 2).transpose(0, 2, 1, 3).reshape(2, 2, 4).max(-1)
    mask = np.isin(array, tops)
    first[mask] = 3 * array[mask] ** 2
    second = np.where(mask, 6 * array, 0)
    close("first and second gradient together", x.grad, first + second)


@suite.check(needs=["gradients", "convolution"])
def adaptive_max_pooling(device: str) -> None:
    """Adaptive maxima over windows that do not divide the plane, and their gradient."""
    array = rng().permutation(35).reshape(1, 1, 5, 7).astype(np.float32)
    x = put(array, device, grad=True)
    values, _ = tensor.ops.adaptive_max_pool2d(x, (2, 3))
    rows, columns = [(0, 3), (2, 5)], [(0, 3), (2, 5), (4, 7)]
    expected = np.array([[array[0, 0, a:b, c:d].max() for c, d in columns] for a, b in rows])
    close("adaptive_max_pool2d(5x7 to 2x3)", values, expected[None, None])
    values.sum().backward()
    counts = sum((array == value).astype(np.float32) for value in expected.ravel())
    close("gradient of adaptive_max_pool2d", x.grad, counts)


def _fused(device: str, call: str, step: Callable[..., None], formula: Callable[..., Any], n: int) -> None:
    """Three fused steps of two parameters against a formula; ``n`` tensors of state for each."""
    source = rng()
    shapes = ((5,), (2, 3))
    values = [source.standard_normal(shape) for shape in shapes]
    grads = [[source.standard_normal(shape) for shape in shapes] for _ in range(3)]
    params = [put(value.astype(np.float32), device) for value in values]
    state = [[tensor.zeros_like(p) for p in params] for _ in range(n)]
    for t, given in enumerate(grads):
        step(params, [put(g.astype(np.float32), device) for g in given], state, t)
    for i, param in enumerate(params):
        close(f"{call} after 3 steps", param, formula(values[i], [g[i] for g in grads]), 1e-4, 1e-5)


@suite.check()
def fused_sgd(device: str) -> None:
    """The fused step of SGD equals its formula, with momentum, weight decay and all other options."""
    for options in (
        (0.0, 0.0, 0.0, False, False),
        (0.9, 0.0, 0.1, False, False),
        (0.9, 0.3, 0.0, False, True),
        (0.8, 0.0, 0.1, True, False),
    ):
        _fused_sgd(device, *options)


def _fused_sgd(
    device: str, momentum: float, dampening: float, decay: float, nesterov: bool, maximize: bool
) -> None:
    def step(params: list[Any], grads: list[Any], state: list[list[Any]], t: int) -> None:
        options = (0.05, momentum, dampening, decay, nesterov, maximize, t == 0)
        tensor.ops._fused_sgd_(params, grads, state[0] if momentum else [], *options)

    def formula(p: np.ndarray, grads: list[np.ndarray]) -> np.ndarray:
        buffer = None
        for given in grads:
            grad = (-given if maximize else given) + decay * p
            buffer = grad if buffer is None else momentum * buffer + (1 - dampening) * grad
            p = p - 0.05 * (grad if not momentum else grad + momentum * buffer if nesterov else buffer)
        return p

    call = f"_fused_sgd_({momentum=}, {dampening=}, {decay=}, {nesterov=}, {maximize=})"
    _fused(device, call, step, formula, 1)


@suite.check()
def fused_adam(device: str) -> None:
    """The fused step of Adam equals its formula, with weight decay of both kinds and all other options."""
    for options in (
        (0.0, False, False, False),
        (0.1, False, True, False),
        (0.1, False, False, True),
        (0.0, True, False, False),
    ):
        _fused_adam(device, *options)


def _fused_adam(device: str, decay: float, amsgrad: bool, maximize: bool, decoupled: bool) -> None:
    def step(params: list[Any], grads: list[Any], state: list[list[Any]], t: int) -> None:
        options = ([t + 1] * len(params), 0.05, 0.9, 0.99, 1e-8, decay, amsgrad, maximize, decoupled)
        tensor.ops._fused_adam_(params, grads, state[0], state[1], state[2] if amsgrad else [], *options)

    def formula(p: np.ndarray, grads: list[np.ndarray]) -> np.ndarray:
        m = v = top = np.zeros_like(p)
        for t, given in enumerate(grads, 1):
            grad = (-given if maximize else given) + (0 if decoupled else decay * p)
            p = p * (1 - 0.05 * decay) if decoupled else p
            m, v = 0.9 * m + 0.1 * grad, 0.99 * v + 0.01 * grad**2
            top = np.maximum(top, v) if amsgrad else v
            p = p - 0.05 * (m / (1 - 0.9**t)) / (np.sqrt(top / (1 - 0.99**t)) + 1e-8)
        return p

    call = f"_fused_adam_({decay=}, {amsgrad=}, {maximize=}, {decoupled=})"
    _fused(device, call, step, formula, 3)


@suite.check()
def running_statistics(device: str) -> None:
    """Batch normalisation moves its running statistics towards the batch's while training, and reads them after."""
    source = rng()
    x, mean, var = source.standard_normal((4, 3, 2)), source.standard_normal(3), source.uniform(0.5, 2, 3)
    array, *running = (put(a.astype(np.float32), device) for a in (x, mean, var))
    tensor.native_batch_norm(array, None, None, *running, False, 0.3, 1e-5)
    close("running_mean outside of training", running[0], mean)
    tensor.native_batch_norm(array, None, None, *running, True, 0.3, 1e-5)
    close("running_mean", running[0], 0.7 * mean + 0.3 * x.mean((0, 2)), 1e-4)
    close("running_var", running[1], 0.7 * var + 0.3 * x.var((0, 2), ddof=1), 1e-4)


@suite.check(needs=["convolution"])
def gradients_asked_for(device: str) -> None:
    """Operators that give several gradients leave out those that are not asked for and do not change the others."""
    source = rng()

    def random(*shape: int) -> Any:
        return put(source.standard_normal(shape).astype(np.float32), device)

    calls = {
        "conv2d_backward": (random(2, 3, 2, 2), random(2, 2, 3, 3), random(3, 2, 2, 2), [1], [0], [1], 1),
        "linear_backward": (random(2, 3), random(2, 4), random(3, 4)),
        "batch_norm_backward": (random(4, 3), random(4, 3), random(3), random(3), random(3), True),
        "layer_norm_backward": (random(2, 3), random(2, 3), [3], random(2, 1), random(2, 1), random(3)),
        "group_norm_backward": (random(2, 4, 3), random(2, 4, 3), 2, random(2, 2), random(2, 2), random(4)),
    }
    for name, args in calls.items():
        function = getattr(tensor.ops, name)
        whole = [array_of(gradient) for gradient in function(*args, 7)]
        for mask in range(7):
            for bit, found in enumerate(function(*args, mask)):
                if mask >> bit & 1:
                    close(f"{name}, gradient {bit} with output_mask={mask}", found, whole[bit])
                else:
                    equal(f"{name}, gradient {bit} with output_mask={mask}", found, None)
