"""Modules of several devices, the summary, hooks for all modules, classes that look up attributes themselves."""

import copy

import numpy as np
import pytest

import taeda_nn as nn
from taeda_nn.modules import module as base
from taeda_registry.slots import tensor as tt


@pytest.mark.parametrize("devices", [[0], [0, 1], ["cuda:0", "cuda:1"]])
def test_data_parallel_without_an_accelerator_calls_the_module(devices):
    layer = nn.Linear(2, 3)
    net = nn.DataParallel(layer, device_ids=devices, output_device=devices[0])
    x = tt.ones(4, 2)
    assert net.device_ids == [] and net(x).equal(layer(x))


@pytest.mark.parametrize(
    ("layer", "names"),
    [
        (nn.Conv2d, "stride padding dilation groups padding_mode output_padding in_channels out_channels kernel_size"),
        (nn.BatchNorm1d, "track_running_stats momentum eps num_features affine"),
        (nn.LayerNorm, "normalized_shape eps elementwise_affine"), (nn.Dropout, "p inplace"),
        (nn.LSTM, "mode input_size hidden_size num_layers bias batch_first dropout bidirectional proj_size"),
    ],
)  # fmt: skip
def test_layers_name_their_constants(layer, names):
    assert list(layer.__constants__) == names.split()


def test_data_parallel_calls_through_on_one_device(close):
    layer = nn.Linear(3, 2)
    net = nn.DataParallel(layer)
    assert list(net.state_dict()) == ["module.weight", "module.bias"]
    close(net(tt.ones(4, 3)), layer(tt.ones(4, 3)))
    parts = nn.parallel.scatter({"x": tt.arange(4), "n": 3}, ["cpu", "cpu"])
    assert [part["x"].tolist() for part in parts] == [[0, 1], [2, 3]]
    assert nn.parallel.gather([part["x"] for part in parts], "cpu").tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="process group has not been initialized"):
        nn.parallel.DistributedDataParallel(layer)


def test_two_replicas_share_a_batch(close):
    layer = nn.Linear(3, 2)
    replicas = nn.parallel.replicate(layer, ["cpu", "cpu"])
    parts = [(part,) for part in nn.parallel.scatter(tt.ones(4, 3), ["cpu", "cpu"])]
    out = nn.parallel.gather(nn.parallel.parallel_apply(replicas, parts), "cpu")
    close(out, layer(tt.ones(4, 3)))
    out.sum().backward()
    assert layer.weight.grad is not None


def test_summary_counts_what_a_call_does():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(5))
    net.train()
    told = nn.summary(net, tt.zeros(2, 3, 6, 6))
    assert [layer.kind for layer in told.layers] == ["Sequential", "Conv2d", "ReLU", "Flatten", "Linear"]
    assert told.layers[1].output == [(2, 8, 4, 4)]
    assert told.layers[1].multiply_adds == 2 * 8 * 16 * 27
    assert told.multiply_adds == 2 * 8 * 16 * 27 + 2 * 128 * 5
    assert told.parameters == 8 * 27 + 8 + 128 * 5 + 5 == told.trainable
    assert told.parameter_bytes == 4 * told.parameters
    assert "Conv2d" in str(told) and "<table>" in told._repr_html_()
    assert net.training and not net._forward_hooks
    attention = nn.summary(nn.MultiheadAttention(4, 2), (tt.zeros(3, 1, 4),) * 3)
    assert attention.multiply_adds == 3 * (3 * 4 * 4) + 2 * 3 * 3 * 4 + 3 * 4 * 4


class Wrapper(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)


class NamingWrapper(Wrapper):
    def __getattr__(self, name):
        try:
            return nn.Module.__getattr__(self, name)
        except AttributeError:
            return getattr(nn.Module.__getattr__(self, "inner"), name)


@pytest.mark.parametrize("kind", [Wrapper, NamingWrapper])
def test_classes_look_attributes_up_themselves(kind):
    wrapped = kind(nn.Linear(3, 2))
    assert wrapped.in_features == 3 and copy.deepcopy(wrapped).out_features == 2
    with pytest.raises(AttributeError, match="nothing"):
        _ = wrapped.nothing


def test_the_lookup_of_modules_is_at_hand_and_not_asked():
    class Plain(nn.Linear):
        pass

    class Scaled(Plain):
        @property
        def scale(self):
            raise AttributeError("no scale")

    for layer in (nn.Module(), nn.Linear(2, 2), Plain(2, 2)):
        with pytest.raises(AttributeError, match="object has no attribute 'nothing'") as caught:
            _ = layer.nothing
        assert len(caught.traceback) == 1, "every attribute of every module would be read more slowly"
        with pytest.raises(AttributeError, match="object has no attribute 'training'"):
            nn.Module.__getattr__(layer, "training")
    layer = Scaled(2, 2)
    layer.register_parameter("scale", nn.Parameter(tt.ones(1)))
    assert layer.scale is layer.__getattr__("scale") is nn.Module.__getattr__(layer, "scale")


def test_hooks_of_all_modules_at_registration():
    seen = []

    def note(module, name, value):
        seen.append((type(module).__name__, name))

    handles = [
        base.register_module_parameter_registration_hook(note),
        base.register_module_buffer_registration_hook(note),
        base.register_module_module_registration_hook(note),
    ]
    try:
        nn.Sequential(nn.BatchNorm1d(2))
    finally:
        for handle in handles:
            handle.remove()
    assert ("BatchNorm1d", "weight") in seen and ("BatchNorm1d", "running_mean") in seen
    assert seen[-1] == ("Sequential", "0")
    count = len(seen)
    nn.Linear(2, 2)
    assert len(seen) == count


@pytest.mark.parametrize(
    "register",
    [
        lambda net: setattr(net, "member", nn.ReLU()),
        lambda net: net.add_module("member", nn.ReLU()),
        lambda net: net.register_parameter("member", nn.Parameter(tt.ones(1))),
        lambda net: net.register_buffer("member", tt.ones(1)),
        lambda net: setattr(net, "member", nn.Parameter(tt.ones(1))),
    ],
)
def test_a_hook_that_fails_at_registration_leaves_no_name(register):
    def refuse(module, name, value):
        raise ZeroDivisionError

    net, put = (
        nn.Linear(2, 2),
        (
            base.register_module_parameter_registration_hook,
            base.register_module_buffer_registration_hook,
            base.register_module_module_registration_hook,
        ),
    )
    handles = [register_hook(refuse) for register_hook in put]
    try:
        with pytest.raises(ZeroDivisionError):
            register(net)
    finally:
        for handle in handles:
            handle.remove()
    assert not hasattr(net, "member") and list(net.state_dict()) == ["weight", "bias"]
    assert [*net._modules] == [*net._buffers] == []
    register(net)
    assert repr(net.member) in repr([*net.modules(), *net.parameters(), *net.buffers()])


def test_hooks_can_be_looked_at_and_taken_out_as_a_mapping():
    layer = nn.Linear(2, 2)
    calls = []
    layer.register_forward_hook(lambda *args: calls.append("after"))
    layer.register_forward_pre_hook(lambda *args: calls.append("before"))
    assert len(layer._forward_hooks) == len(layer._forward_pre_hooks) == 1
    layer(tt.ones(1, 2))
    layer._forward_hooks.clear()
    layer._forward_pre_hooks = {}
    layer(tt.ones(1, 2))
    assert calls == ["before", "after"]


def test_old_backward_hooks_see_the_last_operation():
    layer = nn.Linear(2, 2)
    seen = []
    layer.register_backward_hook(lambda module, into, out: seen.append(out[0].tolist()))
    with pytest.warns(
        FutureWarning, match="hooks of Linear are called with the gradients of its last operation"
    ):
        layer(tt.ones(1, 2)).sum().backward()
    assert seen == [[[1.0, 1.0]]]
    whole = nn.Tanh()
    whole.register_backward_hook(lambda module, into, out: seen.append(into[0].tolist()))
    whole(tt.zeros(2, requires_grad=True) * 1).sum().backward()
    assert seen[1] == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="Cannot use both"):
        layer.register_full_backward_hook(lambda *args: None)


def test_adaptive_softmax_is_a_distribution(close):
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0).double()
    x, target = tt.randn(5, 8, dtype=tt.float64), tt.tensor([0, 2, 4, 9, 11])
    every = layer.log_prob(x)
    close(every.exp().sum(1), np.ones(5))
    output, loss = layer(x, target)
    close(output, every.gather(1, target.unsqueeze(1)).squeeze(1))
    close(loss, -output.mean())
    assert layer.predict(x).tolist() == every.argmax(1).tolist()
    with pytest.raises(RuntimeError, match=r"\[0, 11\]"):
        layer(x, target + 1)
    with pytest.raises(ValueError, match="increasing"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 12, [7, 3])


def test_sync_batch_norm_is_batch_norm_in_one_process(close):
    plain = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3))
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(plain))
    assert isinstance(synced[1], nn.SyncBatchNorm) and list(synced.state_dict()) == list(plain.state_dict())
    x = tt.randn(4, 2, 3, 3)
    close(synced(x), plain(x), 1e-6)
    close(synced[1].running_var, plain[1].running_var, 1e-6)


def test_empty_batches_teach_batch_norm_nothing():
    norm = nn.BatchNorm1d(2)
    norm(tt.zeros(0, 2, 3))
    assert norm.running_mean.tolist() == [0, 0] and norm.running_var.tolist() == [1, 1]


def test_products_of_sequences_and_joins_of_dictionaries():
    twice = nn.Sequential(nn.ReLU(), nn.Tanh()) * 2
    assert [type(m).__name__ for m in twice] == ["ReLU", "Tanh", "ReLU", "Tanh"] and twice[0] is twice[2]
    left, right = nn.ParameterDict({"a": tt.ones(1)}), nn.ParameterDict({"b": tt.zeros(1)})
    assert list(left | right) == ["a", "b"] and list(reversed(left | right)) == ["b", "a"]
    assert left.copy().popitem()[0] == "a" and list(left) == ["a"]
    with pytest.raises(ValueError, match="positive"):
        nn.Sequential(nn.ReLU()) * 0


class Padded(nn.Conv2d):
    """A derived convolution that pads by itself."""

    def forward(self, input):
        wide = nn.functional.pad(input, self._reversed_padding_repeated_twice, mode="replicate")
        return nn.functional.conv2d(wide, self.weight, self.bias, self.stride)


def test_derived_convolutions_find_the_amounts_of_padding():
    layer = Padded(1, 1, 3, padding=(1, 2))
    assert layer._reversed_padding_repeated_twice == (2, 2, 1, 1)
    assert layer(tt.ones(1, 1, 4, 4)).shape == (1, 1, 4, 6)
    assert nn.Conv1d(1, 1, 4, padding="same")._reversed_padding_repeated_twice == [1, 2]
    assert nn.Conv2d(1, 1, 3, padding="valid")._reversed_padding_repeated_twice == [0] * 4
    layer._reversed_padding_repeated_twice = [1] * 4
    for found in (layer, copy.deepcopy(layer)):
        assert found(tt.ones(1, 1, 4, 4)).shape == (1, 1, 4, 4)
    reflecting = nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect")
    reflecting._reversed_padding_repeated_twice = (2, 2, 2, 2)
    assert reflecting(tt.ones(1, 1, 4, 4)).shape == (1, 1, 6, 6)


def test_what_derived_layers_call_by_private_names():
    lstm = nn.LSTM(2, 3, 2)
    names = [
        [f"{kind}_{part}_l{layer}" for kind in ("weight", "bias") for part in ("ih", "hh")]
        for layer in (0, 1)
    ]
    assert lstm._all_weights == copy.deepcopy(lstm)._all_weights == names
    lstm._all_weights = names[:1]
    assert lstm._flat_weights_names == names[0]

    class Twos(nn.Embedding):
        def reset_parameters(self):
            nn.init.constant_(self.weight, 2.0)
            self._fill_padding_idx_with_zero()

    assert Twos(2, 1, padding_idx=0).weight.tolist() == [[0.0], [2.0]]
    parts = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    assert parts._get_abs_string_index(-1) == "1" and parts._get_item_by_idx(parts, -1) is parts[1]
    with pytest.raises(IndexError, match="out of range"):
        parts._get_item_by_idx(parts, 2)
    assert parts[0]._slow_forward(tt.tensor([-1.0])).item() == 0


@pytest.mark.parametrize(
    "layer",
    [
        nn.GELU("tanh"), nn.SiLU(), nn.SiLU(inplace=True), nn.ReLU(inplace=True), nn.LeakyReLU(0.2, True), nn.ELU(0.5),
        nn.SELU(), nn.CELU(), nn.Mish(), nn.Hardtanh(), nn.Hardswish(), nn.Hardsigmoid(), nn.ReLU6(), nn.Softplus(2.0),
        nn.Softsign(), nn.Tanhshrink(), nn.PReLU(), nn.Threshold(0.1, 2.0), nn.Dropout(0.5).eval(), nn.LayerNorm(4),
        nn.RMSNorm(4), nn.Linear(4, 3), nn.Softmax(-1), nn.Sigmoid(),
    ],
    ids=lambda layer: type(layer).__name__,
)  # fmt: skip
def test_layers_take_sequences_of_several_lengths(layer, close):
    parts = [tt.arange(8.0).reshape(2, 4) / 4 - 1, tt.arange(12.0).reshape(3, 4) / 8 - 0.5]
    found = layer(tt.nested.nested_tensor(parts, layout=tt.jagged))
    for part, got in zip(parts, found.unbind(), strict=True):
        close(got, layer(part.clone()), tol=1e-6)  # products of all lines at once round otherwise


def test_attention_of_nested_tensors_is_that_of_each_part(close):
    parts = [tt.arange(8.0).reshape(2, 4).sin(), tt.arange(12.0).reshape(3, 4).cos()]
    attention = nn.MultiheadAttention(4, 2, batch_first=True)
    encoder = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    for layout in (tt.strided, tt.jagged):
        x = tt.nested.nested_tensor(parts, layout=layout)
        found, weights = attention(x, x, x)
        assert weights.shape == (2, 3, 3) and found.layout == layout
        for i, part in enumerate(parts):
            expected, own = attention(part, part, part)
            close(found.unbind()[i], expected, tol=1e-6)
            close(weights[i, : len(part), : len(part)], own, tol=1e-6)
            close(encoder(x).unbind()[i], encoder(part), tol=1e-5)
    assert attention(x, x, x, need_weights=False)[1] is None
    with pytest.raises(RuntimeError, match="nested tensors have no padding"):
        attention(x, x, x, attn_mask=tt.zeros(2, 2))
    with pytest.raises(RuntimeError, match="need batch_first=True"):
        nn.MultiheadAttention(4, 2)(x, x, x)


def test_gradients_through_sequences_of_several_lengths(close):
    """A block of a Transformer on lines without padding, beside each sequence alone."""
    autograd = pytest.importorskip("taeda_autograd")
    project, norm = nn.Linear(4, 12), nn.LayerNorm(4)
    attend = nn.functional.scaled_dot_product_attention

    def block(x):
        q, k, v = (t.unflatten(-1, (2, 2)).transpose(-3, -2) for t in project(norm(x)).chunk(3, dim=-1))
        return x + attend(q, k, v).transpose(-3, -2).flatten(-2)

    values = tt.arange(20.0).reshape(5, 4).sin().requires_grad_()
    x = tt.nested.nested_tensor_from_jagged(values, tt.tensor([0, 2, 5]))
    weights = [project.weight, norm.weight, values]
    losses = [
        block(x).mean(1).pow(2).sum(),
        sum(block(values[a:b]).mean(0).pow(2).sum() for a, b in ((0, 2), (2, 5))),
    ]
    found, expected = (autograd.grad(loss, weights) for loss in losses)
    for one, other in zip(found, expected, strict=True):
        close(one, other, tol=1e-5)
    padded = autograd.grad(block(x).to_padded_tensor(7.0).sum(), values)[0]
    close(padded, autograd.grad(block(x).values().sum(), values)[0], tol=1e-6)
    leaf = tt.nested.nested_tensor(
        [values.detach()[:2], values.detach()[2:]], layout=tt.jagged, requires_grad=True
    )
    (leaf * leaf).sum().backward()
    assert leaf.is_leaf and leaf.grad.layout == tt.jagged
    close(leaf.grad.values(), 2 * values.detach(), tol=1e-6)
    strided = tt.nested.nested_tensor([values.detach()[:2], values.detach()[2:]], requires_grad=True)
    strided.unbind()[0].sum().backward()
    assert [g.sum().item() for g in strided.grad.unbind()] == [8, 0]


def test_losses_of_nested_tensors(close):
    parts = [tt.arange(8.0).reshape(2, 4).sin(), tt.arange(12.0).reshape(3, 4).cos()]
    x, whole = tt.nested.nested_tensor(parts, layout=tt.jagged), tt.cat(parts)
    for loss in (nn.MSELoss, nn.L1Loss, nn.SmoothL1Loss, nn.HuberLoss):
        for reduction in ("mean", "sum"):
            close(loss(reduction=reduction)(x, x * 2), loss(reduction=reduction)(whole, whole * 2), tol=1e-6)
        close(loss(reduction="none")(x, x * 2).values(), loss(reduction="none")(whole, whole * 2), tol=1e-6)


def test_sizes_may_be_numpys_integers():
    two, x = np.int64(2), tt.arange(128.0).reshape(1, 2, 8, 8)
    same = [
        (nn.ReflectionPad2d, (2,), x), (nn.ConstantPad2d, (2, 1.0), x), (nn.ZeroPad2d, (2,), x),
        (nn.CircularPad1d, (2,), x[0]), (nn.AvgPool1d, (2,), x[0]), (nn.LPPool2d, (2, 2), x), (nn.Unfold, (2,), x),
        (nn.AdaptiveAvgPool2d, (2,), x), (nn.AdaptiveMaxPool1d, (2,), x[0]), (nn.Fold, (3, 2), tt.ones(1, 8, 4)),
    ]  # fmt: skip
    for kind, sizes, given in same:
        asked = [two if size == 2 else size for size in sizes]
        assert kind(*asked)(given).equal(kind(*sizes)(given)), kind
    assert nn.LayerNorm(np.int32(8)).normalized_shape == nn.RMSNorm(np.int16(8)).normalized_shape == (8,)
    assert nn.LSTM(8, 3, num_layers=two)(x[0])[0].shape == (2, 8, 3)


NUMPY_SIZES = {
    "ReflectionPad1d": (lambda i: nn.ReflectionPad1d(i(1)), (2, 5)),
    "ZeroPad2d": (lambda i: nn.ZeroPad2d(i(2)), (1, 2, 4, 4)),
    "ConstantPad3d": (lambda i: nn.ConstantPad3d(i(1), 2.0), (1, 2, 3, 3, 3)),
    "AvgPool1d": (lambda i: nn.AvgPool1d(i(2), i(1), i(1)), (2, 3, 6)),
    "MaxPool2d": (lambda i: nn.MaxPool2d(i(2), i(1)), (1, 2, 5, 5)),
    "AdaptiveAvgPool2d": (lambda i: nn.AdaptiveAvgPool2d(i(2)), (1, 2, 5, 5)),
    "AdaptiveMaxPool1d": (lambda i: nn.AdaptiveMaxPool1d(i(2)), (2, 5)),
    "LPPool2d": (lambda i: nn.LPPool2d(2, i(2)), (1, 2, 4, 4)),
    "Unfold": (lambda i: nn.Unfold(i(2), i(1), i(1), i(1)), (1, 2, 4, 4)),
    "Fold": (lambda i: nn.Fold(i(4), i(2)), (1, 8, 9)),
    "Conv2d": (lambda i: nn.Conv2d(i(2), i(3), i(2), i(1), i(1)), (1, 2, 4, 4)),
    "Linear": (lambda i: nn.Linear(i(4), i(3)), (2, 4)),
    "LayerNorm": (lambda i: nn.LayerNorm(i(4)), (2, 4)),
    "RMSNorm": (lambda i: nn.RMSNorm(i(4)), (2, 4)),
    "GroupNorm": (lambda i: nn.GroupNorm(i(2), i(4)), (2, 4)),
    "LSTM": (lambda i: nn.LSTM(i(4), i(3), i(2)), (5, 2, 4)),
    "max_unpool2d": (
        lambda i: lambda x: nn.functional.max_unpool2d(
            *nn.functional.max_pool2d(x, i(2), return_indices=True), i(2), i(2), i(0)
        ),
        (1, 2, 4, 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8"])
@pytest.mark.parametrize("name", NUMPY_SIZES)
def test_numbers_of_numpy_are_sizes_like_others(name, kind):
    make, shape = NUMPY_SIZES[name]
    x = tt.arange(float(np.prod(shape))).reshape(shape).sin()
    results = []
    for number in (int, getattr(np, kind)):
        tt.manual_seed(0)
        made = make(number)(x)
        results.append(made[0] if isinstance(made, tuple) else made)
    assert tt.equal(*results)


def test_settings_of_unpooling_are_counted():
    with pytest.raises(ValueError, match=r"^max_unpool2d: argument 'stride' has 3 numbers, expected 1 or 2"):
        nn.functional.max_unpool2d(tt.ones(1, 1, 2), tt.zeros(1, 1, 2, dtype=tt.int64), 2, (1, 2, 3))
