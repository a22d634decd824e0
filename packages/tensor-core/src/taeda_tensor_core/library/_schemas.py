"""Schemas as PyTorch writes them, and schemas that the type hints of a function say."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import operator
import re
import types
import typing
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor

#: PyTorch's words for types, and the words of the operator table.
_WORDS = {
    "SymInt": "int",
    "SymBool": "bool",
    "ScalarType": "DType",
    "Layout": "int",
    "MemoryFormat": "str",
    "number": "Scalar",
}
_PLAIN = {
    Tensor: "Tensor",
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    _C.dtype: "DType",
    _C.device: "Device",
    _C.Generator: "Generator",
}
_NUMBERS = (frozenset({int, float, bool}), frozenset({int, float}), frozenset({int, float, bool, complex}))


def translated(schema: str) -> str:
    """A schema in the words of the operator table: `SymInt[2] n` is `int[] n`, 'text' is "text".

    A tensor that is written without a letter, `Tensor! out`, gets one. A result that may be absent is one
    that is there: a kernel that gives None for it is told so.
    """
    for theirs, ours in _WORDS.items():
        schema = re.sub(rf"\b{theirs}\b", ours, schema)
    schema = re.sub(r"\[\d+\]", "[]", schema)
    letters = (f"written{place}" for place in count())
    schema = re.sub(r"\bTensor!", lambda _: f"Tensor({next(letters)}!)", schema)
    arguments, arrow, results = schema.rpartition("->")
    schema = f"{arguments}{arrow}{results.replace('Tensor?', 'Tensor')}" if arrow else schema
    return re.sub(r"'([^'\"]*)'", r'"\1"', schema)


def split_name(qualname: str, function: str) -> tuple[str, str]:
    """Namespace and name of "mypkg::op".

    Raises:
        ValueError: It is not of that form.
    """
    space, _, name = qualname.partition("::")
    if not space.isidentifier() or not name.split(".")[0].isidentifier():
        raise ValueError(f"{function}: expected a name of the form 'package::operator', found {qualname!r}")
    return space, name


def infer_schema(
    function: Callable, /, *, mutates_args: str | Iterable[str] = (), op_name: str | None = None
) -> str:
    """The schema that a function's type hints say.

    Args:
        function: Every parameter and the result have a type hint: Tensor, int, float, bool, str, dtype, device,
            Generator, a
            number (`int | float`), optional ones, and sequences of tensors, ints or floats.
        mutates_args: Names of the parameters that the function writes into, or "unknown" for all tensors.
        op_name: Stands in front of the parenthesis.

    Raises:
        ValueError: A hint is missing or is none of these; the parameter is named.

    Example:
        >>> def scale(x: taeda.Tensor, k: float = 2.0) -> taeda.Tensor: ...
        >>> taeda.library.infer_schema(scale, mutates_args=())
        '(Tensor x, float k=2.0) -> Tensor'
    """
    hints = _hints_of(function)
    parameters = inspect.signature(function).parameters
    written = _written(mutates_args, parameters)
    parts, keyword_only = [], False
    for position, parameter in enumerate(parameters.values()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ValueError(f"infer_schema: parameter '*{parameter.name}' has no place in a schema")
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        parts.append(_argument(parameter, hints, position, written))
    return f"{op_name or ''}({', '.join(parts)}) -> {_results(hints)}"


def _hints_of(function: Callable) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except NameError as error:
        raise ValueError(
            f"infer_schema: a type hint of {function.__name__} cannot be read: {error}"
        ) from None


def _written(mutates_args: str | Iterable[str], parameters: Any) -> Callable[[str, str], bool]:
    if mutates_args == "unknown":
        return lambda _name, word: word.startswith("Tensor")
    if isinstance(mutates_args, str):
        raise ValueError(
            f"infer_schema: argument 'mutates_args' must be a sequence of names or 'unknown', found {mutates_args!r}"
        )
    names = set(mutates_args)
    if missing := names - set(parameters):
        raise ValueError(
            f"infer_schema: argument 'mutates_args' names no parameter: {', '.join(sorted(missing))}"
        )
    return lambda name, _word: name in names


def _argument(
    parameter: inspect.Parameter, hints: dict, position: int, written: Callable[[str, str], bool]
) -> str:
    if parameter.name not in hints:
        raise ValueError(f"infer_schema: parameter '{parameter.name}' has no type hint")
    word = _word(hints[parameter.name], f"parameter '{parameter.name}'")
    if written(parameter.name, word):
        if not word.startswith("Tensor"):
            raise ValueError(
                f"infer_schema: parameter '{parameter.name}' cannot be written into: its type is {word}"
            )
        word = word.replace("Tensor", f"Tensor(a{position}!)", 1)
    return f"{word} {parameter.name}{_default(parameter)}"


def _default(parameter: inspect.Parameter) -> str:
    value = parameter.default
    if value is parameter.empty:
        return ""
    if isinstance(value, str | _C.device):
        return f'="{value}"'
    if isinstance(value, _C.dtype):
        return f"={str(value).rpartition('.')[2]}"
    if value is None or isinstance(value, bool | int | float):
        return f"={value}"
    if isinstance(value, _C.dtype):
        return f"={value.name}"
    raise ValueError(f"infer_schema: the default of parameter '{parameter.name}' cannot be told: {value!r}")


def _is_number(hint: Any) -> bool:
    return (
        typing.get_origin(hint) in (typing.Union, types.UnionType) and set(typing.get_args(hint)) in _NUMBERS
    )


def _word(hint: Any, what: str) -> str:
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Tensor):
        return "Tensor"
    if _is_number(hint):
        return "Scalar"
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType) and type(None) in inner:
        rest = [item for item in inner if item is not type(None)]
        return f"{_word(functools.reduce(operator.or_, rest), what)}?"
    if origin in (list, collections.abc.Sequence) and len(inner) == 1:
        return f"{_word(inner[0], what)}[]"
    if origin is tuple and len(inner) == 2 and inner[1] is ...:
        return f"{_word(inner[0], what)}[]"
    raise ValueError(f"infer_schema: the type hint {hint!r} of {what} has no counterpart in a schema")


def _results(hints: dict[str, Any]) -> str:
    if "return" not in hints:
        raise ValueError(
            "infer_schema: the result has no type hint; a function without result says '-> None'"
        )
    hint = hints["return"]
    if hint is type(None):
        return "()"
    inner = typing.get_args(hint)
    if typing.get_origin(hint) is tuple and ... not in inner:
        return f"({', '.join(_word(item, 'the result') for item in inner)})"
    return _word(hint, "the result")
