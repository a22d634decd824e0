"""Wrong calls of element-wise operators: shapes, dtypes, arguments, out= and in-place."""

import numpy as np

import taeda as t

M = t.arange(6.0).reshape(2, 3)
I = t.arange(6).reshape(2, 3)
B = M > 2
C = M.to(t.complex64)
U = I.to(t.uint8)

ROWS = [
    ("add-shapes", lambda: M + t.ones(4), RuntimeError, "add", "(2, 3)", "(4,)"),
    ("sub-shapes", lambda: M - t.ones(3, 3), RuntimeError, "sub", "(2, 3)", "(3, 3)"),
    ("mul-shapes", lambda: t.mul(M, t.ones(2)), RuntimeError, "mul", "(2, 3)", "(2,)"),
    ("maximum-shapes", lambda: t.maximum(M, t.ones(5)), RuntimeError, "maximum", "(5,)"),
    ("eq-shapes", lambda: t.eq(M, t.ones(4)), RuntimeError, "eq", "(2, 3)", "(4,)"),
    ("where-shapes", lambda: t.where(B, M, t.ones(5)), RuntimeError, "where", "(2, 3)", "(5,)"),
    ("where-condition", lambda: t.where(M, M, M), RuntimeError, "where", "condition", "float32", "bool"),
    ("lerp-shapes", lambda: t.lerp(M, t.ones(4), 0.5), RuntimeError, "lerp", "(2, 3)", "(4,)"),
    ("addcmul-shapes", lambda: t.addcmul(M, M, t.ones(7)), RuntimeError, "addcmul", "(7,)"),
    ("addcdiv-integers", lambda: t.addcdiv(I, I, I), RuntimeError, "addcdiv", "integer"),
    ("add-text", lambda: t.add(M, "x"), TypeError, "add", "other", "str"),
    ("add-operator-text", lambda: M + "x", TypeError, "str"),
    ("add-operator-none", lambda: M + None, TypeError, "None"),
    ("add-missing", lambda: t.add(M), TypeError, "add", "other"),
    ("add-many", lambda: t.add(M, M, M, M), TypeError, "add", "argument"),
    ("add-keyword", lambda: t.add(M, M, beta=2), TypeError, "add", "beta"),
    ("add-twice", lambda: t.add(M, M, other=M), TypeError, "add", "other"),
    ("add-list", lambda: t.add([1.0], M), TypeError, "add", "self|input", "list"),
    ("add-alpha-text", lambda: t.add(M, M, alpha="2"), TypeError, "add", "alpha", "str"),
    ("add-alpha-float-int", lambda: t.add(I, I, alpha=1.5), RuntimeError, "add", "alpha", "int64"),
    ("sub-bool", lambda: t.sub(B, B), RuntimeError, "sub", "bool"),
    ("neg-bool", lambda: -B, RuntimeError, "neg", "bool"),
    ("sqrt-text", lambda: t.sqrt("4"), TypeError, "sqrt", "str"),
    ("sin-missing", lambda: t.sin(), TypeError, "sin"),
    ("sin-many", lambda: t.sin(M, M), TypeError, "sin"),
    ("pow-negative-integer", lambda: I**-1, RuntimeError, "pow", "-1"),
    (
        "div-rounding",
        lambda: t.div(M, 2, rounding_mode="up"),
        (RuntimeError, ValueError),
        "div",
        "rounding_mode",
        "up",
    ),
    (
        "floor_divide-zero",
        lambda: t.floor_divide(I, t.zeros(1, dtype=t.int64)),
        (RuntimeError, ZeroDivisionError),
        "zero|0",
    ),
    (
        "remainder-zero",
        lambda: t.remainder(I, t.zeros(1, dtype=t.int64)),
        (RuntimeError, ZeroDivisionError),
        "zero|0",
    ),
    ("remainder-number", lambda: U % 256, OverflowError, "remainder", "other", "256", "uint8"),
    (
        "remainder-converted",
        lambda: U % t.tensor(256),
        (RuntimeError, ZeroDivisionError),
        "remainder",
        "zero|0",
    ),
    ("maximum-number", lambda: t.maximum(U, -1), OverflowError, "maximum", "other", "-1", "uint8"),
    ("add-alpha-number", lambda: t.add(U, U, alpha=300), OverflowError, "add", "alpha", "300", "uint8"),
    ("where-number", lambda: t.where(B, 300, U), OverflowError, "where", "self", "300", "uint8"),
    ("masked_fill-number", lambda: U.masked_fill(B, 300), OverflowError, "masked_fill", "300", "uint8"),
    ("mul-number", lambda: I * (2**64 - 1), OverflowError, "mul", "other", str(2**64 - 1), "int64"),
    ("clamp-number", lambda: t.clamp(U, min=256), OverflowError, "clamp", "min", "256", "uint8"),
    (
        "bitwise-float",
        lambda: t.bitwise_and(M, M),
        (RuntimeError, NotImplementedError, TypeError),
        "bitwise_and",
        "float32",
    ),
    (
        "bitwise-operator-float",
        lambda: M & M,
        (RuntimeError, NotImplementedError, TypeError),
        "bitwise_and",
        "float32",
    ),
    (
        "bitwise_not-float",
        lambda: ~M,
        (RuntimeError, NotImplementedError, TypeError),
        "bitwise_not",
        "float32",
    ),
    (
        "shift-float",
        lambda: t.bitwise_left_shift(M, 1),
        (RuntimeError, NotImplementedError, TypeError),
        "shift",
        "float32",
    ),
    ("gcd-float", lambda: t.gcd(M, M), (RuntimeError, NotImplementedError, TypeError), "gcd", "float32"),
    ("lt-complex", lambda: C < C, (RuntimeError, NotImplementedError, TypeError), "lt", "complex64"),
    (
        "maximum-complex",
        lambda: t.maximum(C, C),
        (RuntimeError, NotImplementedError, TypeError),
        "maximum",
        "complex64",
    ),
    (
        "floor-complex",
        lambda: t.floor(C),
        (RuntimeError, NotImplementedError, TypeError),
        "floor",
        "complex64",
    ),
    ("relu-complex", lambda: t.relu(C), (RuntimeError, NotImplementedError, TypeError), "relu", "complex64"),
    ("clamp-none", lambda: t.clamp(M), (RuntimeError, ValueError, TypeError), "clamp", "min", "max"),
    ("clamp-text", lambda: t.clamp(M, "a", 1), TypeError, "clamp", "str"),
    ("masked_fill-mask", lambda: M.masked_fill(M, 0), RuntimeError, "masked_fill", "mask", "float32", "bool"),
    ("masked_fill-value", lambda: M.masked_fill(B, t.ones(2)), RuntimeError, "masked_fill", "value", "(2,)"),
    ("truth-of-many", lambda: bool(M), (RuntimeError, ValueError), "(2, 3)|6", "one"),
    ("item-of-many", lambda: M.item(), RuntimeError, "item", "(2, 3)"),
    ("int-of-many", lambda: int(M), (RuntimeError, TypeError, ValueError), "(2, 3)"),
    ("float-of-complex", lambda: float(t.tensor(1j)), (TypeError, RuntimeError), "complex"),
    ("index-of-float", lambda: [1, 2, 3][t.tensor(1.0)], TypeError, "integer", "float32"),
    ("contains-text", lambda: "x" in M, TypeError, "str"),
    ("unhashable-dtype-call", lambda: M.to_dtype("float32"), TypeError, "to_dtype", "dtype", "str"),
    ("view_as_complex-last", lambda: t.view_as_complex(M), RuntimeError, "view_as_complex", "(2, 3)|2"),
    (
        "out-dtype",
        lambda: t.add(M, M, out=t.zeros(2, 3, dtype=t.int64)),
        RuntimeError,
        "add",
        "float32",
        "int64",
    ),
    ("out-text", lambda: t.add(M, M, out="x"), TypeError, "add", "out", "str"),
    (
        "out-grad",
        lambda: t.add(M.clone().requires_grad_(), M, out=t.zeros(2, 3)),
        RuntimeError,
        "add",
        "out",
        "grad",
    ),
    (
        "out-expanded",
        lambda: t.add(M, M, out=t.zeros(1, 3).expand(2, 3)),
        RuntimeError,
        "add",
        "out",
        "(2, 3)",
    ),
    ("dropout-p", lambda: t.nn.functional.dropout(M, 1.5), (ValueError, RuntimeError), "dropout", "1.5"),
    ("softmax-dim", lambda: t.softmax(M, 2), IndexError, "softmax", "2"),
    ("softmax-integer", lambda: t.softmax(I, 1), (RuntimeError, NotImplementedError), "softmax", "int64"),
    ("complex-cast-lossy", lambda: M.masked_fill(B, 1j), RuntimeError, "masked_fill", "complex", "float32"),
]


def _frozen():
    array = np.arange(4.0)
    array.flags.writeable = False
    return array


def matrix():
    return t.arange(6.0).reshape(2, 3)


def whole():
    return t.arange(6).reshape(2, 3)


INPLACE_ROWS = [
    ("fill_-complex", matrix, lambda x: x.fill_(1j), RuntimeError, "fill_", "value", "complex", "float32"),
    ("setitem-complex", matrix, lambda x: x.__setitem__(0, 1j), RuntimeError, "value", "complex", "float32"),
    (
        "index_fill_-complex",
        matrix,
        lambda x: x.index_fill_(0, t.tensor([0]), 1j),
        RuntimeError,
        "index_fill",
    ),
    (
        "fill_-number",
        lambda: t.ones(3, dtype=t.uint8),
        lambda x: x.fill_(300),
        OverflowError,
        "fill_",
        "value",
        "300",
        "uint8",
    ),
    (
        "setitem-number",
        lambda: t.ones(3, dtype=t.uint8),
        lambda x: x.__setitem__(0, 300),
        OverflowError,
        "value",
        "300",
        "uint8",
    ),
    (
        "fill_-nan",
        lambda: t.ones(3, dtype=t.int32),
        lambda x: x.fill_(float("nan")),
        ValueError,
        "fill_",
        "nan",
        "int32",
    ),
    ("add_-grows", matrix, lambda x: x.add_(t.ones(4, 2, 3)), RuntimeError, "add_", "(2, 3)", "(4, 2, 3)"),
    ("add_-shapes", matrix, lambda x: x.add_(t.ones(5)), RuntimeError, "add", "(2, 3)", "(5,)"),
    (
        "mul_-one-row",
        lambda: t.ones(1, 3),
        lambda x: x.mul_(t.ones(2, 3)),
        RuntimeError,
        "mul_",
        "(1, 3)",
        "(2, 3)",
    ),
    ("add_-float-to-int", whole, lambda x: x.add_(1.5), RuntimeError, "add_", "float", "int64"),
    ("div_-int", whole, lambda x: x.div_(2), RuntimeError, "div_", "float", "int64"),
    ("mul_-complex-to-float", matrix, lambda x: x.mul_(1j), RuntimeError, "mul_", "complex", "float32"),
    ("sqrt_-int", whole, lambda x: x.sqrt_(), RuntimeError, "sqrt_", "float32", "int64"),
    ("add_-text", matrix, lambda x: x.add_("a"), TypeError, "add_", "other", "str"),
    ("add_-missing", matrix, lambda x: x.add_(), TypeError, "add_", "other"),
    ("iadd-shapes", matrix, lambda x: x.__iadd__(t.ones(5)), RuntimeError, "add", "(2, 3)", "(5,)"),
    ("expanded-add_", lambda: t.ones(1, 3).expand(2, 3), lambda x: x.add_(1), RuntimeError, "add_", "(2, 3)"),
    (
        "expanded-copy_",
        lambda: t.ones(1, 3).expand(2, 3),
        lambda x: x.copy_(t.ones(2, 3)),
        RuntimeError,
        "copy_",
    ),
    ("expanded-normal_", lambda: t.ones(1, 3).expand(2, 3), lambda x: x.normal_(), RuntimeError, "normal_"),
    (
        "out-read-only",
        lambda: t.asarray(_frozen()),
        lambda x: t.add(x, 1, out=x),
        RuntimeError,
        "add",
        "read-only",
    ),
    ("overlapping-windows", lambda: t.arange(4.0).unfold(0, 2, 1), lambda x: x.mul_(2), RuntimeError, "mul_"),
    ("copy_-shapes", matrix, lambda x: x.copy_(t.ones(2)), RuntimeError, "copy_", "(2, 3)", "(2,)"),
    ("fill_-shape", matrix, lambda x: x.fill_(t.ones(2)), RuntimeError, "fill_", "(2,)"),
    (
        "masked_fill_-mask",
        matrix,
        lambda x: x.masked_fill_(x, 0),
        RuntimeError,
        "masked_fill",
        "mask",
        "bool",
    ),
    ("clamp_-none", matrix, lambda x: x.clamp_(), (RuntimeError, ValueError, TypeError), "clamp", "min"),
    (
        "out-shape-of-view",
        lambda: t.zeros(4)[:2],
        lambda x: t.add(M, M, out=x),
        RuntimeError,
        "add",
        "out",
        "(2, 3)",
    ),
    ("out-keeps-on-error", matrix, lambda x: t.add(M, t.ones(4), out=x), RuntimeError, "add", "(4,)"),
    ("pow_-negative-integer", whole, lambda x: x.pow_(-1), RuntimeError, "pow", "-1"),
]
