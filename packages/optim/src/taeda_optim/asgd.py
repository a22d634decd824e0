"""Averaged stochastic gradient descent (Polyak and Juditsky, 1992)."""

from __future__ import annotations

from typing import Any

from taeda_optim._functional import asgd  # noqa: F401
from taeda_optim.counting import next_counts, numbers_of, raise_counts, write
from taeda_optim.optimizer import (
    Optimizer,
    ParamsT,
    add_scaled,
    check_modes,
    check_range,
    check_rate,
    directed,
    number,
    real_view,
)


class ASGD(Optimizer):
    """Gradient descent with a falling rate, and the mean of the parameters from step ``t0`` on as ``ax`` in the state.

    Args:
        params: see `Optimizer`.
        lr: learning rate.
        lambd: decay of the parameter, and how fast the rate falls.
        alpha: power with which it falls.
        t0: step at which averaging begins.
        weight_decay: times the parameter, added to the gradient.
        maximize: climb instead of descend.
        differentiable: record the steps.
        foreach, capturable: accepted.

    Raises:
        ValueError: options out of range.

    Example:
        >>> weight = torch.ones(2, requires_grad=True)
        >>> optimizer = optim.ASGD([weight], lr=0.01)
        >>> weight.square().sum().backward()
        >>> optimizer.step()
    """

    _takes_sparse = False

    _counts = True
    _list_names = ("mu", "ax", "eta", "step")

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate("ASGD", lr)
        check_range("ASGD", "weight_decay", weight_decay, 0)
        check_modes("ASGD", foreach, capturable, differentiable)
        options = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay}
        options |= {"foreach": foreach, "maximize": maximize, "differentiable": differentiable}
        super().__init__(params, {**options, "capturable": capturable})

    def _state_names(self, group: dict[str, Any]) -> set[str]:
        return {"ax"}

    def _begun(self, group: dict[str, Any], params: list[Any]) -> list[dict[str, Any]]:
        states = self._states(params, "ax", eta=None, mu=None)
        return numbers_of(params, states, eta=number(group), mu=1)

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        lr, lambd = number(group), group["lambd"]
        states = self._begun(group, params)
        for param, gradient, state, step in zip(params, grads, states, next_counts(states), strict=True):
            param, mean = real_view(param), real_view(state["ax"])
            grad = directed(group, param, real_view(gradient))
            eta, mu = state["eta"], float(state["mu"])
            eta = eta.clone() if group["differentiable"] else float(eta)
            param.mul_(1 - lambd * eta)
            add_scaled(param, grad, -eta)
            if mu == 1:
                mean.copy_(param)
            else:
                mean.add_(param - mean, alpha=mu)
            write(state["eta"], lr / (1 + lambd * lr * step) ** group["alpha"])
            write(state["mu"], 1 / max(1, step - group["t0"]))
        raise_counts(states)
