"""Whatever the arguments are: an operator raises, it never takes the process with it."""

from pathlib import Path

import pytest

import taeda_tensor_core as taeda
from taeda_testing.survival import crashes

ops = taeda.ops
SEED = 20260517


def zeros(*shape, dtype=None):
    return taeda.zeros(*shape, dtype=dtype)


def test_no_call_ends_the_process(tmp_path):
    print("seed", SEED)
    program = Path(__file__).with_name("fuzz.py")
    assert crashes([str(program), str(SEED), "25", "cpu"], tmp_path / "call") == []


def integers(*shape):
    return zeros(*shape, dtype=taeda.int64)


# One row for each: the call, and what the message must name.
REFUSED = {
    "scatter": (lambda: taeda.scatter(zeros(4), 0, integers(3), zeros(())), "src"),
    "scatter itself": (lambda: zeros(4).scatter(0, integers(5), zeros(4)), "src"),
    "scatter_add": (lambda: taeda.scatter_add(zeros(4), 0, integers(3), zeros(2)), "src"),
    "scatter_reduce": (lambda: taeda.scatter_reduce(zeros(4), 0, integers(()), zeros(0), "sum"), "src"),
    "index_select": (lambda: taeda.index_select(zeros(()), 0, integers(2)), "index"),
    "index_add": (lambda: taeda.index_add(zeros(()), 0, integers(2), zeros(1)), "source"),
    "index_copy": (lambda: taeda.index_copy(zeros(()), 0, integers(2), zeros(())), "source"),
    "repeat_interleave": (
        lambda: taeda.repeat_interleave(zeros(2), taeda.full((2,), 2**62, dtype=taeda.int64)), "repeats"
    ),
    "squeeze": (lambda: zeros(1, 1).squeeze((0, -2)), "dim"),
    "H": (lambda: zeros(1, 2, 3).H, "self"),
    "rms_norm": (lambda: taeda.rms_norm(zeros(1, 3), (1, 3), zeros(0, 3)), "weight"),
    "roll": (lambda: taeda.roll(zeros(3), -(2**63), 0), "shifts"),
    "max_pool2d": (lambda: ops.max_pool2d(zeros(1, 2, 1, 5), [2, 2], [2, 2], [1, 1], [2, 1]), "dilation"),
    "native_dropout_backward": (lambda: ops.native_dropout_backward(zeros(3, 4, 4), zeros(0, 3, 4, 4), 2.0), "mask"),
    "linear_backward": (lambda: ops.linear_backward(zeros(2, 3), zeros(3, 4), zeros(3, 4)), "grad"),
    "linear_backward dtype": (
        lambda: ops.linear_backward(zeros(3, 3), zeros(3, 4), zeros(3, 4, dtype=taeda.float64)),
        "weight",
    ),
    "conv2d_backward": (
        lambda: ops.conv2d_backward(
            zeros(1, 2, 4, 4), zeros(1, 9, 5, 5), zeros(2, 3, 2, 2), [1], [0], [1], 3
        ),
        "groups",
    ),
    "batch_norm_backward": (
        lambda: ops.batch_norm_backward(zeros(2, 4), zeros(2, 4), None, zeros(1), zeros(4), True),
        "save_mean",
    ),
    "layer_norm_backward": (
        lambda: ops.layer_norm_backward(zeros(2, 4), zeros(2, 4), [4], zeros(2, 1), zeros(1, 1), None),
        "rstd",
    ),
    "group_norm_backward": (
        lambda: ops.group_norm_backward(zeros(2, 4), zeros(2, 4), 0, zeros(2, 0), zeros(2, 0), None),
        "num_groups",
    ),
    "arange_fill_": (lambda: ops.arange_fill_(zeros(3, 3, dtype=taeda.int64), 0, 1), "self"),
    "lstm_sequence_backward": (
        lambda: ops.lstm_sequence_backward(
            None, zeros(1, 2), None, zeros(2, 3), zeros(2, 3), zeros(12, 3), zeros(4, 2, 3), zeros(4, 2, 12),
            zeros(4, 2, 3), False,
        ),
        "grad_h",
    ),
    "max_pool2d_backward": (
        lambda: ops.max_pool2d_backward(zeros(1, 2, 2), zeros(1, 4, 4), [2], [2], [0], [1], False, zeros(1, 2, 2)),
        "offsets",
    ),
    "max_pool2d_pick": (
        lambda: ops.max_pool2d_pick(
            zeros(1, 4, 4), [2], [2], [0], [1], False, taeda.full((1, 2, 2), 200, dtype=taeda.uint8)
        ),
        "offsets",
    ),
    "bce_loss_backward": (lambda: ops.bce_loss_backward(zeros(()), zeros(2, 3), zeros(3), 1), "target"),
    "cross_entropy_backward": (
        lambda: ops.cross_entropy_backward(
            zeros(()), zeros(2, 3), zeros(2, dtype=taeda.int64), None, 1, -100, 0.0, zeros(1), zeros(())
        ),
        "log_sum_exp",
    ),
    "softmax_backward": (lambda: ops.softmax_backward(zeros(2, 3), zeros(3), 0), "grad"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case):
    call, argument = REFUSED[case]
    with pytest.raises((RuntimeError, ValueError, IndexError), match=f"^{case.split()[0]}: .*'{argument}'"):
        call()


def test_checked_before_the_device():
    """Devices without bytes refuse the same, so the check is not a kernel's."""
    a, b = (taeda.empty(shape, device="meta") for shape in ((2, 3), (3, 4)))
    with pytest.raises(RuntimeError, match="linear_backward: argument 'grad'"):
        ops.linear_backward(a, b, b)


def test_huge_windows_are_refused():
    with pytest.raises(RuntimeError, match="max_pool2d: argument 'kernel_size' must be at most"):
        ops.max_pool2d(zeros(1, 4, 4), [2**63 - 1], [1], [2**62])


def test_wide_padding_is_not_walked_through():
    pooled = ops.max_pool2d(zeros(1, 4, 4), [2**30, 1], [1], [2**29, 0])
    assert tuple(pooled.shape) == (1, 5, 4)


@pytest.mark.parametrize("name", ["flip", "permute", "tile"])
def test_dimensions_that_are_chosen_are_not_left_out(name):
    for x in (taeda.ones(2, 3), taeda.tensor(1.0)):
        with pytest.raises(TypeError, match=f"{name}: missing argument 'dims'"):
            getattr(x, name)()
    assert taeda.ones(2).flip(()).tolist() == [1.0, 1.0]


def test_tensors_of_other_layouts_in_the_place_of_a_plain_one_are_refused_by_name():
    x = taeda.rand(3, 4)
    quantized = taeda.quantize_per_tensor(x, 0.1, 0, taeda.quint8)
    nested, masked = taeda.nested.nested_tensor([x, x]), taeda.masked.masked_tensor(x, x > 0.5)
    for name, call in {
        "gather": lambda: x.gather(0, quantized),
        "fill_": lambda: x.fill_(quantized),
        "index_select": lambda: x.index_select(0, x.to_sparse()),
        "addmm": lambda: taeda.addmm(x.to_sparse(), x, x.T),
        "tensor_split": lambda: x.tensor_split(nested),
        "expand_as": lambda: x.expand_as(masked),
    }.items():
        with pytest.raises(NotImplementedError, match=f"^{name}: not defined for a plain tensor"):
            call()
    with pytest.raises(IndexError, match="softmax: Dimension out of range"):
        taeda.softmax(x.to_sparse(), 2)
