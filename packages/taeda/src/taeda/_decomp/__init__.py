"""Operators by simpler ones: what programs register, in tables by kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = [
    "core_aten_decompositions", "decomposition_table", "get_decompositions", "global_decomposition_table",
    "meta_table", "pre_autograd_decomposition_table", "register_decomposition", "remove_decompositions",
]  # fmt: skip

#: By kind and operator the functions that compute it of simpler ones.
global_decomposition_table: dict[str, dict[Any, Callable[..., Any]]] = defaultdict(dict)
decomposition_table = global_decomposition_table["post_autograd"]
pre_autograd_decomposition_table = global_decomposition_table["pre_autograd"]
meta_table = global_decomposition_table["meta"]
_KINDS = ("post_autograd", "pre_autograd", "meta")


def _overloads(item: Any) -> list[Any]:
    """The operators that an operator or all forms of one stand for."""
    if isinstance(item, (list, tuple, set, frozenset)):
        return [each for part in item for each in _overloads(part)]
    return [item]


def register_decomposition(
    aten_op: Any, registry: dict[Any, Any] | None = None, *, type: str = "post_autograd", unsafe: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the function computes an operator, or each of several, of simpler ones.

    Args:
        aten_op: The operator, or a list of them.
        registry: Where it is noted down; the table of the kind unless given.
        type: The kind: "post_autograd", "pre_autograd" or "meta".
        unsafe: Accepted for PyTorch's sake.

    Raises:
        ValueError: Another kind. RuntimeError: There is one for the operator already.

    Example:
        >>> @register_decomposition(taeda.ops.aten.square, registry={})
        ... def square(x):
        ...     return x * x
    """
    if type not in _KINDS:
        raise ValueError(f"register_decomposition: argument 'type' must be one of {_KINDS}, found {type!r}")
    table = global_decomposition_table[type] if registry is None else registry

    def take(fn: Callable[..., Any]) -> Callable[..., Any]:
        for operator in _overloads(aten_op):
            if operator in table:
                raise RuntimeError(f"duplicate registrations for {operator}")
            table[operator] = fn
        return fn

    return take


def get_decompositions(aten_ops: Sequence[Any], type: str = "post_autograd") -> dict[Any, Callable[..., Any]]:
    """Of operators those functions that were registered."""
    table = global_decomposition_table[type]
    return {operator: table[operator] for operator in _overloads(list(aten_ops)) if operator in table}


def remove_decompositions(decompositions: dict[Any, Any], aten_ops: Iterable[Any]) -> None:
    """Take the functions of operators out of a table, in place."""
    for operator in _overloads(list(aten_ops)):
        decompositions.pop(operator, None)


def core_aten_decompositions() -> dict[Any, Callable[..., Any]]:
    """What makes an exported program one of few operators: what was registered; composites are taken apart anyway."""
    return dict(decomposition_table)
