"""Gradients where formulas are easily wrong: at zeros, kinks, ties, NaN and infinities, and of complex options."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_autograd import grad
from taeda_tensor_core import ops
from taeda_testing import all_records
from taeda_testing.record import OpRecord
from taeda_testing.runner import function_of

NAN, INF = math.nan, math.inf


def slopes(function, *values, create_graph=False):
    """Gradients of the sum of a function by each of its arguments, as lists."""
    leaves = [taeda.tensor(v, dtype=taeda.float64, requires_grad=True) for v in values]
    found = grad(function(*leaves).sum(), leaves, create_graph=create_graph, allow_unused=True)
    return [None if g is None else g.detach().tolist() for g in found]


def test_xlogy_grows_with_the_logarithm_at_zero_too():
    by_self, by_other = slopes(taeda.xlogy, [0.0, 0.0, 0.0, -0.0, 2.0], [3.0, 0.0, -1.0, 3.0, 3.0])
    np.testing.assert_allclose(by_self, [math.log(3), 0, 0, math.log(3), math.log(3)])
    np.testing.assert_allclose(by_other[0::4], [0, 2 / 3])


def test_xlogy_of_a_nan_has_a_nan_slope():
    assert math.isnan(slopes(taeda.xlogy, [0.0], [NAN])[0][0])


_GELU_AT_MINUS_6 = math.erfc(6 / math.sqrt(2)) / 2 - 6 * math.exp(-18) / math.sqrt(2 * math.pi)
KNOWN = [(r, k) for r in all_records() for k in r.kinks if k.slope is not None]
SMOOTH = [r for r in all_records() if r.accuracy and r.differentiable and "float64" in r.dtypes]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    ("record", "kink"), KNOWN, ids=lambda v: v.name if isinstance(v, OpRecord) else str(v.at)
)
def test_slope_at_a_kink(record, kink, create_graph):
    function = partial(function_of(record), **kink.options)
    (found,) = slopes(function, [kink.at] * 20, create_graph=create_graph)  # whole vectors, and a rest
    np.testing.assert_allclose(found, kink.slope, rtol=1e-6, atol=1e-30)


@pytest.mark.parametrize("record", SMOOTH, ids=lambda r: r.name)
def test_slope_between_kinks(record):
    low, high, _ = record.domains[0] if record.domains else (-6.03, 6.07, True)
    # No round numbers, at which pieces meet; and room for the step.
    x, step = np.linspace(max(low + 0.0137, -6.03), min(high - 0.0211, 6.07), 97), 1e-6
    with np.errstate(all="ignore"):
        difference = (record.reference(x + step) - record.reference(x - step)) / (2 * step)
    (found,) = slopes(function_of(record), x)
    np.testing.assert_allclose(found, difference, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_left_tail_of_gelu_keeps_its_digits_in_float32(create_graph):
    x = taeda.tensor([-6.0], requires_grad=True)
    (found,) = grad(ops.gelu(x).sum(), x, create_graph=create_graph)
    np.testing.assert_allclose(found.item(), _GELU_AT_MINUS_6, rtol=1e-4)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    ("loss", "edge"),
    [(lambda x, y: ops.huber_loss(x, y, 2, 1.5), 1.5), (lambda x, y: ops.smooth_l1_loss(x, y, 2, 2.0), 2.0)],
)
def test_slope_of_a_loss_where_its_pieces_meet(loss, edge, create_graph):
    steep = slopes(loss, [10.0], [0.0])[0][0]
    found, _ = slopes(loss, [edge, -edge, 0.0], [0.0, 0.0, 0.0], create_graph=create_graph)
    np.testing.assert_allclose(found, [steep, -steep, 0])


def test_median_of_equal_elements_shares_the_gradient():
    assert slopes(taeda.median, [2.0, 1.0, 2.0, 5.0]) == [[0.5, 0, 0.5, 0]]
    assert slopes(taeda.median, [2.0, NAN, NAN]) == [[0, 0.5, 0.5]]


def test_slope_of_a_remainder_takes_the_quotient_that_the_remainder_took():
    assert slopes(taeda.remainder, [1.0, 7.0], [0.1, -2.0])[1] == [-9, 4]
    assert slopes(taeda.fmod, [7.5, -7.0], [2.0, 2.0])[1] == [-3, 3]


def test_prelu_leaves_its_slope_out_where_the_input_is_positive():
    by_input, by_weight = slopes(taeda.prelu, [INF, 6.0], [0.5])
    assert (by_input, by_weight) == ([1, 1], [0])
    assert slopes(taeda.prelu, [6.0], [INF])[0] == [1]


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 1e-4)])
def test_slope_of_sinc_keeps_its_digits_near_zero(dtype, rtol):
    """Of sin(t) / t with t = pi x by its series; squares of the smaller numbers are below every number."""
    near = [s * m * 10.0**-n for n in range(3, 39) for m in (1, 2.9) for s in (1, -1)] + [0.0]
    x = taeda.tensor(near, dtype=getattr(taeda, dtype), requires_grad=True)
    (found,) = grad(taeda.sinc(x).sum(), [x])
    t = np.pi * np.array(near)
    expected = np.pi * t * (-1 / 3 + t**2 / 30 - t**4 / 840)
    np.testing.assert_allclose(found.tolist(), expected, rtol, atol=1e-37 if dtype == "float32" else 0)


def test_losses_of_ignored_targets_have_no_gradient_whatever_the_order():
    target, x = taeda.tensor([-100, -100]), [[1.0, 2.0], [3.0, 4.0]]
    for create_graph in (False, True):
        for loss in (ops.nll_loss, ops.cross_entropy_loss):
            (found,) = slopes(lambda x, f=loss: f(x, target), x, create_graph=create_graph)
            assert found == [[0, 0], [0, 0]]


def test_evaluated_batch_norm_does_not_look_at_the_input():
    mean, var = taeda.zeros(2, dtype=taeda.float64), taeda.ones(2, dtype=taeda.float64)
    for create_graph in (False, True):
        (found,) = slopes(
            lambda x: ops.batch_norm(x, None, None, mean, var, False, 0.1, 0.0), [[INF, NAN], [1.0, 2.0]],
            create_graph=create_graph,
        )  # fmt: skip
        assert found == [[1, 1], [1, 1]]


@pytest.mark.parametrize("option", [2 - 1j, 1j])
@pytest.mark.parametrize("name", ["add", "sub", "rsub", "addcmul", "addcdiv"])
def test_complex_options_are_conjugated(name, option):
    """The gradient of Re(f) by an operand is the conjugate of what the operand is multiplied by."""
    operand = taeda.tensor([1 + 2j], requires_grad=True)
    one = taeda.tensor([1 + 0j])
    sign = {"sub": -1, "rsub": -1}.get(name, 1)
    if name == "rsub":
        taeda.rsub(operand, one, alpha=option).real.sum().backward()
        assert operand.grad.tolist() == [-np.conj(option)]
    elif name in ("addcmul", "addcdiv"):
        getattr(taeda, name)(one, operand, one, value=option).real.sum().backward()
        assert operand.grad.tolist() == [np.conj(option)]
    else:
        getattr(taeda, name)(one, operand, alpha=option).real.sum().backward()
        assert operand.grad.tolist() == [sign * np.conj(option)]


def test_linear_of_complex_operands_conjugates_the_other():
    a = taeda.tensor([[1 + 2j]], requires_grad=True)
    ops.linear(a, taeda.tensor([[3 + 1j]])).real.sum().backward()
    assert a.grad.tolist() == [[3 - 1j]]


LEAST, MIDDLE, LARGEST = [1, 0, 0, 0], [0, 0, 0, 1], [0, 0.5, 0.5, 0]


@pytest.mark.parametrize(
    ("function", "shares"),
    [
        (taeda.max, LARGEST),
        (taeda.amax, LARGEST),
        (taeda.min, LEAST),
        (taeda.amin, LEAST),
        (taeda.median, MIDDLE),
        (taeda.nanmedian, MIDDLE),
    ],
)
def test_the_chosen_elements_of_all_share_the_gradient(function, shares):
    """Equal ones equally; a NaN that was chosen is one, and where it is passed over it gets nothing."""
    assert slopes(function, [1.0, 3.0, 3.0, 2.0]) == [shares]
    passed_over = function is taeda.nanmedian
    assert slopes(function, [NAN, 5.0, NAN]) == [[0, 1, 0] if passed_over else [0.5, 0, 0.5]]
    assert slopes(function, [2.0, 2.0, 2.0, 2.0]) == [[0.25] * 4]
    assert slopes(function, [NAN, NAN]) == [[0.5, 0.5]]


@pytest.mark.parametrize(("name", "choice"), [("amax", 2.0), ("amin", 1.0)])
def test_the_gradient_of_a_line_with_nan_is_nan(name, choice):
    (found,) = slopes(lambda x: getattr(taeda, name)(x, 1), [[1.0, 2.0], [NAN, 9.0], [INF, INF]])
    np.testing.assert_equal(found, [[float(choice == 1.0), float(choice == 2.0)], [NAN, NAN], [0.5, 0.5]])


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_numbers_that_are_none_share_the_gradient_of_the_extremum_that_they_are(reduce):
    index = taeda.tensor([0, 0, 0, 1])
    self = taeda.tensor([3.0, NAN], requires_grad=True)
    src = taeda.tensor([NAN, 1.0, NAN, 2.0], requires_grad=True)
    found = taeda.scatter_reduce(self, 0, index, src, reduce)
    (found * taeda.tensor([1.0, 4.0])).sum().backward()
    assert src.grad.tolist() == [0.5, 0, 0.5, 0] and self.grad.tolist() == [0, 4]


@pytest.mark.parametrize(("reduce", "sign"), [("max", 1.0), ("min", -1.0)])
def test_segments_give_their_gradient_to_elements_alone(reduce, sign):
    """Not to what an empty segment gives, nor away where numbers are none."""
    data = (sign * taeda.tensor([-INF, -INF, NAN, 1.0, 5.0, 5.0])).requires_grad_()
    found = taeda.segment_reduce(data, reduce, lengths=taeda.tensor([2, 2, 0, 2]))
    (found * taeda.tensor([1.0, 2.0, 1.0, 3.0])).sum().backward()
    assert data.grad.tolist() == [0.5, 0.5, 2, 0, 1.5, 1.5]
    assert found[2].item() == -sign * INF


@pytest.mark.parametrize(
    "function",
    [
        ops.relu,
        lambda x: ops.leaky_relu(x, 0.1),
        lambda x: ops.hardtanh(x, -1.0, 1.0),
        lambda x: ops.threshold(x, 0.5, 2.0),
        lambda x: ops.hardshrink(x, 0.5),
        lambda x: ops.softshrink(x, 0.5),
        lambda x: ops.prelu(x, taeda.tensor([0.25])),
        lambda x: ops.rrelu(x, 0.1, 0.3, False),
    ],
)
def test_second_derivatives_of_straight_pieces_are_zero_and_not_missing(function):
    x = taeda.tensor([-3.0, -0.2, 0.3, 4.0], requires_grad=True)
    weight = taeda.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    (slope,) = grad((function(x) * weight).sum(), x, create_graph=True)
    curve, mixed = grad((slope * slope).sum(), [x, weight])
    assert curve.tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(mixed.tolist(), 2 * (slope * slope / weight).detach().numpy(), rtol=1e-6)
    (alone,) = grad(function(x).sum(), x, create_graph=True)
    assert alone.requires_grad and grad(alone.sum(), x)[0].tolist() == [0, 0, 0, 0]


def test_second_derivatives_by_slopes_stay_those_of_the_formula():
    x = taeda.tensor([-3.0, -0.2, 0.3, 4.0], requires_grad=True)
    slope = taeda.tensor([0.25], requires_grad=True)
    (first,) = grad(ops.prelu(x, slope).sum(), x, create_graph=True)
    assert first.tolist() == [0.25, 0.25, 1, 1]
    curve, mixed = grad((first * first).sum(), [x, slope])
    assert curve.tolist() == [0, 0, 0, 0] and mixed.tolist() == [1.0]
    (drawn,) = grad(ops.rrelu(x, 0.1, 0.3, True).sum(), x, create_graph=True)
    assert grad(drawn.sum(), x)[0].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("function", "slopes_at_2"),
    [
        (lambda x: x**1, [1, 0]),
        (lambda x: x**2, [4, 2, 0]),
        (lambda x: x**3, [12, 12, 6, 0]),
        (lambda x: x**4.0, [32, 48, 48, 24, 0]),
        (ops.square, [4, 2, 0]),
        (lambda x: ops.square(ops.square(x)), [32, 48, 48, 24, 0]),
        (lambda x: x**3 + 2 * x**2 + x, [21, 16, 6, 0]),
    ],
)
def test_the_derivative_after_the_last_of_a_polynomial_is_zero_and_not_missing(function, slopes_at_2):
    x = taeda.tensor(2.0, dtype=taeda.float64, requires_grad=True)
    y, found = function(x), []
    for _ in slopes_at_2:
        (y,) = grad(y, x, create_graph=True)
        found.append(y.item())
    assert found == slopes_at_2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_bounds_of_clamp_are_those_that_elements_can_have(dtype):
    x = taeda.tensor([0.3, -0.3, 0.29, 0.31], dtype=getattr(taeda, dtype), requires_grad=True)
    for low, high, slope in ((None, 0.3, [1, 1, 1, 0]), (0.3, None, [1, 0, 0, 1]), (-0.3, 0.3, [1, 1, 1, 0])):
        assert grad(taeda.clamp(x, low, high).sum(), x)[0].tolist() == slope


@pytest.mark.parametrize("mode, weighted", [(0, False), (0, True), (1, False), (2, False)])
def test_no_bags_have_no_slope(mode, weighted):
    weight = taeda.ones(4, 3, requires_grad=True)
    factors = taeda.ones(2, requires_grad=True) if weighted else None
    none = taeda.zeros(0, dtype=taeda.int64)
    sums = ops.embedding_bag(weight, taeda.tensor([1, 2]), none, mode=mode, per_sample_weights=factors)[0]
    sums.sum().backward()
    assert weight.grad.abs().sum().item() == 0
    if weighted:
        assert factors.grad.tolist() == [0, 0]


@pytest.mark.parametrize("axis", [0, 1])
def test_elements_of_no_segment_have_no_slope(axis):
    data = taeda.ones(2, 3, requires_grad=True)
    lengths = taeda.zeros((2,)[:axis] + (0,), dtype=taeda.int64)
    found = taeda.segment_reduce(data, "sum", lengths=lengths, axis=axis, unsafe=True)
    assert found.shape == ((0, 3), (2, 0))[axis]
    found.sum().backward()
    assert data.grad.abs().sum().item() == 0
    with pytest.raises(RuntimeError, match="do not cover"):
        taeda.segment_reduce(data, "sum", lengths=lengths, axis=axis)
