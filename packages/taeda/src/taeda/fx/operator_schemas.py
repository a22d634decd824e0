"""Arguments of calls in the form that signatures give them."""

from __future__ import annotations

import inspect
import numbers
import re
import types
import typing
from typing import Any, NamedTuple

from taeda_registry.slots import nn

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
]

_IN_PLACE = re.compile(r"[a-z0-9]_(\.|$)")  # `add_`, `add_.Tensor`


class ArgsKwargsPair(NamedTuple):
    """Arguments of a call, positional and by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _signature(target: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(target)
    except (TypeError, ValueError):
        return None


def _all_of(target: Any) -> list[inspect.Signature] | None:
    from taeda.fx._signatures import signatures_of

    found = signatures_of(target)
    if found is not None:
        return found
    known = _signature(target)
    return None if known is None else [known]


def get_signature_for_torch_op(op: Any, return_schemas: bool = False) -> Any:
    """The signatures of a function, as a list; None where none is known.

    A built-in function has several: for tensors and numbers as operands, and for each of its overloads. With
    `return_schemas` a pair, whose second item is None.
    """
    signatures = _all_of(op)
    return (signatures, None) if return_schemas else signatures


def check_for_mutable_operation(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuses a call that writes into a tensor that is given: into `out`, or of an operator in place."""
    from taeda.fx._signatures import signatures_of

    signatures = signatures_of(target) or []
    written = "out" in kwargs or _IN_PLACE.search(getattr(target, "__name__", "")) is not None
    if written and any(_bound(signature, args, kwargs, False) is not None for signature in signatures):
        raise RuntimeError(
            f"Tried to trace mutable operation {target.__name__}. FX only supports functional code, so operations "
            "that mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


def normalize_function(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call with the defaults filled in; None where the signature is not known or does not fit.

    Args:
        target: The function.
        args: Positional arguments.
        kwargs: Arguments by name.
        arg_types: Types of the arguments, by which one of several signatures is told.
        kwarg_types: Types of those by name.
        normalize_to_only_use_kwargs: Give all arguments by name.

    Raises:
        RuntimeError: Several signatures fit, and no types are given that tell which is meant.
    """
    from taeda.fx._signatures import fits

    given, signatures = kwargs or {}, _all_of(target) or []
    told = None if arg_types is None else (tuple(arg_types), kwarg_types)
    fitting = [signature for signature in signatures if fits(signature, args, given, told)]
    found = [_bound(signature, args, given, normalize_to_only_use_kwargs) for signature in fitting]
    different = {str(one): one for one in found}
    if len(different) > 1:
        raise RuntimeError(
            f"Tried to normalize arguments to {target} but the schema match was ambiguous! Please provide argument "
            "types to the normalize_arguments() call"
        )
    return found[0] if found else None


def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of a submodule with the defaults filled in; None where the signature does not fit."""
    module = root.get_submodule(target)
    home = nn.Linear.__module__.removesuffix(".modules.linear")
    if not f"{type(module).__module__}.".startswith(f"{home}."):
        return None
    signature = _signature(module.forward)
    return None if signature is None else _bound(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


#: Parameters that cannot be given by name.
_NAMELESS = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)


def _bound(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], only_kwargs: bool
) -> ArgsKwargsPair | None:
    if any(parameter.kind in _NAMELESS for parameter in signature.parameters.values()):
        return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    if only_kwargs:
        return ArgsKwargsPair((), dict(bound.arguments))
    positional = [bound.arguments[name] for name in list(signature.parameters)[: len(args)]]
    rest = {
        name: value
        for name, value in bound.arguments.items()
        if name not in list(signature.parameters)[: len(args)]
    }
    return ArgsKwargsPair(tuple(positional), rest)


def create_type_hint(x: Any) -> Any:
    """A type of list or tuple that holds all of a container's types."""
    if isinstance(x, (list, tuple)):
        if not len(x):
            return list[Any] if isinstance(x, list) else tuple[Any, ...]
        first = x[0]
        same = all(item is first for item in x)
        kind = first if same else Any
        return list[kind] if isinstance(x, list) else tuple[kind, ...]  # type: ignore[valid-type]
    return x


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument's type fits a signature's."""
    if signature_type is argument_type or signature_type in (Any, inspect.Parameter.empty):
        return True
    origin, parts = typing.get_origin(signature_type), typing.get_args(signature_type)
    if origin in (typing.Union, types.UnionType):
        return any(type_matches(part, argument_type) for part in parts)
    if origin is list:
        return _is_list_of(parts[0], argument_type)
    if signature_type in (float, numbers.Number) and argument_type in (int, float, bool, complex):
        return signature_type is not float or argument_type is not complex
    return (
        isinstance(signature_type, type)
        and isinstance(argument_type, type)
        and issubclass(argument_type, signature_type)
    )


def _is_list_of(item: Any, argument_type: Any) -> bool:
    """Whether a type is one of lists or tuples of such items, or a number where several are meant."""
    if argument_type in (list, tuple) or (item is int and argument_type is int):
        return True
    parts = [part for part in typing.get_args(argument_type) if part is not ...]
    return typing.get_origin(argument_type) in (list, tuple) and all(
        type_matches(item, part) for part in parts
    )
