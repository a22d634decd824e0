"""Records of recurrent cells, gates and layers, step by step, and of their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import expit

from taeda_testing.arrays import random_array, widest
from taeda_testing.record import FLOATS, FLOATS_AND_COMPLEX, ErrorSample, OpRecord, Sample
from taeda_testing.wrong import zeros

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
        h, c = lstm_gates(a, b, state[1])[:2]
        return (h if w[4] is None else h @ w[4].T), c
    if kind == "gru":
        return gru_gates(a, b, state[0])[:1]
    return (np.tanh(a + b) if kind == "rnn_tanh" else np.maximum(a + b, 0),)


def _cell(kind: str) -> Callable[..., Any]:
    def call(x: np.ndarray, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        found = _step(kind, x, hx if kind == "lstm" else [hx], [w_ih, w_hh, b_ih, b_hh, None])
        return found if kind == "lstm" else found[0]

    return wide(call)


def _stacked(kind: str) -> Callable[..., Any]:
    def call(x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first) -> Any:
        x = x.swapaxes(0, 1) if batch_first else x
        starts = hx if kind == "lstm" else [hx]
        each, directions, last = 4 if has_biases else 2, 2 if bidirectional else 1, []
        projected = kind == "lstm" and hx[0].shape[2] != hx[1].shape[2]
        each += projected
        for layer in range(num_layers):
            outputs = []
            for direction in range(directions):
                at = layer * directions + direction
                own = params[at * each : (at + 1) * each]
                biases = own[2:4] if has_biases else (None, None)
                weights = [*own[:2], *biases, own[-1] if projected else None]
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


def _packed(kind: str) -> Callable[..., Any]:
    """Each sequence alone, as layers of one sequence."""
    alone = _stacked(kind)

    def call(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional) -> Any:
        begins = np.concatenate([[0], np.cumsum(batch_sizes)[:-1]])
        rest = params, has_biases, num_layers, dropout, train, bidirectional, False
        output, last = None, []
        for n in range(batch_sizes[0]):
            rows = begins[: np.count_nonzero(batch_sizes > n)] + n
            starts = [start[:, n : n + 1] for start in hx] if kind == "lstm" else hx[:, n : n + 1]
            found, *states = alone(data[rows][:, None], starts, *rest)
            if output is None:
                output = np.zeros((len(data), found.shape[2]), found.dtype)
            output[rows] = found[:, 0]
            last.append(states)
        return output, *(np.concatenate(parts, 1) for parts in zip(*last, strict=True))

    return call


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


def _params(
    kind: str,
    dtype: str,
    rng: np.random.Generator,
    sizes: tuple[int, int, int, int],
    biases: bool,
    projected: int = 0,
) -> list[np.ndarray]:
    """Parameters of so many layers and directions, of inputs and hidden features."""
    layers, directions, inputs, hidden = sizes
    params = []
    for layer in range(layers):
        n, out = _GATES[kind] * hidden, projected or hidden
        width = out * directions if layer else inputs
        for _ in range(directions):
            shapes = [(n, width), (n, out), *([(n,), (n,)] if biases else [])]
            params += _random(rng, dtype, *shapes, *([(projected, hidden)] if projected else []))
    return params


def _layers(kind: str) -> Any:
    """(layers, bidirectional, biases, batch_first, dropout outside of training, projection of an LSTM)."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for layers, both, biases, batch_first, dropout, projected in (
            (1, False, True, False, 0.0, 0),
            (1, False, False, True, 0.0, 0),
            (1, True, True, True, 0.0, 0),
            (2, False, True, False, 0.5, 0),
            (2, True, False, False, 0.0, 0),
            *([(2, True, True, False, 0.0, 1), (1, False, False, True, 0.0, 1)] if kind == "lstm" else []),
        ):
            steps, batch, inputs, hidden, directions = 3, 2, 2, 2, 2 if both else 1
            params = _params(kind, dtype, rng, (layers, directions, inputs, hidden), biases, projected)
            count = layers * directions
            x, h, c = _random(
                rng,
                dtype,
                (batch, steps, inputs) if batch_first else (steps, batch, inputs),
                (count, batch, projected or hidden),
                (count, batch, hidden),
            )
            hx = [h, c] if kind == "lstm" else h
            yield Sample((x, hx, params, biases, layers, dropout, dropout == 0, both, batch_first))

    return samples


def _packed_layers(kind: str) -> Any:
    """Sequences of one length, of several, of one step; (batch sizes, layers, bidirectional, biases, projection)."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for running, layers, both, biases, projected in (
            ((2, 2), 1, False, True, 0),
            ((3, 2, 1, 1), 2, True, True, 0),
            ((3, 3, 1), 1, True, False, 0),
            ((2,), 2, False, False, 0),
            *([((3, 2, 1), 2, True, True, 1)] if kind == "lstm" else []),
        ):
            directions, inputs, hidden = 2 if both else 1, 2, 2
            params = _params(kind, dtype, rng, (layers, directions, inputs, hidden), biases, projected)
            state = (layers * directions, running[0])
            x, h, c = _random(
                rng, dtype, (sum(running), inputs), (*state, projected or hidden), (*state, hidden)
            )
            hx = [h, c] if kind == "lstm" else h
            sizes = np.array(running, dtype=np.int64)
            yield Sample((x, sizes, hx, params, biases, layers, 0.0, False, both))

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


def _errors(*calls: tuple[Any, ...]) -> tuple[ErrorSample, ...]:
    """Calls, and the words of their messages."""
    return tuple(ErrorSample(args, {}, (RuntimeError, ValueError), words) for args, words in calls)


def _cell_errors(kind: str) -> tuple[ErrorSample, ...]:
    n, name = _GATES[kind] * 2, f"{kind}_cell"

    def state(*shape: int) -> Any:
        return [zeros(*shape)] * 2 if kind == "lstm" else zeros(*shape)

    good = (zeros(n, 3), zeros(n, 2))
    return _errors(
        ((zeros(1, 4), state(1, 2), *good), (name, "w_ih", "4")),
        ((zeros(1, 3), state(1, 3), *good), (name, "w_hh", "3")),
        ((zeros(1, 3), state(2), *good), (name, "hx", "(2,)")),
        ((zeros(1, 1, 3), state(1, 2), *good), (name, "input", "(1, 1, 3)")),
        ((zeros(2, 3), state(1, 2), *good), ("(1, 2)",)),
        ((zeros(1, 3), state(1, 2), zeros(n + 1, 3), zeros(n, 2)), (name, "w_ih", str(n + 1))),
    )


def _layer_errors(kind: str) -> tuple[ErrorSample, ...]:
    n, rest = _GATES[kind] * 2, (False, 1, 0.0, False, False, False)

    def state(*shape: int) -> Any:
        return [zeros(*shape)] * 2 if kind == "lstm" else zeros(*shape)

    good = [zeros(n, 3), zeros(n, 2)]
    return _errors(
        ((zeros(4, 3), state(1, 1, 2), good, *rest), (kind, "input", "(4, 3)")),
        ((zeros(4, 1, 3), state(2, 1, 2), good, *rest), (kind, "hx", "(2, 1, 2)")),
        ((zeros(4, 1, 3), state(1, 1, 2), good[:1], *rest), (kind, "params", "1", "2")),
        ((zeros(4, 2, 3), state(1, 1, 2), good, *rest), ("hx", "(1, 1, 2)")),
        ((zeros(0, 1, 3), state(1, 1, 2), good, *rest), (kind, "input", "(0, 1, 3)")),
    )


def _packed_errors(kind: str) -> tuple[ErrorSample, ...]:
    n, rest = _GATES[kind] * 2, (False, 1, 0.0, False, False)
    state = [zeros(1, 2, 2)] * 2 if kind == "lstm" else zeros(1, 2, 2)
    good = [zeros(n, 3), zeros(n, 2)]

    def sizes(*running: int) -> np.ndarray:
        return np.array(running, dtype=np.int64)

    return _errors(
        ((zeros(3, 3), sizes(1, 2), state, good, *rest), (kind, "batch_sizes", "2 at step 1")),
        ((zeros(3, 3), sizes(2, 2), state, good, *rest), (kind, "batch_sizes", "4", "3 rows")),
        ((zeros(3, 3), zeros(2), state, good, *rest), (kind, "batch_sizes", "int64")),
        ((zeros(3, 1, 3), sizes(2, 1), state, good, *rest), (kind, "data", "(3, 1, 3)")),
        ((zeros(3, 3), sizes(1, 1, 1), state, good, *rest), (kind, "hx", "(1, 2, 2)")),
    )


def _record(
    name: str,
    reference: Any,
    samples: Any,
    errors: Any = (),
    namespace: str = "",
    dtypes: Any = FLOATS,
    **more: Any,
) -> OpRecord:
    return OpRecord(
        name,
        reference,
        samples,
        dtypes,
        differentiable=True,
        namespace=namespace,
        rtol=_NEAR,
        atol=_NEAR,
        errors=errors,
        cancels=True,
        **more,
    )


def _cell_record(name: str) -> OpRecord:
    kind = name.removesuffix("_cell")
    return _record(name, _cell(kind), _cells(kind), _cell_errors(kind), dtypes=_DTYPES[kind])


def _both_forms(kind: str) -> Callable[..., Any]:
    """Sequences of one length, and packed ones: then the second argument says how many are running at each step."""
    padded, packed = _stacked(kind), _packed(kind)

    def call(x: np.ndarray, second: Any, *rest: Any) -> Any:
        is_packed = isinstance(second, np.ndarray) and second.ndim == 1
        return (packed if is_packed else padded)(x, second, *rest)

    return call


def _layer_record(kind: str) -> OpRecord:
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        yield from _layers(kind)(dtype, rng)
        yield from _packed_layers(kind)(dtype, rng)

    errors = _layer_errors(kind) + _packed_errors(kind)
    return _record(kind, _both_forms(kind), samples, errors, dtypes=_DTYPES[kind])


_GATE_ERRORS = {
    name: _errors(
        ((zeros(2, n), zeros(2, 3), zeros(2, 2)), (name, "hidden_gates", "(2, 3)")),
        ((zeros(3, n), zeros(2, n), zeros(2, 2)), (name, "input_gates", f"(3, {n})")),
        ((zeros(n), zeros(n), zeros(2)), (name, "(2,)")),
    )
    for name, n in (("lstm_gates", 8), ("gru_gates", 6))
}

_SEQUENCE_ERRORS = _errors(
    (
        (zeros(2, 8), zeros(1, 2), zeros(1, 2), zeros(8, 2), None, False),
        ("lstm_sequence", "input_gates", "(2, 8)"),
    ),
    ((zeros(2, 1, 8), zeros(2), zeros(1, 2), zeros(8, 2), None, False), ("lstm_sequence", "h", "(2,)")),
    (
        (zeros(2, 1, 8), zeros(1, 2), zeros(1, 2), zeros(8, 3), None, False),
        ("lstm_sequence", "w_hh", "(8, 3)"),
    ),
    (
        (zeros(2, 1, 8), zeros(1, 2), zeros(1, 2), zeros(8, 2), zeros(2), False),
        ("lstm_sequence", "b_hh", "(2,)"),
    ),
)


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


def _backward(
    name: str, reference: Any, samples: Any, *wrong: tuple[Any, ...], differentiable: bool = True
) -> OpRecord:
    """Wrong calls, and the words of their messages beside the name."""
    near = {"float32": 1e-4}
    errors = tuple(ErrorSample(args, {}, (RuntimeError, ValueError), (name, *words)) for args, words in wrong)
    return OpRecord(
        name,
        wide(reference),
        samples,
        FLOATS,
        differentiable=differentiable,
        namespace="ops",
        rtol=near,
        atol=near,
        errors=errors,
        cancels=True,
    )


_S, _G, _SEQUENCE, _ACTIVE = zeros(1, 2), zeros(1, 8), zeros(3, 1, 2), zeros(3, 1, 8)


RECORDS = [
    _cell_record("rnn_tanh_cell"),
    _cell_record("rnn_relu_cell"),
    _cell_record("gru_cell"),
    _cell_record("lstm_cell"),
    _layer_record("rnn_tanh"),
    _layer_record("rnn_relu"),
    _layer_record("gru"),
    _layer_record("lstm"),
    _record("lstm_gates", wide(lstm_gates), gates(4), _GATE_ERRORS["lstm_gates"], "ops", half="largest"),
    _record("gru_gates", wide(gru_gates), gates(3), _GATE_ERRORS["gru_gates"], "ops", half="largest"),
    _record("lstm_sequence", wide(lstm_sequence), sequences, _SEQUENCE_ERRORS, "ops", half="largest"),
    _backward(
        "lstm_gates_backward",
        _lstm_step,
        _lstm_gates,
        ((_S, _S, zeros(1, 6), _S, _S), ("gates", "(1, 6)")),
        ((zeros(2, 2), _S, _G, _S, _S), ("grad_h", "(2, 2)")),
        ((None, zeros(2), _G, _S, _S), ("grad_c", "(2,)")),
        ((_S, _S, _G, _S, zeros(1, 3)), ("c_out", "(1, 3)")),
    ),
    _backward(
        "gru_gates_backward",
        _gru_step,
        _gru_gates,
        ((_S, zeros(1, 6), _S), ("gates", "(1, 6)")),
        ((zeros(2, 2), _G, _S), ("grad", "(2, 2)")),
    ),
    _backward(
        "lstm_sequence_backward",
        _sequence,
        _sequences,
        ((None, _S, _S, _S, _S, zeros(8, 2), _SEQUENCE, _G, _SEQUENCE, False), ("gates", "(1, 8)")),
        ((None, _S, _S, _S, _S, zeros(8, 2), _S, _ACTIVE, _SEQUENCE, False), ("output", "(1, 2)")),
        ((None, _S, _S, _S, _S, zeros(8, 2), _SEQUENCE, _ACTIVE, _S, False), ("cells", "(1, 2)")),
        ((_S, _S, _S, _S, _S, zeros(8, 2), _SEQUENCE, _ACTIVE, _SEQUENCE, False), ("grad_output", "(1, 2)")),
        (
            (None, zeros(2, 2), _S, _S, _S, zeros(8, 2), _SEQUENCE, _ACTIVE, _SEQUENCE, False),
            ("grad_h", "(2, 2)"),
        ),
        (
            (None, _S, _S, zeros(1, 1), _S, zeros(8, 2), _SEQUENCE, _ACTIVE, _SEQUENCE, False),
            ("h", "(1, 1)"),
        ),
        ((None, _S, _S, _S, _S, zeros(4, 2), _SEQUENCE, _ACTIVE, _SEQUENCE, False), ("w_hh", "(4, 2)")),
    ),
]
