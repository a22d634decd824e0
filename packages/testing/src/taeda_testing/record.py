"""OpRecord: what tests need to know of an operator, independent of who implements it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache
from typing import Any, Literal

import numpy as np

from taeda_registry.discovery import installed

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
class Kink:
    """A point of a function of each element at which its pieces meet, it is flat, saturates or ends.

    Attributes:
        at: the element.
        slope: the derivative there; None where it is what PyTorch chose.
        options: keyword arguments of the call.
    """

    at: float
    slope: float | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OpRecord:
    """An operator and its independent reference.

    Attributes:
        name: Python name of the function, or of the method where there is no function.
        reference: the same function on NumPy arrays.
        samples: ``(dtype name, random generator) -> samples``.
        dtypes: dtypes of the inputs that are supported.
        differentiable: whether gradients are checked; see ``differentiated``.
        second: whether second derivatives are checked too.
        constant: positions of arguments that are not differentiated, weights of classes for instance.
        writes: positions of the arguments that the function writes to, its results apart.
        rtol, atol: by dtype name of the compared values; missing ones use the defaults of the runner.
        exact_dtype: the result's dtype must be the reference's.
        namespace: "" for top-level functions, "ops" for those of neural networks, else of a plug-in's operators.
        in_place: has an in-place form. out: has an out= form.
        creates: makes a tensor from none and is told the device.
        values: False where memory is left as it is found: shapes and dtypes are compared, values are not.
        half: at which values the error of float16 and bfloat16 is measured, in units of the last place: at
            "elements" each at its own, at the "largest" where several steps or a gradient by the result round, at ""
            none (the result is of other bits, or up to chance).
        behaviours: checks of the device suite that show what no sample can, the distribution of random numbers for one.
        needs: capabilities without which no call can be computed, whatever the dtypes of its arguments: "complex" where
            real numbers are made complex on the way.
        cancels: gradients are sums whose terms may cancel: their error is measured at the size of the terms.
        row_major: the first argument is given in row-major order only, not in other layouts.
        errors: wrong calls.
        kinks: of a function of each element, the points at which derivatives are compared whatever they are.
        accuracy: of a function of each element, by dtype name its largest error, relative and absolute; empty where it
            is not held to any.
        family: of the operator; the name of the module that the record stands in.
    """

    name: str
    reference: Callable[..., Any]
    samples: Callable[[str, np.random.Generator], Iterator[Sample]]
    dtypes: tuple[str, ...] = FLOATS
    _: KW_ONLY
    differentiable: bool = False
    constant: tuple[int, ...] = ()
    second: bool = True
    rtol: dict[str, float] = field(default_factory=dict)
    atol: dict[str, float] = field(default_factory=dict)
    exact_dtype: bool = True
    namespace: str = ""
    in_place: bool = False
    out: bool = False
    creates: bool = False
    values: bool = True
    half: Literal["elements", "largest", ""] = "elements"
    behaviours: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    cancels: bool = False
    row_major: bool = False
    writes: tuple[int, ...] = ()
    errors: tuple[ErrorSample, ...] = ()
    kinks: tuple[Kink, ...] = ()
    accuracy: dict[str, tuple[float, float]] = field(default_factory=dict)
    family: str = ""

    @property
    def domains(self) -> tuple[tuple[float, float, bool], ...]:
        """Of a function of each element, for each operand: bounds, and whether real ones may be of any value at all.

        Empty for other operators. What draws operands of its own, of other shapes or layouts, draws them from there.
        """
        return getattr(self.samples, "domains", ())

    @property
    def title(self) -> str:
        """The name by which reports and choices call the operator: `scale`, of a plug-in `mypkg::scale`."""
        return self.name if self.namespace in ("", "ops") else f"{self.namespace}::{self.name}"

    @property
    def differentiated(self) -> tuple[str, ...]:
        """Dtypes in which gradients are checked against differences: the widest that the operator takes."""
        return tuple(d for d in ("float64", "complex128") if self.differentiable and d in self.dtypes)


GROUP = "taeda.records"
_added: dict[str, tuple[OpRecord, ...]] = {}


def add_records(family: str, records: Iterable[OpRecord]) -> None:
    """Records of a plug-in's operators, which `all_records` and the conformance kit have from then on.

    An installed plug-in needs no call: modules named by entry points of the group ``taeda.records`` are found.

    Args:
        family: name for the group in reports; records that were added under it before are replaced.
        records: of the operators.

    Raises:
        TypeError: something that is no `OpRecord`.

    Example:
        >>> add_records("mypkg", [OpRecord("scale", lambda x, k: x * k, calls(((3,), 2.0)), namespace="mypkg")])
    """
    records = tuple(records)
    for record in records:
        if not isinstance(record, OpRecord):
            raise TypeError(f"add_records: expected records of family {family!r}, found {record!r}")
    _added[family] = tuple(replace(record, family=family) for record in records)
    all_records.cache_clear()


def _installed() -> Iterator[OpRecord]:
    """Records of installed plug-ins.

    Raises:
        RuntimeError: a module that cannot be imported or has no records; the text names the entry point.
    """
    for point in installed(GROUP):
        try:
            records = point.load().RECORDS
        except Exception as error:
            raise RuntimeError(
                f"records of {point.name!r} ({point.value}) cannot be loaded: {error}"
            ) from error
        yield from (replace(record, family=point.name) for record in records)


@cache
def all_records() -> tuple[OpRecord, ...]:
    """Every record: of taeda's families in alphabetical order, of installed plug-ins, and those that were added."""
    package = importlib.import_module("taeda_testing.records")
    found: list[OpRecord] = []
    for family in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        records = importlib.import_module(f"taeda_testing.records.{family}").RECORDS
        found += [replace(record, family=family) for record in records]
    return (*found, *_installed(), *(record for records in _added.values() for record in records))


def find_record(name: str) -> OpRecord:
    """The record of an operator; KeyError when there is none."""
    for record in all_records():
        if record.name == name:
            return record
    raise KeyError(f"no record of operator '{name}'")
