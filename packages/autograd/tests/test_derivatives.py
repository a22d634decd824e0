"""Every derivative formula against numeric differences in float64, first and second order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import gradcheck, gradgradcheck
from taeda_tensor_core import ops


@dataclass(frozen=True)
class Case:
    """One call: shapes of the differentiable inputs, their range, and the function."""

    name: str
    call: Callable
    shapes: tuple[tuple[int, ...], ...] = ((3, 4),)
    low: float = -2.0
    high: float = 2.0
    second: bool = True

    def __str__(self) -> str:
        return self.name


def unary(name: str, low: float = -2.0, high: float = 2.0, second: bool = True) -> Case:
    return Case(name, getattr(taeda, name, None) or getattr(ops, name), low=low, high=high, second=second)


INDEX = taeda.tensor([[0, 2], [1, 0], [2, 2]])
ROWS = taeda.tensor([2, 0, 2])
MASK = taeda.tensor([[True, False, True, False], [False, True, True, False], [True, True, False, False]])
UNARY = [
    unary("abs"), unary("acos", -0.9, 0.9), unary("acosh", 1.2, 3.0), unary("asin", -0.9, 0.9), unary("asinh"), unary("atan"),
    unary("atanh", -0.9, 0.9), unary("cos"), unary("cosh"), unary("deg2rad"), unary("erf"), unary("erfc"), unary("erfinv", -0.9, 0.9),
    unary("exp"), unary("exp2"), unary("expm1"), unary("frac"), unary("i0"), unary("i0e"), unary("i1"), unary("i1e"),
    unary("lgamma", 0.5, 3.0), unary("digamma", 0.3, 3.0), Case("digamma_negative", taeda.digamma, low=-0.8, high=-0.2), unary("log", 0.2, 3.0), unary("log10", 0.2, 3.0), unary("log1p", -0.5, 3.0), unary("log2", 0.2, 3.0),
    unary("logit", 0.1, 0.9), unary("nan_to_num"), unary("neg"), unary("rad2deg"), unary("reciprocal", 0.5, 2.0), unary("rsqrt", 0.3, 3.0),
    unary("sigmoid"), unary("sin"), unary("sinc"), unary("sinh"), unary("sqrt", 0.3, 3.0), unary("square"), unary("tan", -1.2, 1.2), unary("tanh"),
    unary("floor"), unary("ceil"), unary("round"), unary("trunc"), unary("sign"), unary("sgn"), unary("positive"),
    unary("relu"), unary("elu"), unary("gelu"), unary("hardshrink"), unary("hardsigmoid"), unary("hardswish"), unary("hardtanh"), unary("leaky_relu"),
    unary("logsigmoid"), unary("mish"), unary("silu"), unary("softplus"), unary("softshrink"), unary("selu"), unary("celu"), unary("relu6"),
    unary("softsign"), unary("tanhshrink"),
]  # fmt: skip
TWO = ((3, 4), (3, 4))
WIDE = ((3, 1), (1, 4))
ARITH = [
    Case("add", lambda a, b: taeda.add(a, b, alpha=2), WIDE), Case("sub", lambda a, b: taeda.sub(a, b, alpha=3), WIDE), Case("mul", taeda.mul, WIDE),
    Case("div", taeda.div, WIDE, 0.5, 2.0), Case("pow", taeda.pow, WIDE, 0.5, 2.0), Case("pow_number", lambda a: a**3), Case("pow_half", lambda a: a**0.5, low=0.5),
    Case("number_pow", lambda a: 2**a), Case("maximum", taeda.maximum, TWO), Case("minimum", taeda.minimum, TWO), Case("fmax", taeda.fmax, TWO), Case("fmin", taeda.fmin, TWO),
    Case("atan2", taeda.atan2, WIDE), Case("hypot", taeda.hypot, WIDE), Case("logaddexp", taeda.logaddexp, WIDE), Case("logaddexp2", taeda.logaddexp2, WIDE),
    Case("lerp", taeda.lerp, ((3, 4), (3, 4), (3, 4))), Case("lerp_number", lambda a, b: taeda.lerp(a, b, 0.3), TWO),
    Case("addcmul", lambda a, b, c: taeda.addcmul(a, b, c, value=2), ((3, 4), (3, 1), (1, 4))),
    Case("addcdiv", lambda a, b, c: taeda.addcdiv(a, b, c, value=2), ((3, 4), (3, 1), (1, 4)), 0.5, 2.0),
    Case("clamp", lambda a: a.clamp(-0.5, 1.0)), Case("clamp_tensor", lambda a, b, c: taeda.clamp(a, b - 3, c + 3), ((3, 4), (3, 4), (3, 4))),
    Case("clamp_min", taeda.clamp_min, TWO), Case("clamp_max", taeda.clamp_max, TWO), Case("copysign", taeda.copysign, TWO), Case("fmod", taeda.fmod, TWO, 0.7, 2.0),
    Case("remainder", taeda.remainder, TWO, 0.7, 2.0), Case("xlogy", taeda.xlogy, TWO, 0.5, 2.0), Case("rsub", lambda a: 2 - a), Case("ldexp", taeda.ldexp, TWO),
    Case("where", lambda a, b: taeda.where(MASK, a, b), ((3, 4), (1, 4))), Case("masked_fill", lambda a, b: a.masked_fill(MASK, b), ((3, 4), ())),
]  # fmt: skip
REDUCE = [
    Case("sum", lambda a: a.sum()), Case("sum_dim", lambda a: a.sum(1)), Case("sum_keepdim", lambda a: a.sum((0, 1), keepdim=True)), Case("mean", lambda a: a.mean()),
    Case("mean_dim", lambda a: a.mean(0)), Case("amax", lambda a: a.amax(1)), Case("amin", lambda a: a.amin(0, True)), Case("max", lambda a: a.max()), Case("min", lambda a: a.min()),
    Case("max_dim", lambda a: a.max(1)[0]), Case("min_dim", lambda a: a.min(0, True)[0]), Case("prod", lambda a: a.prod()), Case("prod_dim", lambda a: a.prod(1)),
    Case("prod_zero", lambda a: (a * MASK).prod(1)), Case("var", lambda a: a.var()), Case("var_dim", lambda a: a.var(1, keepdim=True)), Case("std", lambda a: a.std(0)),
    Case("cumsum", lambda a: a.cumsum(1)), Case("cumprod", lambda a: a.cumprod(1)), Case("cumprod_zero", lambda a: (a * MASK).cumprod(0)), Case("cummax", lambda a: a.cummax(1)[0]),
    Case("cummin", lambda a: a.cummin(0)[0]), Case("logsumexp", lambda a: a.logsumexp((1,))), Case("logcumsumexp", lambda a: a.logcumsumexp(1)),
    Case("softmax", lambda a: a.softmax(1)), Case("log_softmax", lambda a: a.log_softmax(0)), Case("norm", lambda a: ops.vector_norm(a)),
    Case("norm_1", lambda a: ops.vector_norm(a, 1, (1,))), Case("norm_3", lambda a: ops.vector_norm(a, 3, (0,))), Case("norm_inf", lambda a: ops.vector_norm(a, float("inf"), (1,))),
    Case("median", lambda a: a.median(1)[0]), Case("nansum", lambda a: a.nansum()), Case("dist", taeda.dist, TWO),
]  # fmt: skip
SHAPE = [
    Case("view", lambda a: a.view(4, 3)), Case("reshape", lambda a: a.t().reshape(12)), Case("permute", lambda a: a.permute(2, 0, 1), ((2, 3, 4),)), Case("transpose", lambda a: a.transpose(0, 1)),
    Case("select", lambda a: a.select(1, 2)), Case("slice", lambda a: a[1:, ::2]), Case("slice_negative", lambda a: a[::-1, 3:0:-2]), Case("expand", lambda a: a.expand(2, 3, 4)),
    Case("squeeze", lambda a: a.squeeze(), ((3, 1, 4),)), Case("unsqueeze", lambda a: a.unsqueeze(1)), Case("diagonal", lambda a: a.diagonal(1)), Case("diag", lambda a: a.diag(), ((4,),)),
    Case("diag_embed", lambda a: taeda.diag_embed(a)), Case("unfold", lambda a: a.unfold(1, 3, 1)), Case("as_strided", lambda a: a.as_strided((2, 2), (1, 2), 1)),
    Case("as_strided_overlap", lambda a: a.as_strided((3, 3), (1, 1), 0)), Case("as_strided_view", lambda a: a.t().as_strided((2, 3), (4, 1), 2)), Case("cat", lambda a, b: taeda.cat([a, b], 1), ((3, 2), (3, 4))),
    Case("stack", lambda a, b: taeda.stack([a, b], 1), TWO), Case("split", lambda a: taeda.split(a, 2, 1)), Case("chunk", lambda a: taeda.chunk(a, 3)), Case("unbind", lambda a: taeda.unbind(a, 1)),
    Case("flip", lambda a: a.flip((0, 1))), Case("roll", lambda a: a.roll((1, 2), (0, 1))), Case("rot90", lambda a: taeda.rot90(a)), Case("repeat", lambda a: a.repeat(2, 1)), Case("tile", lambda a: taeda.tile(a, (2, 2))),
    Case("tril", lambda a: a.tril()), Case("triu", lambda a: a.triu(1)), Case("pad", lambda a: taeda.constant_pad_nd(a, (1, 2, 0, 1), 3.0)), Case("pad_crop", lambda a: taeda.constant_pad_nd(a, (-1, 1))),
    Case("movedim", lambda a: a.movedim(0, 1)), Case("flatten", lambda a: a.flatten()), Case("unflatten", lambda a: a.unflatten(1, (2, 2))), Case("clone", lambda a: a.clone()), Case("contiguous", lambda a: a.t().contiguous()),
    Case("meshgrid", lambda a, b: taeda.meshgrid(a, b), ((3,), (2,))), Case("broadcast_to", lambda a: taeda.broadcast_to(a, (2, 3, 4)), ((3, 1),)),
]  # fmt: skip
INDEXING = [
    Case("gather", lambda a: a.gather(1, INDEX)), Case("index", lambda a: a[ROWS]), Case("index_two", lambda a: a[ROWS, INDEX[:, 0]]), Case("index_mask", lambda a: a[MASK]), Case("index_mixed", lambda a: a[:, ROWS]),
    Case("index_add", lambda a, b: a.index_add(0, ROWS, b, alpha=2), TWO), Case("index_copy", lambda a, b: a.index_copy(0, ROWS[:2], b), ((3, 4), (2, 4))), Case("index_fill", lambda a, b: a.index_fill(0, ROWS, b), ((3, 4), ())),
    Case("index_put", lambda a, b: a.index_put((ROWS[:2],), b), ((3, 4), (2, 4))), Case("index_put_add", lambda a, b: a.index_put((ROWS,), b, accumulate=True), TWO), Case("index_select", lambda a: a.index_select(1, ROWS)),
    Case("scatter", lambda a, b: a.scatter(1, INDEX[:2, :1], b), ((3, 4), (2, 1))), Case("scatter_add", lambda a, b: a.scatter_add(1, INDEX, b), ((3, 4), (3, 2))),
    Case("scatter_value", lambda a: a.scatter(1, INDEX, 2.0)), Case("scatter_reduce_mean", lambda a, b: a.scatter_reduce(1, INDEX, b, "mean"), ((3, 4), (3, 2))), Case("scatter_reduce_amax", lambda a, b: a.scatter_reduce(1, INDEX, b, "amax"), ((3, 4), (3, 2))),
    Case("scatter_reduce_prod", lambda a, b: a.scatter_reduce(1, INDEX, b, "prod"), ((3, 4), (3, 2)), 0.5, 2.0),
    Case("scatter_reduce_prod_without", lambda a, b: a.scatter_reduce(1, INDEX, b, "prod", include_self=False), ((3, 4), (3, 3)), 0.5, 2.0), Case("scatter_reduce_amin_part", lambda a, b: a.scatter_reduce(1, INDEX, b, "amin"), ((3, 4), (3, 3))),
    Case("scatter_reduce_prod_zeros", lambda a, b: (a * MASK).scatter_reduce(1, INDEX, b * MASK[:, :2], "prod"), ((3, 4), (3, 2)), second=False),
    Case("masked_select", lambda a: a.masked_select(MASK)), Case("masked_scatter", lambda a, b: a.masked_scatter(MASK, b), ((3, 4), (12,))), Case("take", lambda a: a.take(INDEX)), Case("take_along_dim", lambda a: a.take_along_dim(INDEX, 1)),
    Case("repeat_interleave", lambda a: a.repeat_interleave(2, 1)), Case("sort", lambda a: a.sort(1)[0]), Case("topk", lambda a: a.topk(2, 1)[0]), Case("kthvalue", lambda a: a.kthvalue(2, 1)[0]),
    Case("embedding", lambda a: taeda.embedding(a, INDEX)),
]  # fmt: skip
LINALG = [
    Case("mm", taeda.mm, ((3, 4), (4, 2))), Case("bmm", taeda.bmm, ((2, 3, 4), (2, 4, 2))), Case("mv", taeda.mv, ((3, 4), (4,))), Case("dot", taeda.dot, ((4,), (4,))), Case("matmul", taeda.matmul, ((2, 3, 4), (4, 2))),
    Case("addmm", lambda a, b, c: taeda.addmm(a, b, c, beta=2, alpha=3), ((2,), (3, 4), (4, 2))), Case("addmv", lambda a, b, c: taeda.addmv(a, b, c, beta=2, alpha=3), ((3,), (3, 4), (4,))),
    Case("baddbmm", lambda a, b, c: taeda.baddbmm(a, b, c, beta=2), ((2, 3, 2), (2, 3, 4), (2, 4, 2))), Case("outer", taeda.outer, ((3,), (4,))), Case("linear", ops.linear, ((2, 3), (4, 3), (4,))), Case("linear_wide", ops.linear, ((2, 2, 3), (4, 3))),
    Case("einsum", lambda a, b: taeda.einsum("bij,bjk->bik", a, b), ((2, 3, 4), (2, 4, 2))), Case("trace", taeda.trace, ((3, 3),)),
]  # fmt: skip
LAYERS = [
    Case("conv2d", lambda x, w, b: ops.conv2d(x, w, b, (2, 1), (1, 1)), ((2, 2, 5, 4), (3, 2, 3, 3), (3,))), Case("conv2d_groups", lambda x, w: ops.conv2d(x, w, None, 1, 1, 1, 2), ((1, 4, 3, 3), (2, 2, 2, 2))),
    Case("conv1d", lambda x, w, b: ops.conv1d(x, w, b, 1, 1), ((2, 2, 5), (3, 2, 3), (3,))), Case("conv_transpose2d", lambda x, w: ops.conv_transpose2d(x, w, None, 2), ((1, 2, 3, 3), (2, 2, 2, 2))),
    Case("max_pool2d", lambda x: ops.max_pool2d(x, 2), ((1, 2, 4, 4),)), Case("max_pool2d_indices", lambda x: ops.max_pool2d_with_indices(x, 2, 1)[0], ((1, 2, 4, 4),)), Case("avg_pool2d", lambda x: ops.avg_pool2d(x, 2, 1), ((1, 2, 4, 4),)),
    Case("adaptive_avg_pool2d", lambda x: ops.adaptive_avg_pool2d(x, (2, 3)), ((1, 2, 5, 4),)), Case("adaptive_max_pool2d", lambda x: ops.adaptive_max_pool2d(x, (2, 2))[0], ((1, 2, 5, 4),)),
    Case("batch_norm", lambda x, w, b: ops.batch_norm(x, w, b, None, None, True, 0.1, 1e-5), ((3, 2, 2, 2), (2,), (2,))), Case("layer_norm", lambda x, w, b: ops.layer_norm(x, (4,), w, b), ((3, 4), (4,), (4,))),
    Case("group_norm", lambda x, w, b: ops.group_norm(x, 2, w, b), ((2, 4, 3), (4,), (4,))), Case("batch_norm_plain", lambda x: ops.batch_norm(x, None, None, None, None, True, 0.1, 1e-5), ((4, 3),)),
    Case("lstm_gates", lambda a, b, c: ops.lstm_gates(a, b, c), ((2, 8), (2, 8), (2, 2))), Case("gru_gates", lambda a, b, h: ops.gru_gates(a, b, h), ((2, 6), (2, 6), (2, 2))),
    *(Case(f"lstm_sequence_{r}", lambda x, h, c, w, b, r=r: ops.lstm_sequence(x, h, c, w, b, r), ((3, 2, 8), (2, 2), (2, 2), (8, 2), (8,))) for r in (False, True)),
    Case("gru", lambda x, h, a, b: ops.gru(x, h, [a, b], False, 1, 0.0, True, False, False), ((2, 2, 3), (1, 2, 2), (6, 3), (6, 2))),
    Case("rnn_cell", lambda x, h, a, b: ops.rnn_tanh_cell(x, h, a, b), ((2, 3), (2, 4), (4, 3), (4, 4))),
    Case("prelu", ops.prelu, ((3, 4), (4,))), Case("glu", lambda x: ops.glu(x, 1)),
    Case("gelu_tanh", lambda x: ops.gelu(x, approximate="tanh")), Case("threshold", lambda x: ops.threshold(x, 0.5, 2.0)),
]  # fmt: skip
TARGET = taeda.tensor([0, 3, 1])
LOSS = [
    *(Case(f"{name}_{r}", lambda a, b, f=name, r=r: getattr(ops, f)(a, b, r), TWO) for name in ("mse_loss", "huber_loss", "smooth_l1_loss", "l1_loss") for r in (0, 1, 2)),
    *(Case(f"bce_loss_{r}", lambda a, b, r=r: ops.bce_loss(a, b, r), TWO, 0.1, 0.9) for r in (0, 1, 2)), *(Case(f"bce_with_logits_{r}", lambda a, b, r=r: ops.bce_with_logits_loss(a, b, r), TWO) for r in (0, 1, 2)),
    *(Case(f"nll_loss_{r}", lambda a, r=r: ops.nll_loss(a, TARGET, None, r)) for r in (0, 1, 2)), *(Case(f"cross_entropy_{r}", lambda a, r=r: ops.cross_entropy_loss(a, TARGET, None, r)) for r in (0, 1, 2)),
    Case("cross_entropy_weight", lambda a: ops.cross_entropy_loss(a, TARGET, taeda.tensor([1.0, 2.0, 0.5, 1.5], dtype=taeda.float64), 1, 3, 0.1)),
    Case("kl_div", lambda a: ops.kl_div(a, taeda.full((3, 4), 0.25, dtype=taeda.float64)))
]  # fmt: skip
BACKWARD = [
    *(Case(f"{n}_backward", getattr(ops, f"{n}_backward"), TWO) for n in ("hardsigmoid", "hardswish", "logsigmoid", "mish", "sigmoid", "silu", "tanh")),
    *(Case(f"{n}_backward", lambda g, x, n=n, a=a: getattr(ops, f"{n}_backward")(g, x, *a), TWO) for n, a in
      {"elu": (1.5, 1.0, 1.0), "hardtanh": (-1, 1), "leaky_relu": (0.1,), "log_softmax": (1,), "softmax": (1,), "shrink": (0.5,), "softplus": (1, 20), "threshold": (0.1,)}.items()),
    Case("gelu_backward", ops.gelu_backward, TWO), Case("native_dropout_backward", lambda g: ops.native_dropout_backward(g, MASK, 2.0)),
    *(Case(f"{n}_backward", lambda g, x, y, n=n, a=a: getattr(ops, f"{n}_backward")(g, x, y, 1, *a), ((), (3, 4), (3, 4))) for n, a in
      {"mse_loss": (), "l1_loss": (), "huber_loss": (1.0,), "smooth_l1_loss": (1.0,), "bce_with_logits_loss": ()}.items()),
    Case("bce_loss_backward", lambda g, x: ops.bce_loss_backward(g, x, taeda.full((3, 4), 0.3, dtype=taeda.float64), 1), ((), (3, 4)), 0.1, 0.9),
    Case("lstm_gates_backward", ops.lstm_gates_backward, ((2, 2), (2, 2), (2, 8), (2, 2), (2, 2))), Case("gru_gates_backward", ops.gru_gates_backward, ((2, 2), (2, 8), (2, 2))),
    Case("avg_pool2d_backward", lambda g: ops.avg_pool2d_backward(g, taeda.zeros(1, 1, 4, 4, dtype=taeda.float64), (2, 2), (2, 2), (0, 0), False, True, None), ((1, 1, 2, 2),)),
]  # fmt: skip
CASES = UNARY + BACKWARD + ARITH + REDUCE + SHAPE + INDEXING + LINALG + LAYERS + LOSS


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient_agrees_with_differences(case, make):
    inputs = tuple(make(*shape, low=case.low, high=case.high) for shape in case.shapes)
    assert gradcheck(case.call, inputs)


@pytest.mark.parametrize("case", [c for c in CASES if c.second], ids=str)
def test_second_gradient_agrees_with_differences(case, make):
    inputs = tuple(make(*shape, low=case.low, high=case.high) for shape in case.shapes)
    assert gradgradcheck(case.call, inputs)
