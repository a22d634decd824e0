"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


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
        TypeError: What is given, or stands under its name in the module, is no tensor.

    Example:
        >>> layer = taeda.nn.Linear(2, 1, bias=False)
        >>> taeda.func.functional_call(layer, {"weight": taeda.ones(1, 2)}, taeda.ones(2))
        tensor([2.])
    """
    from taeda_registry.slots import nn

    given = parameter_and_buffer_dicts
    # One dict is used as it is: what the module assigns to a buffer meanwhile goes into it.
    tensors: dict[str, Any] = given if isinstance(given, dict) else {}
    for each in () if isinstance(given, dict) else given:
        if repeated := tensors.keys() & each.keys():
            raise ValueError(f"functional_call: {sorted(repeated)[0]!r} appears in more than one dictionary")
        tensors.update(each)
    return nn.utils.stateless._functional_call(
        module, tensors, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters and buffers of several modules of one kind, stacked, so that `vmap` can call all of them at once.

    Args:
        models: Modules of one class, all in training or all in evaluation.

    Returns: Parameters by name, with the models in the first dimension, which are leaves of their own; and buffers.

    Raises:
        RuntimeError: There is none, they are of several classes, or not all in one mode.

    Example:
        >>> models = [taeda.nn.Linear(3, 2) for _ in range(4)]
        >>> params, buffers = taeda.func.stack_module_state(models)
        >>> params["weight"].shape
        Size([4, 2, 3])
    """
    from taeda_registry.slots import tensor

    if not models:
        raise RuntimeError("stack_module_state: argument 'models' is empty, expected at least one module")
    if any(model.training != models[0].training for model in models):
        raise RuntimeError("stack_module_state: expected all modules in training, or all in evaluation")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: expected modules of one class")

    def stacked(name: str, parts: list[Any]) -> Any:
        wanted = {part.requires_grad for part in parts}
        if len(wanted) > 1:
            raise RuntimeError(
                f"stack_module_state: {name!r} requires grad in some modules and not in others, expected one of both"
            )
        return tensor.stack([part.detach() for part in parts]).requires_grad_(wanted.pop())

    def together(states: list[dict[str, Any]]) -> dict[str, Any]:
        return {name: stacked(name, [state[name] for state in states]) for name in states[0]}

    return (
        together([dict(model.named_parameters()) for model in models]),
        together([dict(model.named_buffers()) for model in models]),
    )


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let the batch normalisations of a module keep no running statistics, in place; gives the module.

    Only then can training be mapped by `vmap`: the statistics would be shared by all examples.
    """
    for module in root.modules():
        if hasattr(module, "track_running_stats") and hasattr(module, "num_batches_tracked"):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """`func` itself: nothing is traced here, so that what it writes in place needs no replacement.

    Raises:
        RuntimeError: `remove` is neither "mutations" nor "mutations_and_views".
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize: argument 'remove' is {remove!r}, expected 'mutations' or 'mutations_and_views'"
        )
    return func
