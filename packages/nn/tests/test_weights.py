"""Weights that follow others: parametrizations, norms by hooks, pruning, fused layers, calls with other weights."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import taeda_nn as nn
from taeda_nn.utils import parametrizations, parametrize, prune, stateless
from taeda_registry.slots import tensor as tt


def values(x):
    return np.array(x.detach().tolist())


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, x):
        return x.triu()


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x


def test_parametrized_weight_is_computed_assigned_and_removed(close):
    layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    assert parametrize.is_parametrized(layer, "weight") and not parametrize.is_parametrized(layer, "bias")
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    close(layer.weight, layer.weight.transpose(0, 1))
    layer.weight = tt.arange(9.0).reshape(3, 3).triu() + tt.arange(9.0).reshape(3, 3).triu(1).t()
    close(layer.parametrizations.weight.original, tt.arange(9.0).reshape(3, 3).triu())
    layer.weight.sum().backward()
    close(layer.parametrizations.weight.original.grad, np.triu(np.full((3, 3), 2.0), 1) + np.eye(3))
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    other = copy.deepcopy(layer)
    now = values(layer.weight)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and isinstance(layer.weight, nn.Parameter)
    close(layer.weight, now)
    assert parametrize.is_parametrized(other)


def test_parametrizations_are_chained_and_cached():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
    parametrize.register_parametrization(layer, "weight", Doubled())
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    with pytest.raises(RuntimeError, match="Doubled has no right_inverse"):
        layer.weight = tt.zeros(2, 2)
    with pytest.raises(ValueError, match="no parameter"):
        parametrize.register_parametrization(layer, "other", Symmetric())
    narrow = nn.Module()
    narrow.forward = lambda x: x[:1]
    with pytest.raises(ValueError, match="shape"):
        parametrize.register_parametrization(nn.Linear(2, 2), "weight", narrow)


def test_a_passing_buffer_stays_one_where_its_parametrization_is_refused():
    class Refuses(nn.Module):
        def forward(self, value):
            return value

        def right_inverse(self, value):
            raise ZeroDivisionError

    layer = nn.Linear(2, 2)
    layer.register_buffer("seen", tt.ones(2), persistent=False)
    with pytest.raises(ZeroDivisionError):
        parametrize.register_parametrization(layer, "seen", Refuses())
    assert list(layer.state_dict()) == ["weight", "bias"] and layer.seen.tolist() == [1, 1]


@pytest.mark.parametrize("put", [nn.utils.weight_norm, parametrizations.weight_norm])
@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
def test_weight_norm_keeps_lengths_apart(put, close):
    layer = nn.Conv2d(3, 4, 2)
    before = values(layer.weight)
    put(layer, dim=1)
    close(layer.weight, before, 1e-6)
    old = put is nn.utils.weight_norm
    length = layer.weight_g if old else layer.parametrizations.weight.original0
    assert length.shape == (1, 3, 1, 1)
    close(length, np.sqrt((before**2).sum((0, 2, 3), keepdims=True)), 1e-6)
    layer(tt.randn(1, 3, 4, 4)).sum().backward()
    assert length.grad is not None
    if old:
        nn.utils.remove_weight_norm(layer)
        close(layer.weight, before, 1e-6)
        with pytest.raises(ValueError, match="not normalised"):
            nn.utils.remove_weight_norm(layer)


@pytest.mark.parametrize("put", [nn.utils.weight_norm, parametrizations.weight_norm])
@pytest.mark.parametrize("dim", [2, -3])
@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
def test_weight_norm_has_a_length_for_dimensions_of_the_weight_alone(put, dim):
    with pytest.raises(IndexError, match=f"argument 'dim' is {dim}, expected -2 to 1"):
        put(nn.Linear(2, 2), dim=dim)


def test_layers_whose_weight_norm_was_removed_can_be_written():
    layer = parametrizations.weight_norm(nn.Linear(3, 2))
    nn.utils.parametrize.remove_parametrizations(layer, "weight")
    read = pickle.loads(pickle.dumps(layer))
    assert read.weight.tolist() == layer.weight.tolist()


def test_states_of_the_old_weight_norm_are_taken(close):
    new = parametrizations.weight_norm(nn.Linear(3, 2))
    state = {"bias": tt.zeros(2), "weight_g": tt.ones(2, 1), "weight_v": tt.full((2, 3), 2.0)}
    new.load_state_dict(state)
    close(new.weight, np.full((2, 3), 1 / np.sqrt(3)), 1e-6)


@pytest.mark.parametrize("put", [nn.utils.spectral_norm, parametrizations.spectral_norm])
def test_spectral_norm_approaches_the_greatest_singular_value(put):
    layer = put(nn.Linear(6, 4).double(), n_power_iterations=50)
    with tt.no_grad():
        for _ in range(5):
            layer(tt.zeros(1, 6, dtype=tt.float64))
    assert np.linalg.norm(values(layer.weight), 2) == pytest.approx(1, abs=1e-6)
    layer.eval()
    x = tt.ones(1, 6, dtype=tt.float64)
    assert values(layer(x)).tolist() == values(layer(x)).tolist()
    if put is nn.utils.spectral_norm:
        nn.utils.remove_spectral_norm(layer)
        assert sorted(layer.state_dict()) == ["bias", "weight"]


def test_pruning_keeps_the_greatest_and_adds_up():
    layer = nn.Linear(4, 3)
    before = values(layer.weight)
    prune.l1_unstructured(layer, "weight", amount=5)
    kept = np.sort(np.abs(before).ravel())[5:]
    assert sorted(np.abs(values(layer.weight)[values(layer.weight) != 0])) == pytest.approx(kept)
    assert sorted(layer.state_dict()) == ["bias", "weight_mask", "weight_orig"]
    prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
    assert (values(layer.weight) == 0).all(1).sum() >= 1
    assert isinstance(next(iter(layer._forward_pre_hooks.values())), prune.PruningContainer)
    layer(tt.ones(1, 4)).sum().backward()
    assert (values(layer.weight_orig.grad)[values(layer.weight_mask) == 0] == 0).all()
    assert prune.is_pruned(layer)
    pruned = values(layer.weight)
    prune.remove(layer, "weight")
    assert isinstance(layer.weight, nn.Parameter) and (values(layer.weight) == pruned).all()
    with pytest.raises(ValueError, match="has to be pruned"):
        prune.remove(layer, "weight")


class Refusing(prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        raise LookupError("no mask")


def test_methods_that_raise_leave_a_pruned_module_as_it_was():
    layer = nn.Linear(4, 3)
    for _ in range(3):  # not pruned, by one method, by several
        names, hooks = list(layer.state_dict()), list(layer._forward_pre_hooks.items())
        kept = values(layer.weight)
        with pytest.raises(LookupError):
            Refusing.apply(layer, "weight")
        assert list(layer.state_dict()) == names and list(layer._forward_pre_hooks.items()) == hooks
        assert (values(layer.weight) == kept).all()
        prune.l1_unstructured(layer, "weight", 1)
    assert len(next(iter(layer._forward_pre_hooks.values()))) == 3


@pytest.mark.parametrize("change", [
    nn.utils.weight_norm, nn.utils.spectral_norm, lambda layer: prune.identity(layer, "weight"),
    nn.utils.parametrizations.weight_norm, nn.utils.parametrizations.spectral_norm,
    nn.utils.parametrizations.orthogonal,
])  # fmt: skip
@pytest.mark.parametrize("kind", ["parameter", "buffer", "module"])
def test_hooks_of_registrations_that_raise_leave_a_module_as_it_was(change, kind):
    layer, x = nn.Linear(3, 3), tt.ones(1, 3)
    before, weight = layer(x), layer.weight

    def raising(module, name, member):
        raise LookupError(name)

    register = getattr(nn.modules.module, f"register_module_{kind}_registration_hook")
    with register(raising), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            change(layer)
        except LookupError:
            assert list(layer.state_dict()) == ["weight", "bias"] and layer.weight is weight
            assert type(layer) is nn.Linear and not layer._forward_pre_hooks
    assert layer(x).shape == before.shape


def test_pruning_over_several_layers_and_wrong_amounts():
    one, two = nn.Linear(4, 3), nn.Linear(3, 5)
    pairs = [(one, "weight"), (two, "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.5)
    assert sum((values(layer.weight) == 0).sum() for layer, _ in pairs) == round(27 / 2)
    for amount, error in ((-1, ValueError), (1.5, ValueError), ("x", TypeError)):
        with pytest.raises(error, match="amount"):
            prune.random_unstructured(nn.Linear(2, 2), "weight", amount)
    fresh = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="smaller than the number"):
        prune.l1_unstructured(fresh, "weight", 5)
    assert sorted(fresh.state_dict()) == ["bias", "weight"], "a failed call leaves the module as it was"
    with pytest.raises(ValueError, match="multidimensional"):
        prune.random_structured(nn.Linear(2, 2), "bias", 1, 0)


@pytest.mark.parametrize("transpose", [False, True])
def test_fused_convolution_gives_what_both_gave(transpose, close):
    kind = nn.ConvTranspose2d if transpose else nn.Conv2d
    conv, norm = kind(3, 4, 2, bias=not transpose).double(), nn.BatchNorm2d(4).double()
    norm(tt.randn(5, 4, 3, 3, dtype=tt.float64))
    nn.init.uniform_(norm.weight)
    x = tt.randn(2, 3, 5, 5, dtype=tt.float64)
    with pytest.raises(AssertionError, match="eval"):
        nn.utils.fuse_conv_bn_eval(conv, norm)
    fused = nn.utils.fuse_conv_bn_eval(conv.eval(), norm.eval(), transpose)
    close(fused(x), norm(conv(x)))
    line, norm1 = nn.Linear(3, 4).double().eval(), nn.BatchNorm1d(4).double()
    norm1(tt.randn(5, 4, dtype=tt.float64))
    y = tt.randn(2, 3, dtype=tt.float64)
    close(nn.utils.fuse_linear_bn_eval(line, norm1.eval())(y), norm1(line(y)))


def test_a_convolution_of_halves_stays_one_when_it_is_fused(close):
    conv, norm = nn.Conv2d(3, 4, 2, bias=False, dtype=tt.bfloat16).eval(), nn.BatchNorm2d(4).eval()
    nn.init.uniform_(norm.bias)
    fused = nn.utils.fuse_conv_bn_eval(conv, norm)
    assert fused.bias.dtype == fused.weight.dtype == tt.bfloat16
    x = tt.randn(2, 3, 5, 5, dtype=tt.bfloat16)
    assert tt.allclose(fused(x).float(), norm(conv(x)).float(), atol=0.05)


def test_calls_with_other_weights_leave_the_module_alone(close):
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    before = {name: values(t) for name, t in net.state_dict().items()}
    given = {"0.weight": tt.zeros(2, 2, requires_grad=True), "0.bias": tt.ones(2)}
    with pytest.warns(FutureWarning, match="func.functional_call"):
        out = stateless.functional_call(net.eval(), given, tt.ones(3, 2))
    close(out, np.full((3, 2), 1 / np.sqrt(1 + 1e-5)), 1e-6)
    out.sum().backward()
    assert given["0.weight"].grad is not None
    for name, t in net.state_dict().items():
        assert (values(t) == before[name]).all()
    with pytest.raises(RuntimeError, match=r"missing \['0.bias'"):
        stateless._functional_call(net, {"0.weight": tt.zeros(2, 2)}, tt.ones(3, 2), strict=True)


def test_skip_init_and_old_names():
    layer = nn.utils.skip_init(nn.Linear, 3, 2)
    assert layer.weight.shape == (2, 3) and layer.weight.device.type == "cpu"
    with pytest.raises(RuntimeError, match="device"):
        nn.utils.skip_init(nn.ReLU)
    with pytest.warns(FutureWarning, match="normal_"):
        nn.init.normal(layer.weight)
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        nn.utils.clip_grad_norm(layer.parameters(), 1.0)


def test_calls_with_tensors_of_names_that_the_module_lacks():
    net = nn.Linear(2, 1)
    extra = nn.Parameter(tt.ones(1))
    seen = []
    net.register_forward_hook(lambda module, *_: seen.append(dict(module.named_parameters())))
    stateless._functional_call(net, {"extra": extra, "plain": tt.ones(1)}, tt.ones(2))
    assert seen[0].keys() == {"weight", "bias", "extra"}
    assert seen[0]["extra"] is extra
    assert dict(net.named_parameters()).keys() == {"weight", "bias"}
    assert not hasattr(net, "extra")
    assert not hasattr(net, "plain")


@pytest.mark.parametrize(
    ("name", "value", "error", "text"),
    [
        ("weight", 3, TypeError, "weight: 3 is not an instance of Tensor"),
        ("in_features", None, TypeError, "attribute `in_features`: 2 is not an instance of Tensor"),
        ("forward", None, TypeError, "attribute `forward`"),
        ("", None, KeyError, "empty"),
        ("a.b", None, AttributeError, "a"),
    ],
)
def test_calls_with_what_is_no_tensor_change_nothing(name, value, error, text):
    net = nn.Linear(2, 1)
    before = dict(vars(net))
    with pytest.raises(error, match=text):
        stateless._functional_call(net, {"bias": tt.zeros(1), name: value or tt.ones(1)}, tt.ones(2))
    assert vars(net) == before


def test_what_is_cached_is_of_the_module_that_asks():
    with parametrize.cached():
        for number in range(20):  # of which each may stand where the one before stood
            layer = nn.Linear(2, 2)
            nn.init.constant_(layer.weight, number)
            parametrize.register_parametrization(layer, "weight", Doubled())
            assert (layer.weight == 2 * number).all()
            assert layer.weight is layer.weight
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
        parametrize.register_parametrization(layer, "weight", Symmetric())
        assert (values(layer.weight) == 19).all()
