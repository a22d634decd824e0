"""Lion: steps by the sign of an interpolated momentum."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from taeda_optim import Optimizer
from taeda_registry.slots import tensor


class Lion(Optimizer):
    """Steps of one size in the direction of ``sign(beta1 * m + (1 - beta1) * g)``.

    Args:
        params: parameters, (name, parameter) pairs, or groups.
        lr: size of a step; a third to a tenth of what Adam takes.
        betas: share of the momentum in the step, and in the next momentum.
        weight_decay: share of the parameter, times lr, taken off it at each step.

    Raises:
        ValueError: options out of range.

    Example:
        >>> optimizer = Lion(model.parameters(), lr=1e-4)

    Source: Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        if lr < 0 or weight_decay < 0 or not all(0 <= beta < 1 for beta in betas):
            raise ValueError(
                "Lion: expected lr >= 0, weight_decay >= 0 and betas in [0, 1), "
                f"found lr {lr}, weight_decay {weight_decay}, betas {betas}"
            )
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of every parameter that has a gradient; returns the closure's loss, or None."""
        loss = None
        if closure is not None:
            with tensor.enable_grad():
                loss = closure()
        with tensor.no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        self._move(param, param.grad, group)
        return loss

    def _move(self, param: Any, grad: Any, group: dict[str, Any]) -> None:
        state = self.state[param]
        if not state:
            state["exp_avg"] = tensor.zeros_like(param)
        momentum, (beta1, beta2) = state["exp_avg"], group["betas"]
        direction = (momentum * beta1 + grad * (1 - beta1)).sign()
        param.mul_(1 - group["lr"] * group["weight_decay"])
        param.add_(direction, alpha=-group["lr"])
        momentum.mul_(beta2).add_(grad, alpha=1 - beta2)
