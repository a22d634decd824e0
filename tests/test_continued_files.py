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
