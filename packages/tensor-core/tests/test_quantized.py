"""Quantized tensors: codes, what they stand for, and what is computed with them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import taeda_tensor_core as tc
from taeda_tensor_core import quantized


def _x() -> tc.Tensor:
    return tc.arange(12.0).reshape(3, 4) / 5 - 1


def test_codes_are_the_nearest_ones() -> None:
    """Rounding goes to even codes, and stops at the least and the largest."""
    q = tc.quantize_per_tensor(tc.tensor([-9.0, 0.25, 0.75, 0.0, 99.0]), 0.5, 10, tc.quint8)
    assert q.int_repr().tolist() == [0, 10, 12, 10, 208]
    assert q.dequantize().tolist() == [-5.0, 0.0, 1.0, 0.0, 99.0]
    assert (q.q_scale(), q.q_zero_point()) == (0.5, 10)
    assert q.dtype is tc.quint8
    assert q.is_quantized
    assert not (q.is_floating_point() or q.is_complex() or q.is_conj() or q.is_neg() or q.is_inference())
    assert q.qscheme() is tc.per_tensor_affine
    assert not _x().is_quantized


def test_channels_have_their_own_scales() -> None:
    """Along a dimension, as computed by NumPy."""
    scales, zeros = tc.tensor([0.1, 0.01, 0.02]), tc.tensor([10, 0, 5])
    q = tc.quantize_per_channel(_x(), scales, zeros, 0, tc.quint8)
    wanted = np.clip(np.rint(_x().numpy() / scales.numpy()[:, None]) + zeros.numpy()[:, None], 0, 255)
    assert np.array_equal(q.int_repr().numpy(), wanted)
    assert q.q_per_channel_axis() == 0
    assert q.q_per_channel_zero_points().tolist() == [10, 0, 5]
    back = (wanted - zeros.numpy()[:, None]) * scales.numpy()[:, None]
    assert np.allclose(q.dequantize().numpy(), back, atol=1e-6)


def test_a_range_is_covered_by_all_codes() -> None:
    """The dynamic scale stretches from the least to the largest element."""
    q = tc.quantize_per_tensor_dynamic(_x(), tc.quint8, False)
    assert (q.int_repr().min().item(), q.int_repr().max().item()) == (0, 255)
    assert (q.dequantize() - _x()).abs().max().item() <= q.q_scale() / 2 + 1e-6
    assert tc.quantize_per_tensor_dynamic(_x(), tc.quint8, True).int_repr().max().item() == 127


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (RuntimeError, lambda: tc.quantize_per_tensor(_x().double(), 0.1, 0, tc.quint8)),
        (RuntimeError, lambda: tc.quantize_per_tensor(_x(), 0.1, 0, tc.float32)),
        (RuntimeError, lambda: tc.quantize_per_tensor(_x(), 0.0, 0, tc.quint8)),
        (RuntimeError, lambda: tc.quantize_per_tensor(_x(), 0.1, 300, tc.quint8)),
        (IndexError, lambda: tc.quantize_per_channel(_x(), tc.ones(3), tc.zeros(3), 2, tc.quint8)),
        (RuntimeError, lambda: tc.quantize_per_channel(_x(), tc.ones(2), tc.zeros(2), 0, tc.quint8)),
        (NotImplementedError, lambda: _x().q_scale()),
        (NotImplementedError, lambda: _x().int_repr()),
        (NotImplementedError, lambda: tc.quantize_per_tensor(_x(), 0.1, 0, tc.qint8) + 1),
        (RuntimeError, lambda: tc.quantize_per_tensor(_x(), 0.1, 0, tc.qint8).requires_grad_()),
        (TypeError, lambda: tc.quantize_per_tensor(_x(), 0.1, 0, tc.qint8).numpy()),
        (RuntimeError, lambda: tc.fake_quantize_per_tensor_affine(_x(), 0.1, 0, 7, -8)),
        (IndexError, lambda: tc.fake_quantize_per_channel_affine(_x(), tc.ones(3), tc.zeros(3), 5, 0, 7)),
    ],
)
def test_wrong_calls_are_refused(error: type[Exception], call) -> None:
    """By their own exceptions, with the argument named."""
    with pytest.raises(error):
        call()


def test_shapes_change_and_scales_stay() -> None:
    """Views, pieces and copies."""
    q = tc.quantize_per_tensor(_x(), 0.1, 10, tc.quint8)
    assert q.reshape(2, 6).shape == (2, 6)
    assert q.t().int_repr().tolist() == q.int_repr().t().tolist()
    assert q[1].dequantize().tolist() == q.dequantize()[1].tolist()
    assert [part.q_scale() for part in q.chunk(3)] == [0.1] * 3
    assert tc.cat([q, q]).int_repr().shape == (6, 4)
    assert tc.equal(q, q.clone())
    assert not tc.equal(q, tc.quantize_per_tensor(_x(), 0.1, 11, tc.quint8))
    for same in (pickle.loads(pickle.dumps(q)), copy.deepcopy(q)):
        assert tc.equal(q, same)


def test_values_are_computed_on_numbers() -> None:
    """relu on codes; tanh and sigmoid with the scale of their range; comparisons as bool."""
    q = tc.quantize_per_tensor(_x(), 0.1, 10, tc.quint8)
    assert tc.relu(q).dequantize().min().item() == 0.0
    assert tc.sigmoid(q).q_scale() == 1 / 256
    assert (tc.tanh(q).q_scale(), tc.tanh(q).q_zero_point()) == (2 / 256, 128)
    assert (q > 0.05).tolist() == (q.dequantize() > 0.05).tolist()
    assert q.max().item() == pytest.approx(1.2)
    q[0] = 0.5
    assert q[0].int_repr().tolist() == [15] * 4


def test_operators_of_the_package_quantized() -> None:
    """add, mul, linear and their stored scales."""
    named = tc.ops.quantized
    q = tc.quantize_per_tensor(_x(), 0.1, 10, tc.quint8)
    total = named.add(q, q, 0.2, 5)
    assert (
        total.dequantize() - 2 * q.dequantize()
    ).abs().max().item() < 1.01  # codes below the least one are lost
    assert named.mul_scalar(q, 2.0).q_scale() == pytest.approx(0.2)
    weight = tc.quantize_per_tensor(_x()[:2], 0.05, 0, tc.qint8)
    packed = named.linear_prepack(weight, tc.ones(2))
    wanted = q.dequantize() @ weight.dequantize().t() + 1
    assert (named.linear(q, packed, 0.05, 100).dequantize() - wanted).abs().max().item() <= 0.0251
    assert (
        named.linear_dynamic(_x(), packed) - (_x() @ weight.dequantize().t() + 1)
    ).abs().max().item() < 0.05


def test_faked_quantization_is_that_of_quantize_and_dequantize() -> None:
    """And its scale for channels."""
    faked = tc.fake_quantize_per_tensor_affine(_x(), 0.1, 3, 0, 15)
    codes = np.clip(np.rint(_x().numpy() * np.float32(10)) + 3, 0, 15)
    assert np.allclose(faked.numpy(), (codes - 3) * 0.1, atol=1e-6)
    scales = tc.tensor([0.1, 0.2, 0.3])
    rows = tc.fake_quantize_per_channel_affine(_x(), scales, tc.zeros(3, dtype=tc.int32), 0, -128, 127)
    for row, scale, x in zip(rows, scales.tolist(), _x(), strict=True):
        assert tc.equal(row, tc.fake_quantize_per_tensor_affine(x, scale, 0, -128, 127))


def test_named_module_has_what_the_package_offers() -> None:
    """Every name of `__all__` is there."""
    assert all(hasattr(quantized, name) for name in quantized.__all__)


# Layers


def layer_operands(rng, shape, kind, axis, zero=0):
    """A quantized activation and weight, and the numbers that they stand for, in float64."""
    activation, weight = (rng.standard_normal(s).astype("float32") for s in shape)
    x = tc.quantize_per_tensor(tc.tensor(activation), 0.0371, 3 if kind is tc.qint8 else 117, kind)
    if axis is None:
        w = tc.quantize_per_tensor(tc.tensor(weight), 0.0213, zero, tc.qint8)
    else:
        scales = tc.tensor(rng.uniform(0.01, 0.03, weight.shape[0]))
        zeros = tc.full((weight.shape[0],), zero, dtype=tc.int64)
        w = tc.quantize_per_channel(tc.tensor(weight), scales, zeros, 0, tc.qint8)
    return x, w, x.dequantize().double().numpy(), w.dequantize().double().numpy()


def holds(found, made, scale, zero_point):
    """Codes as they follow from exact numbers, but for a few that lie between two."""
    limits = (-128, 127) if found.dtype is tc.qint8 else (0, 255)
    expected = np.clip(np.round(made / scale) + zero_point, *limits)
    off = np.abs(found.int_repr().numpy().astype(int) - expected)
    assert off.max() <= 1 and (off > 0).mean() < 0.01


@pytest.mark.parametrize("kind", [tc.quint8, tc.qint8], ids=str)
@pytest.mark.parametrize("axis, zero", [(None, 0), (0, 0), (None, 4), (0, -2)])
@pytest.mark.parametrize("relu", [False, True])
def test_linear_layers_of_codes(kind, axis, zero, relu):
    rng = np.random.default_rng(5)
    x, w, x_64, w_64 = layer_operands(rng, ((40, 130), (70, 130)), kind, axis, zero)
    bias = rng.standard_normal(70).astype("float32")
    packed = tc.ops.quantized.linear_prepack(w, tc.tensor(bias))
    layer = tc.ops.quantized.linear_relu if relu else tc.ops.quantized.linear
    made = x_64 @ w_64.T + bias
    holds(layer(x, packed, 0.31, 11), np.maximum(made, 0) if relu else made, 0.31, 11)


@pytest.mark.parametrize("kind", [tc.quint8, tc.qint8], ids=str)
@pytest.mark.parametrize("groups, channels", [(1, 3), (1, 32), (4, 32), (32, 32)])
@pytest.mark.parametrize("layout", ["row-major", "channels last", "one image"])
def test_convolutions_of_codes(kind, groups, channels, layout):
    rng = np.random.default_rng(6)
    x, w, x_64, w_64 = layer_operands(rng, ((2, channels, 12, 11), (64, channels // groups, 3, 3)), kind, 0)
    if layout == "channels last":
        codes = x.int_repr().contiguous(memory_format=tc.channels_last)
        x = tc._make_per_tensor_quantized_tensor(codes, x.q_scale(), x.q_zero_point())
    elif layout == "one image":
        x, x_64 = x[0], x_64[:1]
    packed = tc.ops.quantized.conv2d_prepack(w, None, (2, 1), (1, 1), (1, 1), groups)
    found = tc.ops.quantized.conv2d(x, packed, 0.17, 120 if kind is tc.quint8 else 0)
    padded = np.pad(x_64, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2]
    n, _, height, width = windows.shape[:4]
    parts = windows.reshape(n, groups, channels // groups, height, width, 3, 3)
    made = np.einsum("ngchwij,gocij->ngohw", parts, w_64.reshape(groups, -1, *w_64.shape[1:]))
    made = made.reshape(n, -1, height, width)
    holds(found, made[0] if layout == "one image" else made, 0.17, 120 if kind is tc.quint8 else 0)


@pytest.mark.parametrize("channels", [3, 24, 64])
@pytest.mark.parametrize(
    "kernel, step, border",
    [((7, 4), (1, 5), (5, 3)), ((5, 5), (1, 5), (4, 4)), ((4, 4), (4, 4), (0, 0)), ((1, 1), (3, 3), (0, 0))],
)
def test_convolutions_of_codes_with_wide_borders(channels, kernel, step, border):
    """Borders beyond half of the kernel, rows of whole windows, steps that pass over pixels."""
    rng = np.random.default_rng(8)
    x, w, x_64, w_64 = layer_operands(rng, ((2, channels, 12, 20), (9, channels, *kernel)), tc.quint8, 0)
    packed = tc.ops.quantized.conv2d_prepack(w, None, step, border, (1, 1), 1)
    padded = np.pad(x_64, ((0, 0), (0, 0), *((b, b) for b in border)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, (2, 3))[:, :, :: step[0], :: step[1]]
    made = np.einsum("nchwij,ocij->nohw", windows, w_64)
    holds(tc.ops.quantized.conv2d(x, packed, 0.17, 120), made, 0.17, 120)


@pytest.mark.parametrize("rows", [0, 1, 3, 200])
@pytest.mark.parametrize("reduce_range", [False, True])
def test_inputs_that_are_quantized_by_their_own_range(rows, reduce_range):
    rng = np.random.default_rng(7)
    w = layer_operands(rng, ((1, 1), (33, 90)), tc.quint8, 0)[1]
    x = rng.uniform(-2, 5, (2, rows, 90)).astype("float32")
    found = tc.ops.quantized.linear_dynamic(tc.tensor(x), tc.ops.quantized.linear_prepack(w), reduce_range)
    assert found.dtype is tc.float32 and found.shape == (2, rows, 33)
    steps = 127 if reduce_range else 255
    scale = (x.max(initial=0) - x.min(initial=0)) / steps if rows else 1.0
    bound = scale / 2 * np.abs(w.dequantize().numpy()).sum(1) * 1.01 + 1e-4
    assert (np.abs(found.numpy() - x @ w.dequantize().numpy().T) <= bound).all()


def test_layers_see_weights_that_change():
    """What is kept of a weight in another layout does not outlive its numbers."""
    rng = np.random.default_rng(8)
    x, w, x_64, w_64 = layer_operands(rng, ((5, 64), (48, 64)), tc.quint8, None)
    packed = tc.ops.quantized.linear_prepack(w)
    for _ in range(3):
        holds(tc.ops.quantized.linear(x, packed, 0.5, 100), x_64 @ w_64.T, 0.5, 100)
    w._codes.fill_(3)
    holds(tc.ops.quantized.linear(x, packed, 0.5, 100), x_64 @ np.full_like(w_64, 3 * 0.0213).T, 0.5, 100)


def test_products_of_int8_are_exact():
    rng = np.random.default_rng(9)
    for m, k, n in ((1, 5000, 7), (60, 700, 50), (3, 1, 2)):
        a, b = (rng.integers(-128, 128, size).astype("int8") for size in ((m, k), (n, k)))
        expected = a.astype(int) @ b.astype(int).T
        assert (tc._int_mm(tc.tensor(a), tc.tensor(b).t()).numpy() == expected).all()
        assert (tc._int_mm(tc.tensor(a), tc.tensor(b).t().contiguous()).numpy() == expected).all()


def test_operators_that_store_by_a_given_scale():
    named = tc.ops.quantized
    x = tc.quantize_per_tensor(tc.arange(144.0).reshape(2, 4, 3, 6).sin(), 0.03, 120, tc.quint8)
    w, b = tc.tensor([1.0, 2.0, 0.5, -1.0]), tc.tensor([0.0, 1.0, -1.0, 0.5])
    slope = tc.quantize_per_tensor(tc.tensor([0.25]), 0.01, 0, tc.quint8)
    n = x.dequantize()
    mean, var = tc.zeros(4), tc.ones(4)
    for found, expected in (
        (named.leaky_relu(x, 0.2, False, 0.05, 100), tc.ops.leaky_relu(n, 0.2)),
        (named.elu(x, 0.05, 100, 0.5), tc.ops.elu(n, 0.5)),
        (named.softmax(x, 1, 0.05, 100), n.softmax(1)),
        (named.layer_norm(x, [6], None, None, 1e-5, 0.05, 100), tc.ops.layer_norm(n, [6], None, None, 1e-5)),
        (named.group_norm(x, 2, w, b, 1e-5, 0.05, 100), tc.ops.group_norm(n, 2, w, b, 1e-5)),
        (named.instance_norm(x, w, b, 1e-5, 0.05, 100), tc.ops.group_norm(n, 4, w, b, 1e-5)),
        (named.batch_norm2d(x, w, b, mean, var, 0.0, 0.05, 100), n * w[:, None, None] + b[:, None, None]),
        (named.prelu(x, slope, 0.05, 100), tc.ops.prelu(n, slope.dequantize())),
    ):
        assert (found.q_scale(), found.q_zero_point()) == (pytest.approx(0.05), 100)
        assert tc.equal(found.int_repr(), tc.quantize_per_tensor(expected, 0.05, 100, tc.quint8).int_repr())
    assert named.relu6(x).dequantize().min() == 0
    weight = tc.quantize_per_tensor(tc.arange(48.0).reshape(4, 3, 2, 2).cos(), 0.01, 0, tc.qint8)
    packed = named.conv_transpose2d_prepack(weight, tc.ones(3), [2, 2], [0, 0], [0, 0], [1, 1], 1)
    expected = tc.ops.conv_transpose2d(n, weight.dequantize(), tc.ones(3), 2)
    found = named.conv_transpose2d(x, packed, 0.05, 100)
    assert tc.equal(found.int_repr(), tc.quantize_per_tensor(expected, 0.05, 100, tc.quint8).int_repr())
    assert named.conv_transpose2d_unpack(packed)[0] is weight


def test_texts_break_lines_as_those_of_plain_tensors_do() -> None:
    """Each fact begins a line where it does not fit into the last."""
    shown = repr(tc.quantize_per_tensor(tc.tensor([0.5, 1.0]), 0.5, 1, tc.quint8)).splitlines()
    assert len(shown) == 2 and shown[0].endswith("dtype=taeda.quint8,") and len(shown[0]) <= 80
    assert shown[1] == "       quantization_scheme=taeda.per_tensor_affine, scale=0.5, zero_point=1)"


@pytest.mark.parametrize("rows", [16, 64, 144])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_of_four_bits(rows, dtype):
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 16, (rows, 128)).astype("int32")
    packed = tc._convert_weight_to_int4pack_for_cpu(tc.tensor(codes), 2)
    assert packed.dtype is tc.uint8 and tuple(packed.shape) == (rows, 64)
    flat, first = packed.numpy().reshape(-1), codes[:64]
    for column in (0, 127):  # a block of rows has one column after the other
        half = len(first) // 2
        low, high = (first[:half], first[half:]) if rows >= 64 else (first[::2], first[1::2])
        assert (flat[column * half :][:half] == low[:, column] + 16 * high[:, column]).all()
    x, s = (tc.tensor(rng.standard_normal(n)).to(getattr(tc, dtype)) for n in ((3, 128), (2, rows, 2)))
    scales, zeros = (s.double().numpy()[..., i].T.repeat(64, 1) for i in (0, 1))
    expected = x.double().numpy() @ ((codes - 8.0) * scales + zeros).T
    found = tc.ops.aten._weight_int4pack_mm_for_cpu(x, packed, 64, s)
    assert found.dtype is x.dtype
    near = 1e-5 if dtype == "float32" else 2**-8
    assert found.double().numpy() == pytest.approx(expected, rel=near, abs=near)


def test_weights_of_eight_bits():
    rng = np.random.default_rng(4)
    x, w, s = rng.standard_normal((3, 5)), rng.integers(-128, 128, (7, 5)), rng.random(7)
    given = tc.tensor(x).float(), tc.tensor(w).to(tc.int8), tc.tensor(s).float()
    assert tc._weight_int8pack_mm(*given).numpy() == pytest.approx(x @ w.T * s, rel=1e-4, abs=1e-4)


def test_packed_weights_say_what_does_not_fit():
    codes, x = tc.zeros(32, 64, dtype=tc.int32), tc.zeros(3, 64)
    packed, scales = tc._convert_weight_to_int4pack_for_cpu(codes, 2), tc.zeros(2, 32, 2)
    pack, product, bytewise = (
        tc._convert_weight_to_int4pack_for_cpu,
        tc._weight_int4pack_mm_for_cpu,
        tc._weight_int8pack_mm,
    )
    for call, text in (
        (lambda: pack(codes.long(), 2), "'self' has dtype taeda.int64, expected int32"),
        (lambda: pack(codes[:9], 2), r"'self' has shape \(9, 64\)"),
        (lambda: pack(codes[:, :3], 2), r"'self' has shape \(32, 3\)"),
        (lambda: product(x.double(), packed, 32, scales), "'self' has dtype taeda.float64"),
        (lambda: product(x, packed.int(), 32, scales), "'mat2' has dtype taeda.int32"),
        (lambda: product(x[:, 1:], packed, 32, scales), r"'mat2' has shape \(32, 32\)"),
        (lambda: product(x, packed, 16, scales), "'qGroupSize' is 16"),
        (lambda: product(x, packed, 128, scales), "a divisor of 64"),
        (lambda: product(x, packed, 32, scales.half()), "'qScaleAndZeros' has dtype taeda.float16"),
        (lambda: product(x, packed, 64, scales), r"expected \(1, 32, 2\)"),
        (lambda: bytewise(x, packed, scales), "'mat2' has dtype taeda.uint8, expected int8"),
        (lambda: bytewise(x, codes.to(tc.int8), tc.ones(3)), r"'scales' has shape \(3,\), expected \(32,\)"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()
