"""What TorchScript computes with numbers, texts, lists and dicts: its operators that have no tensors."""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from typing import Any

from taeda_registry.slots import tensor

_MISSING = object()


def _true_divide(a: Any, b: Any) -> Any:
    try:
        return a / b
    except ZeroDivisionError:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _power(a: Any, b: Any) -> Any:
    try:
        return float(a) ** b if type(a) is int and type(b) is int else a**b
    except ZeroDivisionError:
        return math.inf
    except OverflowError:
        return math.inf if a > 0 or b % 2 == 0 else -math.inf


def _real(
    function: Callable[..., float], of_complex: Callable[..., complex] | None = None
) -> Callable[..., Any]:
    """A function of the mathematics of C: not a number outside of its domain, infinite where it overflows."""

    def call(*x: Any) -> Any:
        if of_complex is not None and isinstance(x[0], complex):
            return of_complex(*x)
        try:
            return function(*x)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return call


def _logarithm(function: Callable[[float], float], zero: float = 0.0) -> Callable[..., Any]:
    inner = _real(function)
    return lambda x: -math.inf if x == zero else inner(x)


def _round(x: Any, digits: int | None = None) -> Any:
    return float(round(x)) if digits is None and isinstance(x, float) else round(x, digits)


def _texts(text: str, *values: Any) -> str:
    """The values in the places of "{}", one after the other."""
    parts = text.split("{}")
    shown = [_shown(v) for v in values] + ["{}"] * (len(parts) - 1 - len(values))
    return "".join(p + s for p, s in zip(parts, [*shown[: len(parts) - 1], ""], strict=True))


def _shown(value: Any) -> str:
    return str(list(value)) if isinstance(value, tensor.Size) else str(value)


def _percent(text: str, *values: Any) -> str:
    return text % tuple(values)


def _cut(items: Any, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return items[start:end:step]


def _put(items: Any, key: Any, value: Any) -> Any:
    items[key] = value
    return items


def _take_away(items: Any, key: Any) -> None:
    del items[key]


def _range_length(start: int, end: int, step: int) -> int:
    return len(range(start, end, step))


def _copied(items: Any) -> Any:
    return items.copy() if isinstance(items, (list, dict)) else list(items)


def _made_dict(items: Any = ()) -> dict[Any, Any]:
    return dict(items)


def _joined(glue: str, parts: list[str]) -> str:
    return glue.join(parts)


def _find(method: str) -> Callable[..., Any]:
    """`find` and its kin, where -1 is the end."""

    def call(text: str, part: str, start: int = 0, end: int = -1) -> Any:
        return getattr(text, method)(part, start, len(text) if end == -1 else end)

    return call


def _popped(items: Any, *args: Any) -> Any:
    return items.pop(*args)


def _nothing_returned(method: str) -> Callable[..., Any]:
    """A method that changes a list and gives it, as operators do."""

    def call(items: Any, *args: Any) -> Any:
        getattr(items, method)(*args)
        return items

    return call


def _sorted_in_place(items: list[Any], reverse: bool = False) -> None:
    items.sort(reverse=reverse)


def _method(name: str) -> Callable[..., Any]:
    return lambda x, *args: getattr(x, name)(*args)


def _listed(name: str) -> Callable[..., list[Any]]:
    return lambda x, *args: list(getattr(x, name)(*args))


def _smallest(a: Any, b: Any = _MISSING) -> Any:
    return _extreme(min, a, b)


def _largest(a: Any, b: Any = _MISSING) -> Any:
    return _extreme(max, a, b)


def _extreme(choose: Callable[..., Any], a: Any, b: Any) -> Any:
    if b is _MISSING:
        return choose(a)
    if isinstance(a, list):
        return choose(a, b)
    return float(choose(a, b)) if isinstance(a, float) or isinstance(b, float) else choose(a, b)


def _divmod(a: Any, b: Any) -> tuple[Any, Any]:
    return divmod(a, b)


_BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": _true_divide, "floordiv": operator.floordiv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "fmod": _real(math.fmod), "pow": _power,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "__and__": operator.and_, "__or__": operator.or_, "__xor__": operator.xor, "__lshift__": operator.lshift,
    "__rshift__": operator.rshift, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "atan2": _real(math.atan2), "copysign": _real(math.copysign), "gcd": math.gcd,
    "hypot": _real(math.hypot), "ldexp": _real(math.ldexp), "min": _smallest, "max": _largest, "divmod": _divmod,
    "mathremainder": _real(math.remainder), "__round_to_zero_floordiv": lambda a, b: int(a / b),
}  # fmt: skip
_UNARY = {
    "neg": operator.neg, "abs": abs, "__not__": operator.not_, "bitwise_not": operator.invert, "ceil": math.ceil,
    "floor": math.floor, "round": _round, "trunc": math.trunc, "sqrt": _real(math.sqrt, cmath.sqrt),
    "exp": _real(math.exp, cmath.exp), "expm1": _real(math.expm1), "log": _logarithm(math.log),
    "log10": _logarithm(math.log10), "log2": _logarithm(math.log2), "log1p": _logarithm(math.log1p, -1.0),
    "gamma": _real(math.gamma), "lgamma": _real(math.lgamma), "fabs": _real(math.fabs),
    "factorial": math.factorial, "modf": math.modf, "frexp": math.frexp, "isnan": math.isnan, "isinf": math.isinf,
    "isfinite": math.isfinite, "degrees": math.degrees, "radians": math.radians, "erf": math.erf, "erfc": math.erfc,
    "angle": cmath.phase, "real": lambda x: x.real, "imag": lambda x: x.imag, "polar": cmath.rect,
    **{name: _real(getattr(math, name), getattr(cmath, name)) for name in
       ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"]},
}  # fmt: skip
_CONTAINERS = {
    "__contains__": operator.contains, "_set_item": _put, "Delete": _take_away, "append": _nothing_returned("append"),
    "extend": _method("extend"), "insert": _method("insert"), "pop": _popped, "remove": _method("remove"),
    "clear": _method("clear"), "reverse": _method("reverse"), "copy": _copied, "list": list,
    "slice": _cut, "sort": _sorted_in_place, "keys": _listed("keys"), "values": _listed("values"),
    "items": _listed("items"), "get": _method("get"), "setdefault": _method("setdefault"), "update": _method("update"),
    "popitem": _method("popitem"), "dict": _made_dict, "sum": sum, "any": any, "all": all, "index": _method("index"),
    "count": _method("count"), "equal": operator.eq,
}  # fmt: skip
_TEXT_METHODS = (
    "capitalize center endswith startswith expandtabs isidentifier istitle isprintable isalnum isalpha isdecimal "
    "isdigit islower isupper isspace isnumeric ljust lower lstrip partition replace rjust rpartition rstrip "
    "splitlines strip swapcase title upper zfill casefold"
)
_TEXTS: dict[str, Callable[..., Any]] = {
    "format": _texts, "percentFormat": _percent, "join": _joined, "ord": ord, "chr": chr, "hex": hex, "oct": oct,
    "bin": bin, **{name: _find(name) for name in ("find", "rfind", "rindex")},
    **{name: _method(name) for name in _TEXT_METHODS.split()},
    "split": lambda text, sep=None, most=-1: text.split(sep, most),
    "rsplit": lambda text, sep=" ", most=-1: text.rsplit(sep, most),
}  # fmt: skip
#: What is never a tensor's.
_OTHERS: dict[str, Callable[..., Any]] = {
    "__is__": operator.is_, "__isnot__": operator.is_not, "__range_length": _range_length,
    "__derive_index": lambda index, start, step: start + index * step, "len": len, "hash": hash, "id": id,
    "Complex": complex,
}  # fmt: skip

#: The operators by name.
OPERATORS: dict[str, Callable[..., Any]] = {**_BINARY, **_UNARY, **_CONTAINERS, **_TEXTS, **_OTHERS}
#: Those whose first argument decides, however many tensors stand among the others.
OF_THE_FIRST = frozenset(_CONTAINERS) | frozenset(_TEXTS) | frozenset(_OTHERS)
