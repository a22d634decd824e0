"""Older and private names of `taeda.func`, as libraries import them: levels by hand, functions of parameters."""

import subprocess
import sys

import pytest

import taeda
from taeda._functorch import vmap as steps
from taeda._functorch.make_functional import (
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)


def test_levels_by_hand():
    functorch = taeda._C._functorch
    x = taeda.arange(6.0).reshape(3, 2)
    assert functorch.maybe_current_level() is None and not taeda._C._are_functorch_transforms_active()
    with pytest.raises(RuntimeError, match="no transform"):
        functorch.current_level()
    level = functorch._vmap_increment_nesting(2, "error")
    try:
        one = functorch._add_batch_dim(x, 1, level)
        assert level == functorch.current_level() == functorch.maybe_get_level(one) == 1
        assert functorch.is_batchedtensor(one) and not functorch.is_batchedtensor(x)
        assert functorch.maybe_get_bdim(one) == 0 and functorch.maybe_get_bdim(x) == -1
        assert taeda._C._are_functorch_transforms_active()
        assert functorch.get_unwrapped(one).equal(x.t()) and functorch.get_unwrapped(x) is x
        whole = functorch._remove_batch_dim(one * 2, level, 2, 1)
        assert functorch._unwrap_batched(x, level) == (x, None)
    finally:
        functorch._vmap_decrement_nesting()
    assert whole.equal(x * 2) and not functorch.is_batchedtensor(one)


def test_steps_can_be_replaced(monkeypatch):
    seen = []
    before = steps._create_batched_inputs

    def noted(*args):
        seen.append(args[2])
        return before(*args)

    monkeypatch.setattr(steps, "_create_batched_inputs", noted)
    taeda.vmap(taeda.vmap(lambda a: a + 1))(taeda.ones(2, 3))
    assert seen == [1, 2]


def test_arguments_by_name_are_shared():
    found = taeda.vmap(lambda a, *, b: a * b)(taeda.ones(3, 2), b=taeda.tensor([1.0, 2.0]))
    assert found.tolist() == [[1, 2]] * 3
    assert taeda.vmap(lambda a: a, out_dims=(1,))(taeda.ones(3, 2)).shape == (2, 3)


def test_functions_of_parameters():
    net = taeda.nn.Sequential(taeda.nn.Linear(2, 3), taeda.nn.BatchNorm1d(3)).eval()
    x = taeda.rand(4, 2)
    with pytest.raises(RuntimeError, match="3 buffers"):
        make_functional(net)
    function, params, buffers = make_functional_with_buffers(net)
    assert function(params, buffers, x).equal(net(x)) and len(params) == 4 and len(buffers) == 3
    assert params[0] is not net[0].weight and params[0].requires_grad
    function, params = make_functional(net[0], disable_autograd_tracking=True)
    assert not params[0].requires_grad and function(params, x).equal(net[0](x))
    nets = [taeda.nn.Linear(2, 3) for _ in range(3)]
    together, params, buffers = combine_state_for_ensemble(nets)
    found = taeda.vmap(together, (0, 0, None))(params, buffers, x)
    assert taeda.allclose(found, taeda.stack([each(x) for each in nets]), atol=1e-6)


def test_the_package_beside():
    source = (
        "import sys, taeda; sys.modules['torch'] = taeda\n"
        "import importlib.util\n"
        "assert importlib.util.find_spec('functorch') is not None\n"
        "import functorch\n"
        "from functorch import grad, vmap\n"
        "from torch._functorch.vmap import _add_batch_dim\n"
        "from torch._C._functorch import is_batchedtensor\n"
        "from torch._functorch.apis import vmap as same\n"
        "import torch\n"
        "assert vmap is torch.vmap is same is torch.func.vmap\n"
        "try:\n    from functorch import dim\n"
        "except ImportError:\n    pass\n"
        "else:\n    raise AssertionError(dim)\n"
    )
    subprocess.run([sys.executable, "-c", source], check=True)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_gradients_of_examples(reduction):
    from taeda.nn.utils._per_sample_grad import call_for_per_sample_grads

    net = taeda.nn.Sequential(
        taeda.nn.Conv2d(1, 2, 3), taeda.nn.ReLU(), taeda.nn.Flatten(), taeda.nn.Linear(8, 3)
    ).double()
    x = taeda.randn(4, 1, 4, 4, dtype=taeda.float64)
    getattr(call_for_per_sample_grads(net, loss_reduction=reduction)(x).pow(2).sum(1), reduction)().backward()
    for i in range(4):
        net.zero_grad()
        net(x[i : i + 1]).pow(2).sum().backward()
        for p in net.parameters():
            assert taeda.allclose(p.grad_sample[i], p.grad)
    with pytest.raises(RuntimeError, match="loss_reduction"):
        call_for_per_sample_grads(net, loss_reduction="none")
    with pytest.raises(RuntimeError, match="expected 3"):
        call_for_per_sample_grads(net, batch_size=3)(x)


def test_maps_in_chunks():
    from taeda._functorch.package import chunk_vmap, control_flow, make_fx, replace_all_batch_norm_modules_

    x = taeda.arange(7.0)
    assert taeda.equal(chunk_vmap(lambda row: row * 2, chunks=3)(x), x * 2)
    assert taeda.equal(
        chunk_vmap(lambda row, k: row * k, in_dims=(1, None), chunks=9)(x.view(1, 7), 3), x.view(7, 1) * 3
    )
    with pytest.raises(ValueError, match="chunks"):
        chunk_vmap(lambda row: row, chunks=0)
    assert control_flow.cond is taeda.cond and callable(make_fx)
    net = replace_all_batch_norm_modules_(taeda.nn.BatchNorm1d(2))
    assert net.running_mean is None
    assert not taeda._dynamo.is_dynamo_supported()
