"""In which layout results of convolutions and poolings are allocated: inference asks the backend."""

from __future__ import annotations

import contextlib
import ctypes

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
        path = build("device", f'-DDEVICE_NAME="{name}"', *options)
        if name not in backends.names():
            backends.load(path)
            backends.fallback(name, "cpu")
        get.library = ctypes.CDLL(str(path))
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


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d", "adaptive_avg_pool2d"])
def test_a_single_image_whose_batch_step_is_that_of_a_point_lies_row_by_row(name):
    """As an image of (H, W, C) with its channels moved ahead: the strides fit several layouts."""
    x = images((6, 20, 20)[1:] + (6,)).movedim(-1, 0).unsqueeze(0)
    assert x.stride() == (6, 1, 120, 6)
    assert OPERATORS[name](x).is_contiguous()
    assert taeda.equal(OPERATORS[name](x), OPERATORS[name](x.contiguous()))


class Question(ctypes.Structure):
    """taeda_image_result."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("op", ctypes.c_char_p),
        ("dtype", ctypes.c_int32),
        ("input_layout", ctypes.c_int32),
        ("input", ctypes.c_int64 * 4),
        ("sizes", ctypes.c_int64 * 4),
        ("kernel", ctypes.c_int64 * 2),
        ("groups", ctypes.c_int64),
    ]


ROW_MAJOR, CHANNELS_LAST, OTHER = range(3)


@pytest.fixture
def answering(device):
    """A device of the C ABI that wants what it is told to want: `answering(layout)` gives its name."""
    name = device("answering", "-DLAYOUT")
    library = device.library
    library.last_question.restype = ctypes.POINTER(Question)

    @contextlib.contextmanager
    def wants(layout):
        library.want_layout(layout)
        try:
            yield name
        finally:
            library.want_layout(ROW_MAJOR)

    wants.question = lambda: library.last_question().contents
    return wants


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("wanted", [ROW_MAJOR, CHANNELS_LAST])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_device_in_c_answers_for_itself(answering, name, wanted, channels_last):
    x = images(channels_last=channels_last)
    with answering(wanted) as there:
        y = OPERATORS[name](x.to(there))
    assert y.is_contiguous(memory_format=taeda.channels_last) == (wanted == CHANNELS_LAST)
    assert y.is_contiguous() == (wanted == ROW_MAJOR)
    assert taeda.equal(y.cpu(), OPERATORS[name](x))


def test_what_a_device_in_c_is_asked(answering):
    x = images((2, 6, 20, 24), dtype=taeda.float64)
    with answering(ROW_MAJOR) as there:
        taeda.conv2d(x.to(there), taeda.ones(9, 2, 3, 5, dtype=taeda.float64).to(there), groups=3)
        asked = answering.question()
        assert (asked.size, asked.op, asked.dtype) == (ctypes.sizeof(Question), b"conv2d", 12)
        assert asked.input_layout == ROW_MAJOR
        assert [list(part) for part in (asked.input, asked.sizes, asked.kernel)] == [
            [2, 6, 20, 24],
            [2, 9, 18, 20],
            [3, 5],
        ]
        assert asked.groups == 3
        taeda.avg_pool2d(x.to(there)[:, ::2], 2)
        assert (asked.input_layout, asked.groups) == (OTHER, 1)


def test_an_answer_that_is_none_and_an_error(answering):
    x = images()
    with (
        answering(OTHER) as there,
        pytest.raises(RuntimeError, match="answering: image_layout gave 2, expected"),
    ):
        OPERATORS["conv2d"](x.to(there))
    with answering(-1) as there, pytest.raises(NotImplementedError, match="no images today"):
        OPERATORS["max_pool2d"](x.to(there))


@pytest.mark.parametrize("channels_last", [False, True])
def test_a_binary_of_1_0_is_not_asked(device, channels_last):
    x = images(channels_last=channels_last)
    there = device("older", "-DBUILT_FOR_1_0", "-DSTATED_MINOR=0u")
    y = taeda.max_pool2d(x.to(there), 2)
    assert y.is_contiguous(memory_format=taeda.channels_last) == channels_last


def test_steps_of_dimensions_of_one_element_are_those_that_were_asked_for():
    """Where a shape fits both orders, as PyTorch has them."""
    for shape, steps in (
        ((2, 1, 4, 5), (20, 1, 5, 1)),
        ((2, 3, 1, 1), (3, 1, 3, 3)),
        ((1, 1, 4, 5), (20, 1, 5, 1)),
    ):
        plain = taeda.ones(shape)
        last = plain.to(memory_format=taeda.channels_last)
        made = (
            last,
            taeda.empty(shape, memory_format=taeda.channels_last),
            taeda.empty_like(plain, memory_format=taeda.channels_last),
            plain.clone(memory_format=taeda.channels_last),
            last.clone(),
            taeda.empty_like(last),
            taeda.zeros_like(last),
            last.double(),
        )
        assert [each.stride() for each in made] == [steps] * len(made)
        assert all(each.is_contiguous() for each in made)
        assert last.to(memory_format=taeda.channels_last) is last
        assert plain.contiguous(memory_format=taeda.channels_last) is plain
        assert taeda.equal(last, plain) and taeda.equal(last + last.flip(1), 2 * plain)
    rows = taeda.ones(2, 1, 4, 5).flip(1)
    assert rows.clone().stride() == (20, 20, 5, 1)


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d", "adaptive_avg_pool2d"])
def test_images_of_one_channel_give_results_in_the_order_that_their_strides_say(name):
    plain = images((2, 1, 8, 8))
    last = plain.to(memory_format=taeda.channels_last)
    assert last.stride() == (64, 1, 8, 1)
    assert OPERATORS[name](last).stride()[1] == 1 < OPERATORS[name](plain).stride()[1]
    assert taeda.equal(OPERATORS[name](last), OPERATORS[name](plain))


def test_convolutions_of_one_channel_lie_as_their_images_where_draws_are_those_of_pytorch():
    """Dropout behind them is drawn in the order of memory."""
    plain = images((2, 1, 8, 8))
    engine = taeda.random.get_engine()
    taeda.random.set_engine("mt19937")
    try:
        last = OPERATORS["conv2d"](plain.to(memory_format=taeda.channels_last))
        rows = OPERATORS["conv2d"](plain)
    finally:
        taeda.random.set_engine(engine)
    assert (last.stride(1), rows.stride(1)) == (1, 36)
    assert taeda.allclose(last, rows)
