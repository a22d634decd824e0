"""Fake tensors: programs on devices that are not there, and on more memory than there is."""

import copy

import pytest

import taeda
from taeda import nn
from taeda._guards import active_fake_mode, detect_fake_mode
from taeda._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    is_fake,
    maybe_get_fake_mode,
    unset_fake_temporarily,
)
from taeda.fx.passes.fake_tensor_prop import FakeTensorProp


def test_what_a_program_makes_is_fake():
    with FakeTensorMode() as mode:
        x = taeda.empty(3, 4, dtype=taeda.float64)
        layer = nn.Linear(4, 2, dtype=taeda.float64)
        y = layer(x)
    assert all(map(is_fake, (x, y, layer.weight))) and isinstance(layer.weight, nn.Parameter)
    assert (
        y.shape == (3, 2) and y.dtype == taeda.float64 and y.requires_grad and maybe_get_fake_mode(y) is mode
    )
    assert repr(x) == "FakeTensor(..., size=(3, 4), dtype=taeda.float64)"
    z = (x.T.float() > 0)[1:]  # after the mode
    assert isinstance(z, FakeTensor) and z.shape == (3, 3) and z.dtype == taeda.bool and z.stride() == (1, 4)


def test_devices_that_are_not_there():
    with FakeTensorMode():
        x = taeda.empty(3, 4, device="cuda")
        there, back = (x + taeda.tensor(2.0)), x.cpu()
        again = back.to("cuda:1")
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).to("cuda").half()
    assert str(there.device) == "cuda:0" and there.is_cuda and there.get_device() == 0
    assert str(back.device) == "cpu" and back.is_cpu and not back.is_cuda and str(again.device) == "cuda:1"
    assert {str(value.device) for value in model.state_dict().values()} == {"cuda:0"}
    assert model[0].weight.dtype == taeda.float16
    with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cpu"):
        x + back
    assert not taeda.cuda.is_available() or taeda.cuda.device_count() < 2 or again.numel() == 12


def test_more_memory_than_there_is():
    with FakeTensorMode():
        x = taeda.zeros(1 << 44)
        y = (x * 2).view(1 << 14, -1).sum(0)
    assert y.shape == (1 << 30,) and x.nbytes == 1 << 46


def test_a_step_of_training():
    with FakeTensorMode():
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10)
        )
        optimizer = taeda.optim.AdamW(model.parameters())
        loss = nn.functional.cross_entropy(model(taeda.randn(4, 3, 8, 8)), taeda.randint(10, (4,)))
        loss.backward()
        grads = [p.grad for p in model.parameters()]
        optimizer.step()
    assert all(is_fake(g) and g.shape == p.shape for g, p in zip(grads, model.parameters(), strict=True))
    assert all(is_fake(state["exp_avg"]) for state in optimizer.state.values())


def test_views_and_writes_in_place():
    with FakeTensorMode():
        x = taeda.zeros(4, 3)
        v = x.view(12)
        v.add_(1)
        x.unsqueeze_(0)
    assert v._is_view() and x._version == v._version > 0 and x.shape == (1, 4, 3)


def test_derivatives_and_batches():
    with FakeTensorMode():
        x = taeda.randn(3, requires_grad=True)
        (g,) = taeda.autograd.grad((x**2).sum(), x)
        assert is_fake(g) and g.shape == (3,)
        assert taeda.func.grad(lambda v: v.sin().sum())(taeda.randn(2)).shape == (2,)
        assert taeda.vmap(lambda v: v.sin() @ v)(taeda.randn(5, 3)).shape == (5,)


def test_elements_are_known_of_numbers_alone():
    with FakeTensorMode():
        x = taeda.tensor([1, 2])
        assert x.tolist() == [1, 2] and taeda.tensor(3).item() == 3 and bool(taeda.tensor(1))
        assert taeda.equal(x, taeda.tensor([1, 2]))
        x.add_(1)
        for read in (x.tolist, taeda.ones(1).item, lambda: bool(taeda.ones(()) > 0), taeda.ones(2).numpy):
            with pytest.raises(DataDependentOutputException, match="hangs on elements"):
                read()
        for ask in (x.nonzero, lambda: x[x > 0], x.unique):
            with pytest.raises(DynamicOutputShapeException, match="shape of the result"):
                ask()


def test_real_tensors():
    x, layer = taeda.ones(3), nn.Linear(3, 2)
    with (
        FakeTensorMode() as strict,
        pytest.raises(AssertionError, match=r"add: a real tensor of shape \(3,\)"),
    ):
        x + 1
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        y = layer(x)
    assert is_fake(y) and y.shape == (2,)
    weight = mode.from_tensor(layer.weight)
    assert weight is mode.from_tensor(layer.weight) and mode.from_tensor(weight) is weight
    assert isinstance(weight, nn.Parameter) and weight.is_leaf and weight.requires_grad
    with pytest.raises(AssertionError, match="another mode"):
        strict.from_tensor(weight)
    assert not is_fake(layer.weight) and layer.weight.device.type == "cpu"


def test_modes_in_force():
    mode = FakeTensorMode()
    assert active_fake_mode() is None and detect_fake_mode([taeda.ones(2)]) is None
    with mode:
        x = taeda.ones(2)
        assert active_fake_mode() is mode
        with unset_fake_temporarily() as left, taeda.device("cpu"):
            y = taeda.ones(2)
            assert left is mode and active_fake_mode() is None
        assert active_fake_mode() is mode
    assert not is_fake(y) and y.tolist() == [1, 1]
    assert detect_fake_mode([[x]]) is mode
    with unset_fake_temporarily() as left:
        assert left is None


def test_copies_of_modules():
    with FakeTensorMode():
        layer = nn.Linear(2, 3)
        other = copy.deepcopy(layer)
    assert (
        is_fake(other.weight) and other.weight is not layer.weight and isinstance(other.weight, nn.Parameter)
    )


def test_graphs():
    traced = taeda.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 4), nn.ReLU()))
    result = FakeTensorProp(traced).propagate(taeda.ones(2, 3))
    assert is_fake(result) and result.shape == (2, 4)
    assert [tuple(n.meta["val"].shape) for n in traced.graph.nodes] == [(2, 3), (2, 4), (2, 4), (2, 4)]
    assert all(is_fake(n.meta["val"]) for n in traced.graph.nodes)


def test_checkpoints_of_fake_tensors_have_their_shapes(tmp_path):
    with FakeTensorMode():
        state = nn.Linear(3, 2).state_dict()
        state["turned"] = taeda.empty(2, 4).t()
    with taeda.serialization.skip_data(materialize_fake_tensors=True):
        taeda.save(state, tmp_path / "shapes.pt")
    found = taeda.load(tmp_path / "shapes.pt")
    assert {name: (x.shape, x.stride(), x.device.type) for name, x in found.items()} == {
        "weight": ((2, 3), (3, 1), "cpu"),
        "bias": ((2,), (1,), "cpu"),
        "turned": ((4, 2), (1, 4), "cpu"),
    }
    assert all(type(x) is taeda.Tensor for x in found.values())
