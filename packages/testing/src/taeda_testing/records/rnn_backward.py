"""Records of the gradients of recurrent gates and sequences, step by step backwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import FLOATS, ErrorSample, OpRecord, Sample
from taeda_testing.records.rnn import gates, gru_gates, lstm_gates, lstm_sequence, sequences, wide


def _lstm_step(grad_h: Any, grad_c: Any, active: np.ndarray, c: np.ndarray, c_out: np.ndarray) -> Any:
    """Gradients of the gates before their activation, and of the cell before the step."""
    grad_h, grad_c = (0 if grad is None else grad for grad in (grad_h, grad_c))
    i, f, g, o = np.split(active, 4, axis=-1)
    t = np.tanh(c_out)
    dc = grad_c + grad_h * o * (1 - t * t)
    parts = (dc * g * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - g * g), grad_h * t * o * (1 - o))
    return np.concatenate(parts, -1), dc * f


def _gru_step(grad: np.ndarray, active: np.ndarray, h: np.ndarray) -> Any:
    r, z, n, hn = np.split(active, 4, axis=-1)
    dn = grad * (1 - z) * (1 - n * n)
    dz, dr = grad * (h - n) * z * (1 - z), dn * hn * r * (1 - r)
    return np.concatenate([dr, dz, dn], -1), np.concatenate([dr, dz, dn * r], -1), grad * z


def _sequence(grad_output, grad_h, grad_c, h, c, w_hh, output, active, cells, reverse) -> Any:
    grads, steps = np.zeros(active.shape), len(active)
    dh, dc = (np.zeros(h.shape) if grad is None else grad for grad in (grad_h, grad_c))
    of_w = np.zeros(w_hh.shape)
    order = list(range(steps))[:: -1 if reverse else 1]
    for n, t in reversed(list(enumerate(order))):
        before = (output[order[n - 1]], cells[order[n - 1]]) if n else (h, c)
        dh = dh if grad_output is None else dh + grad_output[t]
        grads[t], dc = _lstm_step(dh, dc, active[t], before[1], cells[t])
        of_w += grads[t].T @ before[0]
        dh = grads[t] @ w_hh
    return grads, dh, dc, of_w, grads.sum((0, 1))


def _lstm_gates(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """With both incoming gradients and with each alone."""
    for sample in gates(4)(dtype, rng):
        c = sample.args[2]
        _, c_out, active = wide(lstm_gates)(*sample.args)
        grad_h, grad_c = (random_array(rng, c.shape, dtype) for _ in range(2))
        for given in ((grad_h, grad_c), (None, grad_c), (grad_h, None)):
            yield Sample((*given, active, c, c_out))


def _gru_gates(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in gates(3)(dtype, rng):
        h = sample.args[2]
        yield Sample((random_array(rng, h.shape, dtype), wide(gru_gates)(*sample.args)[1], h))


def _sequences(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in sequences(dtype, rng):
        _, h, c, w, _, reverse = sample.args
        output, _, _, active, cells = wide(lstm_sequence)(*sample.args)
        shapes = (output.shape, h.shape, c.shape)
        whole = [random_array(rng, shape, dtype) for shape in shapes]
        for missing in (None, 0, 1, 2):
            grads = [None if k == missing else grad for k, grad in enumerate(whole)]
            yield Sample((*grads, h, c, w, output, active, cells, reverse))


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def _record(
    name: str, reference: Any, samples: Any, *wrong: tuple[Any, ...], gradient: Any = ("float64",)
) -> OpRecord:
    """Wrong calls, and the words of their messages beside the name."""
    near = {"float32": 1e-4}
    errors = tuple(ErrorSample(args, {}, (RuntimeError, ValueError), (name, *words)) for args, words in wrong)
    return OpRecord(
        name,
        wide(reference),
        samples,
        FLOATS,
        gradient,
        namespace="ops",
        rtol=near,
        atol=near,
        errors=errors,
        family="rnn",
        cancels=True,
    )


_S, _G, _SEQUENCE, _ACTIVE = _zeros(1, 2), _zeros(1, 8), _zeros(3, 1, 2), _zeros(3, 1, 8)

RECORDS = [
    _record(
        "lstm_gates_backward",
        _lstm_step,
        _lstm_gates,
        ((_S, _S, _zeros(1, 6), _S, _S), ("gates", "(1, 6)")),
        ((_zeros(2, 2), _S, _G, _S, _S), ("grad_h", "(2, 2)")),
        ((None, _zeros(2), _G, _S, _S), ("grad_c", "(2,)")),
        ((_S, _S, _G, _S, _zeros(1, 3)), ("c_out", "(1, 3)")),
    ),
    _record(
        "gru_gates_backward",
        _gru_step,
        _gru_gates,
        ((_S, _zeros(1, 6), _S), ("gates", "(1, 6)")),
        ((_zeros(2, 2), _G, _S), ("grad", "(2, 2)")),
    ),
    _record(
        "lstm_sequence_backward",
        _sequence,
        _sequences,
        ((None, _S, _S, _S, _S, _zeros(8, 2), _SEQUENCE, _G, _SEQUENCE, False), ("gates", "(1, 8)")),
        ((None, _S, _S, _S, _S, _zeros(8, 2), _S, _ACTIVE, _SEQUENCE, False), ("output", "(1, 2)")),
        ((None, _S, _S, _S, _S, _zeros(8, 2), _SEQUENCE, _ACTIVE, _S, False), ("cells", "(1, 2)")),
        ((_S, _S, _S, _S, _S, _zeros(8, 2), _SEQUENCE, _ACTIVE, _SEQUENCE, False), ("grad_output", "(1, 2)")),
        (
            (None, _zeros(2, 2), _S, _S, _S, _zeros(8, 2), _SEQUENCE, _ACTIVE, _SEQUENCE, False),
            ("grad_h", "(2, 2)"),
        ),
        (
            (None, _S, _S, _zeros(1, 1), _S, _zeros(8, 2), _SEQUENCE, _ACTIVE, _SEQUENCE, False),
            ("h", "(1, 1)"),
        ),
        ((None, _S, _S, _S, _S, _zeros(4, 2), _SEQUENCE, _ACTIVE, _SEQUENCE, False), ("w_hh", "(4, 2)")),
    ),
]
