"""An optimizer of parameters that lie in several processes."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import taeda as torch
from taeda.distributed import autograd, rpc
from taeda_registry.forks import held_at_fork

__all__ = ["DistributedOptimizer"]

# Gradients of several trainers come at once: those of one are in ``.grad`` during its step.
_stepping = held_at_fork(threading.Lock())


class _LocalOptimizer:
    """The optimizer of one process, for parameters of its own."""

    def __init__(self, optim_cls: type, parameters: list[torch.Tensor], *args: Any, **kwargs: Any) -> None:
        self.optim = optim_cls(parameters, *args, **kwargs)

    def step(self, context_id: int) -> None:
        """A step by the gradients of a context."""
        gradients = autograd.get_gradients(context_id)
        with _stepping:
            for group in self.optim.param_groups:
                for parameter in group["params"]:
                    parameter.grad = gradients.get(parameter)
            self.optim.step()


def _make(optim_cls: type, parameters: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return rpc.RRef(_LocalOptimizer(optim_cls, [p.local_value() for p in parameters], *args, **kwargs))


def _step(optimizer: Any, context_id: int) -> None:
    optimizer.local_value().step(context_id)


class DistributedOptimizer:
    """An optimizer in each process that has parameters, which take their steps at the same time.

    Steps of several trainers follow one another in each process, in no fixed order.

    Args:
        optimizer_class: The class of the optimizers.
        params_rref: References to the parameters.
        args, kwargs: What the class gets behind the parameters.

    Raises:
        RuntimeError: A process could not make its optimizer.

    Example:
        >>> with dist_autograd.context() as context_id:                              # doctest: +SKIP
        ...     loss = rref.rpc_sync().forward(x).sum()
        ...     dist_autograd.backward(context_id, [loss])
        ...     DistributedOptimizer(optim.SGD, [parameter_rref], lr=0.05).step(context_id)
    """

    def __init__(self, optimizer_class: type, params_rref: Sequence[Any], *args: Any, **kwargs: Any) -> None:
        owned = defaultdict(list)
        for parameter in params_rref:
            owned[parameter.owner()].append(parameter)
        waiting = [
            rpc.rpc_async(owner, _make, args=(optimizer_class, parameters, args, kwargs))
            for owner, parameters in owned.items()
        ]
        self.remote_optimizers = _all_of(waiting, "DistributedOptimizer")

    def step(self, context_id: int) -> None:
        """A step in every process, by the gradients that `distributed.autograd.backward` left in a context.

        Raises:
            RuntimeError: There is no such context, or a step failed; the others were taken.
        """
        autograd._contexts.find(context_id)
        waiting = [
            rpc.rpc_async(optimizer.owner(), _step, args=(optimizer, context_id))
            for optimizer in self.remote_optimizers
        ]
        _all_of(waiting, "DistributedOptimizer.step")


def _all_of(waiting: list[Any], name: str) -> list[Any]:
    """The values; errors of several processes as one."""
    found, errors = [], []
    for future in waiting:
        try:
            found.append(future.wait())
        except Exception as error:
            errors.append(error)
    if errors:
        text = "\n".join(f"{type(error).__name__}: {error}" for error in errors)
        raise RuntimeError(f"{name}: {len(errors)} of {len(waiting)} processes failed:\n{text}") from errors[
            0
        ]
    return found
