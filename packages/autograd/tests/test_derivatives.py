"""Every derivative formula against numeric differences in float64, first and second order."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from taeda_autograd import gradcheck, gradgradcheck

sys.path.insert(0, str(Path(__file__).parent))
from derivative_cases import indexing, layers, loss, pointwise, reduce, shape

CASES = [
    *pointwise.UNARY,
    *loss.BACKWARD,
    *pointwise.ARITH,
    *reduce.REDUCE,
    *shape.SHAPE,
    *indexing.INDEXING,
    *layers.LINALG,
    *layers.LAYERS,
    *loss.LOSS,
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient_agrees_with_differences(case, make):
    inputs = tuple(make(*shape, low=case.low, high=case.high) for shape in case.shapes)
    assert gradcheck(case.call, inputs)


@pytest.mark.parametrize("case", [c for c in CASES if c.second], ids=str)
def test_second_gradient_agrees_with_differences(case, make):
    inputs = tuple(make(*shape, low=case.low, high=case.high) for shape in case.shapes)
    assert gradgradcheck(case.call, inputs)
