"""Names by which programs continue PyTorch's own files: copies of its attention, layers and schedules."""

import pytest

import taeda
from taeda.nn import functional as F


def test_a_copy_of_attention():
    from taeda.nn.functional import (
        _canonical_mask,
        _in_projection,
        _in_projection_packed,
        _mha_shape_check,
        _none_or_dtype,
        handle_torch_function,
        has_torch_function,
    )
    from taeda.nn.modules.activation import NonDynamicallyQuantizableLinear, constant_, xavier_uniform_

    layer = taeda.nn.MultiheadAttention(4, 2)
    q, k = taeda.randn(3, 2, 4), taeda.randn(5, 2, 4)
    mask = taeda.tensor([[False] * 4 + [True]] * 2)
    assert _mha_shape_check(q, k, k, mask, None, 2) and not has_torch_function((q, k))
    added = _canonical_mask(mask, "key_padding_mask", _none_or_dtype(None), "attn_mask", q.dtype)
    weight, bias = layer.in_proj_weight, layer.in_proj_bias
    parts = _in_projection_packed(q, k, k, weight, bias)
    for one, other in zip(parts, _in_projection(q, k, k, *weight.chunk(3), *bias.chunk(3)), strict=True):
        assert taeda.allclose(one, other)
    heads = [part.reshape(-1, 2, 2, 2).permute(1, 2, 0, 3) for part in parts]
    found = F.scaled_dot_product_attention(*heads, added[:, None, None])
    result = layer.out_proj(found.permute(2, 0, 1, 3).reshape(3, 2, 4))
    assert taeda.allclose(result, layer(q, k, k, key_padding_mask=mask)[0], atol=1e-6)
    assert isinstance(layer.out_proj, NonDynamicallyQuantizableLinear)
    assert (
        constant_(taeda.empty(2), 3.0).tolist() == [3.0, 3.0]
        and xavier_uniform_(taeda.empty(2, 2)).isfinite().all()
    )
    with pytest.raises(RuntimeError, match="None or"):
        _none_or_dtype(3)

    class Answers:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "answered"

    assert has_torch_function((Answers(),)) and F.has_torch_function_unary(Answers())
    assert F.has_torch_function_variadic(q, Answers())
    assert handle_torch_function(F.relu, (Answers(),), Answers()) == "answered"


def test_checks_of_norms_and_softmax():
    F._verify_batch_size((2, 3))
    F._verify_spatial_size((1, 3, 2))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        F._verify_batch_size((1, 3, 1, 1))
    with pytest.raises(ValueError, match="more than 1 spatial element"):
        F._verify_spatial_size((2, 3, 1))
    assert [F._get_softmax_dim("softmax", n, 3) for n in range(5)] == [0, 0, 1, 0, 1]


def test_names_that_files_of_layers_import():
    from taeda.nn.modules import batchnorm, conv, linear, module, transformer

    assert batchnorm.F is F and conv.F is F and linear.F is F and transformer.F is F
    assert module.OrderedDict().copy() == {} and linear.init is taeda.nn.init


def test_a_schedule_of_ones_own():
    from taeda.optim.lr_scheduler import EPOCH_DEPRECATION_WARNING, LRScheduler, _enable_get_lr_call

    class Half(LRScheduler):
        def get_lr(self):
            return [group["lr"] / 2 for group in self.optimizer.param_groups]

    optimizer = taeda.optim.SGD([taeda.ones(1, requires_grad=True)], lr=1.0)
    schedule = Half(optimizer)
    with _enable_get_lr_call(schedule):
        assert schedule._get_lr_called_within_step
    assert not schedule._get_lr_called_within_step and "epoch" in EPOCH_DEPRECATION_WARNING


def test_types_of_python_name_dtypes():
    assert taeda.nn.Linear(1, 1).to(float).weight.dtype is taeda.float64


def test_a_function_in_the_place_of_linear(monkeypatch):
    calls = []

    def linear(input, weight, bias=None):
        calls.append(tuple(weight.shape))
        return input @ weight.t()

    layer = taeda.nn.Linear(2, 3)
    monkeypatch.setattr(F, "linear", linear)
    assert layer(taeda.zeros(1, 2)).tolist() == [[0.0] * 3] and calls == [(3, 2)]


def test_a_scaler_of_ones_own():
    found, scale = taeda.zeros(1), taeda.tensor([4.0])
    grads, tracker = [taeda.ones(2) * 4, taeda.ones(1)], taeda.zeros(1, dtype=taeda.int32)
    taeda._amp_foreach_non_finite_check_and_unscale_(grads, found, 1 / scale)
    assert [g.tolist() for g in grads] == [[1.0, 1.0], [0.25]] and found.item() == 0.0
    taeda._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2)
    assert scale.item() == 4.0 and tracker.item() == 1
    taeda._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2)
    assert scale.item() == 8.0 and tracker.item() == 0
    taeda._amp_foreach_non_finite_check_and_unscale_([taeda.tensor([float("inf")])], found, 1 / scale)
    taeda._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2)
    assert found.item() == 1.0 and scale.item() == 4.0
    with pytest.raises(RuntimeError, match="'found_inf' has 2 elements"):
        taeda._amp_foreach_non_finite_check_and_unscale_(grads, taeda.zeros(2), scale)


def test_a_checkpoint_of_ones_own():
    from taeda.utils.checkpoint import _get_autocast_kwargs, _infer_device_type

    with taeda.autocast("cpu", dtype=taeda.bfloat16):
        _, settings = _get_autocast_kwargs()
        assert settings == {"dtype": taeda.bfloat16, "enabled": True, "cache_enabled": True}
        assert _get_autocast_kwargs("cpu")[0] == settings
    assert _get_autocast_kwargs()[1]["enabled"] is False
    default = taeda.utils.checkpoint.DefaultDeviceType.get_device_type()
    assert _infer_device_type(taeda.ones(1), [taeda.ones(1)]) == default
