"""Steps of optimizers as functions of lists that the caller keeps."""

import inspect

import pytest

import taeda_optim as optim
from taeda_optim import _functional
from taeda_registry.slots import tensor


def test_a_function_does_what_the_class_does():
    w = tensor.ones(3, requires_grad=True)
    optimizer = optim.Adam([w], lr=0.1)
    params, averages, squares = [tensor.ones(3)], [tensor.zeros(3)], [tensor.zeros(3)]
    steps = [tensor.zeros(1)]
    for scale in (1.0, -3.0, 2.0):
        w.grad = tensor.ones(3) * scale
        optimizer.step()
        optim.adam.adam(
            params, [tensor.ones(3) * scale], averages, squares, [], steps, amsgrad=False, beta1=0.9, beta2=0.999,
            lr=0.1, weight_decay=0, eps=1e-8, maximize=False,
        )  # fmt: skip
    assert params[0].tolist() == w.tolist()
    assert averages[0].tolist() == optimizer.state[w]["exp_avg"].tolist()
    assert steps[0].item() == 3


def test_the_first_momentum_comes_into_its_list():
    buffers, p = [None], tensor.ones(2)
    options = {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0, "nesterov": False, "maximize": False}
    optim.sgd.sgd([p], [tensor.ones(2)], buffers, lr=1.0, **options)
    kept = buffers[0]
    assert kept.tolist() == [1.0, 1.0] and p.tolist() == [0.0, 0.0]
    optim.sgd.sgd([p], [tensor.ones(2)], buffers, lr=1.0, **options)
    assert buffers[0] is kept and kept.tolist() == pytest.approx([1.4, 1.4])


def test_scaled_gradients_and_those_that_are_left_out():
    p, lists = tensor.ones(1), {"momentum_buffer_list": [None]}
    options = {"momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False, "lr": 1.0}
    optim.sgd.sgd([p], [tensor.ones(1) * 8], **lists, grad_scale=tensor.ones(1) * 4, **options)
    assert p.item() == -1.0
    optim.sgd.sgd([p], [tensor.ones(1)], **lists, found_inf=tensor.ones(1), **options)
    assert p.item() == -1.0


@pytest.mark.parametrize("name", _functional.__all__)
def test_wrong_calls(name):
    function = getattr(_functional, name)
    assert next(iter(inspect.signature(function).parameters)) == "params"
    with pytest.raises(TypeError, match=f"{name}: arguments are missing"):
        function([])
    with pytest.raises(TypeError, match=f"{name}: expected at most"):
        function(*[[]] * 9)
