"""Counts of steps: each parameter's state has its own under "step", a tensor of one number as in PyTorch.

The provider may read and raise all counts of a group in one call; what follows from a count is computed with numbers.
"""

from __future__ import annotations

from typing import Any

from taeda_registry.slots import tensor

States = list[dict[str, Any]]

#: States that are one number.
NUMBERS = frozenset({"step", "mu_product", "eta", "mu"})

_native = getattr(tensor, "_C", None)
_next_counts = getattr(_native, "_next_counts", None)
_raise_counts = getattr(_native, "_raise_counts", None)
# Counts are on the cpu, wherever the program's default device is: they are read in every step.
_here = {"device": "cpu"} if hasattr(tensor, "device") else {}


def count_dtype(is_fused: bool | None = None) -> Any:
    """What counts are made in."""
    return tensor.float64 if tensor.get_default_dtype() == tensor.float64 and not is_fused else tensor.float32


def count_of(number: Any) -> Any:
    """A count, from a number."""
    return _number(number, count_dtype())


def _number(number: Any, dtype: Any) -> Any:
    return tensor.tensor(float(number), dtype=dtype, **_here)


def is_number(count: Any) -> bool:
    """Whether it can be counted with: a number, or a tensor of one."""
    return isinstance(count, (int, float)) or (isinstance(count, tensor.Tensor) and count.numel() == 1)


def next_counts(states: States) -> list[int]:
    """The counts including the step that is about to be made; `raise_counts` follows when it has been."""
    counts = _next_counts(states) if _next_counts else None
    if counts is None:
        as_tensors(states)
        counts = [int(state["step"]) + 1 for state in states]
    return counts


def raise_counts(states: States) -> None:
    """Counts one step more in every state."""
    if not (_raise_counts and _raise_counts(states)):
        as_tensors(states)
        for state in states:
            state["step"] += 1


def as_tensors(states: Any) -> None:
    """Makes tensors of counts that are numbers, as in the states of other libraries and of earlier releases.

    What a program keeps among the states of parameters, and is none, is left alone.
    """
    for state in states:
        if isinstance(state, dict) and isinstance(state.get("step"), (int, float)):
            state["step"] = count_of(state["step"])


def numbers_of(params: list[Any], states: States, **first: Any) -> States:
    """The states, their named numbers as tensors: ``first`` where there is none yet.

    They are made as precise as their parameter, so that what follows from them is.
    """
    for param, state in zip(params, states, strict=True):
        for name, value in first.items():
            if state[name] is None:
                doubles = param.dtype in (tensor.float64, getattr(tensor, "complex128", None))
                state[name] = _number(value, tensor.float64 if doubles else count_dtype())
            counted(state, name)
    return states


def counted(state: dict[str, Any], name: str) -> Any:
    """One of a state's numbers as a tensor, which stands there from now on."""
    if not isinstance(state[name], tensor.Tensor):
        state[name] = count_of(state[name])
    return state[name]


def write(number: Any, value: Any) -> None:
    """Puts a value, a number or a tensor of one, into one of a state's numbers."""
    if isinstance(value, tensor.Tensor):
        number.copy_(value)
    else:
        number.fill_(value)
