"""Averages of models: all of them move, or none does."""

import signal

import pytest

from taeda_optim import swa_utils
from taeda_registry.slots import nn, tensor

WAYS = [
    {},
    {"avg_fn": swa_utils.get_ema_avg_fn(0.9)},
    {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)},
    {"use_buffers": True},
]


def _net(width=4, dtype=None):
    last = nn.Linear(3, width)
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), last if dtype is None else last.to(dtype))


def _kept(model):
    return {name: value.tolist() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: next(iter(way), "mean"))
def test_a_model_of_another_shape_changes_nothing(way, steps):
    averaged = swa_utils.AveragedModel(_net(), **way)
    for _ in range(steps):
        averaged.update_parameters(_net())
    before = _kept(averaged)
    with pytest.raises(
        RuntimeError, match=r"value 4 of argument 'model' has shape \(5, 3\), expected \(4, 3\)"
    ):
        averaged.update_parameters(_net(5))
    assert _kept(averaged) == before


def test_a_buffer_of_another_shape_changes_nothing():
    averaged, other = swa_utils.AveragedModel(_net()), _net()
    other[1].running_mean = tensor.zeros(7)
    before = _kept(averaged)
    with pytest.raises(RuntimeError, match=r"has shape \(7,\), expected \(3,\)"):
        averaged.update_parameters(other)
    assert _kept(averaged) == before


def test_a_model_of_another_dtype_changes_nothing_where_averages_cannot_move_to_it():
    averaged = swa_utils.AveragedModel(_net(), multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))
    averaged.update_parameters(_net())
    before = _kept(averaged)
    with pytest.raises(
        RuntimeError, match=r"value 4 of argument 'model' has dtype .*float64, expected .*float32"
    ):
        averaged.update_parameters(_net(dtype=tensor.float64))
    assert _kept(averaged) == before


def test_the_mean_takes_models_of_another_dtype():
    averaged, first, second = swa_utils.AveragedModel(_net()), _net(), _net(dtype=tensor.float64)
    averaged.update_parameters(first)
    averaged.update_parameters(second)
    expected = (first[2].weight.double() + second[2].weight) / 2
    assert averaged.module[2].weight.dtype is tensor.float32
    assert tensor.allclose(averaged.module[2].weight.double(), expected, atol=1e-6)


def test_a_function_that_raises_changes_nothing():
    left = [3]

    def failing(average, value, count):
        left[0] -= 1
        if left[0] == 0:
            raise LookupError("no average")
        return value

    averaged = swa_utils.AveragedModel(_net(), avg_fn=failing)
    averaged.update_parameters(_net())
    before = _kept(averaged)
    with pytest.raises(LookupError):
        averaged.update_parameters(_net())
    assert _kept(averaged) == before


@pytest.mark.parametrize("handler", [signal.default_int_handler, lambda *_: None])
def test_an_interrupt_waits_until_averages_and_their_count_are_there(handler):
    def interrupted(averages, current, count):
        for number, (average, value) in enumerate(zip(averages, current, strict=True)):
            if number == 1:
                signal.raise_signal(signal.SIGINT)
            average.copy_(value)

    averaged, model = swa_utils.AveragedModel(_net(), multi_avg_fn=interrupted), _net()
    averaged.update_parameters(_net())
    before = signal.signal(signal.SIGINT, handler)
    try:
        if handler is signal.default_int_handler:
            with pytest.raises(KeyboardInterrupt):
                averaged.update_parameters(model)
        else:
            averaged.update_parameters(model)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert averaged.n_averaged.item() == 2
    assert all((a == b).all() for a, b in zip(averaged.module.parameters(), model.parameters(), strict=True))
