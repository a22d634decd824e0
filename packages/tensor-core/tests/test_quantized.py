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
