"""Quantizing models: after training, while they are trained, and anew for each input."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda.ao import quantization as tq


class _Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant = tq.QuantStub()
        self.conv, self.bn, self.relu = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()
        self.add = taeda.ao.nn.quantized.FloatFunctional()
        self.fc = nn.Linear(4 * 64, 3)
        self.dequant = tq.DeQuantStub()

    def forward(self, x: taeda.Tensor) -> taeda.Tensor:
        x = self.relu(self.bn(self.conv(self.quant(x))))
        x = self.add.add(x, x)
        return self.dequant(self.fc(taeda.flatten(x, 1)))


def _data(n: int = 16) -> taeda.Tensor:
    return taeda.sin(taeda.arange(n * 64.0)).reshape(n, 1, 8, 8)


@pytest.mark.parametrize("backend", ["x86", "qnnpack"])
def test_a_trained_model_is_quantized_after_it_was_observed(backend: str) -> None:
    """What it gives stays near, its weights are quantized, and its state goes into another."""
    taeda.manual_seed(0)
    model = _Model().eval()
    model.qconfig = tq.get_default_qconfig(backend)
    fused = tq.fuse_modules(model, [["conv", "bn", "relu"]])
    assert type(fused.conv).__name__ == "ConvReLU2d"
    assert isinstance(fused.bn, nn.Identity)
    observed = tq.prepare(fused)
    observed(_data())
    made = tq.convert(observed)
    assert made.conv.weight().is_quantized
    assert made.fc.weight().dtype is taeda.qint8
    assert not any("activation_post_process" in name for name, _ in made.fc.named_modules())
    wanted, found = model(_data()), made(_data())
    assert (wanted - found).abs().max().item() < 0.1 * wanted.abs().max().item() + 0.02
    unseen = tq.prepare(fused)
    with pytest.warns(UserWarning, match="must run observer"):
        other = tq.convert(unseen)
    other.load_state_dict(made.state_dict())
    assert taeda.equal(other(_data()), found)


def test_a_model_is_trained_while_it_foresees_quantization() -> None:
    """Gradients reach its weights, and the converted model gives what the trained one gave."""
    taeda.manual_seed(0)
    model = tq.fuse_modules_qat(_Model().train(), [["conv", "bn", "relu"]])
    model.qconfig = tq.get_default_qat_qconfig("x86")
    prepared = tq.prepare_qat(model)
    optimizer = taeda.optim.SGD(prepared.parameters(), 0.05)
    losses = []
    for _ in range(5):
        loss = nn.functional.cross_entropy(prepared(_data()), taeda.arange(16) % 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert prepared.conv.weight.grad is not None
    prepared.eval()
    made = tq.convert(prepared)
    assert type(made.conv).__name__ == "ConvReLU2d"
    assert (made(_data()) - prepared(_data())).abs().max().item() < 0.3


def test_inputs_are_quantized_anew() -> None:
    """Layers by class or by name; the model itself stays as it is."""
    taeda.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    x = taeda.sin(taeda.arange(40.0)).reshape(5, 8)
    made = tq.quantize_dynamic(model, {nn.Linear}, dtype=taeda.qint8)
    assert "DynamicQuantizedLinear(in_features=8" in repr(made)
    assert (made(x) - model(x)).abs().max().item() < 0.05
    assert type(model[0]) is nn.Linear
    named = tq.quantize_dynamic(model, {"0": tq.default_dynamic_qconfig})
    assert type(named[0]) is not nn.Linear
    assert type(named[2]) is nn.Linear
    half = tq.quantize_dynamic(model, dtype=taeda.float16)
    assert (half(x) - model(x)).abs().max().item() < 1e-2
    recurrent = nn.LSTM(8, 6)
    small = tq.quantize_dynamic(nn.Sequential(recurrent), {nn.LSTM})
    assert (small[0](x)[0] - recurrent(x)[0]).abs().max().item() < 0.05
    with pytest.raises(ValueError, match="default settings"):
        tq.quantize_dynamic(model, {nn.Linear}, dtype=taeda.float64)


def test_observers_say_the_scale_of_what_they_saw() -> None:
    """By limits, their moving averages, channels and histograms."""
    x = taeda.linspace(-1.0, 3.0, 512).reshape(2, 256)
    watch = tq.MinMaxObserver()
    watch(x)
    scale, zero = watch.calculate_qparams()
    assert (scale.item(), zero.item()) == (pytest.approx(4 / 255), 64)
    symmetric = tq.MinMaxObserver(dtype=taeda.qint8, qscheme=taeda.per_tensor_symmetric)
    symmetric(x)
    assert [v.item() for v in symmetric.calculate_qparams()] == [pytest.approx(3 / 127.5), 0]
    channels = tq.PerChannelMinMaxObserver(dtype=taeda.qint8, qscheme=taeda.per_channel_symmetric)
    channels(x)
    assert channels.calculate_qparams()[0].shape == (2,)
    with pytest.raises(IndexError, match="Dimension out of range"):
        tq.PerChannelMinMaxObserver(ch_axis=2)(x)
    moving = tq.MovingAverageMinMaxObserver(averaging_constant=0.5)
    moving(x)
    moving(3 * x)
    assert moving.max_val.item() == pytest.approx(6.0)
    histogram = tq.HistogramObserver()
    histogram(taeda.cat([x.reshape(-1), taeda.tensor([100.0])]))
    assert histogram.calculate_qparams()[0].item() < 101 / 255  # one element far away is given up
    with pytest.raises(NotImplementedError):
        tq.MinMaxObserver(qscheme=taeda.per_channel_affine)


def test_faked_quantization_has_gradients_in_range_alone() -> None:
    """A module of it learns its scale from what goes by, and can be switched off."""
    fake = tq.FakeQuantize()
    x = taeda.tensor([-0.5, 0.013, 2.05], requires_grad=True)
    fake(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
    fake.disable_observer()
    y = taeda.tensor([50.0, 0.5], requires_grad=True)
    fake(y).sum().backward()
    assert y.grad.tolist() == [0.0, 1.0]
    fake.disable_fake_quant()
    assert taeda.equal(fake(y), y)
    again = tq.FakeQuantize()
    again.load_state_dict(fake.state_dict())
    assert taeda.equal(again.scale, fake.scale)


def test_learnt_scales_have_gradients() -> None:
    """Those of numbers out of range are the codes at which they stop."""
    x = taeda.tensor([0.26, 9.0], requires_grad=True)
    scale, zero = taeda.tensor([0.5], requires_grad=True), taeda.tensor([0.0], requires_grad=True)
    taeda._fake_quantize_learnable_per_tensor_affine(x, scale, zero, -8, 7, 1.0).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]
    assert scale.grad.item() == pytest.approx((0.5 - 0.26) / 0.5 + 7)
    assert zero.grad.item() == pytest.approx(-0.5)


@pytest.mark.parametrize("first", [nn.Conv2d(2, 2, 1), nn.Linear(2, 2), nn.BatchNorm2d(2)])
def test_an_activation_may_be_in_another_mode_than_the_layer_before_it(first: nn.Module) -> None:
    """Modes matter where a normalization becomes part of a weight alone."""
    kind = f"{type(first).__name__.replace('BatchNorm', 'BN').rstrip('2d')}ReLU"
    model = nn.Sequential(first, nn.ReLU().eval())
    assert type(tq.fuse_modules(model, ["0", "1"])[0]).__name__.startswith(kind)
    with pytest.raises(AssertionError, match="same mode"):
        tq.fuse_modules(nn.Sequential(nn.Conv2d(2, 2, 1).eval(), nn.BatchNorm2d(2)), ["0", "1"])


def test_what_cannot_be_fused_is_refused() -> None:
    """And copies of prepared models stay apart."""
    model = nn.Sequential(nn.ReLU(), nn.Linear(2, 2))
    with pytest.raises(NotImplementedError, match="Cannot fuse"):
        tq.fuse_modules(model, ["0", "1"])
    with pytest.raises(AssertionError):
        tq.prepare_qat(copy.deepcopy(model).eval())
    with pytest.raises(AssertionError):
        tq.get_default_qconfig("none")
    with pytest.raises(ValueError, match="observer"):
        tq.QConfig(tq.MinMaxObserver(), tq.default_weight_observer)


def test_descriptions_of_backends_keep_what_they_are_given():
    from taeda.ao.quantization.backend_config import (
        BackendConfig,
        BackendPatternConfig,
        DTypeConfig,
        ObservationType,
    )

    kinds = DTypeConfig(taeda.quint8, taeda.quint8, taeda.qint8, taeda.float32)
    pattern = (
        BackendPatternConfig((nn.Linear, nn.ReLU))
        .set_observation_type(ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT)
        .add_dtype_config(kinds)
        .set_root_module(nn.Linear)
    )
    config = BackendConfig("mine").set_backend_pattern_config(pattern)
    again = BackendConfig.from_dict(config.to_dict())
    assert again.name == "mine" and again.configs[0].pattern == (nn.Linear, nn.ReLU)
    assert again.configs[0].root_module is nn.Linear and again.configs[0].dtype_configs == [kinds]
    assert again.configs[0].observation_type is ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT


def test_scales_follow_from_bounds():
    from taeda.ao.quantization.utils import calculate_qmin_qmax, determine_qparams

    assert calculate_qmin_qmax(None, None, False, taeda.qint8, True) == (-64, 63)
    assert calculate_qmin_qmax(0, 15, True, taeda.quint8, False) == (0, 15)
    eps = taeda.tensor([1e-7])
    scale, zero = determine_qparams(taeda.tensor(-1.0), taeda.tensor(4.0), 0, 255, taeda.quint8, eps, False)
    assert scale.item() == pytest.approx(5 / 255) and zero.item() == 51
    scale, zero = determine_qparams(
        taeda.tensor([-1.0, 0.5]), taeda.tensor([0.5, 2.0]), -128, 127, taeda.qint8, eps, False,
        taeda.per_channel_symmetric,
    )  # fmt: skip
    assert scale.tolist() == pytest.approx([1 / 127.5, 2 / 127.5]) and zero.tolist() == [0, 0]
    for scheme in ("per_tensor_affine", "per_tensor_symmetric", "per_channel_affine_float_qparams"):
        bounds = taeda.tensor(-1.0), taeda.tensor(4.0)
        pair = determine_qparams(*bounds, 0, 255, taeda.quint8, eps, False, getattr(taeda, scheme))
        assert [value.dtype for value in pair] == [taeda.float64, taeda.int64]
        assert [value.shape for value in pair] == [(1,), (1,)]


def test_blocks_that_share_a_scale():
    from taeda.ao.quantization import PerAxis, PerBlock, PerGroup, PerRow, PerTensor, PerToken, get_block_size

    shape = (2, 4, 6)
    expected = {
        PerTensor(): shape, PerAxis(1): (2, 1, 6), PerAxis(-1): (2, 4, 1), PerGroup(3): (1, 1, 3),
        PerRow(): (1, 1, 6), PerToken(): (1, 1, 6), PerBlock((1, 2, 3)): (1, 2, 3),
    }  # fmt: skip
    for granularity, sizes in expected.items():
        assert get_block_size(shape, granularity) == sizes
    with pytest.raises(ValueError, match="6 is no multiple of the group size 4"):
        get_block_size(shape, PerGroup(4))
    with pytest.raises(ValueError, match="Unsupported Granularity"):
        get_block_size(shape, None)


def test_functions_that_put_layers_together():
    from taeda.ao import quantization as q

    conv, norm, relu = nn.Conv2d(3, 4, 1).eval(), nn.BatchNorm2d(4).eval(), nn.ReLU().eval()
    norm.running_mean.copy_(taeda.arange(4.0))
    x = taeda.randn(2, 3, 5, 5)
    taeda.testing.assert_close(q.fuse_conv_bn(False, conv, norm)(x), norm(conv(x)))
    taeda.testing.assert_close(q.fuse_conv_bn_relu(False, conv, norm, relu)(x), relu(norm(conv(x))))
    method = q.get_fuser_method((nn.Linear, nn.ReLU))
    assert type(method(False, nn.Linear(2, 2), nn.ReLU())).__name__ == "LinearReLU"
    assert q.get_fuser_method((nn.Tanh, nn.ReLU), {(nn.Tanh, nn.ReLU): max}) is max
    for wrong in ((nn.Tanh, nn.ReLU), (nn.Conv2d, nn.BatchNorm1d)):
        with pytest.raises(AssertionError, match="did not find fuser method"):
            q.get_fuser_method(wrong)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_convolutions_of_quantized_tensors(dims: int) -> None:
    """They give the codes nearest to what the numbers of input and weight give; their states go into others."""
    taeda.manual_seed(0)
    layer = getattr(nn, f"ConvTranspose{dims}d")(2, 4, 3, stride=2, padding=1, output_padding=1, groups=2)
    model = nn.Sequential(tq.QuantStub(), layer).eval()
    model.qconfig = tq.QConfig(tq.MinMaxObserver.with_args(dtype=taeda.quint8), tq.default_weight_observer)
    observed = tq.prepare(model)
    x = taeda.linspace(-2, 2, 2 * 4**dims).reshape(1, 2, *[4] * dims)
    observed(x)
    made = tq.convert(observed)
    found, weight = made(x), made[1].weight().dequantize()
    numbers = getattr(nn.functional, f"conv_transpose{dims}d")(
        made[0](x).dequantize(), weight, layer.bias, stride=2, padding=1, output_padding=1, groups=2
    )
    assert found.is_quantized and found.shape == numbers.shape
    assert (found.dequantize() - numbers).abs().max().item() <= 0.51 * made[1].scale
    unseen = tq.prepare(model)
    with pytest.warns(UserWarning, match="must run observer"):
        other = tq.convert(unseen)
    other.load_state_dict(made.state_dict())
    assert taeda.equal(other(x).int_repr(), found.int_repr())
    assert f"QuantizedConvTranspose{dims}d(2, 4" in repr(made) and "output_padding" in repr(made)


def test_a_linear_layer_is_trained_with_its_normalization() -> None:
    """The two are one layer when they are converted, and gradients reach both before."""
    taeda.manual_seed(0)
    model = nn.Sequential(tq.QuantStub(), nn.Linear(4, 3), nn.BatchNorm1d(3), tq.DeQuantStub()).train()
    model = tq.fuse_modules_qat(model, [["1", "2"]])
    model.qconfig = tq.get_default_qat_qconfig("x86")
    prepared = tq.prepare_qat(model)
    assert type(prepared[1]).__name__ == "LinearBn1d"
    x = taeda.sin(taeda.arange(64.0)).reshape(16, 4)
    for _ in range(3):
        prepared(x)
    prepared(x).square().sum().backward()
    assert all(p.grad is not None for p in prepared.parameters())
    prepared.eval()
    made = tq.convert(prepared)
    assert type(made[1]).__name__ == "Linear" and made[1].weight().is_quantized
    assert (made(x) - prepared(x)).abs().max().item() < 0.1


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolutions_trained_with_their_normalization_are_convolutions(dims: int) -> None:
    """They have a convolution's parameters and settings under its names, and the normalization's behind `bn`."""
    conv, bn = getattr(nn, f"Conv{dims}d"), getattr(nn, f"BatchNorm{dims}d")
    model = nn.Sequential(
        tq.QuantStub(), conv(2, 4, 3, padding=1), bn(4), nn.ReLU(), tq.DeQuantStub()
    ).train()
    model = tq.fuse_modules_qat(model, [["1", "2", "3"]])
    model.qconfig = tq.get_default_qat_qconfig("x86")
    plain = model[1][0]
    prepared = tq.prepare_qat(model)
    layer = prepared[1]
    assert type(layer).__name__ == f"ConvBnReLU{dims}d" and isinstance(layer, conv)
    assert taeda.equal(layer.weight, plain.weight) and layer.padding == (1,) * dims
    names = list(layer.state_dict())
    assert names[:4] == ["weight", "bias", "bn.weight", "bn.bias"] and "weight_fake_quant.scale" in names
    assert list(plain.state_dict()) == ["weight", "bias"]
    x = taeda.sin(taeda.arange(2.0 * 2 * 4**dims)).reshape(2, 2, *[4] * dims)
    for _ in range(3):
        prepared(x).square().sum().backward()
    assert all(p.grad is not None for p in prepared.parameters())
    prepared.eval()
    made = tq.convert(prepared)
    assert made[1].weight().is_quantized and "bn" not in dict(made[1].named_children())
    assert (made(x) - prepared(x)).abs().max().item() < 0.1
    alone = type(layer)(2, 4, 3, padding=1, freeze_bn=True, qconfig=tq.get_default_qat_qconfig("x86"))
    assert alone.bias is None and not alone.train().bn.training
    with pytest.raises(AssertionError, match="qconfig"):
        type(layer)(2, 4, 3)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def decomposed():
    from taeda.ao.quantization.fx._decomposed import quantized_decomposed_lib

    assert quantized_decomposed_lib.ns == "quantized_decomposed"
    return taeda.ops.quantized_decomposed


def _codes(x, scale, zero, low, high):
    return np.clip(np.round(x * (np.float32(1) / scale)) + zero, low, high)


@pytest.mark.parametrize("form", ["default", "tensor", "tensor2"])
def test_codes_are_plain_integers_beside_one_scale(rng, decomposed, form):
    x = (rng.standard_normal((3, 5)) * 4).astype(np.float32)
    given = [0.05, 3, -20, 100]
    tensors = {"default": 0, "tensor": 2, "tensor2": 4}[form]
    given = [taeda.tensor(value) for value in given[:tensors]] + given[tensors:]
    codes = getattr(decomposed.quantize_per_tensor, form)(taeda.tensor(x), *given, taeda.int8)
    expected = _codes(x, np.float32(0.05), 3, -20, 100)
    assert codes.dtype == taeda.int8 and np.array_equal(codes.numpy(), expected)
    back = getattr(decomposed.dequantize_per_tensor, form)(codes, *given, taeda.int8)
    assert back.dtype == taeda.float32 and np.allclose(back.numpy(), (expected - 3) * 0.05)
    back = getattr(decomposed.dequantize_per_tensor, form)(codes, *given, taeda.int8, out_dtype=taeda.float64)
    assert back.dtype == taeda.float64


@pytest.mark.parametrize("axis", [0, 1])
def test_codes_of_channels(rng, decomposed, axis):
    x = (rng.standard_normal((4, 6)) * 4).astype(np.float32)
    scales, zeros = rng.uniform(0.02, 0.2, x.shape[axis]).astype(np.float32), np.arange(x.shape[axis])
    shape = (-1, 1) if axis == 0 else (1, -1)
    expected = _codes(x, scales.reshape(shape), zeros.reshape(shape), -128, 127)
    given = taeda.tensor(scales), taeda.tensor(zeros)
    codes = decomposed.quantize_per_channel(taeda.tensor(x), *given, axis, -128, 127, taeda.int8)
    assert np.array_equal(codes.numpy(), expected)
    back = decomposed.dequantize_per_channel(codes, *given, axis, -128, 127, taeda.int8)
    assert np.allclose(back.numpy(), (expected - zeros.reshape(shape)) * scales.reshape(shape))
    plain = decomposed.dequantize_per_channel(codes, given[0], None, axis, -128, 127, taeda.int8)
    assert np.allclose(plain.numpy(), expected * scales.reshape(shape))
    leaf = taeda.tensor(x, requires_grad=True)
    shown = decomposed.fake_quant_per_channel(leaf, *given, axis, -20, 20)
    shown.sum().backward()
    open_codes = np.round(x / scales.reshape(shape)) + zeros.reshape(shape)
    assert np.array_equal(leaf.grad.numpy(), (open_codes >= -20) & (open_codes <= 20))
    held = np.clip(open_codes, -20, 20)
    assert np.allclose(
        shown.detach().numpy(), (held - zeros.reshape(shape)) * scales.reshape(shape), atol=1e-6
    )


def test_codes_of_groups(rng, decomposed):
    x = (rng.standard_normal((2, 8)) * 4).astype(np.float32)
    scales, zeros = rng.uniform(0.2, 0.9, (2, 2)).astype(np.float32), np.array([[0, 1], [-2, 2]])
    expected = _codes(x.reshape(2, 2, 4), scales[..., None], zeros[..., None], -8, 7).reshape(2, 8)
    given = taeda.tensor(scales), taeda.tensor(zeros), -8, 7, taeda.int8, 4
    codes = decomposed.quantize_per_channel_group(taeda.tensor(x), *given)
    assert np.array_equal(codes.numpy(), expected)
    back = decomposed.dequantize_per_channel_group(codes, *given, taeda.float32)
    wanted = (expected.reshape(2, 2, 4) - zeros[..., None]) * scales[..., None]
    assert np.allclose(back.numpy(), wanted.reshape(2, 8))


def test_codes_of_tokens(rng, decomposed):
    x = (rng.standard_normal((2, 3, 8)) * 4 + 1).astype(np.float32)
    scales, zeros = decomposed.choose_qparams_per_token(taeda.tensor(x), taeda.int8)
    assert np.allclose(scales.numpy(), np.abs(x).max(-1, keepdims=True) / 127) and not zeros.any()
    scales, zeros = decomposed.choose_qparams_per_token_asymmetric(taeda.tensor(x), taeda.int8)
    assert scales.dtype == taeda.float64 and zeros.dtype == taeda.int64
    low, high = np.minimum(x.min(-1, keepdims=True), 0), np.maximum(x.max(-1, keepdims=True), 0)
    assert np.allclose(scales.numpy(), (high - low) / 255)
    given = scales, zeros, -128, 127, taeda.int8
    codes = decomposed.quantize_per_token(taeda.tensor(x), *given)
    back = decomposed.dequantize_per_token(codes, *given, taeda.float32)
    assert back.dtype == taeda.float32 and (np.abs(back.numpy() - x) <= scales.numpy() * 1.01).all()


@pytest.mark.parametrize(("symmetric", "zero"), [(False, 51), (True, 128)])
def test_scales_chosen_for_a_tensor(decomposed, symmetric, zero):
    choose = decomposed.choose_qparams_symmetric if symmetric else decomposed.choose_qparams
    scale, zero_point = choose.tensor(taeda.tensor([-1.0, 0.5, 4.0]), 0, 255, 1e-7, taeda.uint8)
    assert scale.item() == pytest.approx(4 / 127.5 if symmetric else 5 / 255) and zero_point.item() == zero


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("quantize_per_tensor", (0.1, 0, -128, 400, taeda.int8), "quant_max are -128 and 400, expected -128 to 127"),
        ("dequantize_per_tensor", (0.1, 0, -128, 127, taeda.int8), "has dtype .*float32, expected .*int8"),
        ("quantize_per_channel", (taeda.ones(2), taeda.zeros(2), 2, 0, 1, taeda.int8), "'axis' is 2"),
        ("quantize_per_token", (taeda.ones(3), taeda.zeros(2), 0, 1, taeda.int8), "'scales' has 3 elements"),
        ("quantize_per_channel_group", (taeda.ones(2), taeda.zeros(2), 0, 1, taeda.int8, 3), r"shape \(2, 4\)"),
    ],
)  # fmt: skip
def test_codes_say_what_does_not_fit(decomposed, name, arguments, text):
    with pytest.raises(AssertionError, match=f"{name}: .*{text}"):
        getattr(decomposed, name)(taeda.ones(2, 4), *arguments)


def test_checks_of_codes_that_tools_call():
    from taeda.ao.quantization.fx import _decomposed as named

    named._quant_min_max_bounds_check(-128, 127, taeda.int8)
    named._per_token_quant_qparam_dim_check(taeda.ones(2, 3), taeda.ones(2, 1), taeda.zeros(2, 1))
    with pytest.raises(AssertionError, match="-129 and 127, expected -128 to 127"):
        named._quant_min_max_bounds_check(-129, 127, taeda.int8)
    with pytest.raises(
        AssertionError, match="'zero_points' has 1 elements, expected one for each of the 2 tokens"
    ):
        named._per_token_quant_qparam_dim_check(taeda.ones(2, 3), taeda.ones(2, 1), taeda.zeros(1))


def test_observers_are_reached_where_configurations_are():
    assert tq.qconfig.per_channel_weight_observer_range_neg_127_to_127 is (
        tq.per_channel_weight_observer_range_neg_127_to_127
    )
    assert tq.qconfig.FakeQuantize is tq.FakeQuantize and isinstance(
        tq.default_qconfig, tq.qconfig.QConfigAny
    )
    with pytest.raises(AttributeError, match="no attribute 'none'"):
        tq.qconfig.none  # noqa: B018


def test_states_of_layers_in_files_read_by_weights_alone() -> None:
    model = tq.prepare(_configured(_Model().eval()))
    model(_data())
    model = tq.convert(model)
    names = [key for key in model.state_dict() if key.startswith(("conv.", "fc."))]
    assert names == [
        "conv.weight", "conv.bias", "conv.scale", "conv.zero_point", "fc.scale", "fc.zero_point",
        "fc._packed_params.dtype", "fc._packed_params._packed_params",
    ]  # fmt: skip
    file = io.BytesIO()
    taeda.save({**model.state_dict(), "kinds": [taeda.quint8, taeda.complex32]}, file)
    file.seek(0)
    found = taeda.load(file, weights_only=True)
    assert found.pop("kinds") == [taeda.quint8, taeda.complex32]
    assert found["fc._packed_params.dtype"] is taeda.qint8
    other = tq.prepare(_configured(_Model().eval()))
    other(taeda.zeros(1, 1, 8, 8))
    other = tq.convert(other)
    other.load_state_dict(found)
    assert taeda.equal(other(_data()), model(_data()))


def _configured(model: nn.Module) -> nn.Module:
    model.qconfig = tq.default_qconfig
    return model


@pytest.mark.parametrize(
    ("made", "plain"),
    [
        (lambda q, w, b: q.Hardswish(0.1, 64), lambda x, w, b: nn.functional.hardswish(x)),
        (lambda q, w, b: q.LeakyReLU(0.1, 64, 0.3), lambda x, w, b: nn.functional.leaky_relu(x, 0.3)),
        (lambda q, w, b: q.ELU(0.1, 64, alpha=0.5), lambda x, w, b: nn.functional.elu(x, 0.5)),
        (lambda q, w, b: q.Sigmoid(0.1, 64), lambda x, w, b: x.sigmoid()),
        (lambda q, w, b: q.Softmax(1, 0.1, 64), lambda x, w, b: x.softmax(1)),
        (
            lambda q, w, b: q.LayerNorm([6], w, b, 0.1, 64),
            lambda x, w, b: nn.functional.layer_norm(x, [6], w, b),
        ),
        (
            lambda q, w, b: q.GroupNorm(2, 6, w, b, scale=0.1, zero_point=64, eps=1e-3),
            lambda x, w, b: nn.functional.group_norm(x, 2, w, b, 1e-3),
        ),
    ],
)
def test_layers_of_quantized_tensors_take_their_scale_by_position(made, plain) -> None:
    x = taeda.quantize_per_tensor(_data(1).reshape(-1)[:60].reshape(10, 6), 0.02, 64, taeda.quint8)
    w, b = (nn.Parameter(taeda.arange(6.0) / k) for k in (3, 6))
    found = made(taeda.ao.nn.quantized, w, b)(x)
    assert (found.q_scale(), found.q_zero_point()) == (pytest.approx(0.1), 64)
    expected = taeda.quantize_per_tensor(plain(x.dequantize(), w, b).detach(), 0.1, 64, taeda.quint8)
    assert taeda.equal(found.int_repr(), expected.int_repr())


def test_results_of_dynamically_quantized_layers_need_no_gradients() -> None:
    model = nn.Sequential(nn.GRU(4, 6), nn.Identity())
    made = tq.quantize_dynamic(model, {nn.GRU}, dtype=taeda.qint8)
    assert not made(taeda.randn(5, 2, 4))[0].requires_grad


def test_configurations_of_symmetric_and_of_embedded_numbers() -> None:
    for name, kind in (
        ("default_symmetric_qnnpack_qat_qconfig", tq.MovingAverageMinMaxObserver),
        ("default_per_channel_symmetric_qnnpack_qat_qconfig", tq.MovingAveragePerChannelMinMaxObserver),
    ):
        config = getattr(tq, name)
        seen, weight = config.activation(), config.weight()
        assert (seen.quant_min, weight.quant_min, weight.quant_max) == (-128, -127, 127)
        assert type(weight.activation_post_process) is kind
        assert weight(taeda.tensor([[1.0, -2.0], [0.5, 4.0]])).shape == (2, 2)
    rows = taeda.arange(12.0).reshape(3, 4)
    for config, steps in (
        (tq.default_embedding_qat_qconfig, 255),
        (tq.default_embedding_qat_qconfig_4bit, 15),
    ):
        found = config.weight()(rows)
        assert (found - rows).abs().max() <= 11 / steps
    assert tq.default_quint8_weight_qconfig.weight().dtype is taeda.quint8
    assert tq.float_qparams_weight_only_qconfig_4bit.weight().dtype is taeda.quint4x2
