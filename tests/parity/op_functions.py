"""What of taeda stands for an operator of PyTorch's records and for the small functions written around it there."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

import torch

import taeda

SEED = 42
# PyTorch's records call operators through these; the arguments of both libraries are the same then.
OF_TESTS = "torch.testing."


# PyTorch's schemas of these give the arguments in another order.
REORDERED = {
    "slice": lambda self, dim=0, start=None, end=None, step=1: taeda.slice(self, dim, start, end, step),
}


class Missing(Exception):
    """taeda has no such name."""


class NoCounterpart(Exception):
    """A value of PyTorch's that taeda has nothing like."""


def seeded(function: Callable, *arguments: Any, **keywords: Any) -> Any:
    """What PyTorch's records call `wrapper_set_seed`: a random operator from a known seed."""
    taeda.manual_seed(SEED)
    return function(*arguments, **keywords)


def named(path: str) -> Any:
    """What `taeda.<path>` is; `Missing` if there is no such name."""
    found: Any = taeda
    for part in path.split("."):
        if not hasattr(found, part):
            raise Missing(path)
        found = getattr(found, part)
    return found


def method(name: str) -> Callable:
    """The tensor method of that name; `Missing` if there is none."""
    if not hasattr(taeda.Tensor, name):
        raise Missing(f"Tensor.{name}")
    return lambda self, *arguments, **keywords: getattr(self, name)(*arguments, **keywords)


def counterpart(function: Any) -> Any:
    """taeda's function for one of PyTorch's, for a function of its test records, or for a value of these."""
    if isinstance(function, torch.nn.Module):
        made = named("nn." + type(function).__name__)()
        made.__dict__.update({k: v for k, v in vars(function).items() if not k.startswith("_")})
        return made
    if isinstance(function, operator.itemgetter):
        return function
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__name__", "")
    if isinstance(function, types.FunctionType) and module.startswith(OF_TESTS):
        return seeded if name == "wrapper_set_seed" else rebound(function)
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return method(name)
    if module == "torch._tensor":
        return method(name)
    if module == "torch.nn.functional" or module == "torch._C._nn":
        return named(f"nn.functional.{name}")
    return named(name)


def is_record(value: Any) -> bool:
    """Whether it is one of PyTorch's operator records, which can be called too."""
    return hasattr(value, "sample_inputs_func")


def rebound(function: types.FunctionType) -> types.FunctionType:
    """The same function in whose text `torch` is taeda."""
    known = dict(function.__globals__)
    known["torch"] = taeda
    for name in function.__code__.co_names:
        value = known.get(name)
        if isinstance(value, types.FunctionType) and value.__module__.startswith(OF_TESTS):
            known[name] = counterpart(value) if value is not function else value
    closure = tuple(
        types.CellType(counterpart(value) if callable(value) and not is_record(value) else value)
        for value in (c.cell_contents for c in function.__closure__ or ())
    )
    made = types.FunctionType(
        function.__code__, known, function.__name__, function.__defaults__, closure or None
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def function_of(record: Any) -> Callable:
    """taeda's function for a record; `Missing` if there is none."""
    op = record.op
    if record.name in REORDERED:
        return REORDERED[record.name]
    if isinstance(op, types.FunctionType) and op.__module__.startswith(OF_TESTS):
        return rebound(op)
    if isinstance(op, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return method(op.__name__)
    if getattr(op, "__module__", None) == "torch._tensor":
        return method(op.__name__)
    return named(record.name)


def known(record: Any) -> bool:
    """Whether taeda has a function or a method of the operator's name."""
    try:
        named(record.name)
    except Missing:
        return hasattr(taeda.Tensor, record.name) and record.name.isidentifier()
    return True
