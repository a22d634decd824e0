"""The package `functorch` of programs that PyTorch brings along: older names of what `taeda.func` has."""

from __future__ import annotations

from taeda._functorch.make_functional import (
    FunctionalModule,
    FunctionalModuleWithBuffers,
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)
from taeda.func import (
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    vjp,
    vmap,
)
from taeda.version import __version__

__path__: list[str] = []  # `functorch.compile` stands below it

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "__version__", "combine_state_for_ensemble", "functionalize",
    "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers",
    "vjp", "vmap",
]  # fmt: skip
