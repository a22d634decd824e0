"""Relatives of Adam: Adamax (Kingma and Ba, 2015), NAdam (Dozat, 2016), RAdam (Liu et al., ICLR 2020)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from taeda_optim._functional import adamax, nadam, radam  # noqa: F401
from taeda_optim.adam import check_adam, update_moments
from taeda_optim.counting import next_counts, numbers_of, raise_counts
from taeda_optim.optimizer import (
    Optimizer,
    add_quotient,
    add_scaled,
    check_modes,
    check_range,
    check_rate,
    directed,
    number,
    real_view,
)


def _shared(
    kind: str, options: dict[str, Any], foreach: Any, maximize: bool, capturable: bool, differentiable: bool
) -> dict[str, Any]:
    """The options of all three, checked."""
    check_adam(kind, options["lr"], options["betas"], options["eps"], options["weight_decay"])
    check_rate(kind, options["lr"])
    check_modes(kind, foreach, capturable, differentiable)
    modes = {"maximize": maximize, "foreach": foreach, "capturable": capturable}
    return {**options, **modes, "differentiable": differentiable}


def _betas(group: dict[str, Any]) -> tuple[Any, Any]:
    beta1, beta2 = group["betas"]
    return (beta1, beta2) if group["differentiable"] else (float(beta1), float(beta2))


class Adamax(Optimizer):
    """Adam with the largest decayed gradient so far in place of the second moment.

    Args:
        params: see `Optimizer`.
        lr, betas, eps, weight_decay, maximize: as in `Adam`.

    Raises:
        ValueError: options out of range.

    Example:
        >>> weight = torch.ones(2, requires_grad=True)
        >>> optimizer = optim.Adamax([weight], lr=2e-3)
        >>> weight.square().sum().backward()
        >>> optimizer.step()
    """

    _takes_sparse = False

    _counts = True
    _list_names = ("exp_avg", "exp_inf", "step")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, _shared("Adamax", options, foreach, maximize, capturable, differentiable))

    def _state_names(self, group: dict[str, Any]) -> set[str]:
        return {"exp_avg", "exp_inf"}

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        beta1, beta2 = _betas(group)
        states = self._states(params, "exp_avg", "exp_inf")
        steps = next_counts(states)
        for param, gradient, state, step in zip(params, grads, states, steps, strict=True):
            param = real_view(param)
            grad = directed(group, param, real_view(gradient))
            average, largest = real_view(state["exp_avg"]), real_view(state["exp_inf"])
            average.lerp_(grad, 1 - beta1)
            largest.copy_((largest * beta2).maximum(grad.abs().add_(group["eps"])))
            add_quotient(param, average, largest, -number(group) / (1 - beta1**step))
        raise_counts(states)


class NAdam(Optimizer):
    """Adam with Nesterov's momentum.

    Args:
        params: see `Optimizer`.
        lr, betas, eps, weight_decay, maximize: as in `Adam`.
        momentum_decay: how fast momentum grows to its full value.
        decoupled_weight_decay: as in `AdamW`.

    Raises:
        ValueError: options out of range.

    Example:
        >>> weight = torch.ones(2, requires_grad=True)
        >>> optimizer = optim.NAdam([weight], lr=2e-3)
        >>> weight.square().sum().backward()
        >>> optimizer.step()
    """

    _takes_sparse = False

    _counts = True
    _list_names = ("exp_avg", "exp_avg_sq", "mu_product", "step")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_range("NAdam", "momentum_decay", momentum_decay, 0)
        options: dict[str, Any] = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        options |= {"momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, _shared("NAdam", options, foreach, maximize, capturable, differentiable))

    def _state_names(self, group: dict[str, Any]) -> set[str]:
        return {"exp_avg", "exp_avg_sq"}

    def _begun(self, group: dict[str, Any], params: list[Any]) -> list[dict[str, Any]]:
        states = self._states(params, "exp_avg", "exp_avg_sq", mu_product=None)
        return numbers_of(params, states, mu_product=1)

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        states = self._begun(group, params)
        for param, gradient, state, step in zip(params, grads, states, next_counts(states), strict=True):
            self._update_one(group, real_view(param), real_view(gradient), state, step)
        raise_counts(states)

    @staticmethod
    def _update_one(
        group: dict[str, Any], param: Any, gradient: Any, state: dict[str, Any], step: int
    ) -> None:
        (beta1, beta2), lr = _betas(group), number(group)
        grad, average, square = decayed(group, param, gradient), *_moments(state)
        # The momentum of this step and of the next, after the paper's warm-up.
        now, following = (beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        product = float(state["mu_product"].mul_(now))
        update_moments(average, square, grad, beta1, beta2)
        denominator = square.div(1 - beta2**step).sqrt().add(group["eps"])
        add_quotient(param, grad, denominator, -lr * (1 - now) / (1 - product))
        add_quotient(param, average, denominator, -lr * following / (1 - product * following))


class RAdam(Optimizer):
    """Adam that follows plain momentum until the second moment is known well enough.

    Args:
        params: see `Optimizer`.
        lr, betas, eps, weight_decay, maximize: as in `Adam`.
        decoupled_weight_decay: as in `AdamW`.

    Raises:
        ValueError: options out of range.

    Example:
        >>> weight = torch.ones(2, requires_grad=True)
        >>> optimizer = optim.RAdam([weight], lr=1e-3)
        >>> weight.square().sum().backward()
        >>> optimizer.step()
    """

    _takes_sparse = False

    _counts = True
    _list_names = ("exp_avg", "exp_avg_sq", "step")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        options: dict[str, Any] = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        options["decoupled_weight_decay"] = decoupled_weight_decay
        super().__init__(params, _shared("RAdam", options, foreach, maximize, capturable, differentiable))

    def _state_names(self, group: dict[str, Any]) -> set[str]:
        return {"exp_avg", "exp_avg_sq"}

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        states = self._states(params, "exp_avg", "exp_avg_sq")
        for param, gradient, state, step in zip(params, grads, states, next_counts(states), strict=True):
            self._update_one(group, real_view(param), real_view(gradient), state, step)
        raise_counts(states)

    @staticmethod
    def _update_one(
        group: dict[str, Any], param: Any, gradient: Any, state: dict[str, Any], step: int
    ) -> None:
        (beta1, beta2), lr = _betas(group), number(group)
        grad, average, square = decayed(group, param, gradient), *_moments(state)
        update_moments(average, square, grad, beta1, beta2)
        rate, correction = lr / (1 - beta1**step), 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / correction  # of the equivalent simple average
        if length > 5:
            rectified = math.sqrt(
                (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            )
            denominator = square.sqrt().add(group["eps"])
            add_quotient(param, average, denominator, -rate * rectified * correction**0.5)
        else:
            add_scaled(param, average, -rate)


def _moments(state: dict[str, Any]) -> tuple[Any, Any]:
    return real_view(state["exp_avg"]), real_view(state["exp_avg_sq"])


def decayed(group: dict[str, Any], param: Any, grad: Any) -> Any:
    """The gradient to descend, weight decay applied to it or, decoupled, to the parameter."""
    if not group["decoupled_weight_decay"]:
        return directed(group, param, grad)
    if group["weight_decay"]:
        param.mul_(1 - number(group) * group["weight_decay"])
    return -grad if group["maximize"] else grad
