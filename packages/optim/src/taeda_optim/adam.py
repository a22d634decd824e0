"""Adam (Kingma and Ba, ICLR 2015) and AdamW (Loshchilov and Hutter, ICLR 2019)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from taeda_optim.optimizer import Optimizer, check_range, fused


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and its square, corrected for their start at zero.

    Args:
        params: see `Optimizer`.
        lr: learning rate.
        betas: decay of the two running means.
        eps: added to the denominator.
        weight_decay: times the parameter, added to the gradient.
        amsgrad: divide by the largest second moment so far (Reddi et al., ICLR 2018).
        maximize: climb instead of descend.
        foreach, capturable, differentiable, fused: accepted as in PyTorch; one fused call is always used where the
            provider has it.

    Raises:
        ValueError: options out of range.
    """

    _decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        kind = type(self).__name__
        check_range(kind, "lr", float(lr), 0)
        check_range(kind, "eps", eps, 0)
        check_range(kind, "betas[0]", betas[0], 0, 1)
        check_range(kind, "betas[1]", betas[1], 0, 1)
        check_range(kind, "weight_decay", weight_decay, 0)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**options, "amsgrad": amsgrad, "maximize": maximize})

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        averages = self._buffers(params, "exp_avg")
        squares = self._buffers(params, "exp_avg_sq")
        largest = self._buffers(params, "max_exp_avg_sq") if group["amsgrad"] else []
        steps = []
        for param in params:
            state = self.state[param]
            state["step"] = state.get("step", 0) + 1
            steps.append(state["step"])
        beta1, beta2 = group["betas"]
        call = fused("_fused_adam_") or update_adam
        call(
            params, grads, averages, squares, largest, steps, float(group["lr"]), beta1, beta2, group["eps"],
            group["weight_decay"], group["amsgrad"], group["maximize"], self._decoupled,
        )  # fmt: skip


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter directly (``p *= 1 - lr * weight_decay``)."""

    _decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)


def update_adam(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    max_exp_avg_sqs: list[Any],
    steps: list[int],
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    amsgrad: bool,
    maximize: bool,
    decoupled: bool,
) -> None:
    """The update in ordinary tensor operations: what a fused call must equal."""
    for i, (param, gradient) in enumerate(zip(params, grads, strict=True)):
        grad = -gradient if maximize else gradient
        if weight_decay and decoupled:
            param.mul_(1 - lr * weight_decay)
        elif weight_decay:
            grad = grad.add(param, alpha=weight_decay)
        average, square = exp_avgs[i], exp_avg_sqs[i]
        average.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction = math.sqrt(1 - beta2 ** steps[i])
        if amsgrad:
            max_exp_avg_sqs[i].copy_(max_exp_avg_sqs[i].maximum(square))
            square = max_exp_avg_sqs[i]
        denominator = (square.sqrt() / correction).add_(eps)
        param.addcdiv_(average, denominator, value=-lr / (1 - beta1 ** steps[i]))
