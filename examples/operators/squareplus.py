"""An operator of one's own, a smooth relu, with the record that gives it every check of `taeda-testing`."""

from __future__ import annotations

import numpy as np

import taeda
from taeda_testing import OpRecord
from taeda_testing.sampling import unary
from taeda_testing.wrong import wrong_call

lib = taeda.library.Library("example")


@lib.operator("example::squareplus(Tensor self, float b=4.0) -> Tensor")
def squareplus(self: taeda.Tensor, b: float) -> taeda.Tensor:
    """(self + sqrt(self**2 + b)) / 2."""
    return (self + (self * self + b).sqrt()) / 2


RECORDS = [
    OpRecord(
        "squareplus",
        lambda x, b=4.0: (x + np.sqrt(x * x + np.asarray(b, x.dtype))) / 2,
        unary(b=2.5),
        namespace="example",
        differentiable=True,
        half="largest",  # several steps, each rounded
        errors=(wrong_call(TypeError, "squareplus b", np.zeros(2, np.float32), "wide"),),
    ),
]
