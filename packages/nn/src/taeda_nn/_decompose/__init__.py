"""Operators in terms of others, for tensor providers that lack them.

Each function has the name, the arguments and the defaults of the operator that it stands for, and checks nothing that
the operators in it do not check: the functions of ``nn`` call operators, and meet these where there is none. The
modules are loaded when the first operator is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

FAMILIES = (
    "activation",
    "attention",
    "conv",
    "dropout",
    "linalg",
    "loss",
    "norm",
    "pool",
    "reduce",
    "rnn",
    "shape",
)


def find(name: str) -> Callable[..., Any] | None:
    """The decomposition of an operator; of one in place, whose name ends in ``_``, made from the other one's."""
    for family in FAMILIES:
        module = import_module(f"{__name__}.{family}")
        if name in module.__all__:
            return getattr(module, name)
    if name.endswith("_") and not name.endswith("__"):
        from taeda_nn._bind import op

        return _on_copy(name, op(name[:-1]))
    return None


def _on_copy(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """An in-place form that computes on a copy, because backward may need the values that are overwritten."""

    def in_place(input: Any, *args: Any) -> Any:
        return input.copy_(plain(input.clone(), *args))

    in_place.__name__, in_place.__module__ = name, "taeda_nn.functional"  # where programs find it
    return in_place
