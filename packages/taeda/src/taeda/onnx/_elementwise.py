"""Element-wise functions as operators of ONNX (https://onnx.ai/onnx/operators)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from taeda.onnx._graph import GraphWriter, Value
from taeda.onnx._table import TABLE, writes
from taeda.onnx.errors import SymbolicValueError
from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from collections.abc import Callable

_SAME = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor",
    "log": "Log", "neg": "Neg", "reciprocal": "Reciprocal", "round": "Round", "sigmoid": "Sigmoid",
    "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
    "relu": "Relu", "softsign": "Softsign", "hardswish": "HardSwish",
}  # fmt: skip
_SYNONYMS = {
    "arccos": "acos", "arcsin": "asin", "arctan": "atan", "absolute": "abs", "negative": "neg", "__neg__": "neg",
    "__abs__": "abs", "special_expit": "sigmoid", "expit": "sigmoid", "special_erf": "erf",
}  # fmt: skip


def _same(kind: str) -> Callable[..., Any]:
    def write(g: GraphWriter, input: Any, *_: Any, **__: Any) -> Value:
        return g.op(kind, g.cast(input, g.result.dtype))

    return write


for _name, _kind in _SAME.items():
    TABLE[_name] = _same(_kind)
for _name, _other in _SYNONYMS.items():
    TABLE[_name] = TABLE[_other]


@writes("sign", "sgn")
def _sign(g: GraphWriter, input: Value) -> Value:
    return g.op("Sign", input)


@writes("logical_not", "bitwise_not", "__invert__")
def _not(g: GraphWriter, input: Value) -> Value:
    if g.result.dtype == tensor.bool:
        return g.op("Not", g.cast(input, tensor.bool))
    return g.op("BitwiseNot", input)


@writes("isnan")
def _isnan(g: GraphWriter, input: Value) -> Value:
    return g.op("IsNaN", input)


@writes("isinf")
def _isinf(g: GraphWriter, input: Value) -> Value:
    return g.op("IsInf", input)


@writes("isfinite")
def _isfinite(g: GraphWriter, input: Value) -> Value:
    return g.op("Not", g.op("Or", g.op("IsNaN", input), g.op("IsInf", input)))


# --- two operands ---


def _number(g: GraphWriter, value: Any) -> Any:
    return value if isinstance(value, Value) else g.constant(value)


def _binary(kind: str) -> Callable[..., Any]:
    def write(g: GraphWriter, input: Any, other: Any) -> Value:
        return g.op(kind, g.cast(input, g.result.dtype), g.cast(other, g.result.dtype))

    return write


def _swapped(function: Callable[..., Any]) -> Callable[..., Any]:
    def write(g: GraphWriter, input: Any, other: Any) -> Value:
        return function(g, other, input)  # type: ignore[no-any-return]

    return write


@writes("add", "__add__", "__iadd__", "__radd__")
def _add(g: GraphWriter, input: Any, other: Any, alpha: Any = 1) -> Value:
    kind = g.result.dtype
    if kind == tensor.bool:
        return g.op("Or", input, other)
    right = g.cast(other, kind)
    if alpha != 1:
        right = g.op("Mul", right, g.cast(alpha, kind))
    return g.op("Add", g.cast(input, kind), right)


@writes("sub", "subtract", "__sub__", "__isub__")
def _sub(g: GraphWriter, input: Any, other: Any, alpha: Any = 1) -> Value:
    kind = g.result.dtype
    right = g.cast(other, kind)
    if alpha != 1:
        right = g.op("Mul", right, g.cast(alpha, kind))
    return g.op("Sub", g.cast(input, kind), right)


@writes("rsub")
def _rsub(g: GraphWriter, input: Any, other: Any, alpha: Any = 1) -> Value:
    return _sub(g, other, input, alpha)


TABLE["__rsub__"] = _swapped(_sub)


@writes("mul", "multiply", "__mul__", "__imul__", "__rmul__")
def _mul(g: GraphWriter, input: Any, other: Any) -> Value:
    if g.result.dtype == tensor.bool:
        return g.op("And", input, other)
    return _binary("Mul")(g, input, other)  # type: ignore[no-any-return]


@writes("div", "divide", "true_divide", "__truediv__", "__itruediv__")
def _div(g: GraphWriter, input: Any, other: Any, rounding_mode: str | None = None) -> Value:
    kind = g.result.dtype
    left, right = g.cast(input, kind), g.cast(other, kind)
    if rounding_mode is None:
        return g.op("Div", left, right)
    if kind.is_floating_point:
        whole = g.op("Div", left, right)
        if rounding_mode == "floor":
            return g.op("Floor", whole)
        return g.op("Mul", g.op("Sign", whole), g.op("Floor", g.op("Abs", whole)))
    if rounding_mode == "trunc":
        return g.op("Div", left, right)  # ONNX divides integers toward zero
    rest = g.op("Mod", left, right)  # of the divisor's sign
    return g.op("Div", g.op("Sub", left, rest), right)


@writes("floor_divide", "__floordiv__", "__ifloordiv__")
def _floor_divide(g: GraphWriter, input: Any, other: Any) -> Value:
    return _div(g, input, other, "floor")


TABLE["__rtruediv__"] = TABLE["__rdiv__"] = _swapped(_div)
TABLE["__rfloordiv__"] = _swapped(_floor_divide)


@writes("remainder", "__mod__")
def _remainder(g: GraphWriter, input: Any, other: Any) -> Value:
    kind = g.result.dtype
    left, right = g.cast(input, kind), g.cast(other, kind)
    if not kind.is_floating_point:
        return g.op("Mod", left, right)
    whole = g.op("Floor", g.op("Div", left, right))
    return g.op("Sub", left, g.op("Mul", whole, right))


@writes("fmod")
def _fmod(g: GraphWriter, input: Any, other: Any) -> Value:
    kind = g.result.dtype
    return g.op("Mod", g.cast(input, kind), g.cast(other, kind), fmod=1)


@writes("pow", "__pow__", "__ipow__", "float_power")
def _pow(g: GraphWriter, input: Any, exponent: Any) -> Value:
    return g.op("Pow", g.cast(input, g.result.dtype), g.cast(exponent, g.result.dtype))


TABLE["__rpow__"] = _swapped(_pow)
TABLE["maximum"] = TABLE["fmax"] = _binary("Max")
TABLE["minimum"] = TABLE["fmin"] = _binary("Min")


@writes("square")
def _square(g: GraphWriter, input: Value) -> Value:
    return g.op("Mul", input, input)


@writes("rsqrt")
def _rsqrt(g: GraphWriter, input: Value) -> Value:
    return g.op("Reciprocal", g.op("Sqrt", g.cast(input, g.result.dtype)))


def _scaled_log(base: float) -> Callable[..., Any]:
    def write(g: GraphWriter, input: Value) -> Value:
        kind = g.result.dtype
        return g.op("Div", g.op("Log", g.cast(input, kind)), g.constant(math.log(base), kind))

    return write


TABLE["log2"], TABLE["log10"] = _scaled_log(2.0), _scaled_log(10.0)


@writes("log1p")
def _log1p(g: GraphWriter, input: Value) -> Value:
    kind = g.result.dtype
    return g.op("Log", g.op("Add", g.cast(input, kind), g.constant(1, kind)))


@writes("expm1")
def _expm1(g: GraphWriter, input: Value) -> Value:
    kind = g.result.dtype
    return g.op("Sub", g.op("Exp", g.cast(input, kind)), g.constant(1, kind))


@writes("exp2")
def _exp2(g: GraphWriter, input: Value) -> Value:
    return g.op("Pow", g.constant(2, g.result.dtype), g.cast(input, g.result.dtype))


@writes("trunc", "fix")
def _trunc(g: GraphWriter, input: Value) -> Value:
    return g.op("Mul", g.op("Sign", input), g.op("Floor", g.op("Abs", input)))


# --- comparisons and choices ---


def _compares(kind: str, negated: bool = False) -> Callable[..., Any]:
    def write(g: GraphWriter, input: Any, other: Any) -> Value:
        left = input.real if isinstance(input, Value) else input
        right = other.real if isinstance(other, Value) else other
        common = tensor.result_type(left, right)
        if common == tensor.bool and kind != "Equal":
            common = tensor.int32
        made = g.op(kind, g.cast(input, common), g.cast(other, common))
        return g.op("Not", made) if negated else made

    return write


for _names, _kind, _negated in (
    ("eq __eq__", "Equal", False), ("ne not_equal __ne__", "Equal", True), ("lt less __lt__", "Less", False),
    ("le less_equal __le__", "LessOrEqual", False), ("gt greater __gt__", "Greater", False),
    ("ge greater_equal __ge__", "GreaterOrEqual", False),
):  # fmt: skip
    writes(*_names.split())(_compares(_kind, _negated))


def _logical(kind: str) -> Callable[..., Any]:
    def write(g: GraphWriter, input: Any, other: Any) -> Value:
        if g.result.dtype == tensor.bool:
            return g.op(kind, g.cast(input, tensor.bool), g.cast(other, tensor.bool))
        return g.op(f"Bitwise{kind}", g.cast(input, g.result.dtype), g.cast(other, g.result.dtype))

    return write


for _names, _kind in (
    ("logical_and bitwise_and __and__ __rand__ __iand__", "And"),
    ("logical_or bitwise_or __or__ __ror__ __ior__", "Or"),
    ("logical_xor bitwise_xor __xor__ __rxor__ __ixor__", "Xor"),
):
    writes(*_names.split())(_logical(_kind))


@writes("where")
def _where(g: GraphWriter, condition: Any, input: Any = None, other: Any = None) -> Any:
    if input is None:
        raise SymbolicValueError("onnx.export: where() with a condition alone is not written; use nonzero()")
    kind = g.result.dtype
    return g.op("Where", g.cast(condition, tensor.bool), g.cast(input, kind), g.cast(other, kind))


@writes("Tensor.where")
def _where_method(g: GraphWriter, input: Any, condition: Any, other: Any) -> Any:
    return _where(g, condition, input, other)


@writes("masked_fill")
def _masked_fill(g: GraphWriter, input: Value, mask: Value, value: Any) -> Value:
    return g.op("Where", mask, g.cast(value, input.dtype), input)


@writes("clamp", "clip")
def _clamp(g: GraphWriter, input: Value, min: Any = None, max: Any = None) -> Value:
    kind = g.result.dtype
    low = None if min is None else g.cast(min, kind)
    high = None if max is None else g.cast(max, kind)
    single = all(not isinstance(item, Value) or item.real.dim() == 0 for item in (min, max))
    if single:
        return g.op("Clip", g.cast(input, kind), low, high)
    made = g.cast(input, kind)
    if low is not None:
        made = g.op("Max", made, low)
    return made if high is None else g.op("Min", made, high)


@writes("clamp_min")
def _clamp_min(g: GraphWriter, input: Value, min: Any) -> Value:
    return _clamp(g, input, min)


@writes("clamp_max")
def _clamp_max(g: GraphWriter, input: Value, max: Any) -> Value:
    return _clamp(g, input, None, max)


# --- dtypes and copies ---


@writes(
    "contiguous", "clone", "detach", "cpu", "cuda", "alias", "requires_grad_", "data", "identity", "positive",
    "view_as_real_", "resolve_conj", "resolve_neg",
)  # fmt: skip
def _identity(g: GraphWriter, input: Value, *_: Any, **__: Any) -> Value:
    return input


@writes(
    "to", "type", "type_as", "float", "half", "double", "bfloat16", "long", "int", "short", "char", "byte", "bool",
)  # fmt: skip
def _to(g: GraphWriter, input: Value, *_: Any, **__: Any) -> Value:
    return g.cast(input, g.result.dtype)


# --- activations ---


@writes("relu6")
def _relu6(g: GraphWriter, input: Value, inplace: bool = False) -> Value:
    return _clamp(g, input, 0.0, 6.0)


@writes("hardtanh")
def _hardtanh(
    g: GraphWriter, input: Value, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Value:
    return _clamp(g, input, min_val, max_val)


@writes("hardsigmoid")
def _hardsigmoid(g: GraphWriter, input: Value, inplace: bool = False) -> Value:
    return g.op("HardSigmoid", input, alpha=1.0 / 6.0, beta=0.5)


@writes("silu")
def _silu(g: GraphWriter, input: Value, inplace: bool = False) -> Value:
    return g.op("Mul", input, g.op("Sigmoid", input))


@writes("softplus")
def _softplus(g: GraphWriter, input: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    if beta == 1:
        return g.op("Softplus", input)
    scale = g.cast(beta, input.dtype)
    return g.op("Div", g.op("Softplus", g.op("Mul", input, scale)), scale)


@writes("mish")
def _mish(g: GraphWriter, input: Value, inplace: bool = False) -> Value:
    return g.op("Mul", input, g.op("Tanh", g.op("Softplus", input)))


@writes("gelu")
def _gelu(g: GraphWriter, input: Value, approximate: str = "none") -> Value:
    kind = input.dtype
    half = g.op("Mul", input, g.cast(0.5, kind))
    if approximate == "none":
        bent = g.op("Erf", g.op("Mul", input, g.cast(math.sqrt(0.5), kind)))
    else:
        cube = g.op("Mul", g.op("Mul", input, g.op("Mul", input, input)), g.cast(0.044715, kind))
        inner = g.op("Mul", g.op("Add", input, cube), g.cast(math.sqrt(2 / math.pi), kind))
        bent = g.op("Tanh", inner)
    return g.op("Mul", half, g.op("Add", bent, g.cast(1.0, kind)))


@writes("elu")
def _elu(g: GraphWriter, input: Value, alpha: float = 1.0, inplace: bool = False) -> Value:
    return g.op("Elu", input, alpha=float(alpha))


@writes("celu")
def _celu(g: GraphWriter, input: Value, alpha: float = 1.0, inplace: bool = False) -> Value:
    return g.op("Celu", input, alpha=float(alpha))


@writes("selu")
def _selu(g: GraphWriter, input: Value, inplace: bool = False) -> Value:
    return g.op("Selu", input)


@writes("leaky_relu")
def _leaky_relu(g: GraphWriter, input: Value, negative_slope: float = 0.01, inplace: bool = False) -> Value:
    return g.op("LeakyRelu", input, alpha=float(negative_slope))


@writes("prelu")
def _prelu(g: GraphWriter, input: Value, weight: Value) -> Value:
    if weight.real.numel() > 1 and input.rank > 2:
        weight = g.unsqueeze(weight, *range(1, input.rank - 1))
    return g.op("PRelu", input, weight)


@writes("logsigmoid")
def _logsigmoid(g: GraphWriter, input: Value) -> Value:
    return g.op("Neg", g.op("Softplus", g.op("Neg", input)))


@writes("tanhshrink")
def _tanhshrink(g: GraphWriter, input: Value) -> Value:
    return g.op("Sub", input, g.op("Tanh", input))


@writes("softshrink")
def _softshrink(g: GraphWriter, input: Value, lambd: float = 0.5) -> Value:
    return g.op("Shrink", input, bias=float(lambd), lambd=float(lambd))


@writes("hardshrink")
def _hardshrink(g: GraphWriter, input: Value, lambd: float = 0.5) -> Value:
    return g.op("Shrink", input, bias=0.0, lambd=float(lambd))


@writes("threshold")
def _threshold(g: GraphWriter, input: Value, threshold: float, value: float, inplace: bool = False) -> Value:
    above = g.op("Greater", input, g.cast(threshold, input.dtype))
    return g.op("Where", above, input, g.cast(value, input.dtype))


@writes("glu")
def _glu(g: GraphWriter, input: Value, dim: int = -1) -> Value:
    left, right = g.op("Split", input, outputs=2, axis=input.dim(dim), num_outputs=2)
    return g.op("Mul", left, g.op("Sigmoid", right))


@writes("softmax", "special_softmax")
def _softmax(
    g: GraphWriter, input: Value, dim: int | None = None, dtype: Any = None, _stacklevel: int = 3
) -> Value:
    axis = input.dim(dim) if dim is not None else (0 if input.rank in (0, 1, 3) else 1)
    return g.op("Softmax", g.cast(input, g.result.dtype), axis=axis)


@writes("F.softmax")
def _functional_softmax(
    g: GraphWriter, input: Value, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Value:
    return _softmax(g, input, dim)


@writes("log_softmax")
def _log_softmax(g: GraphWriter, input: Value, dim: int | None = None, *_: Any, **__: Any) -> Value:
    axis = input.dim(dim) if dim is not None else (0 if input.rank in (0, 1, 3) else 1)
    return g.op("LogSoftmax", g.cast(input, g.result.dtype), axis=axis)


@writes("softmin")
def _softmin(g: GraphWriter, input: Value, dim: int, *_: Any, **__: Any) -> Value:
    return g.op("Softmax", g.op("Neg", input), axis=input.dim(dim))


@writes("dropout", "alpha_dropout", "feature_dropout", "dropout1d", "dropout2d", "dropout3d")
def _dropout(
    g: GraphWriter, input: Value, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Value:
    if not training or p == 0:
        return input
    return g.op("Dropout", input, g.cast(p, tensor.float32), g.cast(True, tensor.bool))


@writes("lerp")
def _lerp(g: GraphWriter, input: Value, end: Value, weight: Any) -> Value:
    away = g.op("Mul", g.op("Sub", end, input), g.cast(weight, input.dtype))
    return g.op("Add", input, away)


@writes("frac")
def _frac(g: GraphWriter, input: Value) -> Value:
    return g.op("Sub", input, _trunc(g, input))


@writes("hypot")
def _hypot(g: GraphWriter, input: Value, other: Value) -> Value:
    return g.op("Sqrt", g.op("Add", g.op("Mul", input, input), g.op("Mul", other, other)))
