"""Signatures of built-in functions and operators, which Python itself cannot tell: from the table of operators."""

from __future__ import annotations

import inspect
import keyword
import numbers
from collections.abc import Iterator
from typing import Any, Optional

from taeda_registry.slots import tensor

__all__ = ["fits", "signatures_of"]

_EMPTY = inspect.Parameter.empty
_PLAIN = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "Scalar": numbers.Number,
    "Operand": tensor.Tensor,
}


def signatures_of(target: Any) -> list[inspect.Signature] | None:
    """The signatures of a built-in function, an operator or one of its overloads; None where it is none of these."""
    if isinstance(target, tensor.library.Overload):
        by_number = "Scalar" in str(target).rpartition(".")[2]
        return list(_forms(target.operator, [by_number], with_out=False))
    operators = _operators(target)
    if operators is None:
        return None
    found = [signature for operator in operators for signature in _forms(operator, [False, True])]
    return list({str(signature): signature for signature in found}.values())


def _operators(target: Any) -> list[Any] | None:
    library = tensor.library
    if isinstance(target, library.Operator):
        return [target, *map(library.op, getattr(target, "_further", ()))]
    if not inspect.isbuiltin(target):
        return None
    name = (target.__doc__ or "").partition("(")[0]  # an alias has the text of what it stands for
    try:
        return _operators(library.op(name))
    except LookupError:
        return None


def _forms(operator: Any, by_number: list[bool], with_out: bool = True) -> Iterator[inspect.Signature]:
    """With a tensor or a number as further operand, and with a place for the result."""
    given = [argument for argument in operator.arguments if not argument.is_out]
    operands = [argument.name for argument in given if argument.type == "Operand"][1:]
    results = [tensor.Tensor] * len(operator.results)
    gives = results[0] if len(results) == 1 else tuple[tuple(results)] if results else None  # type: ignore[misc]
    for number in by_number if operands else [False]:
        parameters = [_parameter(argument, number and argument.name in operands) for argument in given]
        if None in parameters:
            return
        yield from _made(parameters, gives)
        if with_out and _has_out(operator):
            out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, annotation=gives)
            yield from _made([*parameters, out], gives)


def _has_out(operator: Any) -> bool:
    try:
        tensor.library.op(f"{operator.name}.out")
    except LookupError:
        return False
    return True


def _made(parameters: list[Any], gives: Any) -> Iterator[inspect.Signature]:
    try:
        yield inspect.Signature(parameters, return_annotation=gives)
    except ValueError:  # an argument without a default behind one that has one
        return


def _parameter(argument: Any, number: bool) -> inspect.Parameter | None:
    name = "input" if argument.name == "self" else argument.name
    if keyword.iskeyword(name):
        return None
    kind = (
        inspect.Parameter.KEYWORD_ONLY if argument.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    )
    default = argument.default if argument.has_default else _EMPTY
    return inspect.Parameter(name, kind, default=default, annotation=_annotation(argument, number))


def _annotation(argument: Any, number: bool) -> Any:
    kinds = {
        **_PLAIN, "Tensor": tensor.Tensor, "DType": tensor.dtype, "Device": tensor.device,
        "Generator": tensor.Generator,
    }  # fmt: skip
    kind = numbers.Number if number else kinds.get(argument.type, Any)
    made = list[kind] if argument.list else kind  # type: ignore[valid-type]
    return Optional[made] if argument.optional else made  # noqa: UP045


def fits(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], types: Any) -> bool:
    """Whether arguments of these types, where they are known, suit a signature."""
    from taeda.fx.operator_schemas import type_matches

    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return False
    if types is None:
        return True
    arg_types, kwarg_types = types
    told = signature.bind(*arg_types, **(kwarg_types or {})).arguments
    parameters = signature.parameters
    return all(
        type_matches(parameters[name].annotation, told[name]) for name in bound.arguments if name in told
    )
