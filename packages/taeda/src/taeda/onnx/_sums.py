"""Reductions, products and orders as operators of ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda.onnx._graph import GraphWriter, Value
from taeda.onnx._shapes import filled, reshape
from taeda.onnx._table import TABLE, writes
from taeda.onnx.errors import SymbolicValueError
from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def reduced(g: GraphWriter, kind: str, input: Value, dim: Any, keepdim: bool) -> Value:
    """A reduction over some axes; None or none of them stand for all."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return g.op(kind, input, keepdims=int(keepdim))
    axes = [input.dim(d) for d in ([dim] if isinstance(dim, int) else dim)]
    return g.op(kind, input, g.constant(axes, tensor.int64), keepdims=int(keepdim))


def _reduction(kind: str) -> Callable[..., Any]:
    def write(
        g: GraphWriter, input: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **_: Any
    ) -> Value:
        real = g.result if isinstance(g.result, tensor.Tensor) else g.result[0]
        return reduced(g, kind, g.cast(input, real.dtype), dim, keepdim)

    return write


for _name, _kind in {
    "sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd", "amax": "ReduceMax", "amin": "ReduceMin",
    "logsumexp": "ReduceLogSumExp",
}.items():  # fmt: skip
    TABLE[_name] = _reduction(_kind)


def _truth(kind: str) -> Callable[..., Any]:
    def write(g: GraphWriter, input: Value, dim: Any = None, keepdim: bool = False) -> Value:
        numbers = g.cast(g.cast(input, tensor.bool), tensor.int32)
        found = g.like(reduced(g, kind, numbers, dim, keepdim), tensor.zeros(0, dtype=tensor.int32))
        return g.cast(found, tensor.bool)

    return write


TABLE["any"], TABLE["all"] = _truth("ReduceMax"), _truth("ReduceMin")


def _extreme(reduce: str, choose: str, pairwise: str) -> Callable[..., Any]:
    def write(g: GraphWriter, input: Value, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, Value):
            return TABLE[pairwise](g, input, dim)
        if dim is None:
            return reduced(g, reduce, input, None, False)
        values = reduced(g, reduce, input, dim, keepdim)
        return [values, g.op(choose, input, axis=input.dim(dim), keepdims=int(keepdim))]

    return write


TABLE["max"] = _extreme("ReduceMax", "ArgMax", "maximum")
TABLE["min"] = _extreme("ReduceMin", "ArgMin", "minimum")


def _places(kind: str) -> Callable[..., Any]:
    def write(g: GraphWriter, input: Value, dim: int | None = None, keepdim: bool = False) -> Value:
        if dim is None:
            return g.op(kind, reshape(g, input, [-1]), axis=0, keepdims=0)
        return g.op(kind, input, axis=input.dim(dim), keepdims=int(keepdim))

    return write


TABLE["argmax"], TABLE["argmin"] = _places("ArgMax"), _places("ArgMin")


def _spread(g: GraphWriter, input: Value, dim: Any, correction: Any, keepdim: bool) -> Value:
    mean = reduced(g, "ReduceMean", input, dim, True)
    away = g.op("Sub", input, mean)
    made = reduced(g, "ReduceMean", g.op("Mul", away, away), dim, keepdim)
    if not correction:
        return made
    dims = range(input.rank) if dim is None else [dim] if isinstance(dim, int) else dim
    count = 1
    for axis in dims:
        size = g.size(input, input.dim(axis))
        if isinstance(size, Value):
            raise SymbolicValueError(
                "onnx.export: an unbiased variance over a size that may vary is not written; pass correction=0"
            )
        count *= size
    return g.op("Mul", made, g.constant(count / (count - correction), input.dtype))


def _correction(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, Any]:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is not None:
        return dim, correction
    return dim, 1 if unbiased is None or unbiased else 0


@writes("var")
def _var(
    g: GraphWriter, input: Value, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
    correction: Any = None,
) -> Value:  # fmt: skip
    axes, less = _correction(dim, unbiased, correction)
    return _spread(g, input, axes, less, keepdim)


@writes("std")
def _std(
    g: GraphWriter, input: Value, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
    correction: Any = None,
) -> Value:  # fmt: skip
    return g.op("Sqrt", _var(g, input, dim, unbiased, keepdim, correction=correction))


@writes("norm", "linalg_norm", "linalg_vector_norm")
def _norm(
    g: GraphWriter, input: Value, p: Any = 2, dim: Any = None, keepdim: bool = False, **named: Any
) -> Value:
    order = named.get("ord", p)
    if order in (None, "fro"):
        order = 2
    if isinstance(order, str):
        raise SymbolicValueError(f"onnx.export: the norm {order!r} is not written")
    if order in (1, 2):
        return reduced(g, f"ReduceL{int(order)}", input, dim, keepdim)
    if order == float("inf"):
        return reduced(g, "ReduceMax", g.op("Abs", input), dim, keepdim)
    powers = g.op("Pow", g.op("Abs", input), g.cast(float(order), input.dtype))
    return g.op("Pow", reduced(g, "ReduceSum", powers, dim, keepdim), g.cast(1.0 / order, input.dtype))


@writes("normalize")
def _normalize(
    g: GraphWriter, input: Value, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None
) -> Value:
    size = g.op("Max", _norm(g, input, p, dim, True), g.cast(eps, input.dtype))
    return g.op("Div", input, size)


@writes("cumsum")
def _cumsum(g: GraphWriter, input: Value, dim: int, *, dtype: Any = None) -> Value:
    return g.op("CumSum", g.cast(input, g.result.dtype), g.constant(input.dim(dim), tensor.int64))


@writes("topk")
def _topk(
    g: GraphWriter, input: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:
    return g.op(
        "TopK", input, g.ints([k]), outputs=2, axis=input.dim(dim), largest=int(largest), sorted=int(sorted)
    )


@writes("sort")
def _sort(g: GraphWriter, input: Value, dim: int = -1, descending: bool = False, stable: Any = None) -> Any:
    return _topk(g, input, g.size(input, input.dim(dim)), dim, descending)


@writes("rank_indices")
def _rank_indices(g: GraphWriter, input: Value, rank: Value, dim: int = -1) -> Value:
    return g.op("GatherElements", _sort(g, input, dim)[1], rank, axis=input.dim(dim))


@writes("argsort")
def _argsort(
    g: GraphWriter, input: Value, dim: int = -1, descending: bool = False, stable: Any = None
) -> Any:
    return _sort(g, input, dim, descending)[1]


# --- products ---


@writes("matmul", "mm", "bmm", "mv", "__matmul__", "dot", "inner_")
def _matmul(g: GraphWriter, input: Value, other: Value) -> Value:
    return g.op("MatMul", input, other)


@writes("__rmatmul__")
def _rmatmul(g: GraphWriter, input: Value, other: Value) -> Value:
    return g.op("MatMul", other, input)


@writes("linear")
def _linear(g: GraphWriter, input: Value, weight: Value, bias: Value | None = None) -> Value:
    if input.rank == 2:
        return g.op("Gemm", input, weight, bias, transB=1)
    made = g.op("MatMul", input, g.op("Transpose", weight, perm=[1, 0]))
    return made if bias is None else g.op("Add", made, bias)


@writes("addmm")
def _addmm(g: GraphWriter, input: Value, mat1: Value, mat2: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    return g.op("Gemm", mat1, mat2, input, alpha=float(alpha), beta=float(beta))


@writes("baddbmm")
def _baddbmm(
    g: GraphWriter, input: Value, batch1: Value, batch2: Value, *, beta: Any = 1, alpha: Any = 1
) -> Value:
    made = g.op("MatMul", batch1, batch2)
    if alpha != 1:
        made = g.op("Mul", made, g.cast(alpha, input.dtype))
    if beta == 0:
        return made
    return g.op("Add", made, input if beta == 1 else g.op("Mul", input, g.cast(beta, input.dtype)))


@writes("addcmul")
def _addcmul(g: GraphWriter, input: Value, tensor1: Value, tensor2: Value, *, value: Any = 1) -> Value:
    made = g.op("Mul", tensor1, tensor2)
    return g.op("Add", input, made if value == 1 else g.op("Mul", made, g.cast(value, input.dtype)))


@writes("outer", "ger")
def _outer(g: GraphWriter, input: Value, vec2: Value) -> Value:
    return g.op("Mul", g.unsqueeze(input, 1), g.unsqueeze(vec2, 0))


@writes("einsum")
def _einsum(g: GraphWriter, equation: str, *operands: Any) -> Value:
    items = operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    return g.op("Einsum", *items, equation=equation.replace(" ", ""))


@writes("cosine_similarity")
def _cosine_similarity(g: GraphWriter, x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8) -> Value:
    both = reduced(g, "ReduceSum", g.op("Mul", x1, x2), dim, False)
    floor = g.cast(eps, x1.dtype)
    sizes = [g.op("Max", reduced(g, "ReduceL2", x, dim, False), floor) for x in (x1, x2)]
    return g.op("Div", both, g.op("Mul", *sizes))


@writes("scaled_dot_product_attention")
def _attention(
    g: GraphWriter, query: Value, key: Value, value: Value, attn_mask: Value | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Value:  # fmt: skip
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        raise SymbolicValueError("onnx.export: attention with groups of heads is not written")
    kind = query.dtype
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    order = [*range(key.rank - 2), key.rank - 1, key.rank - 2]
    scores = g.op("MatMul", g.op("Mul", query, g.cast(factor, kind)), g.op("Transpose", key, perm=order))
    least = g.constant(float("-inf"), kind)
    if is_causal:
        ones = filled(g, [g.size(query, query.rank - 2), g.size(key, key.rank - 2)], 1)
        lower = g.op("Trilu", ones, g.constant(0, tensor.int64), upper=0)
        seen = g.op("Greater", lower, g.constant(0, kind))
        scores = g.op("Where", seen, scores, least)
    elif attn_mask is not None and attn_mask.dtype == tensor.bool:
        scores = g.op("Where", attn_mask, scores, least)
    elif attn_mask is not None:
        scores = g.op("Add", scores, g.cast(attn_mask, kind))
    return g.op("MatMul", g.op("Softmax", scores, axis=-1), value)


@writes("cdist")
def _cdist(g: GraphWriter, x1: Value, x2: Value, p: float = 2.0, compute_mode: Any = None) -> Value:
    rank = x1.rank
    away = g.op("Sub", g.unsqueeze(x1, rank - 1), g.unsqueeze(x2, rank - 2))
    return _norm(g, g.like(away, x1.real.unsqueeze(-2)), p, rank, False)


# --- losses, of which the mean, the sum, or each ---


def _joined(g: GraphWriter, each: Value, reduction: str) -> Value:
    if reduction == "none":
        return each
    return reduced(g, "ReduceMean" if reduction == "mean" else "ReduceSum", each, None, False)


@writes("mse_loss")
def _mse_loss(
    g: GraphWriter, input: Value, target: Value, *_: Any, reduction: str = "mean", **__: Any
) -> Value:
    away = g.op("Sub", input, target)
    return _joined(g, g.op("Mul", away, away), reduction)


@writes("l1_loss")
def _l1_loss(
    g: GraphWriter, input: Value, target: Value, *_: Any, reduction: str = "mean", **__: Any
) -> Value:
    return _joined(g, g.op("Abs", g.op("Sub", input, target)), reduction)


@writes("cross_entropy")
def _cross_entropy(
    g: GraphWriter, input: Value, target: Value, weight: Any = None, size_average: Any = None,
    ignore_index: int = -100, reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Value:  # fmt: skip
    if label_smoothing or target.dtype.is_floating_point:
        raise SymbolicValueError(
            "onnx.export: cross_entropy is written for numbers of classes, without smoothing"
        )
    return g.op(
        "SoftmaxCrossEntropyLoss", input, target, weight, ignore_index=ignore_index, reduction=reduction
    )
