"""Functions of each element."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.array_api import _array, _dtypes
from taeda_tensor_core.array_api._array import Array, as_array, plain

Tensor = core.Tensor
_ANY, _INTEGER, _NUMERIC, _REAL, _FLOATING = (
    frozenset({0, 1, 2, 3}),
    frozenset({1}),
    frozenset({1, 2, 3}),
    frozenset({1, 2}),
    frozenset({2, 3}),
)
_BITS, _TRUTH, _REAL_FLOATING, _COMPLEX = frozenset({0, 1}), frozenset({0}), frozenset({2}), frozenset({3})
_WORDS = {0: "bool", 1: "integers", 2: "real floating point", 3: "complex floating point"}


def _check(name: str, dtype: Any, kinds: frozenset[int]) -> None:
    if _dtypes.level(dtype) not in kinds:
        raise TypeError(f"{name}: found {dtype}, expected {' or '.join(_WORDS[k] for k in sorted(kinds))}")


def array_argument(name: str, argument: str, x: Any) -> Any:
    """``x`` as a tensor, if it is an array.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: argument {argument!r} is of type {type(x).__name__}, expected an array")
    return plain(x)


def _unary(
    name: str, kinds: frozenset[int], compute: Callable[[Any], Any], doc: str, integers: bool = True
) -> Any:
    """A function of one array; ``integers``: whether it is computed for integers and bool, or gives them back."""

    def function(x: Array, /) -> Array:
        tensor = array_argument(name, "x", x)
        _check(name, tensor.dtype, kinds)
        keep = not integers and _dtypes.level(tensor.dtype) < 2
        return as_array(tensor.clone() if keep else compute(tensor))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def both(name: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands as tensors of their common dtype; one of them may be a Python number."""
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        raise TypeError(
            f"{name}: found {type(x1).__name__} and {type(x2).__name__}, expected an array among them"
        )
    for argument, x in (("x1", x1), ("x2", x2)):
        if not isinstance(x, (Tensor, bool, int, float, complex)):
            raise TypeError(
                f"{name}: argument {argument!r} is of type {type(x).__name__}, expected an array or number"
            )
    if isinstance(x1, Tensor) and isinstance(x2, Tensor):
        a, b = plain(x1), plain(x2)
        if a.dtype != b.dtype:
            dtype = _promoted(name, a.dtype, b.dtype)
            a, b = a.to(dtype), b.to(dtype)
        # A tensor of 0 dimensions takes the other's dtype in taeda's operators; here both have one already.
        return a, b
    if isinstance(x1, Tensor):
        return _beside(name, x1, x2)
    return _beside(name, x2, x1)[::-1]


def _promoted(name: str, one: Any, other: Any) -> Any:
    try:
        return _dtypes.promoted(one, other)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _beside(name: str, x: Any, number: Any) -> tuple[Any, Any]:
    tensor = plain(x)
    try:
        dtype = _dtypes.with_scalar(tensor.dtype, number)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    if _dtypes.level(dtype) == 1:
        facts = core.iinfo(dtype)
        if not facts.min <= number <= facts.max:
            raise OverflowError(f"{name}: {number} does not fit into {dtype}")
    return tensor.to(dtype), core.full((), number, dtype=dtype, device=tensor.device)


def _binary(name: str, kinds: frozenset[int], compute: Callable[[Any, Any], Any], doc: str) -> Any:
    def function(x1: Any, x2: Any, /) -> Array:
        a, b = both(name, x1, x2)
        _check(name, a.dtype, kinds)
        return as_array(compute(a, b))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _remainder(a: Any, b: Any) -> Any:
    """Of integers divided by zero, 0; zeros have the divisor's sign."""
    if _dtypes.level(a.dtype) == 1:
        zero = b == 0
        return core.where(
            zero, core.zeros((), dtype=a.dtype), core.remainder(a, core.where(zero, core.ones_like(b), b))
        )
    result = core.remainder(a, b)
    return core.where(result == 0, core.copysign(result, b), result)


def _floor_divide(a: Any, b: Any) -> Any:
    if _dtypes.level(a.dtype) == 1:
        zero = b == 0
        safe = core.where(zero, core.ones_like(b), b)
        return core.where(zero, core.zeros((), dtype=a.dtype), core.floor_divide(a, safe))
    # With an infinity among them the quotient is as good as it gets, and has the sign of its zero.
    return core.where(core.isinf(a) | core.isinf(b), core.div(a, b), core.floor_divide(a, b))


def _shift_left(a: Any, b: Any) -> Any:
    bits = 8 * a.dtype.itemsize
    return core.where(
        b >= bits, core.zeros((), dtype=a.dtype), core.bitwise_left_shift(a, core.clamp(b, max=bits - 1))
    )


def _shift_right(a: Any, b: Any) -> Any:
    return core.bitwise_right_shift(a, core.clamp(b, max=8 * a.dtype.itemsize - 1))


def _sign(x: Any) -> Any:
    if x.dtype.is_complex:
        return core.where(x == 0, core.zeros((), dtype=x.dtype), core.sgn(x))
    result = core.sign(x)
    return core.where(core.isnan(x), x, result) if x.dtype.is_floating_point else result


def _round(x: Any) -> Any:
    return (
        core.complex(core.round(core.real(x)), core.round(core.imag(x)))
        if x.dtype.is_complex
        else core.round(x)
    )


def _tanh(x: Any) -> Any:
    """Of complex numbers with an infinite real part the zero has the sign of the imaginary part, not of its sine."""
    result = core.tanh(x)
    if not x.dtype.is_complex:
        return result
    real, imaginary = core.real(x), core.imag(x)
    far = core.complex(
        core.copysign(core.ones_like(real), real), core.copysign(core.zeros_like(real), imaginary)
    )
    return core.where(core.isinf(real) & core.isfinite(imaginary), far, result)


def _clone(x: Any) -> Any:
    return x.clone()


abs = _unary("abs", _NUMERIC, core.abs, "Absolute values.")
acos = _unary("acos", _FLOATING, core.acos, "Inverse cosine.")
acosh = _unary("acosh", _FLOATING, core.acosh, "Inverse hyperbolic cosine.")
asin = _unary("asin", _FLOATING, core.asin, "Inverse sine.")
asinh = _unary("asinh", _FLOATING, core.asinh, "Inverse hyperbolic sine.")
atan = _unary("atan", _FLOATING, core.atan, "Inverse tangent.")
atanh = _unary("atanh", _FLOATING, core.atanh, "Inverse hyperbolic tangent.")
bitwise_invert = _unary(
    "bitwise_invert", _BITS, core.bitwise_not, "Every bit inverted; of bool the opposite."
)
ceil = _unary("ceil", _REAL, core.ceil, "The least integers that are not below.", integers=False)
conj = _unary("conj", _NUMERIC, lambda x: core.conj(x).resolve_conj(), "Complex conjugates.")
cos = _unary("cos", _FLOATING, core.cos, "Cosine.")
cosh = _unary("cosh", _FLOATING, core.cosh, "Hyperbolic cosine.")
exp = _unary("exp", _FLOATING, core.exp, "Powers of e.")
expm1 = _unary("expm1", _FLOATING, core.expm1, "exp(x) - 1.")
floor = _unary("floor", _REAL, core.floor, "The greatest integers that are not above.", integers=False)
imag = _unary("imag", _COMPLEX, lambda x: core.imag(x).clone(), "Imaginary parts.")
isfinite = _unary("isfinite", _NUMERIC, core.isfinite, "Whether neither infinite nor NaN.")
isinf = _unary("isinf", _NUMERIC, core.isinf, "Whether infinite.")
isnan = _unary("isnan", _NUMERIC, core.isnan, "Whether NaN.")
log = _unary("log", _FLOATING, core.log, "Natural logarithm.")
log10 = _unary("log10", _FLOATING, core.log10, "Logarithm to the base 10.")
log1p = _unary("log1p", _FLOATING, core.log1p, "log(1 + x).")
log2 = _unary("log2", _FLOATING, core.log2, "Logarithm to the base 2.")
logical_not = _unary("logical_not", _TRUTH, core.logical_not, "Not.")
negative = _unary("negative", _NUMERIC, core.neg, "-x.")
positive = _unary("positive", _NUMERIC, _clone, "x.")
real = _unary("real", _NUMERIC, lambda x: core.real(x).clone(), "Real parts.")
reciprocal = _unary("reciprocal", _FLOATING, core.reciprocal, "1 / x.")
round = _unary("round", _NUMERIC, _round, "The nearest integers, of two the even one.", integers=False)
sign = _unary("sign", _NUMERIC, _sign, "-1, 0 or 1; of complex numbers x / abs(x); of NaN NaN.")
signbit = _unary("signbit", _REAL_FLOATING, core.signbit, "Whether the sign is set, that of -0 too.")
sin = _unary("sin", _FLOATING, core.sin, "Sine.")
sinh = _unary("sinh", _FLOATING, core.sinh, "Hyperbolic sine.")
sqrt = _unary("sqrt", _FLOATING, core.sqrt, "Square roots.")
square = _unary("square", _NUMERIC, core.square, "x * x.")
tan = _unary("tan", _FLOATING, core.tan, "Tangent.")
tanh = _unary("tanh", _FLOATING, _tanh, "Hyperbolic tangent.")
trunc = _unary("trunc", _REAL, core.trunc, "The nearest integers towards zero.", integers=False)

add = _binary("add", _NUMERIC, core.add, "x1 + x2.")
atan2 = _binary("atan2", _REAL_FLOATING, core.atan2, "The angle of the point (x2, x1).")
bitwise_and = _binary("bitwise_and", _BITS, core.bitwise_and, "x1 & x2.")
bitwise_left_shift = _binary(
    "bitwise_left_shift", _INTEGER, _shift_left, "x1 * 2**x2, without the bits that are lost."
)
bitwise_or = _binary("bitwise_or", _BITS, core.bitwise_or, "x1 | x2.")
bitwise_right_shift = _binary("bitwise_right_shift", _INTEGER, _shift_right, "x1 // 2**x2.")
bitwise_xor = _binary("bitwise_xor", _BITS, core.bitwise_xor, "x1 ^ x2.")
copysign = _binary("copysign", _REAL_FLOATING, core.copysign, "The size of x1 with the sign of x2.")
divide = _binary("divide", _FLOATING, core.div, "x1 / x2.")
equal = _binary("equal", _ANY, core.eq, "x1 == x2.")
floor_divide = _binary("floor_divide", _REAL, _floor_divide, "x1 // x2, rounded down.")
greater = _binary("greater", _REAL, core.gt, "x1 > x2.")
greater_equal = _binary("greater_equal", _REAL, core.ge, "x1 >= x2.")
hypot = _binary("hypot", _REAL_FLOATING, core.hypot, "sqrt(x1**2 + x2**2).")
less = _binary("less", _REAL, core.lt, "x1 < x2.")
less_equal = _binary("less_equal", _REAL, core.le, "x1 <= x2.")
logaddexp = _binary("logaddexp", _REAL_FLOATING, core.logaddexp, "log(exp(x1) + exp(x2)).")
logical_and = _binary("logical_and", _TRUTH, core.logical_and, "x1 and x2.")
logical_or = _binary("logical_or", _TRUTH, core.logical_or, "x1 or x2.")
logical_xor = _binary("logical_xor", _TRUTH, core.logical_xor, "Either x1 or x2.")
maximum = _binary("maximum", _REAL, core.maximum, "The greater ones; NaN where one is.")
minimum = _binary("minimum", _REAL, core.minimum, "The lesser ones; NaN where one is.")
multiply = _binary("multiply", _NUMERIC, core.mul, "x1 * x2.")
nextafter = _binary("nextafter", _REAL_FLOATING, core.nextafter, "The next number from x1 towards x2.")
not_equal = _binary("not_equal", _ANY, core.ne, "x1 != x2.")
pow = _binary("pow", _NUMERIC, core.pow, "x1**x2.")
remainder = _binary("remainder", _REAL, _remainder, "x1 % x2, with the sign of x2.")
subtract = _binary("subtract", _NUMERIC, core.sub, "x1 - x2.")


def clip(x: Array, /, min: Any = None, max: Any = None) -> Array:
    """Elements held between ``min`` and ``max``, numbers or arrays; NaN where one of the three is."""
    tensor = array_argument("clip", "x", x)
    _check("clip", tensor.dtype, _REAL)
    result = tensor.clone() if min is None and max is None else tensor
    for bound, compute in ((min, core.maximum), (max, core.minimum)):
        if bound is not None:
            result = compute(result, _bound(tensor, bound))
    return as_array(result)


def _bound(tensor: Any, bound: Any) -> Any:
    """A bound in the tensor's dtype; a number outside of an integer dtype's range bounds nothing on its side."""
    if isinstance(bound, Tensor):
        if bound.dtype != tensor.dtype and _promoted("clip", tensor.dtype, bound.dtype) != tensor.dtype:
            raise TypeError(f"clip: bounds of {bound.dtype} do not promote to {tensor.dtype}")
        return plain(bound).to(tensor.dtype)
    _dtypes.with_scalar(tensor.dtype, bound)
    if _dtypes.level(tensor.dtype) == 1:
        facts = core.iinfo(tensor.dtype)
        bound = builtins.min(builtins.max(bound, facts.min), facts.max)
    return core.full((), bound, dtype=tensor.dtype, device=tensor.device)


def matmul(x1: Array, x2: Array, /) -> Array:
    """Matrix products, over stacks of matrices.

    Raises:
        TypeError: one of them is no array.
        ValueError: 0 dimensions.
    """
    a, b = both("matmul", array_argument("matmul", "x1", x1), array_argument("matmul", "x2", x2))
    _check("matmul", a.dtype, _NUMERIC)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(
            f"matmul: found shapes {tuple(a.shape)} and {tuple(b.shape)}, expected at least 1 dimension"
        )
    return as_array(core.matmul(a, b))


_array._install(
    {
        "add": add, "sub": subtract, "mul": multiply, "truediv": divide, "floordiv": floor_divide, "mod": remainder,
        "pow": pow, "and": bitwise_and, "or": bitwise_or, "xor": bitwise_xor, "lshift": bitwise_left_shift,
        "rshift": bitwise_right_shift, "matmul": matmul, "eq": equal, "ne": not_equal, "lt": less, "le": less_equal,
        "gt": greater, "ge": greater_equal,
    },
    {"neg": negative, "pos": positive, "abs": abs, "invert": bitwise_invert},
)  # fmt: skip
