"""The words that records are written in: builders of whole records, and where samples and wrong calls come from.

Builders of records, in ``taeda_testing.vocabulary``:

* ``OpRecord(name, reference, samples, dtypes)``: any operator; its docstring names all further facts.
* ``differentiable(...)``: the same, with gradients.
* ``with_errors(name, reference, samples, *errors)``: the same, of all dtypes, with wrong calls.
* ``composed(...)``: an operator of several differentiable steps, in which digits may cancel.
* ``function_of_one(name, reference, low, high)``: a function of each element; results in float64 are rounded.
* ``function_of_two(name, reference, dtypes)``: a function of two operands that broadcast.

Samples, in ``taeda_testing.sampling``: ``unary`` and ``binary`` give arrays of every shape and pairs that broadcast,
``reduction`` an array with every ``dim`` and ``keepdim``, ``calls`` arrays of given shapes with further arguments,
``lists`` the same with lists of arrays. Each returns a function ``(dtype, rng) -> samples`` that makes its arrays only
when it is called. ``mostly_zero`` and ``with_masks`` are such functions. ``with_axis`` and ``float_result`` turn
functions of NumPy into references.

``kinks`` tells of points at which derivatives are special, ``NEARLY_EXACT`` how exact values usually are.

Wrong calls, in ``taeda_testing.wrong``: ``wrong_call(error, words, *args)`` one call, ``misfit(name, *shapes)`` one
with zeros of these shapes, ``broadcast(name)``, ``dimension(name)`` and ``inner(name, ...)`` the usual ones.

Example:
    >>> record = differentiable("cube", lambda x: x * x * x, unary(-2, 2), NUMBERS, in_place=True)
    >>> record = function_of_one("exp2", np.exp2)
    >>> record = function_of_two("hypot", np.hypot, FLOATS)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from taeda_testing.record import ALL, COMPLEX, FLOATS, NUMBERS, ErrorSample, Kink, OpRecord
from taeda_testing.sampling import binary, float_result, unary
from taeda_testing.wrong import broadcast

#: Dtypes of the functions that give floating numbers of any numbers.
WITH_FLOAT_RESULT = ("bool", "int32", "int64", "uint8", *FLOATS)
WITH_INEXACT_RESULT = (*WITH_FLOAT_RESULT, *COMPLEX)

differentiable = partial(OpRecord, differentiable=True)

#: How exact functions of one argument are, as a rule.
NEARLY_EXACT = {"float32": (2e-6, 1e-7), "float64": (2e-14, 0.0)}


def with_errors(
    name: str, reference: Any, samples: Any, *errors: ErrorSample, dtypes: Any = ALL, **more: Any
) -> OpRecord:
    """`OpRecord`, with wrong calls as its last positional arguments."""
    return OpRecord(name, reference, samples, dtypes, errors=errors, **more)


def composed(
    name: str, reference: Any, samples: Any, dtypes: tuple[str, ...] = FLOATS, **more: Any
) -> OpRecord:
    """An operator of several differentiable steps, in which digits may cancel."""
    return OpRecord(name, reference, samples, dtypes, **{"differentiable": True, "cancels": True, **more})


def kinks(slopes: dict[float, float], *others: float, **options: Any) -> tuple[Kink, ...]:
    """Points of a function with their derivatives, and others at which PyTorch is followed; under the options."""
    known = tuple(Kink(at, slope, options) for at, slope in slopes.items())
    return known + tuple(Kink(at, None, options) for at in others)


def rounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of floats computed in float64 or complex128 and rounded to its operand's dtype."""
    wide = {"float32": np.float64, "complex64": np.complex128}

    def call(x: np.ndarray) -> np.ndarray:
        found = np.asarray(function(x.astype(wide.get(x.dtype.name, x.dtype))))
        return found.astype(x.dtype) if x.dtype.name in wide else found

    return float_result(call)


def function_of_one(
    name: str,
    function: Callable[..., Any],
    low: float = -4,
    high: float = 4,
    dtypes: tuple[str, ...] = WITH_FLOAT_RESULT,
    special: bool = True,
    **more: Any,
) -> OpRecord:
    """A mathematical function of each element, with in-place and out= forms.

    Args:
        name, function: of the operator, and its reference.
        low, high: where the function is smooth and defined.
        dtypes: those of the elements.
        special: whether it is defined at zeros, infinities and NaN too.
        more: further facts, as for `OpRecord`.
    """
    facts = {"differentiable": True, "in_place": True, "out": True, "accuracy": NEARLY_EXACT, **more}
    return OpRecord(name, rounded(function), unary(low, high, special=special), dtypes, **facts)


def function_of_two(
    name: str, function: Callable[..., Any], dtypes: tuple[str, ...] = NUMBERS, **more: Any
) -> OpRecord:
    """A function of two operands, element by element, with in-place and out= forms; it refuses what does not broadcast.

    Args:
        name, function: of the operator, and its reference.
        dtypes: those of the elements.
        more: further facts, as for `OpRecord`; `samples` where some operands must be avoided.
    """
    facts = {"samples": binary(special=True), "differentiable": True, "in_place": True, "out": True, **more}
    facts["errors"] = (*facts.get("errors", ()), *broadcast(name))
    return OpRecord(name, function, facts.pop("samples"), dtypes, **facts)
