"""Stochastic gradient descent with momentum (Sutskever et al., ICML 2013)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taeda_optim._functional import sgd  # noqa: F401
from taeda_optim.optimizer import (
    Optimizer,
    add_scaled,
    check_modes,
    check_range,
    check_rate,
    number,
    real_view,
)
from taeda_optim.optimizer import fused as fused_call
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
        differentiable: record the steps, so that gradients flow through them; parameters may then be results.
        foreach, fused: accepted; one fused call is always used where the provider has it.

    Raises:
        ValueError: options out of range.

    Example:
        >>> optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    """

    _list_names = ("momentum_buffer",)

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
        check_rate("SGD", lr)
        check_range("SGD", "momentum", momentum, 0)
        check_range("SGD", "weight_decay", weight_decay, 0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                f"SGD: argument 'nesterov' needs momentum > 0 and dampening 0, "
                f"found momentum {momentum} and dampening {dampening} "
                "(Nesterov momentum requires a momentum and zero dampening)"
            )
        options = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        check_modes("SGD", foreach, False, differentiable, fused)
        options |= {"nesterov": nesterov, "maximize": maximize, "foreach": foreach}
        super().__init__(params, {**options, "differentiable": differentiable, "fused": fused})

    def _state_names(self, group: dict[str, Any]) -> set[str]:
        return {"momentum_buffer"} if group["momentum"] else set()

    def _begun(self, group: dict[str, Any], params: list[Any]) -> list[dict[str, Any]]:
        return [self.state[param] for param in params]

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        if not group["momentum"]:
            self._apply(group, params, grads, [], True)
            return
        states = [self.state[param] for param in params]
        fresh = [state.get("momentum_buffer") is None for state in states]
        if True not in fresh:
            self._apply(group, params, grads, [state["momentum_buffer"] for state in states], False)
            return
        # The first gradient of a parameter becomes its momentum undamped, so new and old ones go in separate calls.
        for first in (True, False):
            some = [i for i, new in enumerate(fresh) if new is first]
            if some:
                chosen = [params[i] for i in some]
                steps = [grads[i] for i in some]
                # Of parameters whose class computes for them the gradient's class is the momentum's.
                like = steps if self._singly else chosen
                buffers = [tensor.zeros_like(p) for p in like] if first else _buffers(states, some)
                self._apply(group, chosen, steps, buffers, first)
                for i, buffer in zip(some, buffers, strict=True):
                    states[i]["momentum_buffer"] = buffer

    def _apply(
        self, group: dict[str, Any], params: list[Any], grads: list[Any], buffers: list[Any], first_step: bool
    ) -> None:
        recorded = group["differentiable"]
        call = (not self._singly and not recorded and fused_call("_fused_sgd_")) or update_sgd
        rest = (
            number(group), number(group, "momentum"), number(group, "dampening"),
            number(group, "weight_decay"), bool(group["nesterov"]), bool(group["maximize"]), first_step,
        )  # fmt: skip
        try:
            call(params, grads, buffers, *rest)
        except RuntimeError:
            # A parameter that was given another dtype since keeps its momentum.
            if all(p.dtype == b.dtype for p, b in zip(params, buffers, strict=False)):
                raise
            update_sgd(params, grads, buffers, *rest)


def _buffers(states: list[dict[str, Any]], some: list[int]) -> list[Any]:
    return [states[i]["momentum_buffer"] for i in some]


def update_sgd(
    params: list[Any],
    grads: list[Any],
    buffers: list[Any],
    lr: Any,
    momentum: float,
    dampening: float,
    weight_decay: Any,
    nesterov: bool,
    maximize: bool,
    first_step: bool,
) -> None:
    """The update in ordinary tensor operations: what a fused call must equal."""
    for i, (param, gradient) in enumerate(zip(params, grads, strict=True)):
        param, direction = real_view(param), real_view(gradient)
        if maximize:
            direction = -direction
        if isinstance(weight_decay, tensor.Tensor):
            direction = direction + param * weight_decay
        elif weight_decay:
            direction = direction.add(param, alpha=weight_decay)
        if momentum:
            buffer = real_view(buffers[i])
            if first_step:
                buffer.copy_(direction)
            else:
                buffer.mul_(momentum).add_(direction, alpha=1 - dampening)
            direction = direction.add(buffer, alpha=momentum) if nesterov else buffer
        add_scaled(param, direction, -lr)
