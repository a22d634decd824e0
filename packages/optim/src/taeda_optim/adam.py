"""Adam (Kingma and Ba, ICLR 2015) and AdamW (Loshchilov and Hutter, ICLR 2019)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taeda_optim._functional import adam, adamw  # noqa: F401
from taeda_optim.counting import next_counts, raise_counts
from taeda_optim.optimizer import (
    Optimizer,
    add_quotient,
    check_modes,
    check_range,
    check_rate,
    fused,
    number,
    real_view,
)


def check_adam(kind: str, lr: Any, betas: tuple[Any, Any], eps: float, weight_decay: float) -> None:
    """ValueError unless the options that Adam's relatives share are in range."""
    check_rate(kind, lr)
    check_range(kind, "eps", eps, 0)
    check_range(kind, "betas[0]", betas[0], 0, 1)
    check_range(kind, "betas[1]", betas[1], 0, 1)
    check_range(kind, "weight_decay", weight_decay, 0)


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and its square, corrected for their start at zero.

    Args:
        params: see `Optimizer`.
        lr: learning rate.
        betas: decay of the two running means.
        eps: added to the denominator.
        weight_decay: times the parameter, added to the gradient (or decoupled: shrinks the parameter directly).
        amsgrad: divide by the largest second moment so far (Reddi et al., ICLR 2018).
        maximize: climb instead of descend.
        decoupled_weight_decay: as in AdamW.
        differentiable: record the steps, so that gradients flow through them; parameters may then be results.
        foreach, capturable, fused: accepted; one fused call is always used where the provider has it.

    Raises:
        ValueError: options out of range.

    Example:
        >>> optimizer = Adam(model.named_parameters(), lr=1e-3)
    """

    _takes_sparse = False

    _counts = True
    _list_names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")

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
        decoupled_weight_decay: bool = False,
    ) -> None:
        kind = type(self).__name__
        check_adam(kind, lr, betas, eps, weight_decay)
        check_rate(kind, lr, foreach, capturable)
        check_modes(kind, foreach, capturable, differentiable, fused)
        options = {
            "lr": lr,
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
        }
        options |= {"maximize": maximize, "foreach": foreach, "capturable": capturable}
        options |= {"differentiable": differentiable, "fused": fused}
        super().__init__(params, {**options, "decoupled_weight_decay": decoupled_weight_decay})

    def _state_names(self, group: dict[str, Any]) -> set[str]:
        return {"exp_avg", "exp_avg_sq"} | ({"max_exp_avg_sq"} if group["amsgrad"] else set())

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        amsgrad = bool(group["amsgrad"])
        names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if amsgrad else ("exp_avg", "exp_avg_sq")
        states = self._states(params, *names)
        steps = next_counts(states)
        recorded = group["differentiable"]
        beta1, beta2 = group["betas"] if recorded else map(float, group["betas"])
        call = (not self._singly and not recorded and fused("_fused_adam_")) or update_adam
        call(
            params, grads, [s["exp_avg"] for s in states], [s["exp_avg_sq"] for s in states],
            [s["max_exp_avg_sq"] for s in states] if amsgrad else [], steps, number(group), beta1, beta2,
            number(group, "eps"), number(group, "weight_decay"), amsgrad, bool(group["maximize"]),
            bool(group["decoupled_weight_decay"]),
        )  # fmt: skip
        raise_counts(states)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("decoupled_weight_decay", isinstance(self, AdamW))


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter directly (``p *= 1 - lr * weight_decay``); see `Adam`.

    Example:
        >>> weight = torch.ones(2, requires_grad=True)
        >>> optimizer = optim.AdamW([weight], lr=1e-3, weight_decay=0.1)
        >>> weight.square().sum().backward()
        >>> optimizer.step()
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


def update_adam(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    max_exp_avg_sqs: list[Any],
    steps: list[int],
    lr: Any,
    beta1: Any,
    beta2: Any,
    eps: float,
    weight_decay: float,
    amsgrad: bool,
    maximize: bool,
    decoupled: bool,
) -> None:
    """The update in ordinary tensor operations: what a fused call must equal."""
    for i, (param, gradient) in enumerate(zip(params, grads, strict=True)):
        param, grad = real_view(param), real_view(gradient)
        average, square = real_view(exp_avgs[i]), real_view(exp_avg_sqs[i])
        if maximize:
            grad = -grad
        if weight_decay and decoupled:
            param.mul_(1 - lr * weight_decay)
        elif weight_decay:
            grad = grad.add(param, alpha=weight_decay)
        update_moments(average, square, grad, beta1, beta2)
        if amsgrad:
            largest = real_view(max_exp_avg_sqs[i])
            square = largest.copy_(largest.clone().maximum(square))
        denominator = square.sqrt().div((1 - beta2 ** steps[i]) ** 0.5).add_(eps)
        add_quotient(param, average, denominator, -lr / (1 - beta1 ** steps[i]))


def update_moments(average: Any, square: Any, grad: Any, beta1: Any, beta2: Any) -> None:
    """One step of the running means of the gradient and of its square."""
    average.lerp_(grad, 1 - beta1)
    if isinstance(beta2, float):
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    else:
        square.mul_(beta2).add_(grad * grad * (1 - beta2))
