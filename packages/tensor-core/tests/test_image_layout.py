"""In which layout results of convolutions and poolings are allocated: inference asks the backend."""

from __future__ import annotations

import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import backends

OPERATORS = {
    "conv2d": lambda x: taeda.conv2d(x, taeda.ones(8, x.shape[1], 3, 3, dtype=x.dtype).to(x.device)),
    "max_pool2d": lambda x: taeda.max_pool2d(x, 2),
    "avg_pool2d": lambda x: taeda.avg_pool2d(x, 3, 2, 1),
    "adaptive_avg_pool2d": lambda x: taeda.ops.adaptive_avg_pool2d(x, [3]),
}


@pytest.fixture(scope="module")
def device(request):
    """Gives the second device of a family without kernels, compiled with the options."""
    build = request.getfixturevalue("shared_plugin")

    def get(name, *options):
        if name not in backends.names():
            backends.load(build("device", f'-DDEVICE_NAME="{name}"', *options))
            backends.fallback(name, "cpu")
        return f"{name}:1"

    return get


def images(shape=(2, 6, 20, 20), channels_last=False, dtype=taeda.float32):
    x = taeda.arange(taeda.zeros(shape).numel()).reshape(shape).to(dtype)
    return x.contiguous(memory_format=taeda.channels_last) if channels_last else x


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("name", OPERATORS)
def test_without_an_answer_results_lie_as_their_input(device, name, channels_last):
    x = images(channels_last=channels_last)
    y = OPERATORS[name](x.to(device("silent")))
    assert y.is_contiguous(memory_format=taeda.channels_last) == channels_last
    assert y.is_contiguous() != channels_last
    assert taeda.equal(y.cpu(), OPERATORS[name](x))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("shape", [(2, 6, 20, 20), (1, 1, 4, 4)])
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.bfloat16])
@pytest.mark.parametrize("name", OPERATORS)
def test_meta_answers_as_the_cpu_does(name, dtype, shape, channels_last):
    x = images(shape, channels_last, dtype)
    assert OPERATORS[name](x.to("meta")).stride() == OPERATORS[name](x).stride()
