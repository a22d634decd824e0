"""The package `functorch` of programs that PyTorch brings along: older names of what `taeda.func` has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from taeda import _higher_order_ops as control_flow
from taeda._functorch import aot_autograd as compile
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
from taeda.func._modules import replace_all_batch_norm_modules_
from taeda.func._vmap import _process_batched_inputs
from taeda.fx.experimental.proxy_tensor import make_fx
from taeda.version import __version__

__path__: list[str] = []  # `functorch.compile` stands below it

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "__version__", "chunk_vmap", "combine_state_for_ensemble",
    "compile", "control_flow", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "make_functional", "make_functional_with_buffers", "make_fx", "replace_all_batch_norm_modules_", "vjp", "vmap",
]  # fmt: skip


def chunk_vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable[..., Any]:
    """`vmap` whose batch is computed in so many chunks, one after the other.

    Raises:
        ValueError: `chunks` is not at least 1.
    """
    if not isinstance(chunks, int) or chunks < 1:
        raise ValueError(f"chunk_vmap: argument 'chunks' is {chunks!r}, expected an integer of at least 1")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        size = _process_batched_inputs(in_dims, args, func)[0]
        return vmap(func, in_dims, out_dims, randomness, chunk_size=max(1, -(-size // chunks)))(
            *args, **kwargs
        )

    return mapped
