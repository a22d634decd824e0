"""Steps of an optimizer on other parameters and states than its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from taeda_optim.optimizer import Optimizer


def _paired(
    optimizer: Optimizer, parameters: dict[str, Any], state_dict: dict[str, Any]
) -> list[tuple[dict[str, Any], dict[str, Any], list[Any]]]:
    """Each group beside its entry of the state_dict and its share of the parameters, in their order."""
    name = "swap_in_optimizer_params_and_state"
    groups = state_dict["param_groups"]
    if len(groups) != len(optimizer.param_groups):
        raise ValueError(
            f"{name}: argument 'swapin_optim_state' has {len(groups)} groups of parameters, expected "
            f"{len(optimizer.param_groups)} as the optimizer"
        )
    total = sum(len(group["params"]) for group in optimizer.param_groups)
    if len(parameters) != total:
        raise ValueError(
            f"{name}: argument 'swapin_parameters' has {len(parameters)} parameters, expected {total} as the "
            "optimizer"
        )
    given, pairs = iter(parameters.values()), []
    for number, (own, other) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        if len(own["params"]) != len(other["params"]):
            raise ValueError(
                f"{name}: group {number} of argument 'swapin_optim_state' has {len(other['params'])} parameters, "
                f"expected {len(own['params'])} as the optimizer"
            )
        pairs.append((own, other, [next(given) for _ in own["params"]]))
    return pairs


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Any], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Within the context, ``optimizer`` works on other parameters and states; at its end it has its own again.

    Args:
        optimizer: One whose state is there, after a step.
        swapin_parameters: Tensors by name, in the order of the optimizer's parameters.
        swapin_optim_state: States and options as `Optimizer.state_dict` gives them. Tensors in it are changed in place;
            what a step adds to it is lost.

    Raises:
        ValueError: Other numbers of groups or parameters than the optimizer has; nothing has changed then.

    Example:
        >>> with swap_in_optimizer_params_and_state(optimizer, dict(copy.named_parameters()), states):
        ...     optimizer.step()
    """
    pairs = _paired(optimizer, swapin_parameters, swapin_optim_state)
    kept_state, kept_groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
    state: defaultdict[Any, Any] = defaultdict(dict)
    try:
        for own, other, params in pairs:
            own.update({key: value for key, value in other.items() if key != "params"}, params=params)
            for param, number in zip(params, other["params"], strict=True):
                state[param] = dict(swapin_optim_state["state"].get(number, {}))
        optimizer.state = state
        yield
    finally:
        optimizer.state = kept_state
        for group, kept in zip(optimizer.param_groups, kept_groups, strict=True):
            group.clear()
            group.update(kept)
