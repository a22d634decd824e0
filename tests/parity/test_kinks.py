"""First and second derivatives beside PyTorch where the pieces of a function meet, and beyond all bounds."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the reference is PyTorch")

sys.path.insert(0, str(Path(__file__).parent))
from op_samples import array  # noqa: E402

import taeda  # noqa: E402
from taeda_testing import all_records  # noqa: E402
from taeda_testing.record import OpRecord  # noqa: E402

INF, NAN = float("inf"), float("nan")
# At NaN PyTorch differs between whole vectors of elements and those left over: the points fill whole ones.
LANES, LENGTH = 16, 16
COMMON = [0.0, -0.0, 0.25, -0.25, 1.0, -1.0, 2.0, -2.0, 40.0, -40.0]
# Records with kinks, and each set of options among these.
ONE = [
    (record, options)
    for record in all_records()
    for options in {tuple(sorted(kink.options.items())) for kink in record.kinks}
]
TWO = [
    ("huber_loss", {"delta": 1.0, "reduction": "none"}),
    ("l1_loss", {"reduction": "none"}),
    ("mse_loss", {"reduction": "sum"}),
    ("smooth_l1_loss", {"beta": 2.0, "reduction": "none"}),
    ("smooth_l1_loss", {"beta": 0.0, "reduction": "mean"}),
]


def derivatives(library, function, *points):
    """The gradient without a graph of its own, with one, and the gradient of that, under uneven weights."""
    leaves = [library.tensor(p, dtype=library.float64, requires_grad=True) for p in points]
    out = function(*leaves)
    weight = library.tensor(
        (np.arange(out.numel()) % 5 + 1.0).reshape(tuple(out.shape)), dtype=library.float64
    )
    (plain,) = library.autograd.grad(out, leaves[:1], weight, retain_graph=True)
    (first,) = library.autograd.grad(out, leaves[:1], weight, create_graph=True)
    if not first.requires_grad:
        return [plain, first, library.zeros_like(first)]
    try:
        (second,) = library.autograd.grad(first.sum(), leaves[:1], allow_unused=True)
    except RuntimeError as error:
        assert library is torch and "is not implemented" in str(error)
        return [plain, first]
    return [plain, first, library.zeros_like(first) if second is None else second]


def function(library, name, options):
    found = getattr(library.nn.functional, name, None) or getattr(library, name)
    return partial(found, **options)


def compare(name, options, *points):
    ours, theirs = (
        derivatives(library, function(library, name, options), *points) for library in (taeda, torch)
    )
    known = True
    for which, a, b in zip(
        ("gradient", "recorded gradient", "second derivative"),
        map(array, ours),
        map(array, theirs),
        strict=False,
    ):
        # A derivative of what is no number says nothing, nor does one that overflowed in PyTorch on its way.
        compared = known & (~np.isnan(b) if which == "second derivative" else True)
        # PyTorch rounds the sixth of hardsigmoid to float32.
        text = f"{which} of {name} at {points[0][:LENGTH]}"
        wanted = np.where(compared, b, a)
        np.testing.assert_allclose(a, wanted, 1e-7, 1e-12, err_msg=text)
        known = ~np.isnan(b)


@pytest.mark.parametrize(("record", "options"), ONE, ids=lambda v: v.name if isinstance(v, OpRecord) else "")
def test_pieces_of_a_function_meet_as_in_pytorch(record, options):
    points = [kink.at for kink in record.kinks if tuple(sorted(kink.options.items())) == options]
    compare(record.name, dict(options), (COMMON + points) * LANES)


@pytest.mark.parametrize(("name", "options"), TWO, ids=lambda v: v if isinstance(v, str) else "")
def test_pieces_of_a_loss_meet_as_in_pytorch(name, options):
    points = [*COMMON, INF, -INF, NAN] * LANES
    compare(name, options, points, [0.0] * len(points))
