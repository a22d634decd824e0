"""Functions of functions: derivatives and maps over batches of whole programs.

`vmap` computes a program for a batch at once; `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd` and `hessian` differentiate it.
They may stand inside one another in any order.

Example:
    >>> from taeda.func import grad, vmap
    >>> vmap(grad(lambda x: (x**3).sum()))(taeda.tensor([[1.0], [2.0]]))
    tensor([[ 3.],
            [12.]])
"""

from __future__ import annotations

from taeda.func import _function_rules
from taeda.func._gradients import (
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from taeda.func._modules import (
    functional_call,
    functionalize,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from taeda.func._rearrange import rearrange
from taeda.func._vmap import debug_unwrap, vmap

__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "rearrange", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip

_function_rules.install()
