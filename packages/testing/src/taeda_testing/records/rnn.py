"""Records of recurrent cells and layers, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import expit

from taeda_testing.arrays import random_array, widest
from taeda_testing.record import FLOATS, FLOATS_AND_COMPLEX, ErrorSample, OpRecord, Sample

_NEAR = {"float32": 1e-4}
_GATES = {"rnn_tanh": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}
_DTYPES = {kind: FLOATS_AND_COMPLEX if kind == "rnn_tanh" else FLOATS for kind in _GATES}


def wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """Computed in float64 or complex128, rounded to the dtype of the last array among the arguments."""

    def convert(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [convert(item) for item in value]
        return widest(value) if isinstance(value, np.ndarray) else value

    def call(*args: Any) -> Any:
        dtype = next(a.dtype for a in reversed(args) if isinstance(a, np.ndarray))
        found = function(*map(convert, args))
        return (
            tuple(np.asarray(a).astype(dtype) for a in found)
            if isinstance(found, tuple)
            else found.astype(dtype)
        )

    return call


def lstm_gates(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, ...]:
    i, f, g, o = np.split(a + b, 4, axis=-1)
    i, f, g, o = expit(i), expit(f), np.tanh(g), expit(o)
    c = f * c + i * g
    return o * np.tanh(c), c, np.concatenate([i, f, g, o], -1)


def gru_gates(a: np.ndarray, b: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, ...]:
    (r, z, n), (hr, hz, hn) = np.split(a, 3, axis=-1), np.split(b, 3, axis=-1)
    r, z = expit(r + hr), expit(z + hz)
    n = np.tanh(n + r * hn)
    return (1 - z) * n + z * h, np.concatenate([r, z, n, hn], -1)


def _linear(x: np.ndarray, w: np.ndarray, b: np.ndarray | None) -> np.ndarray:
    return x @ w.T if b is None else x @ w.T + b


def _step(kind: str, x: np.ndarray, state: list[np.ndarray], w: list[Any]) -> tuple[np.ndarray, ...]:
    """The next state: (h, c) of an LSTM, (h,) of the others."""
    a, b = _linear(x, w[0], w[2]), _linear(state[0], w[1], w[3])
    if kind == "lstm":
        return lstm_gates(a, b, state[1])[:2]
    if kind == "gru":
        return gru_gates(a, b, state[0])[:1]
    return (np.tanh(a + b) if kind == "rnn_tanh" else np.maximum(a + b, 0),)


def _cell(kind: str) -> Callable[..., Any]:
    def call(x: np.ndarray, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        found = _step(kind, x, hx if kind == "lstm" else [hx], [w_ih, w_hh, b_ih, b_hh])
        return found if kind == "lstm" else found[0]

    return wide(call)


def _stacked(kind: str) -> Callable[..., Any]:
    def call(x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first) -> Any:
        x = x.swapaxes(0, 1) if batch_first else x
        starts = hx if kind == "lstm" else [hx]
        each, directions, last = 4 if has_biases else 2, 2 if bidirectional else 1, []
        for layer in range(num_layers):
            outputs = []
            for direction in range(directions):
                at = layer * directions + direction
                weights = [*params[at * each : (at + 1) * each], None, None]
                state, steps = tuple(start[at] for start in starts), {}
                for t in range(len(x))[:: -1 if direction else 1]:
                    state = _step(kind, x[t], state, weights)
                    steps[t] = state[0]
                outputs.append(np.stack([steps[t] for t in range(len(x))]))
                last.append(state)
            x = np.concatenate(outputs, -1)
        return (
            x.swapaxes(0, 1) if batch_first else x,
            *(np.stack(parts) for parts in zip(*last, strict=True)),
        )

    def rounded(x: np.ndarray, *rest: Any) -> Any:
        return tuple(a.astype(x.dtype) for a in wide(call)(x, *rest))

    return rounded


def lstm_sequence(gates, h, c, w_hh, b_hh, reverse) -> tuple[np.ndarray, ...]:
    output, active, cells = (
        np.zeros((len(gates), *h.shape)),
        np.zeros(gates.shape),
        np.zeros((len(gates), *c.shape)),
    )
    for t in range(len(gates))[:: -1 if reverse else 1]:
        h, c, active[t] = lstm_gates(gates[t], _linear(h, w_hh, b_hh), c)
        output[t], cells[t] = h, c
    return output, h, c, active, cells


def _random(rng: np.random.Generator, dtype: str, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [random_array(rng, shape, dtype, -1, 1) for shape in shapes]


def _cells(kind: str) -> Any:
    """A batch, one row, an empty batch; with both biases, one of them, or none."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for lead, inputs, hidden in (((2,), 3, 2), ((), 2, 1), ((0,), 2, 2), ((1,), 1, 3)):
            n = _GATES[kind] * hidden
            x, h, c, w_ih, w_hh, b_ih, b_hh = _random(
                rng,
                dtype,
                (*lead, inputs),
                (*lead, hidden),
                (*lead, hidden),
                (n, inputs),
                (n, hidden),
                (n,),
                (n,),
            )
            for biases in ((), (b_ih, b_hh), (None, b_hh), (b_ih,)):
                yield Sample((x, [h, c] if kind == "lstm" else h, w_ih, w_hh, *biases))

    return samples


def _layers(kind: str) -> Any:
    """(layers, bidirectional, biases, batch_first, dropout outside of training)."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for layers, both, biases, batch_first, dropout in (
            (1, False, True, False, 0.0),
            (1, False, False, True, 0.0),
            (1, True, True, True, 0.0),
            (2, False, True, False, 0.5),
            (2, True, False, False, 0.0),
        ):
            steps, batch, inputs, hidden, directions = 3, 2, 2, 2, 2 if both else 1
            params = []
            for layer in range(layers):
                width = hidden * directions if layer else inputs
                n = _GATES[kind] * hidden
                for _ in range(directions):
                    params += _random(rng, dtype, (n, width), (n, hidden), *([(n,), (n,)] if biases else []))
            state = (layers * directions, batch, hidden)
            x, h, c = _random(
                rng, dtype, (batch, steps, inputs) if batch_first else (steps, batch, inputs), state, state
            )
            hx = [h, c] if kind == "lstm" else h
            yield Sample((x, hx, params, biases, layers, dropout, dropout == 0, both, batch_first))

    return samples


def gates(number: int) -> Any:
    """Gates from input and state, and the state, for batches of several sizes."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for batch, hidden in ((1, 1), (2, 3), (0, 2), (3, 17)):
            n = number * hidden
            yield Sample(tuple(_random(rng, dtype, (batch, n), (batch, n), (batch, hidden))))

    return samples


def sequences(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Both directions, with a bias and without."""
    for steps, batch, hidden in ((1, 1, 1), (3, 2, 1), (2, 1, 2), (2, 0, 2), (4, 3, 5)):
        n = 4 * hidden
        x, h, c, w, b = _random(
            rng, dtype, (steps, batch, n), (batch, hidden), (batch, hidden), (n, hidden), (n,)
        )
        yield Sample((x, h, c, w, b, False))
        yield Sample((x, h, c, w, None, True))


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def _errors(*calls: tuple[Any, ...]) -> tuple[ErrorSample, ...]:
    """Calls, and the words of their messages."""
    return tuple(ErrorSample(args, {}, (RuntimeError, ValueError), words) for args, words in calls)


def _cell_errors(kind: str) -> tuple[ErrorSample, ...]:
    n, name = _GATES[kind] * 2, f"{kind}_cell"

    def state(*shape: int) -> Any:
        return [_zeros(*shape)] * 2 if kind == "lstm" else _zeros(*shape)

    good = (_zeros(n, 3), _zeros(n, 2))
    return _errors(
        ((_zeros(1, 4), state(1, 2), *good), (name, "w_ih", "4")),
        ((_zeros(1, 3), state(1, 3), *good), (name, "w_hh", "3")),
        ((_zeros(1, 3), state(2), *good), (name, "hx", "(2,)")),
        ((_zeros(1, 1, 3), state(1, 2), *good), (name, "input", "(1, 1, 3)")),
        ((_zeros(2, 3), state(1, 2), *good), ("(1, 2)",)),
        ((_zeros(1, 3), state(1, 2), _zeros(n + 1, 3), _zeros(n, 2)), (name, "w_ih", str(n + 1))),
    )


def _layer_errors(kind: str) -> tuple[ErrorSample, ...]:
    n, rest = _GATES[kind] * 2, (False, 1, 0.0, False, False, False)

    def state(*shape: int) -> Any:
        return [_zeros(*shape)] * 2 if kind == "lstm" else _zeros(*shape)

    good = [_zeros(n, 3), _zeros(n, 2)]
    return _errors(
        ((_zeros(4, 3), state(1, 1, 2), good, *rest), (kind, "input", "(4, 3)")),
        ((_zeros(4, 1, 3), state(2, 1, 2), good, *rest), (kind, "hx", "(2, 1, 2)")),
        ((_zeros(4, 1, 3), state(1, 1, 2), good[:1], *rest), (kind, "params", "1", "2")),
        ((_zeros(4, 2, 3), state(1, 1, 2), good, *rest), ("hx", "(1, 1, 2)")),
        ((_zeros(0, 1, 3), state(1, 1, 2), good, *rest), (kind, "input", "(0, 1, 3)")),
    )


def _record(
    name: str, reference: Any, samples: Any, errors: Any = (), namespace: str = "", dtypes: Any = FLOATS
) -> OpRecord:
    return OpRecord(
        name,
        reference,
        samples,
        dtypes,
        ("float64",),
        namespace=namespace,
        rtol=_NEAR,
        atol=_NEAR,
        errors=errors,
        family="rnn",
        cancels=True,
    )


_GATE_ERRORS = {
    name: _errors(
        ((_zeros(2, n), _zeros(2, 3), _zeros(2, 2)), (name, "hidden_gates", "(2, 3)")),
        ((_zeros(3, n), _zeros(2, n), _zeros(2, 2)), (name, "input_gates", f"(3, {n})")),
        ((_zeros(n), _zeros(n), _zeros(2)), (name, "(2,)")),
    )
    for name, n in (("lstm_gates", 8), ("gru_gates", 6))
}
_SEQUENCE_ERRORS = _errors(
    (
        (_zeros(2, 8), _zeros(1, 2), _zeros(1, 2), _zeros(8, 2), None, False),
        ("lstm_sequence", "input_gates", "(2, 8)"),
    ),
    ((_zeros(2, 1, 8), _zeros(2), _zeros(1, 2), _zeros(8, 2), None, False), ("lstm_sequence", "h", "(2,)")),
    (
        (_zeros(2, 1, 8), _zeros(1, 2), _zeros(1, 2), _zeros(8, 3), None, False),
        ("lstm_sequence", "w_hh", "(8, 3)"),
    ),
    (
        (_zeros(2, 1, 8), _zeros(1, 2), _zeros(1, 2), _zeros(8, 2), _zeros(2), False),
        ("lstm_sequence", "b_hh", "(2,)"),
    ),
)

RECORDS = [
    *(
        _record(f"{kind}_cell", _cell(kind), _cells(kind), _cell_errors(kind), dtypes=_DTYPES[kind])
        for kind in _GATES
    ),
    *(
        _record(kind, _stacked(kind), _layers(kind), _layer_errors(kind), dtypes=_DTYPES[kind])
        for kind in _GATES
    ),
    _record("lstm_gates", wide(lstm_gates), gates(4), _GATE_ERRORS["lstm_gates"], "ops"),
    _record("gru_gates", wide(gru_gates), gates(3), _GATE_ERRORS["gru_gates"], "ops"),
    _record("lstm_sequence", wide(lstm_sequence), sequences, _SEQUENCE_ERRORS, "ops"),
]
