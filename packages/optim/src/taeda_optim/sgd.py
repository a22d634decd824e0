"""Stochastic gradient descent with momentum (Sutskever et al., ICML 2013)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taeda_optim.optimizer import Optimizer, check_range, fused
from taeda_registry.slots import tensor


class SGD(Optimizer):
    """Gradient descent: ``p -= lr * d`` with ``d`` the gradient, its momentum or Nesterov's look-ahead.

    Args:
        params: see `Optimizer`.
        lr: learning rate.
        momentum: share of the last step that is kept.
        dampening: share of the gradient that momentum leaves out.
        weight_decay: times the parameter, added to the gradient.
        nesterov: look ahead along the momentum; needs momentum > 0 and dampening 0.
        maximize: climb instead of descend.
        foreach, differentiable, fused: accepted as in PyTorch; one fused call is always used where the provider has it.

    Raises:
        ValueError: options out of range.

    Example:
        >>> optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_range("SGD", "lr", float(lr), 0)
        check_range("SGD", "momentum", momentum, 0)
        check_range("SGD", "weight_decay", weight_decay, 0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                f"SGD: argument 'nesterov' needs momentum > 0 and dampening 0, found momentum {momentum}, dampening {dampening}"
            )
        options = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        super().__init__(params, {**options, "nesterov": nesterov, "maximize": maximize})

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        momentum = group["momentum"]
        if not momentum:
            self._apply(group, params, grads, [], True)
            return
        # The first gradient of a parameter becomes its momentum undamped, so new and old ones go in separate calls.
        known = [
            "momentum_buffer" in self.state[p] and self.state[p]["momentum_buffer"] is not None
            for p in params
        ]
        for first in (True, False):
            some = [i for i, k in enumerate(known) if k is not first]
            if some:
                chosen = [params[i] for i in some]
                if first:
                    for p in chosen:
                        self.state[p]["momentum_buffer"] = tensor.zeros_like(p)
                buffers = [self.state[p]["momentum_buffer"] for p in chosen]
                self._apply(group, chosen, [grads[i] for i in some], buffers, first)

    def _apply(
        self, group: dict[str, Any], params: list[Any], grads: list[Any], buffers: list[Any], first: bool
    ) -> None:
        call = fused("_fused_sgd_")
        options = (float(group["lr"]), group["momentum"], group["dampening"], group["weight_decay"])
        if call is not None:
            call(params, grads, buffers, *options, group["nesterov"], group["maximize"], first)
            return
        update_sgd(params, grads, buffers, *options, group["nesterov"], group["maximize"], first)


def update_sgd(
    params: list[Any],
    grads: list[Any],
    buffers: list[Any],
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
    first_step: bool,
) -> None:
    """The update in ordinary tensor operations: what a fused call must equal."""
    for i, (param, gradient) in enumerate(zip(params, grads, strict=True)):
        direction = -gradient if maximize else gradient
        if weight_decay:
            direction = direction.add(param, alpha=weight_decay)
        if momentum:
            buffer = buffers[i]
            if first_step:
                buffer.copy_(direction)
            else:
                buffer.mul_(momentum).add_(direction, alpha=1 - dampening)
            direction = direction.add(buffer, alpha=momentum) if nesterov else buffer
        param.add_(direction, alpha=-lr)
