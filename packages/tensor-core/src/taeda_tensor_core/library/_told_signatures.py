"""Signatures of functions that a class can answer for: Python's own, and those that built-in ones tell themselves."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable
from typing import Any

from taeda_tensor_core._C import Tensor
from taeda_tensor_core.library._aten_schemas import parsed

__all__ = ["stand_in"]

_PLAIN = inspect.Parameter.POSITIONAL_OR_KEYWORD
_ACCESSORS = {"__get__": ("self",), "__set__": ("self", "value"), "__delete__": ("self",)}


def stand_in(function: Callable, method: bool) -> Callable:
    """A function with the arguments of another that gives -1.

    Args:
        function: The other.
        method: Whether it is one of Tensor, whose first argument is the tensor.
    """
    signature = _signature(function, method)

    def answer(*args: Any, **kwargs: Any) -> int:
        signature.bind(*args, **kwargs)
        return -1

    answer.__signature__ = signature  # type: ignore[attr-defined]
    return answer


def _signature(function: Callable, method: bool) -> inspect.Signature:
    name = getattr(function, "__name__", "")
    if name in _ACCESSORS:
        return _of([inspect.Parameter(each, _PLAIN) for each in _ACCESSORS[name]])
    if method and (same := _as_function(name)) is not None:
        return _signature(same, False)
    try:
        known = inspect.signature(function)
    except (TypeError, ValueError):
        return _of(_told(function, method))
    given = list(known.parameters.values())
    kinds = {inspect.Parameter.POSITIONAL_ONLY: _PLAIN}
    if not inspect.isfunction(function) and all(p.kind != p.VAR_POSITIONAL for p in given):
        kinds[inspect.Parameter.KEYWORD_ONLY] = _PLAIN  # of built-in ones, as PyTorch's stand-ins have them
    return _of([p.replace(kind=kinds.get(p.kind, p.kind), annotation=p.empty) for p in given])


def _as_function(name: str) -> Callable | None:
    """The function that does what a method does: `add` of `add_`, `__add__`, `__iadd__` and `__radd__`."""
    import taeda_tensor_core as core

    short = name.strip("_") if name.startswith("__") else name.removesuffix("_")
    for known in (short, short[1:] if name.startswith("__") and short[:1] in "ir" else short):
        found = vars(core).get(known)
        if (
            found is not None
            and inspect.isbuiltin(found)
            and " -> " in (found.__doc__ or "").partition("\n")[0]
        ):
            return found
    return None


def _told(function: Callable, method: bool) -> list[inspect.Parameter]:
    """What the first line of a built-in function's text says; any arguments where it says nothing."""
    line = (getattr(function, "__doc__", None) or "").partition("\n")[0]
    if " -> " not in line or "(" not in line:
        return [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)]  # fmt: skip
    found, optional = [], False
    for part in parsed(line).parts:
        if not part.name.isidentifier() or keyword.iskeyword(part.name):
            continue
        optional = optional or part.default is not None
        default = part.value if part.default is not None or optional else inspect.Parameter.empty
        first = not found and part.name == "self" and not method
        found.append(inspect.Parameter("input" if first else part.name, _PLAIN, default=default))
    if method and isinstance(function, type(Tensor.item)) and (not found or found[0].name != "self"):
        found.insert(0, inspect.Parameter("self", _PLAIN))
    return found


def _of(parameters: list[inspect.Parameter]) -> inspect.Signature:
    names = {p.name: p for p in parameters}
    return inspect.Signature(list(names.values()))
