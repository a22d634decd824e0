"""Initialisers and helpers."""

import math

import numpy as np
import pytest

import taeda_nn as nn
from taeda_nn import init
from taeda_registry.slots import tensor as tt


def filled(fill, *arguments, shape=(200, 100)):
    return np.array(fill(tt.empty(*shape), *arguments).tolist())


@pytest.mark.parametrize(
    ("fill", "arguments", "bound"),
    [
        (init.uniform_, (-0.3, 0.3), 0.3),
        (init.xavier_uniform_, (2.0,), 2 * math.sqrt(6 / 300)),
        (init.kaiming_uniform_, (), math.sqrt(6 / 100)),
        (init.kaiming_uniform_, (0, "fan_out", "relu"), math.sqrt(6 / 200)),
    ],
)
def test_uniform(fill, arguments, bound):
    x = filled(fill, *arguments)
    assert np.abs(x).max() <= bound * 1.000001
    assert x.std() == pytest.approx(bound / math.sqrt(3), rel=0.02)
    assert abs(x.mean()) < bound * 0.02


@pytest.mark.parametrize(
    ("fill", "arguments", "std"),
    [
        (init.normal_, (0.0, 0.3), 0.3),
        (init.xavier_normal_, (), math.sqrt(2 / 300)),
        (init.kaiming_normal_, (math.sqrt(5),), math.sqrt(2 / 6 / 100)),
    ],
)
def test_normal(fill, arguments, std):
    x = filled(fill, *arguments)
    assert x.std() == pytest.approx(std, rel=0.02) and abs(x.mean()) < std * 0.03


def test_special():
    x = filled(init.trunc_normal_, 1.0, 1.0, 0.0, 1.5)
    assert x.min() >= 0 and x.max() <= 1.5
    assert filled(init.eye_, shape=(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert (filled(init.sparse_, 0.25) == 0).sum(0).tolist() == [50] * 100
    for shape in ((20, 7), (7, 20), (6, 3, 2)):
        q = filled(init.orthogonal_, shape=shape).reshape(shape[0], -1)
        gram = q.T @ q if q.shape[0] >= q.shape[1] else q @ q.T
        np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-5)
    kernel = filled(init.dirac_, shape=(3, 3, 3, 3))
    assert kernel.sum() == 3 and all(kernel[i, i, 1, 1] == 1 for i in range(3))


def test_gains_that_change_nothing_are_whole_numbers_as_they_are_printed():
    assert [str(init.calculate_gain(name)) for name in ("linear", "sigmoid", "conv2d")] == ["1"] * 3
    assert init.calculate_gain("selu") == 0.75


def test_bad_calls():
    for call in (
        lambda: init.xavier_uniform_(tt.empty(3)),
        lambda: init.eye_(tt.empty(3)),
        lambda: init.kaiming_normal_(tt.empty(3, 3), mode="fan"),
        lambda: init.calculate_gain("other"),
        lambda: init.calculate_gain("leaky_relu", "x"),
        lambda: init.dirac_(tt.empty(5, 3, 3), 2),
    ):
        with pytest.raises(ValueError):
            call()


def test_initialisation_leaves_no_history_and_is_seeded():
    weight = nn.Parameter(tt.empty(3, 3))
    assert init.uniform_(weight) is weight and weight.grad_fn is None
    tt.manual_seed(3)
    first = nn.Linear(4, 4).weight.tolist()
    tt.manual_seed(3)
    assert nn.Linear(4, 4).weight.tolist() == first


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, math.inf])
def test_clip_grad_norm(rng, to_tensor, close, norm_type):
    module = nn.Linear(4, 3).double()
    module(to_tensor(rng.standard_normal((2, 4)))).sum().backward()
    before = [np.array(p.grad.tolist()) for p in module.parameters()]
    norm = np.linalg.norm(np.concatenate([g.ravel() for g in before]), norm_type)
    close(nn.utils.clip_grad_norm_(module.parameters(), norm / 2, norm_type), norm)
    for param, grad in zip(module.parameters(), before, strict=True):
        close(param.grad, grad / 2, 1e-5)
    nn.utils.clip_grad_norm_(module.parameters(), 10 * norm, norm_type)
    close(module.weight.grad, before[0] / 2, 1e-5)
    nn.utils.clip_grad_value_(module.parameters(), 0.1)
    assert float(module.weight.grad.abs().max()) <= 0.1
    module.weight.grad.fill_(math.nan)
    with pytest.raises(RuntimeError, match="nan"):
        nn.utils.clip_grad_norm_(module.parameters(), 1.0, norm_type, error_if_nonfinite=True)


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("mixed", [False, True])
def test_clip_grad_norm_of_complex_gradients(rng, to_tensor, close, norm_type, mixed):
    values = [rng.standard_normal(5) + 1j * rng.standard_normal(5), rng.standard_normal(3) + 0j]
    values[1] = values[1].real if mixed else values[1]
    parameters = [nn.Parameter(tt.from_numpy(np.zeros_like(v))) for v in values]
    for parameter, value in zip(parameters, values, strict=True):
        parameter.grad = tt.from_numpy(value.copy())
    norm = np.linalg.norm(np.concatenate(values), norm_type)
    found = nn.utils.clip_grad_norm_(parameters, norm / 2, norm_type)
    assert not found.is_complex()
    close(found, norm)
    for parameter, value in zip(parameters, values, strict=True):
        assert np.allclose(parameter.grad.numpy(), value / 2, rtol=1e-5)


def test_parameters_as_vector():
    module = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(module.parameters())
    assert vector.numel() == 9
    nn.utils.vector_to_parameters(tt.arange(9, dtype=tt.float32), module.parameters())
    assert module.weight.tolist() == [[0, 1], [2, 3], [4, 5]] and module.bias.tolist() == [6, 7, 8]
    with pytest.raises(ValueError, match="9 elements"):
        nn.utils.vector_to_parameters(tt.zeros(8), module.parameters())
    with pytest.raises(TypeError):
        nn.utils.vector_to_parameters([1], module.parameters())


def test_devices_of_parameters_that_become_one_vector():
    from taeda_nn.utils.convert_parameters import _check_param_device

    on_cpu, elsewhere = nn.Parameter(tt.zeros(2)), nn.Parameter(tt.zeros(2, device="meta"))
    assert _check_param_device(on_cpu, None) == -1 and _check_param_device(on_cpu, -1) == -1
    with pytest.raises(TypeError, match="two parameters on different devices"):
        _check_param_device(on_cpu, 0)
    assert _check_param_device(elsewhere, None) == elsewhere.get_device()


def test_a_missing_operator_is_named():
    from taeda_nn._bind import op

    with pytest.raises(NotImplementedError, match="no_such_operator"):
        op("no_such_operator")(1)


@pytest.mark.parametrize(("order", "expected"), [(0, 2.0), (-math.inf, 0.0), (1, 8.0), (3, 134 ** (1 / 3))])
def test_norms_of_gradients_of_any_order(order, expected):
    grads = [tt.tensor([1.0, -5.0]), tt.tensor([2.0, 0.0]), tt.zeros(3)]
    total = nn.utils.get_total_norm(grads, order)
    # Of order 0 it is the number of tensors that are not zero.
    np.testing.assert_allclose(total.item(), expected, rtol=1e-6)
    params = [nn.Parameter(tt.zeros(2)), nn.Parameter(tt.zeros(2))]
    for param, grad in zip(params, grads, strict=False):
        param.grad = grad.clone()
    nn.utils.clip_grad_norm_(params, 1e9, norm_type=order)
    assert params[0].grad.tolist() == [1, -5]


@pytest.mark.parametrize("place", range(3))
def test_clipping_changes_all_gradients_or_none(place):
    parameters = [nn.Parameter(tt.zeros(3)) for _ in range(3)]
    for parameter in parameters:
        parameter.grad = tt.full((3,), 4.0)
    parameters[place].grad = tt.ones(1).expand(3)  # whose elements share their place
    with pytest.raises(RuntimeError, match="mul_"):
        nn.utils.clip_grad_norm_(parameters, 1.0)
    with pytest.raises(RuntimeError, match="mul_"):
        nn.utils.clip_grads_with_norm_(parameters, 1.0, tt.tensor(100.0))
    for at, parameter in enumerate(parameters):
        assert parameter.grad.tolist() == [1.0 if at == place else 4.0] * 3
