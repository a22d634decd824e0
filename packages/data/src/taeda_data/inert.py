"""Data sets whose samples are plainly parts of arrays, so that reading them draws no random number.

Seeding all generators for a batch and bringing them back takes as long as reading some 30 of the smallest samples. A
data set whose ``__getitem__`` calls nothing and only indexes arrays and tensors that it holds, as ``return self.x[i],
self.y[i]`` does, can do without. That is told from the function's own instructions: whatever is not in the list here,
any call above all, and whatever is held that is no array, number or text, counts as something that may draw.
"""

from __future__ import annotations

import dis
import functools
import inspect
import itertools
from collections.abc import Callable
from types import CodeType, FunctionType, NoneType
from typing import Any

import numpy as np

from taeda_data.dataset import IterableDataset
from taeda_registry.slots import tensor

#: Instructions that run no code of others where what they work on is inert; of all supported versions of Python.
_INSTRUCTIONS = frozenset(
    (
        *(
            "RESUME",
            "NOP",
            "CACHE",
            "LOAD_CONST",
            "LOAD_SMALL_INT",
            "LOAD_ATTR",
            "UNARY_NEGATIVE",
            "COMPARE_OP",
        ),
        *(
            "BINARY_SUBSCR",
            "BINARY_SLICE",
            "BINARY_OP",
            "COPY",
            "SWAP",
            "POP_TOP",
            "RETURN_VALUE",
            "RETURN_CONST",
        ),
        *(
            "LOAD_FAST",
            "LOAD_FAST_CHECK",
            "LOAD_FAST_BORROW",
            "LOAD_FAST_LOAD_FAST",
            "LOAD_FAST_BORROW_LOAD_FAST_BORROW",
        ),
        *("STORE_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"),
        *("BUILD_TUPLE", "BUILD_LIST", "BUILD_MAP", "BUILD_CONST_KEY_MAP", "BUILD_SLICE"),
    )
)
_PLAIN = (int, float, complex, bool, str, bytes, NoneType, range)


def _is_inert(value: Any, depth: int = 3) -> bool:
    """Whether an object stays as it is and runs no code of others, whatever operator is applied to it."""
    kind = type(value)
    if kind in (np.ndarray, np.memmap):
        return not value.dtype.hasobject
    if kind is tuple and depth and len(value) <= 64:
        return all(_is_inert(item, depth - 1) for item in value)
    return kind in _PLAIN or kind is tensor.Tensor


def _takes_attributes_only(steps: list[dis.Instruction], owner: str) -> bool:
    """Whether an object is used for nothing but its attributes: its class may define operators."""
    for step, then in itertools.pairwise(steps):
        if "FAST" not in step.opname:
            continue
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if owner in (names if "STORE" in step.opname else names[:-1]):
            return False
        if names[-1] == owner and then.opname != "LOAD_ATTR":
            return False
    return True


def _reads_only(function: Any) -> bool:
    """Whether a function of an object and an index calls nothing."""
    return type(function) is FunctionType and _is_without_calls(function.__code__)


@functools.lru_cache(256)
def _is_without_calls(code: CodeType) -> bool:
    more = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code.co_argcount != 2 or code.co_kwonlyargcount or code.co_flags & more:
        return False
    if code.co_freevars or code.co_cellvars:
        return False
    steps = list(dis.get_instructions(code))
    known = all(step.opname in _INSTRUCTIONS for step in steps)
    return known and _takes_attributes_only(steps, code.co_varnames[0])


def draws_nothing(dataset: Any) -> Callable[[], bool]:
    """A function that says whether reading samples of a data set by plain ints draws no random number, as it is now."""
    kind, held = type(dataset), getattr(dataset, "__dict__", None)
    function = getattr(kind, "__getitem__", None)
    if (
        type(held) is not dict
        or isinstance(dataset, IterableDataset)
        or "__getitem__" in held
        or hasattr(dataset, "__getitems__")
        or hasattr(kind, "__getattr__")
        or kind.__getattribute__ is not object.__getattribute__
        or not _reads_only(function)
    ):
        return lambda: False
    names = function.__code__.co_names  # type: ignore[union-attr]
    # What stands in the class may be a property.
    if any(hasattr(kind, name) for name in names):
        return lambda: False
    known = [(name, held[name]) for name in names if name in held]
    if not all(_is_inert(value) for _, value in known):
        return lambda: False

    def stays() -> bool:
        for name, value in known:  # noqa: SIM110 - a generator costs as much as a sample
            if held.get(name) is not value:
                return False
        return True

    return stays
