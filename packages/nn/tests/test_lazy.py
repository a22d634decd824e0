"""Modules that find out their sizes in the first call, and parameters without a shape."""

import copy
import pickle

import pytest

import taeda_nn as nn
from taeda_nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from taeda_registry.slots import tensor as tt

LAYERS = {
    "linear": (lambda: nn.LazyLinear(3), (2, 5), nn.Linear),
    "conv1d": (lambda: nn.LazyConv1d(4, 3, groups=2), (2, 6, 9), nn.Conv1d),
    "conv2d": (lambda: nn.LazyConv2d(4, 3, bias=False), (3, 9, 9), nn.Conv2d),
    "convtranspose2d": (lambda: nn.LazyConvTranspose2d(4, 3, stride=2), (1, 2, 5, 5), nn.ConvTranspose2d),
    "batchnorm1d": (nn.LazyBatchNorm1d, (4, 3), nn.BatchNorm1d),
    "batchnorm2d": (lambda: nn.LazyBatchNorm2d(affine=False), (4, 3, 2, 2), nn.BatchNorm2d),
    "instancenorm2d": (nn.LazyInstanceNorm2d, (3, 4, 4), nn.InstanceNorm2d),
}


@pytest.mark.parametrize("name", LAYERS)
def test_first_call_makes_an_ordinary_layer(name):
    make, shape, kind = LAYERS[name]
    layer = make()
    assert any(is_lazy(value) for value in layer.state_dict().values())
    layer(tt.randn(shape))
    assert type(layer) is kind
    assert not any(is_lazy(value) for value in layer.state_dict().values())
    assert layer(tt.randn(shape)).shape == kind.forward(layer, tt.randn(shape)).shape
    assert not layer._forward_pre_hooks


@pytest.mark.parametrize("name", LAYERS)
def test_copies_pickles_and_states_work_before_the_first_call(name):
    make, shape, _kind = LAYERS[name]
    layer = make()
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        other(tt.randn(shape))
        assert any(is_lazy(value) for value in layer.state_dict().values())
    layer(tt.randn(shape))
    filled = make()
    filled.load_state_dict(layer.state_dict())
    x = tt.randn(shape)
    filled.eval()
    layer.eval()
    assert bool((filled(x) == layer(x)).all())


@pytest.mark.parametrize("name", LAYERS)
def test_a_first_call_that_fails_leaves_the_module_as_it_was(name, monkeypatch):
    make, shape, kind = LAYERS[name]
    layer = make()
    before = {key: value for key, value in layer.__dict__.items() if isinstance(value, int)}

    def fail(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kind, "reset_parameters", fail)
        with pytest.raises(KeyboardInterrupt):
            layer(tt.randn(shape))
    assert all(is_lazy(value) for value in layer.parameters())
    assert {key: value for key, value in layer.__dict__.items() if isinstance(value, int)} == before
    tt.manual_seed(1)
    found = layer(tt.ones(shape))
    tt.manual_seed(1)
    assert tt.equal(found, make()(tt.ones(shape))) and type(layer) is kind


def test_what_has_no_shape_says_so():
    for lazy in (UninitializedParameter(dtype=tt.float64), UninitializedBuffer(dtype=tt.float64)):
        assert lazy.dtype == tt.float64 and repr(lazy).startswith("<Uninitialized")
        with pytest.raises(RuntimeError, match="not initialised"):
            _ = lazy.shape
        with pytest.raises(ValueError, match="add"):
            _ = lazy + 1
        with pytest.raises(RuntimeError, match="share_memory_"):
            lazy.share_memory_()
        lazy.materialize((2, 3))
        assert lazy.shape == (2, 3) and lazy.dtype == tt.float64
    with pytest.raises(RuntimeError, match="not initialised"):
        nn.Linear(3, 4).load_state_dict(nn.LazyLinear(4).state_dict())
    with pytest.raises(RuntimeError, match="LazyConv1d"):
        nn.LazyConv1d(2, 3)(tt.zeros(5))


def test_lazy_layers_convert_before_they_have_a_shape():
    net = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d()).double()
    out = net(tt.randn(3, 5, dtype=tt.float64))
    assert out.dtype == tt.float64 and net[0].weight.shape == (4, 5)


def test_lazy_buffers_are_moved_by_to():
    module = nn.Module()
    module.register_buffer("seen", UninitializedBuffer())
    module.to(tt.float64).to("cpu")
    assert is_lazy(module.seen) and module.seen.dtype == tt.float64


def test_states_without_a_shape_leave_what_has_none():
    empty = nn.LazyLinear(3)
    made = nn.LazyLinear(3)
    made.load_state_dict(empty.state_dict())
    assert made.has_uninitialized_params()
    assert made(tt.ones(2, 5)).shape == (2, 3)
    with pytest.raises(RuntimeError, match="not initialised yet has no shape"):
        made.load_state_dict(empty.state_dict())
