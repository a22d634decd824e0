"""Adagrad (Duchi et al., JMLR 2011) and RMSprop (Hinton, lecture 6 of Neural Networks for Machine Learning, 2012)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taeda_optim.optimizer import Optimizer, check_range
from taeda_registry.slots import tensor


def _prepared(group: dict[str, Any], param: Any, grad: Any) -> Any:
    grad = -grad if group["maximize"] else grad
    return grad.add(param, alpha=group["weight_decay"]) if group["weight_decay"] else grad


class RMSprop(Optimizer):
    """Steps divided by the root of a running mean of squared gradients; options and defaults as in PyTorch."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **_accepted: Any,
    ) -> None:
        for name, value in (
            ("lr", lr),
            ("eps", eps),
            ("momentum", momentum),
            ("weight_decay", weight_decay),
            ("alpha", alpha),
        ):
            check_range("RMSprop", name, value, 0)
        options = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay}
        super().__init__(
            params, {**options, "momentum": momentum, "centered": centered, "maximize": maximize}
        )

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        squares = self._buffers(params, "square_avg")
        momenta = self._buffers(params, "momentum_buffer") if group["momentum"] else None
        means = self._buffers(params, "grad_avg") if group["centered"] else None
        for i, (param, gradient) in enumerate(zip(params, grads, strict=True)):
            grad = _prepared(group, param, gradient)
            squares[i].mul_(group["alpha"]).addcmul_(grad, grad, value=1 - group["alpha"])
            spread = squares[i]
            if means is not None:
                means[i].lerp_(grad, 1 - group["alpha"])
                spread = spread.addcmul(means[i], means[i], value=-1)
            denominator = spread.sqrt().add_(group["eps"])
            if momenta is not None:
                momenta[i].mul_(group["momentum"]).addcdiv_(grad, denominator)
                param.add_(momenta[i], alpha=-group["lr"])
            else:
                param.addcdiv_(grad, denominator, value=-group["lr"])


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients; options and defaults as in PyTorch."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **_accepted: Any,
    ) -> None:
        for name, value in (("lr", lr), ("lr_decay", lr_decay), ("weight_decay", weight_decay), ("eps", eps)):
            check_range("Adagrad", name, value, 0)
        check_range("Adagrad", "initial_accumulator_value", initial_accumulator_value, 0)
        options = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, {**options, "initial_accumulator_value": initial_accumulator_value})

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        for param, gradient in zip(params, grads, strict=True):
            state = self.state[param]
            if "sum" not in state:
                state["sum"] = tensor.full_like(param, group["initial_accumulator_value"])
            state["step"] = state.get("step", 0) + 1
            grad = _prepared(group, param, gradient)
            rate = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
            state["sum"].addcmul_(grad, grad, value=1)
            param.addcdiv_(grad, state["sum"].sqrt().add_(group["eps"]), value=-rate)
