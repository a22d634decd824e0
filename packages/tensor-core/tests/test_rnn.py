"""Recurrent cells and layers against NumPy, gradients against differences."""

import numpy as np
import pytest

import taeda_tensor_core as taeda

ops = taeda.ops


def tensor(array):
    return taeda.from_numpy(np.array(array, order="C"))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(z, c):
    i, f, g, o = np.split(z, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(a, b, h):
    (ar, az, an), (br, bz, bn) = np.split(a, 3, -1), np.split(b, 3, -1)
    z = sigmoid(az + bz)
    return (1 - z) * np.tanh(an + sigmoid(ar + br) * bn) + z * h


def steps(mode, x, h, c, w_ih, w_hh, b_ih, b_hh, reverse=False):
    """One layer in one direction over (T, N, in)."""
    outputs = [None] * len(x)
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        a, b = x[t] @ w_ih.T + b_ih, h @ w_hh.T + b_hh
        if mode == "lstm":
            h, c = lstm_step(a + b, c)
        else:
            h = (
                gru_step(a, b, h)
                if mode == "gru"
                else {"rnn_tanh": np.tanh, "rnn_relu": lambda v: np.maximum(v, 0)}[mode](a + b)
            )
        outputs[t] = h
    return np.stack(outputs), h, c


def weights(rng, gates, inputs, hidden):
    shapes = [(gates * hidden, inputs), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,)]
    return [rng.standard_normal(s) * 0.4 for s in shapes]


GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@pytest.mark.parametrize("mode", GATES)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_cells(mode, batch):
    rng = np.random.default_rng(61)
    w = weights(rng, GATES[mode], 4, 5)
    x, h, c = (rng.standard_normal((*batch, n)) for n in (4, 5, 5))
    _, want_h, want_c = steps(mode, x[None], h, c, *w)
    state = [tensor(h), tensor(c)] if mode == "lstm" else tensor(h)
    got = getattr(ops, mode + "_cell")(tensor(x), state, *map(tensor, w))
    if mode == "lstm":
        np.testing.assert_allclose(got[1].numpy(), want_c, rtol=1e-11)
        got = got[0]
    np.testing.assert_allclose(got.numpy(), want_h, rtol=1e-11)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("mode", GATES)
def test_layers(mode, directions, batch_first):
    rng = np.random.default_rng(62)
    layers, hidden = 2, 5
    x = rng.standard_normal((6, 3, 4))
    h0, c0 = rng.standard_normal((2, layers * directions, 3, hidden))
    params, sequence, last_h, last_c = [], x, [], []
    for layer in range(layers):
        parts = []
        for direction in range(directions):
            w = weights(rng, GATES[mode], sequence.shape[2], hidden)
            params += w
            k = layer * directions + direction
            out, h, c = steps(mode, sequence, h0[k], c0[k], *w, reverse=direction == 1)
            parts.append(out)
            last_h.append(h)
            last_c.append(c)
        sequence = np.concatenate(parts, 2)
    state = [tensor(h0), tensor(c0)] if mode == "lstm" else tensor(h0)
    given = x.transpose(1, 0, 2) if batch_first else x
    got = getattr(ops, mode)(
        tensor(given),
        state,
        [tensor(p) for p in params],
        True,
        layers,
        0.0,
        False,
        directions == 2,
        batch_first,
    )
    want = sequence.transpose(1, 0, 2) if batch_first else sequence
    np.testing.assert_allclose(got[0].numpy(), want, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(got[1].numpy(), np.stack(last_h), rtol=1e-10, atol=1e-12)
    if mode == "lstm":
        np.testing.assert_allclose(got[2].numpy(), np.stack(last_c), rtol=1e-10, atol=1e-12)


def differences(f, arrays, step=1e-6):
    grads = []
    for k, array in enumerate(arrays):
        out = np.zeros_like(array)
        for i in np.ndindex(array.shape):
            moved = [a.copy() for a in arrays]
            moved[k][i] += step
            high = f(*moved)
            moved[k][i] -= 2 * step
            out[i] = (high - f(*moved)) / (2 * step)
        grads.append(out)
    return grads


def test_gradients_of_gates():
    rng = np.random.default_rng(63)
    z, c, gh, gc = rng.standard_normal((2, 12)), *rng.standard_normal((3, 2, 3))
    _h_out, c_out, gates = ops.lstm_gates(tensor(z), taeda.zeros(2, 12, dtype=taeda.float64), tensor(c))
    want = differences(
        lambda z, c: sum((a * g).sum() for a, g in zip(lstm_step(z, c), (gh, gc), strict=True)), [z, c]
    )
    for got, expected in zip(
        ops.lstm_gates_backward(tensor(gh), tensor(gc), gates, tensor(c), c_out), want, strict=True
    ):
        np.testing.assert_allclose(got.numpy(), expected, atol=1e-8)
    only_h = ops.lstm_gates_backward(tensor(gh), None, gates, tensor(c), c_out)[0]
    want = differences(lambda z, c: (lstm_step(z, c)[0] * gh).sum(), [z, c])[0]
    np.testing.assert_allclose(only_h.numpy(), want, atol=1e-8)
    a, b, h, g = *rng.standard_normal((2, 2, 9)), *rng.standard_normal((2, 2, 3))
    out, gates = ops.gru_gates(tensor(a), tensor(b), tensor(h))
    np.testing.assert_allclose(out.numpy(), gru_step(a, b, h), rtol=1e-11)
    want = differences(lambda a, b, h: (gru_step(a, b, h) * g).sum(), [a, b, h])
    for got, expected in zip(ops.gru_gates_backward(tensor(g), gates, tensor(h)), want, strict=True):
        np.testing.assert_allclose(got.numpy(), expected, atol=1e-8)


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_of_a_sequence(reverse):
    rng = np.random.default_rng(64)
    gates_in, h, c = rng.standard_normal((4, 2, 12)), *rng.standard_normal((2, 2, 3))
    w, b = rng.standard_normal((12, 3)) * 0.4, rng.standard_normal(12)
    g0, g1, g2 = rng.standard_normal((4, 2, 3)), *rng.standard_normal((2, 2, 3))

    def loss(gates_in, h, c, w, b):
        total = 0.0
        for t in reversed(range(4)) if reverse else range(4):
            h, c = lstm_step(gates_in[t] + h @ w.T + b, c)
            total += (h * g0[t]).sum()
        return total + (h * g1).sum() + (c * g2).sum()

    output, _, _, gates, cells = ops.lstm_sequence(*map(tensor, (gates_in, h, c, w, b)), reverse)
    got = ops.lstm_sequence_backward(*map(tensor, (g0, g1, g2, h, c, w)), output, gates, cells, reverse)
    for value, expected in zip(got, differences(loss, [gates_in, h, c, w, b]), strict=True):
        np.testing.assert_allclose(value.numpy(), expected, atol=1e-7)


def test_single_precision_layer():
    rng = np.random.default_rng(65)
    w = weights(rng, 4, 20, 70)
    x, h, c = rng.standard_normal((9, 4, 20)), *rng.standard_normal((2, 4, 70))
    single = [tensor(a.astype("float32")) for a in w]
    state = [tensor(h[None].astype("float32")), tensor(c[None].astype("float32"))]
    got = ops.lstm(tensor(x.astype("float32")), state, single, True, 1, 0.0, False, False, False)[0]
    np.testing.assert_allclose(got.numpy(), steps("lstm", x, h, c, *w)[0], atol=1e-4)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("length", "batch", "hidden"),
    [(9, 1, 70), (9, 16, 500), (9, 17, 200), (9, 65, 150), (3, 4, 70), (1, 2, 8)],
)
def test_single_precision_gradients_of_a_sequence(length, batch, hidden, reverse):
    """Whatever form the recurrent product takes: few rows, many, long sums, few steps."""
    rng = np.random.default_rng(66)
    sequence = rng.standard_normal((length, batch, 4 * hidden))
    h, c, g1, g2 = rng.standard_normal((4, batch, hidden))
    w, b = rng.standard_normal((4 * hidden, hidden)) / hidden**0.5, rng.standard_normal(4 * hidden)
    g0 = rng.standard_normal((length, batch, hidden))

    def grads(dtype):
        as_dtype = [tensor(a.astype(dtype)) for a in (sequence, h, c, w, b, g0, g1, g2)]
        output, _, _, gates, cells = ops.lstm_sequence(*as_dtype[:5], reverse)
        return ops.lstm_sequence_backward(*as_dtype[5:], *as_dtype[1:4], output, gates, cells, reverse)

    for single, exact in zip(grads("float32"), grads("float64"), strict=True):
        scale = np.abs(exact.numpy()).max()
        np.testing.assert_allclose(single.numpy(), exact.numpy(), rtol=1e-4, atol=2e-6 * scale)


@pytest.mark.parametrize("rows", [1, 5, 16, 17, 48, 49])
@pytest.mark.parametrize("inner", [64, 700, 2048, 4000])
def test_products_of_few_rows(rows, inner):
    rng = np.random.default_rng(67)
    x, w, b = rng.standard_normal((rows, inner)), rng.standard_normal((150, inner)), rng.standard_normal(150)
    single = [tensor(a.astype("float32")) for a in (x, w, b)]
    expected = single[0].numpy().astype("float64") @ single[1].numpy().T.astype("float64") + b.astype(
        "float32"
    )
    np.testing.assert_allclose(ops.linear(*single).numpy(), expected, rtol=0, atol=1e-5 * inner**0.5)
    np.testing.assert_allclose(
        ops.linear(single[0], single[1]).numpy(),
        expected - b.astype("float32"),
        rtol=0,
        atol=1e-5 * inner**0.5,
    )


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda t: ops.lstm_cell(t.ones(2, 3), [t.ones(2, 4)], t.ones(16, 3), t.ones(16, 4)),
            ["lstm_cell", "hx", "1"],
        ),
        (
            lambda t: ops.lstm_cell(t.ones(2, 3), [t.ones(2, 4)] * 2, t.ones(16, 5), t.ones(16, 4)),
            ["lstm_cell", "w_ih", "(16, 5)", "3"],
        ),
        (
            lambda t: ops.gru_cell(t.ones(2, 3), t.ones(2, 4), t.ones(12, 3), t.ones(16, 4)),
            ["gru_cell", "w_hh", "(16, 4)", "(12, 4)"],
        ),
        (
            lambda t: ops.gru(t.ones(2, 3), t.ones(1, 2, 4), [], False, 1, 0.0, False, False, False),
            ["gru", "input", "(2, 3)"],
        ),
        (
            lambda t: ops.rnn_tanh(
                t.ones(5, 2, 3), t.ones(1, 2, 4), [t.ones(4, 3)], False, 1, 0.0, False, False, False
            ),
            ["rnn_tanh", "params", "1", "2"],
        ),
    ],
)
def test_errors_name_what_is_wrong(call, words):
    with pytest.raises(RuntimeError) as caught:
        call(taeda)
    for word in words:
        assert word in str(caught.value)
