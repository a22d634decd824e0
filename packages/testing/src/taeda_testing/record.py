"""OpRecord: what tests need to know of an operator, independent of who implements it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
REALS = (*INTEGERS, *FLOATS)
NUMBERS = (*REALS, *COMPLEX)
ALL = ("bool", *NUMBERS)
FLOATS_AND_COMPLEX = (*FLOATS, *COMPLEX)


@dataclass
class Sample:
    """One call: NumPy arrays stand for tensors, NumPy dtypes for dtypes, everything else is passed as it is.

    Attributes:
        args, kwargs: of the call.
        note: why the sample is not for gradients; empty when it is.
        cut: by position of an argument, where (bool) its gradient is zero by definition, whatever the value depends on.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    cut: dict[int, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class ErrorSample:
    """A wrong call, the exception it must end in, and words of its message."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    error: type[Exception] | tuple[type[Exception], ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class OpRecord:
    """An operator and its independent reference.

    Attributes:
        name: Python name of the function, or of the method where there is no function.
        reference: the same function on NumPy arrays.
        samples: ``(dtype name, random generator) -> samples``.
        dtypes: dtypes of the inputs that are supported.
        gradient: real dtypes in which gradients are checked, () for none; see ``differentiated``.
        second: whether second derivatives are checked too.
        constant: positions of arguments that are not differentiated, weights of classes for instance.
        writes: positions of the arguments that the function writes to, its results apart.
        rtol, atol: by dtype name of the compared values; missing ones use the defaults of the runner.
        exact_dtype: the result's dtype must be the reference's.
        namespace: "" for top-level functions, "ops" for operators of neural networks.
        in_place: has an in-place form. out: has an out= form.
        creates: makes a tensor from none and is told the device.
        cancels: gradients are sums whose terms may cancel: their error is measured at the size of the terms.
        row_major: the first argument is given in row-major order only, not in other layouts.
        errors: wrong calls; those common to many operators come from ``taeda_testing.wrong``.
    """

    name: str
    reference: Callable[..., Any]
    samples: Callable[[str, np.random.Generator], Iterator[Sample]]
    dtypes: tuple[str, ...] = FLOATS
    gradient: tuple[str, ...] = ()
    constant: tuple[int, ...] = ()
    second: bool = True
    rtol: dict[str, float] = field(default_factory=dict)
    atol: dict[str, float] = field(default_factory=dict)
    exact_dtype: bool = True
    namespace: str = ""
    in_place: bool = False
    out: bool = False
    creates: bool = False
    cancels: bool = False
    row_major: bool = False
    writes: tuple[int, ...] = ()
    errors: tuple[ErrorSample, ...] = ()
    family: str = ""

    @property
    def differentiated(self) -> tuple[str, ...]:
        """Dtypes in which gradients are checked: those of ``gradient``, and complex128 where the operator takes it."""
        more = ("complex128",) if self.gradient and "complex128" in self.dtypes else ()
        return tuple(dict.fromkeys((*self.gradient, *more)))


@cache
def all_records() -> tuple[OpRecord, ...]:
    """Every record of every family, families in alphabetical order."""
    package = importlib.import_module("taeda_testing.records")
    wrong = importlib.import_module("taeda_testing.wrong").WRONG
    found: list[OpRecord] = []
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        found += importlib.import_module(f"taeda_testing.records.{module}").RECORDS
    return tuple(replace(r, errors=(*r.errors, *wrong.get(r.name, ()))) for r in found)


def find_record(name: str) -> OpRecord:
    """The record of an operator; KeyError when there is none."""
    for record in all_records():
        if record.name == name:
            return record
    raise KeyError(f"no record of operator '{name}'")
