"""Layers against their definitions in NumPy."""

import math

import numpy as np
import pytest

import taeda_nn as nn
from taeda_registry.slots import tensor as tt


def arrays(module):
    return {name: np.array(value.tolist()) for name, value in module.state_dict().items()}


def conv2d(x, w, b, stride, padding, dilation, groups):
    """Cross-correlation by its definition; settings are pairs."""
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    n, _, height, width = x.shape
    out, per_group, kh, kw = w.shape
    rows = (height - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    columns = (width - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    result = np.zeros((n, out, rows, columns))
    for o in range(out):
        first = o // (out // groups) * per_group
        for i in range(rows):
            for j in range(columns):
                top, left = i * stride[0], j * stride[1]
                part = x[:, first : first + per_group, top:, left:]
                part = part[
                    :,
                    :,
                    : dilation[0] * (kh - 1) + 1 : dilation[0],
                    : dilation[1] * (kw - 1) + 1 : dilation[1],
                ]
                result[:, o, i, j] = (part * w[o]).sum((1, 2, 3))
    return result if b is None else result + b[:, None, None]


def pool2d(x, kernel, stride, padding, combine, fill):
    x = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)], constant_values=fill)
    rows = (x.shape[2] - kernel) // stride + 1
    columns = (x.shape[3] - kernel) // stride + 1
    result = np.empty((*x.shape[:2], rows, columns))
    for i in range(rows):
        for j in range(columns):
            top, left = i * stride, j * stride
            result[:, :, i, j] = combine(x[:, :, top : top + kernel, left : left + kernel], axis=(2, 3))
    return result


def test_linear(rng, to_tensor, close):
    layer, x = nn.Linear(4, 3).double(), rng.standard_normal((5, 2, 4))
    p = arrays(layer)
    close(layer(to_tensor(x)), x @ p["weight"].T + p["bias"])
    assert np.abs(p["weight"]).max() <= 0.5


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 3)])
def test_linear_with_one_row_or_number_as_bias(rng, to_tensor, close, shape):
    x, w, b = rng.standard_normal((5, 2, 4)), rng.standard_normal((3, 4)), rng.standard_normal(shape)
    bias = to_tensor(b).requires_grad_()
    found = nn.functional.linear(to_tensor(x), to_tensor(w), bias)
    close(found.detach(), x @ w.T + b)
    weights = rng.standard_normal(found.shape)
    (found * to_tensor(weights)).sum().backward()
    close(bias.grad, weights.sum((0, 1)).reshape(shape) if 3 in shape else weights.sum().reshape(shape))
    with pytest.raises(RuntimeError, match=r"linear: argument 'bias' has shape \(2,\), expected \(3,\)"):
        nn.functional.linear(to_tensor(x), to_tensor(w), to_tensor(np.ones(2)))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
def test_conv2d(rng, to_tensor, close, groups, bias):
    layer = nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 2), (1, 2), groups, bias).double()
    x, p = rng.standard_normal((2, 4, 7, 6)), arrays(layer)
    expected = conv2d(x, p["weight"], p.get("bias"), (2, 1), (1, 2), (1, 2), groups)
    close(layer(to_tensor(x)), expected)
    close(layer(to_tensor(x[0])), expected[0])


def test_conv1d(rng, to_tensor, close):
    layer = nn.Conv1d(3, 5, 4, 2, 1).double()
    x, p = rng.standard_normal((2, 3, 9)), arrays(layer)
    expected = conv2d(x[:, :, None], p["weight"][:, :, None], p["bias"], (1, 2), (0, 1), (1, 1), 1)
    close(layer(to_tensor(x)), expected[:, :, 0])


def test_convolution_checks_settings():
    for options in (
        {"groups": 3},
        {"groups": 0},
        {"padding": "some"},
        {"padding": "same", "stride": 2},
        {"padding_mode": "other"},
    ):
        with pytest.raises(ValueError, match="Conv2d"):
            nn.Conv2d(4, 4, 3, **options)


def test_pooling(rng, to_tensor, close):
    x = rng.standard_normal((2, 3, 7, 8))
    close(nn.MaxPool2d(3, 2, 1)(to_tensor(x)), pool2d(x, 3, 2, 1, np.max, -np.inf))
    close(nn.AvgPool2d(2)(to_tensor(x)), pool2d(x, 2, 2, 0, np.mean, 0))
    close(nn.AdaptiveAvgPool2d(1)(to_tensor(x)), x.mean((2, 3), keepdims=True))
    close(nn.AdaptiveMaxPool2d((1, None))(to_tensor(x)), x.max(2, keepdims=True))
    values, places = nn.MaxPool2d(2, return_indices=True)(to_tensor(x))
    picked = np.take_along_axis(x.reshape(2, 3, -1), np.array(places.tolist()).reshape(2, 3, -1), -1)
    close(values, picked.reshape(tuple(values.shape)))


def test_batch_norm(rng, to_tensor, close):
    layer, x = nn.BatchNorm2d(3, momentum=0.2).double(), rng.standard_normal((4, 3, 5, 2))
    with tt.no_grad():
        layer.weight.copy_(to_tensor(rng.random(3)))
        layer.bias.copy_(to_tensor(rng.random(3)))
    p = arrays(layer)

    def normalised(mean, var):
        y = (x - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5)
        return y * p["weight"][:, None, None] + p["bias"][:, None, None]

    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    close(layer(to_tensor(x)), normalised(mean, var))
    running_mean, running_var = 0.2 * mean, 0.8 + 0.2 * x.var((0, 2, 3), ddof=1)
    close(layer.running_mean, running_mean)
    close(layer.running_var, running_var)
    assert int(layer.num_batches_tracked) == 1
    close(layer.eval()(to_tensor(x)), normalised(running_mean, running_var))
    with pytest.raises(ValueError, match="BatchNorm2d"):
        layer(tt.zeros(2, 3))
    with pytest.raises(ValueError, match="more than 1 value"):
        nn.BatchNorm1d(3)(tt.zeros(1, 3))


def test_layer_and_group_norm(rng, to_tensor, close):
    x = rng.standard_normal((4, 6, 5))

    def normalised(y, axes):
        return (y - y.mean(axes, keepdims=True)) / np.sqrt(y.var(axes, keepdims=True) + 1e-5)

    close(nn.LayerNorm((6, 5)).double()(to_tensor(x)), normalised(x, (1, 2)))
    grouped = normalised(x.reshape(4, 3, -1), 2).reshape(x.shape)
    close(nn.GroupNorm(3, 6).double()(to_tensor(x)), grouped)
    root = np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3)
    close(nn.RMSNorm(5, eps=1e-3).double()(to_tensor(x)), x / root)


def test_dropout_of_nothing_in_place_leaves_a_leaf_as_it_is():
    leaf = tt.ones(3, requires_grad=True)
    for out in (nn.functional.dropout(leaf, 0.0, True, True), nn.Dropout(0.0, inplace=True)(leaf)):
        assert out is leaf and leaf._version == 0


def test_dropout_keeps_scale_and_stops_in_evaluation():
    x = tt.ones(200, 50)
    for layer in (nn.Dropout(0.3), nn.Dropout(0.3, inplace=True)):
        y = np.array(layer(x.clone()).tolist())
        assert np.unique(y).round(5).tolist() == [0.0, round(1 / 0.7, 5)]
        assert abs((y == 0).mean() - 0.3) < 0.02
        assert layer.eval()(x) is x
    channels = np.array(nn.Dropout2d(0.5)(tt.ones(20, 30, 2, 2)).tolist())
    assert all(len(np.unique(plane)) == 1 for sample in channels for plane in sample)
    with pytest.warns(UserWarning, match="dropout2d"):  # (N, C): each element is a channel
        features = np.array(nn.Dropout2d(0.5)(tt.ones(200, 50)).tolist())
    assert abs((features == 0).mean(1) - 0.5).max() < 0.4 and abs((features == 0).mean() - 0.5) < 0.02
    assert float(nn.Dropout(1.0)(x).abs().sum()) == 0
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.Dropout(1.5)


def test_embedding(to_tensor, close):
    layer = nn.Embedding(5, 3, padding_idx=-1)
    table = arrays(layer)["weight"]
    assert layer.padding_idx == 4 and not table[4].any()
    index = np.array([[0, 4], [2, 2]])
    result = layer(to_tensor(index))
    close(result, table[index])
    result.sum().backward()
    close(layer.weight.grad, np.array([1, 0, 2, 0, 0])[:, None] * np.ones((5, 3)))
    frozen = nn.Embedding.from_pretrained(tt.ones(2, 3))
    assert not frozen.weight.requires_grad
    with pytest.raises(AssertionError):
        nn.Embedding(5, 3, padding_idx=5)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(p, suffix, x, h, c):
    gates = x @ p["weight_ih" + suffix].T + p["bias_ih" + suffix]
    gates = gates + h @ p["weight_hh" + suffix].T + p["bias_hh" + suffix]
    i, f, g, o = np.split(gates, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(p, suffix, x, h):
    r, z, n = np.split(x @ p["weight_ih" + suffix].T + p["bias_ih" + suffix], 3, -1)
    hr, hz, hn = np.split(h @ p["weight_hh" + suffix].T + p["bias_hh" + suffix], 3, -1)
    z = sigmoid(z + hz)
    return (1 - z) * np.tanh(n + sigmoid(r + hr) * hn) + z * h


def test_cells(rng, to_tensor, close):
    x, h, c = rng.standard_normal((3, 5)), rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    cell = nn.LSTMCell(5, 4).double()
    expected = lstm_step(arrays(cell), "", x, h, c)
    for got, wanted in zip(cell(to_tensor(x), (to_tensor(h), to_tensor(c))), expected, strict=True):
        close(got, wanted)
    gru = nn.GRUCell(5, 4).double()
    close(gru(to_tensor(x), to_tensor(h)), gru_step(arrays(gru), "", x, h))
    rnn = nn.RNNCell(5, 4).double()
    p = arrays(rnn)
    close(rnn(to_tensor(x)), np.tanh(x @ p["weight_ih"].T + p["bias_ih"] + p["bias_hh"]))


def lstm_layer(p, suffix, x, reverse=False):
    h = c = np.zeros((x.shape[1], p["weight_hh" + suffix].shape[1]))
    outputs = []
    for step in x[::-1] if reverse else x:
        h, c = lstm_step(p, suffix, step, h, c)
        outputs.append(h)
    return np.stack(outputs[::-1] if reverse else outputs), h, c


@pytest.mark.parametrize("batch_first", [False, True])
def test_lstm_two_layers_both_ways(rng, to_tensor, close, batch_first):
    lstm = nn.LSTM(5, 4, 2, batch_first=batch_first, bidirectional=True).double()
    x, p = rng.standard_normal((6, 3, 5)), arrays(lstm)
    y, finals = x, []
    for layer in ("_l0", "_l1"):
        runs = [lstm_layer(p, layer, y), lstm_layer(p, layer + "_reverse", y, True)]
        y = np.concatenate([run[0] for run in runs], -1)
        finals += [run[1:] for run in runs]
    output, (h, c) = lstm(to_tensor(x.swapaxes(0, 1) if batch_first else x))
    close(output, y.swapaxes(0, 1) if batch_first else y)
    close(h, np.stack([final[0] for final in finals]))
    close(c, np.stack([final[1] for final in finals]))


def test_sequences_are_padded_from_any_iterable_of_tensors(to_tensor):
    parts = [to_tensor(np.array(p)) for p in ([1.0, 2.0], [3.0])]
    pad = nn.utils.rnn.pad_sequence
    for given in (parts, tuple(parts), iter(parts)):
        assert pad(given, batch_first=True).tolist() == [[1, 2], [3, 0]]
    with pytest.raises(TypeError, match="expected Tensor as element 1, found list"):
        pad([parts[0], [3.0]])
    with pytest.raises(RuntimeError, match="padding_side to be one of"):
        pad(parts, padding_side="up")
    with pytest.raises(RuntimeError, match="at least one tensor"):
        pad(iter(()))


def test_sequences_without_padding_have_memory_of_their_own():
    padded = tt.arange(12.0).reshape(3, 2, 2)
    for first in (False, True):
        parts = nn.utils.rnn.unpad_sequence(padded, tt.tensor([3, 1, 2][: padded.shape[not first]]), first)
        assert [len(part) for part in parts] == ([2, 1, 2] if first else [3, 1])
        parts[1].zero_()
        assert parts[1].is_contiguous() and padded.sum() == 66


def test_packed_equals_each_sequence_alone(rng, to_tensor, close):
    both = {"bidirectional": True}
    for module in (
        nn.LSTM(3, 4, 2, **both),
        nn.GRU(3, 4, **both),
        nn.RNN(3, 4, 2, bias=False),
        nn.LSTM(3, 4, 2, proj_size=2, **both),
    ):
        module.double()
        module.flatten_parameters()
        parts = [to_tensor(rng.standard_normal((n, 3))) for n in (2, 5, 1)]
        packed, states = module(nn.utils.rnn.pack_sequence(parts, enforce_sorted=False))
        last = states[0] if isinstance(states, tuple) else states
        for i, (part, output) in enumerate(zip(parts, nn.utils.rnn.unpack_sequence(packed), strict=True)):
            alone, state = module(part)
            close(output, alone)
            close(last[:, i], state[0] if isinstance(state, tuple) else state)


def test_recurrent_layers_check_their_input():
    lstm = nn.LSTM(5, 4)
    for bad, error in [(tt.zeros(2, 3, 6), RuntimeError), (tt.zeros(1, 2, 3, 5), ValueError)]:
        with pytest.raises(error, match="LSTM"):
            lstm(bad)
    with pytest.raises(RuntimeError, match="h_0"):
        lstm(tt.zeros(2, 3, 5), (tt.zeros(1, 2, 4), tt.zeros(1, 3, 4)))
    with pytest.raises(ValueError):
        nn.RNN(2, 2, nonlinearity="sin")
    with pytest.raises(RuntimeError, match="sorted"):
        nn.utils.rnn.pack_padded_sequence(tt.zeros(3, 2, 1), [1, 3])
    with pytest.raises(RuntimeError, match=r"'lengths' has shape \(2, 1\), expected one dimension"):
        nn.utils.rnn.pack_padded_sequence(tt.zeros(3, 2, 1), tt.ones(2, 1, dtype=tt.int64))
    assert repr(nn.LSTM(5, 4, 2, dropout=0.1)) == "LSTM(5, 4, num_layers=2, dropout=0.1)"


def normal_below(x):
    return 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


ACTIVATIONS = {
    "ReLU": lambda x: np.maximum(x, 0),
    "ReLU6": lambda x: np.clip(x, 0, 6),
    "Sigmoid": sigmoid,
    "Tanh": np.tanh,
    "GELU": lambda x: x * normal_below(x),
    "SiLU": lambda x: x * sigmoid(x),
    "Mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "Hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "Hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "SELU": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "LeakyReLU": lambda x: np.where(x > 0, x, 0.01 * x),
    "ELU": lambda x: np.where(x > 0, x, np.expm1(x)),
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Hardtanh": lambda x: np.clip(x, -1, 1),
    "PReLU": lambda x: np.where(x > 0, x, 0.25 * x),
    "LogSigmoid": lambda x: -np.log1p(np.exp(-x)),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Tanhshrink": lambda x: x - np.tanh(x),
    "Hardshrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
    "Softshrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "GLU": lambda x: x[:, :3] * sigmoid(x[:, 3:]),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(rng, to_tensor, close, name):
    x = 3 * rng.standard_normal((5, 6))
    layer = getattr(nn, name)().double()
    close(layer(to_tensor(x)), ACTIVATIONS[name](x), 1e-7)


@pytest.mark.parametrize(
    "name",
    ["ReLU", "ReLU6", "SiLU", "Mish", "Hardswish", "LeakyReLU", "ELU", "SELU", "Hardtanh", "Hardsigmoid"],
)
def test_activation_in_place_has_the_same_gradient(rng, to_tensor, close, name):
    x = 3 * rng.standard_normal((4, 3))
    grads = []
    for inplace in (False, True):
        leaf = to_tensor(x, requires_grad=True)
        hidden = leaf * 1.0
        result = getattr(nn, name)(inplace=inplace)(hidden)
        assert (result is hidden) == inplace
        result.sum().backward()
        grads.append(np.array(leaf.grad.tolist()))
    close(grads[1], grads[0])


def test_softmax_family(rng, to_tensor, close):
    x = rng.standard_normal((3, 4))
    expected = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    close(nn.Softmax(1)(to_tensor(x)), expected)
    close(nn.LogSoftmax(1)(to_tensor(x)), np.log(expected))
    close(nn.functional.softmin(to_tensor(-x), 1), expected)
    assert nn.functional.softmax(tt.ones(2, 2), 1, dtype=tt.float64).dtype == tt.float64


def test_reshaping_layers(rng, to_tensor, close):
    x = rng.standard_normal((2, 8, 3, 2))
    close(nn.Flatten()(to_tensor(x)), x.reshape(2, -1))
    close(nn.Unflatten(1, (4, 2))(to_tensor(x)), x.reshape(2, 4, 2, 3, 2))
    wide = nn.PixelShuffle(2)(to_tensor(x))
    assert tuple(wide.shape) == (2, 2, 6, 4)
    close(nn.PixelUnshuffle(2)(wide), x)
    with pytest.raises(TypeError):
        nn.Unflatten("a", (1,))
    for dim in (2, -3):
        with pytest.raises(IndexError, match="Dimension out of range"):
            nn.Unflatten(dim, (1, 2))(tt.ones(2, 2))


@pytest.mark.parametrize(
    ("mode", "numpy_mode"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]
)
def test_padding(rng, to_tensor, close, mode, numpy_mode):
    x = rng.standard_normal((2, 3, 4, 5))
    padded = np.pad(x, [(0, 0), (0, 0), (1, 0), (2, 3)], mode=numpy_mode)
    close(nn.functional.pad(to_tensor(x), (2, 3, 1, 0), mode=mode), padded)
    volume = rng.standard_normal((2, 8, 9, 16, 17))
    around = np.pad(volume, [(0, 0), (0, 0), (1, 0), (3, 2), (0, 4)], mode=numpy_mode)
    close(nn.functional.pad(to_tensor(volume), (0, 4, 3, 2, 1, 0), mode=mode), around)
    constant = np.pad(x, [(0, 0), (0, 0), (1, 0), (2, 3)], constant_values=7)[..., 1:, :-1]
    close(nn.functional.pad(to_tensor(x), (2, 2, 0, 0), value=7), constant)
    with pytest.raises(RuntimeError, match="pad"):
        nn.functional.pad(to_tensor(x), (1,), mode=mode)
    with pytest.raises(RuntimeError, match="value"):
        nn.functional.pad(to_tensor(x), (1, 1), mode=mode, value=2.0)
    with pytest.raises(NotImplementedError):
        nn.functional.pad(to_tensor(x), (1,), mode="wrap")
    with pytest.raises(NotImplementedError):
        nn.functional.pad(to_tensor(x), (1, 1), mode="other")


@pytest.mark.parametrize("amounts", [(-1, 1), (3, -2), (-2, 4), (-2, -1), (1, 2)])
def test_circular_padding_repeats_what_was_not_cut(rng, to_tensor, close, amounts):
    x = rng.standard_normal((1, 2, 6))
    begin, end = amounts
    kept = x[..., max(-begin, 0) : 6 - max(-end, 0)]
    expected = np.pad(kept, [(0, 0), (0, 0), (max(begin, 0), max(end, 0))], mode="wrap")
    close(nn.functional.pad(to_tensor(x), amounts, mode="circular"), expected)
    with pytest.raises(RuntimeError, match=r"pad.*circular"):
        nn.functional.pad(to_tensor(x), (-2, 5), mode="circular")


def test_normalize_by_the_number_of_elements_that_are_not_zero(to_tensor, close):
    x = np.array([[3.0, 0.0, 4.0], [0.0, 0.0, 2.0]])
    close(nn.functional.normalize(to_tensor(x), p=0.0), x / [[2], [1]])


@pytest.mark.parametrize(
    ("name", "arguments", "argument"),
    [
        ("pad", (3j, (1, 1)), "input"),
        ("normalize", (3j,), "input"),
        ("bilinear", (3j, tt.ones(2, 2), tt.ones(2, 2, 2)), "input1"),
        ("bilinear", (tt.ones(2, 2), tt.ones(2, 2), "a"), "weight"),
        ("cosine_similarity", (3j, tt.ones(2)), "x1"),
    ],
)
def test_arguments_that_are_no_tensors(name, arguments, argument):
    with pytest.raises(TypeError, match=f"{name}: argument '{argument}' must be a Tensor, found"):
        getattr(nn.functional, name)(*arguments)


@pytest.mark.parametrize("name", ["uniform_", "zeros_", "xavier_normal_", "orthogonal_", "eye_"])
@pytest.mark.parametrize("wrong", [3j, None])
def test_initialisers_take_tensors(name, wrong):
    with pytest.raises(TypeError, match=f"{name}: argument 'tensor' must be a Tensor, found"):
        getattr(nn.init, name)(wrong)


def test_derived_convolutions_compute_with_another_weight():
    """`_conv_forward`, as classes of programs call it, pads in the layer's own mode."""

    class Halved(nn.Conv2d):
        def forward(self, input):
            return self._conv_forward(input, self.weight / 2, None)

    x = tt.arange(32.0).reshape(1, 2, 4, 4)
    for mode in ("zeros", "reflect"):
        layer = Halved(2, 3, 3, padding=1, padding_mode=mode, bias=False)
        plain = nn.Conv2d(2, 3, 3, padding=1, padding_mode=mode, bias=False)
        plain.load_state_dict(layer.state_dict())
        assert tt.allclose(layer(x) * 2, plain(x), atol=1e-4)


def test_a_convolution_of_a_program_is_called():
    """Programs define `_conv_forward` anew in classes, and put functions of their own there in single layers."""

    class Doubled(nn.Conv2d):
        def _conv_forward(self, input, weight, bias):
            return 2 * super()._conv_forward(input, weight, bias)

    x = tt.ones(1, 2, 3, 3)
    plain, doubled = nn.Conv2d(2, 1, 2), Doubled(2, 1, 2)
    doubled.load_state_dict(plain.state_dict())
    expected = plain(x)
    assert tt.equal(doubled(x), 2 * expected)
    plain._conv_forward = lambda input, weight, bias: input
    assert plain(x) is x
    plain._conv_forward = nn.Conv2d._conv_forward.__get__(plain, nn.Conv2d)
    assert tt.equal(plain(x), expected)
    del plain._conv_forward
    assert tt.equal(plain(x), expected)


@pytest.mark.parametrize("way", ["weight_norm", "orthogonal"])
def test_recurrent_layers_with_weights_that_are_computed(way):
    tt.manual_seed(7)
    layer, x = nn.LSTM(3, 4, 2), tt.randn(5, 2, 3)
    getattr(nn.utils.parametrizations, way)(layer, "weight_hh_l1")
    plain = nn.LSTM(3, 4, 2)
    for name in plain._flat_weights_names:
        setattr(plain, name, nn.Parameter(getattr(layer, name).detach()))
    assert layer(x)[0].tolist() == plain(x)[0].tolist()
    layer(x)[0].sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    layer.double().flatten_parameters()
    assert layer(x.double())[0].dtype is tt.float64


def test_weights_that_a_program_gives_a_recurrent_layer():
    layer, other = nn.LSTM(2, 3), nn.LSTM(2, 3)
    x = tt.ones(4, 1, 2)
    own, expected = layer(x)[0], other(x)[0]
    layer._flat_weights = [weight * 1 for weight in other._flat_weights]
    assert tt.equal(layer(x)[0], expected)
    assert len(layer._flat_weight_refs) == 4 and list(layer.state_dict()) == list(other.state_dict())
    for name in layer._flat_weights_names:
        setattr(layer, name, nn.Parameter(getattr(other, name) * 2))
    assert not tt.equal(layer(x)[0], expected) and not tt.equal(layer(x)[0], own)
    assert layer._flat_weights[0] is layer.weight_ih_l0


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_checks_that_derived_recurrent_layers_call(kind):
    layer = getattr(nn, kind)(2, 3, 2, bidirectional=True)
    x = tt.ones(5, 4, 2)
    expected = layer.get_expected_hidden_size(x, None)
    assert tuple(expected) == (4, 4, 3) == tuple(layer.get_expected_hidden_size(x[:, 0], tt.tensor([4, 1])))
    state = tt.arange(48.0).reshape(4, 4, 3)
    hidden = (state, state) if kind == "LSTM" else state
    layer.check_forward_args(x, hidden, None)
    with pytest.raises(RuntimeError, match="Expected hidden"):
        layer.check_forward_args(x[:, :3], hidden, None)
    with pytest.raises(RuntimeError, match=r"equal to input_size\. Expected 2, got 1"):
        layer.check_forward_args(x[..., :1], hidden, None)
    order = tt.tensor([1, 0, 3, 2])
    permuted = layer.permute_hidden(hidden, order)
    assert tt.equal(permuted[0] if kind == "LSTM" else permuted, state[:, order])
    assert layer.permute_hidden(hidden, None) is hidden


@pytest.mark.parametrize(("eps", "training"), [(-1.0, True), (-1.0, False), (0.0, True)])
def test_batch_norm_refuses_a_wrong_eps(eps, training):
    layer = nn.BatchNorm1d(2, eps=eps).train(training)
    with pytest.raises(ValueError, match="eps must be"):
        layer(tt.ones(3, 2))
    with pytest.raises(ValueError, match="eps must be"):
        nn.functional.batch_norm(tt.ones(3, 2), tt.zeros(2), tt.ones(2), training=training, eps=eps)


@pytest.mark.parametrize("options", [{}, {"momentum": None}, {"track_running_stats": False}], ids=str)
def test_nothing_is_learned_from_an_empty_batch(options):
    layer = nn.BatchNorm2d(3, **options)
    x = tt.zeros(0, 3, 2, 2, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.shape == (0, 3, 2, 2)
    assert layer.weight.grad.tolist() == [0, 0, 0] and layer.bias.grad.tolist() == [0, 0, 0]
    if layer.running_mean is not None:
        assert layer.running_mean.tolist() == [0, 0, 0] and layer.running_var.tolist() == [1, 1, 1]


@pytest.mark.parametrize("momentum", [0.1, None])
def test_batches_that_are_refused_do_not_count(momentum):
    layer = nn.BatchNorm1d(3, momentum=momentum)
    layer(tt.ones(4, 3) * 2)
    before = {name: value.tolist() for name, value in layer.state_dict().items()}
    with pytest.raises(RuntimeError):
        layer(tt.ones(4, 5))
    assert {name: value.tolist() for name, value in layer.state_dict().items()} == before
    layer(tt.ones(4, 3) * 4)
    weight = 0.5 if momentum is None else momentum
    expected = before["running_mean"][0] * (1 - weight) + 4 * weight
    assert (
        layer.running_mean.tolist() == pytest.approx([expected] * 3) and layer.num_batches_tracked.item() == 2
    )


@pytest.mark.parametrize("kind", ["Conv2d", "ConvTranspose1d"])
@pytest.mark.parametrize("derived", [False, True])
def test_programs_put_an_init_of_theirs_before_that_of_convolutions(monkeypatch, kind, derived):
    layer, seen = getattr(nn, kind), []
    before = layer.__init__

    def watched(self, *args, **kwargs):
        seen.append(args)
        before(self, *args, **kwargs)

    monkeypatch.setattr(layer, "__init__", watched)
    made = type("Derived", (layer,), {})(2, 3, 4) if derived else layer(2, 3, kernel_size=4)
    assert seen == [(2, 3, 4) if derived else (2, 3)]
    assert (made.in_channels, made.out_channels, set(made.kernel_size)) == (2, 3, {4})


@pytest.mark.parametrize(("kind", "base"), [("Conv2d", "_ConvNd"), ("ConvTranspose3d", "_ConvTransposeNd")])
@pytest.mark.parametrize("own", [False, True])
def test_classes_between_a_convolution_and_its_base_are_set_up(kind, base, own):
    made = []

    class Between(getattr(nn.modules.conv, base)):
        def __init__(self, *args, **kwargs):
            made.append(type(self))
            super().__init__(*args, **kwargs)

    class Plain(getattr(nn, kind), Between):
        pass

    class Own(getattr(nn, kind), Between):
        def __init__(self):
            super().__init__(1, 2, 3)

    layer = Own() if own else Plain(1, 2, 3)
    assert (
        made == [type(layer)] and layer.out_channels == 2 and layer.weight.dim() == len(layer.kernel_size) + 2
    )


@pytest.mark.parametrize("dtype", [tt.bfloat16, tt.float16])
def test_response_norms_are_computed_in_float32_under_autocast(dtype):
    """As means over windows and powers are."""
    layer, x = nn.LocalResponseNorm(3), tt.rand(2, 4, 5).to(dtype)
    assert layer(x).dtype == dtype
    with tt.autocast("cpu"):
        found = layer(x)
    assert found.dtype == tt.float32
    assert (found - layer(x.to(tt.float32))).abs().max().item() < 1e-4
