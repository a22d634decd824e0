"""Functions of functions. Those that need transforms of whole programs are not there."""

from __future__ import annotations

from typing import Any

from taeda import _absent

globals().update(
    _absent.functions(
        "taeda.func",
        "functionalize grad grad_and_value hessian jacfwd jacrev jvp linearize stack_module_state vjp vmap",
        "function transforms are not there yet; taeda.autograd.functional has jacobian, hessian, vjp and jvp",
    )
)


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers than its own, which come back afterwards.

    Args:
        module: A module. parameter_and_buffer_dicts: Tensors by the names of `named_parameters` and
        `named_buffers`, in one dict or several. args: Arguments of the call; one that is no tuple stands alone.
        kwargs: Its arguments by name. tie_weights: A tensor given for a parameter stands for all names of that
        parameter. strict: All parameters and buffers must be given.

    Raises:
        ValueError: A key stands in two dicts.
        RuntimeError: With `strict`, names are missing or unknown.

    Example:
        >>> layer = taeda.nn.Linear(2, 1, bias=False)
        >>> taeda.func.functional_call(layer, {"weight": taeda.ones(1, 2)}, taeda.ones(2))
        tensor([2.])
    """
    from taeda_registry.slots import nn

    tensors: dict[str, Any] = {}
    given = parameter_and_buffer_dicts
    for each in (given,) if isinstance(given, dict) else given:
        if repeated := tensors.keys() & each.keys():
            raise ValueError(f"functional_call: {sorted(repeated)[0]!r} appears in more than one dictionary")
        tensors.update(each)
    return nn.utils.stateless.functional_call(
        module, tensors, args, kwargs, tie_weights=tie_weights, strict=strict
    )
