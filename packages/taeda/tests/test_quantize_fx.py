"""Models quantized by their graphs."""

import io
import pickle

import pytest

import taeda
from taeda import nn
from taeda.ao.nn import quantized as nnq
from taeda.ao.nn.intrinsic import quantized as nniq
from taeda.ao.quantization import (
    QConfigMapping,
    default_dynamic_qconfig,
    default_qconfig,
    get_default_qat_qconfig_mapping,
    get_default_qconfig_mapping,
)
from taeda.ao.quantization.quantize_fx import convert_fx, fuse_fx, prepare_fx, prepare_qat_fx


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.relu = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()
        self.conv2, self.pool, self.fc = nn.Conv2d(4, 4, 1), nn.AdaptiveAvgPool2d(1), nn.Linear(8, 2)

    def forward(self, x):
        y = self.relu(self.bn(self.conv(x)))
        z = self.relu(self.conv2(y) + y)
        z = taeda.flatten(self.pool(taeda.cat([z, y * 2], 1)), 1)
        return taeda.sigmoid(self.fc(z))


@pytest.fixture
def net():
    taeda.manual_seed(0)
    return Block().eval()


def names(module):
    return [node.name for node in module.graph.nodes]


def test_a_quantized_model_is_near_the_model(net):
    x = taeda.randn(8, 3, 6, 6)
    before = {key: value.clone() for key, value in net.state_dict().items()}
    observed = prepare_fx(net, get_default_qconfig_mapping("x86"), (x,))
    assert sum(name.startswith("activation_post_process") for name in names(observed)) == 10
    assert taeda.allclose(observed(x), net(x), atol=1e-5)
    made = convert_fx(observed)
    assert taeda.allclose(made(x), net(x), atol=0.05) and not taeda.equal(made(x), net(x))
    assert isinstance(made.conv, nniq.ConvReLU2d) and isinstance(made.fc, nnq.Linear)
    assert {"add_relu", "quantize_per_tensor"} <= set(names(made)) and "mul" in names(made)
    assert not any("activation_post_process" in name for name, _ in made.named_modules())
    assert taeda.equal(pickle.loads(pickle.dumps(made))(x), made(x))
    assert all(taeda.equal(value, before[key]) for key, value in net.state_dict().items())
    assert isinstance(net.conv, nn.Conv2d) and taeda.equal(convert_fx(observed)(x), made(x))


def test_what_has_no_configuration_stays_as_it_is(net):
    x = taeda.randn(4, 3, 6, 6)
    mapping = (
        get_default_qconfig_mapping("x86").set_object_type(nn.Linear, None).set_module_name("conv2", None)
    )
    observed = prepare_fx(net, mapping, (x,))
    observed(x)
    made = convert_fx(observed)
    assert (
        type(made.fc) is nn.Linear
        and type(made.conv2) is nn.Conv2d
        and isinstance(made.conv, nniq.ConvReLU2d)
    )
    assert taeda.allclose(made(x), net(x), atol=0.05)
    none = convert_fx(prepare_fx(net, QConfigMapping(), (x,)))
    assert taeda.allclose(none(x), net(x), atol=1e-5) and "quantize_per_tensor" not in names(none)


def test_weights_alone_may_be_quantized():
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh()).eval()
    made = convert_fx(prepare_fx(net, QConfigMapping().set_global(default_dynamic_qconfig), ()))
    x = taeda.randn(2, 4)
    assert type(getattr(made, "0")).__module__.endswith("dynamic") and taeda.allclose(
        made(x), net(x), atol=0.1
    )


def test_training_foresees_quantization(net):
    taeda.manual_seed(1)
    x = taeda.randn(8, 3, 6, 6)
    with pytest.raises(AssertionError, match="training"):
        prepare_qat_fx(net, get_default_qat_qconfig_mapping("x86"), (x,))
    model = prepare_qat_fx(net.train(), get_default_qat_qconfig_mapping("x86"), (x,))
    optimizer = taeda.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = (model(x) - taeda.tensor([0.0, 1.0])).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    made = convert_fx(model.eval())
    assert isinstance(made.conv, nniq.ConvReLU2d) and taeda.allclose(made(x), model(x), atol=0.05)


def test_layers_are_joined(net):
    made, x = fuse_fx(net), taeda.randn(2, 3, 6, 6)
    assert "bn" not in names(made) and taeda.allclose(made(x), net(x), atol=1e-5)
    assert "relu" in dict(made.named_children())  # it is called once more


def test_configurations_by_name_pattern_and_class():
    mapping = QConfigMapping().set_global(default_qconfig).set_module_name_regex("a.*", None)
    mapping.set_object_type(nn.Linear, None).set_module_name("a.b", default_dynamic_qconfig)
    assert mapping.of_module("a.b.c", nn.Conv2d) is default_dynamic_qconfig
    assert mapping.of_module("a.x", nn.Conv2d) is None and mapping.of_module("z", nn.Linear) is None
    assert mapping.of_module("z", nn.Conv2d) is default_qconfig
    assert QConfigMapping.from_dict(mapping.to_dict()).to_dict() == mapping.to_dict()
    with pytest.raises(AttributeError, match="QConfigMapping"):
        prepare_fx(nn.ReLU(), 3, ())
    with pytest.raises(TypeError, match="GraphModule"):
        convert_fx(nn.ReLU())


@pytest.mark.parametrize("backend", ["x86", "qnnpack"])
def test_symmetric_scales_of_training_reach_one_step_further_down(backend):
    from taeda.ao.quantization import get_default_qat_qconfig

    watch = get_default_qat_qconfig(backend).weight()
    x = taeda.tensor([[-0.64, 0.5], [-0.32, 0.508]])
    watch(x)
    expected = [0.005, 0.004] if backend == "x86" else [0.005]
    assert taeda.allclose(watch.scale, taeda.tensor(expected)) and watch.zero_point.tolist() == [0] * len(
        expected
    )
    assert watch.scale.shape == watch.zero_point.shape == (len(expected),)


def test_layers_of_a_range_take_quantized_numbers():
    q = taeda.quantize_per_tensor(taeda.linspace(-4, 4, 5), 0.1, 10, taeda.quint8)
    for layer in (taeda.nn.Hardsigmoid(), taeda.nn.Sigmoid(), taeda.nn.Tanh()):
        found = layer(q)
        expected = layer(q.dequantize())
        assert (found.dequantize() - expected).abs().max() <= 0.51 * found.q_scale() + (
            expected >= 0.998
        ).any() * 0.01
    with pytest.raises(NotImplementedError, match="inplace"):
        taeda.nn.Hardsigmoid(inplace=True)(q)


@pytest.mark.parametrize("operation", ["add", "mul", "cat", "add_relu", "add_scalar"])
def test_arithmetic_of_modules_is_observed_by_the_graph(operation):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.sums = nn.Conv2d(3, 4, 3), nnq.FloatFunctional()

        def forward(self, x):
            y = self.conv(x)
            other = {"cat": ([y, y], 1), "add_scalar": (y, 2.0)}.get(operation, (y, y))
            return getattr(self.sums, operation)(*other)

    taeda.manual_seed(0)
    model, x = Twice().eval(), taeda.randn(2, 3, 8, 8)
    observed = prepare_fx(model, get_default_qconfig_mapping("fbgemm"), (x,))
    assert observed(x).allclose(model(x)) and "sums" not in observed.code
    assert type(model.sums) is nnq.FloatFunctional
    converted = convert_fx(observed)
    expected = model(x)
    assert (converted(x) - expected).abs().max() < 0.08 * expected.abs().max()


@pytest.mark.parametrize(
    "join",
    [
        lambda y: taeda.cat([y, y], 1),
        lambda y: taeda.cat([y, y], dim=1),
        lambda y: taeda.cat((y, y), axis=1),
        lambda y: taeda.cat(tensors=[y, y]),
        lambda y: taeda.concat([y, y], dim=-1),
    ],
)
def test_joined_tensors_are_quantized_however_arguments_are_given(join):
    class Joined(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, x):
            return join(self.conv(x))

    taeda.manual_seed(0)
    model, x = Joined().eval(), taeda.randn(2, 3, 8, 8)
    observed = prepare_fx(model, get_default_qconfig_mapping("fbgemm"), (x,))
    observed(x)
    converted, expected = convert_fx(observed), model(x)
    found = converted(x)
    assert found.shape == expected.shape and (found - expected).abs().max() < 0.03 * expected.abs().max()
    assert sum(node.target == "dequantize" for node in converted.graph.nodes) == 1


@pytest.mark.parametrize("parts", ["chunk", "split"])
def test_parts_of_quantized_tensors_stay_quantized(parts):
    class Parted(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(2, 2, 1)

        def forward(self, x):
            y = self.first(x)
            both = y.chunk(2, 1) if parts == "chunk" else taeda.split(y, [2, 2], dim=1)
            return taeda.cat([both[0], self.second(both[1])], 1)

    taeda.manual_seed(0)
    model, x = Parted().eval(), taeda.randn(2, 3, 8, 8)

    observed = prepare_fx(model, get_default_qconfig_mapping("fbgemm"), (x,))
    observed(x)
    converted, expected = convert_fx(observed), model(x)
    assert (converted(x) - expected).abs().max() < 0.03 * expected.abs().max()
    assert sum(node.target == "dequantize" for node in converted.graph.nodes) == 1


def test_embeddings_stay_where_products_are_quantized_dynamically():
    model = nn.Sequential(nn.Embedding(5, 6), nn.Linear(6, 2)).eval()
    mapping = QConfigMapping().set_global(default_dynamic_qconfig)
    converted = convert_fx(prepare_fx(model, mapping, (taeda.tensor([1]),)))
    first, second = converted.children()
    assert type(first) is nn.Embedding and type(second) is not nn.Linear
    assert converted(taeda.tensor([3])).allclose(model(taeda.tensor([3])), atol=0.02)


def test_switches_of_fused_observers_are_whole_numbers():
    quantization = taeda.ao.quantization
    fused = quantization.FusedMovingAvgObsFakeQuantize(reduce_range=True)
    assert fused.observer_enabled.dtype == fused.fake_quant_enabled.dtype == taeda.long
    assert quantization.FakeQuantize().observer_enabled.dtype == taeda.uint8
    fused.disable_observer()
    assert repr(fused).splitlines()[1].strip() == (
        "fake_quant_enabled=tensor([1]), observer_enabled=tensor([0]), scale=tensor([1.]), "
        "zero_point=tensor([0], dtype=taeda.int32), dtype=taeda.quint8, quant_min=0, quant_max=127, "
        "qscheme=taeda.per_tensor_affine, reduce_range=True"
    )


def test_states_of_converted_models_hold_all_scales(net):
    """A model that saw other numbers computes as the one whose state it loads, also from a file by weights alone."""
    mapping, x = get_default_qconfig_mapping("fbgemm"), taeda.randn(2, 3, 8, 8)
    made = []
    for factor in (1, 5):
        observed = prepare_fx(net, mapping, (x,))
        observed(x * factor)
        made.append(convert_fx(observed))
    first, second = made
    assert [key for key in first.state_dict() if "_input_scale_" in key] == ["conv_input_scale_0"]
    assert not taeda.equal(first(x), second(x))
    file = io.BytesIO()
    taeda.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(taeda.load(file, weights_only=True))
    assert taeda.equal(first(x), second(x))


class Guarded(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.branching, self.version = nn.Linear(4, 4), Branching(), 3

    def forward(self, x):
        return self.branching(self.first(x))


class Branching(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


@pytest.mark.parametrize("as_dict", [False, True])
def test_modules_that_cannot_be_traced_stay_whole(as_dict):
    from taeda.ao.quantization.fx.custom_config import ConvertCustomConfig, PrepareCustomConfig

    net, x = Guarded().eval(), taeda.randn(8, 4)
    with pytest.raises(taeda.fx.proxy.TraceError):
        prepare_fx(net, get_default_qconfig_mapping("x86"), (x,))
    for config in (
        PrepareCustomConfig().set_non_traceable_module_names(["branching"]),
        PrepareCustomConfig().set_non_traceable_module_classes([Branching]),
    ):
        config.set_preserved_attributes(["version"])
        assert vars(PrepareCustomConfig.from_dict(config.to_dict())) == vars(config)
        given = config.to_dict() if as_dict else config
        observed = prepare_fx(net, get_default_qconfig_mapping("x86"), (x,), given)
        observed(x)
        made = convert_fx(observed, ConvertCustomConfig().set_preserved_attributes(["version"]))
        assert type(made.first) is nnq.Linear and type(made.branching) is Branching and made.version == 3
        assert taeda.allclose(made(x), net(x), atol=0.1)
    with pytest.raises(NotImplementedError, match="'standalone_module_name' is not offered"):
        PrepareCustomConfig().set_standalone_module_name("first", None, (), None, None)
    with pytest.raises(NotImplementedError, match="'input_quantized_idxs' is not offered"):
        prepare_fx(net, get_default_qconfig_mapping("x86"), (x,), {"input_quantized_idxs": [0]})
