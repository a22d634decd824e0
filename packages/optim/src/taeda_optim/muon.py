"""Muon: momentum orthogonalised by Newton and Schulz's iteration (Jordan et al., 2024)."""

from __future__ import annotations

import math
from typing import Any

from taeda_optim.optimizer import Optimizer, ParamsT, check_range, check_rate


class Muon(Optimizer):
    """Steps along the nearest orthogonal matrix to the momentum; for matrices only, such as weights of hidden layers.

    Args:
        params: see `Optimizer`; 2-d.
        lr: learning rate.
        weight_decay: shrinks the parameter directly.
        momentum: share of the last step that is kept.
        nesterov: look ahead along the momentum.
        ns_coefficients: of the polynomial of one iteration.
        eps: least norm that is divided by.
        ns_steps: iterations.
        adjust_lr_fn: how the rate follows the shape: 'original' (default) or 'match_rms_adamw'.

    Raises:
        ValueError: options out of range, or a parameter that is no matrix.
        RuntimeError: in ``step``, complex parameters.

    Example:
        >>> weight = torch.ones(2, 3, requires_grad=True)
        >>> optimizer = optim.Muon([weight], lr=0.1)
        >>> weight.square().sum().backward()
        >>> optimizer.step()

    Source:
        Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024; Liu et al., "Muon is scalable
        for LLM training", 2025.
    """

    _takes_sparse = False

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_rate("Muon", lr)
        check_range("Muon", "momentum", momentum, 0)
        check_range("Muon", "weight_decay", weight_decay, 0)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                "Muon: argument 'adjust_lr_fn' must be None, 'original' or 'match_rms_adamw', "
                f"found {adjust_lr_fn!r}"
            )
        options: dict[str, Any] = {"lr": lr, "weight_decay": weight_decay, "momentum": momentum}
        options |= {"nesterov": nesterov, "ns_coefficients": ns_coefficients, "eps": eps}
        super().__init__(params, {**options, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn})

    def _check_new(self, params: list[Any], names: list[str] | None) -> None:
        super()._check_new(params, names)
        for param in params:
            if param.dim() != 2:
                raise ValueError(
                    f"Muon only supports 2D parameters whereas we found a parameter with size: {tuple(param.shape)}"
                )

    def _state_names(self, group: dict[str, Any]) -> set[str]:
        return {"momentum_buffer"}

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        if self._complex:
            raise RuntimeError("Muon does not support complex parameters")
        lr, momentum = float(group["lr"]), group["momentum"]
        for param, grad, state in zip(params, grads, self._states(params, "momentum_buffer"), strict=True):
            buffer = state["momentum_buffer"].lerp_(grad, 1 - momentum)
            direction = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
            update = orthogonalised(direction, group["ns_coefficients"], group["ns_steps"], group["eps"])
            param.mul_(1 - lr * group["weight_decay"])
            param.add_(update, alpha=-lr * _factor(group["adjust_lr_fn"], *param.shape))


def orthogonalised(matrix: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """About the nearest orthogonal matrix, in bfloat16, by iterations of a polynomial of the singular values."""
    if steps >= 100:
        raise ValueError(f"Muon: argument 'ns_steps' must be below 100, found {steps}")
    a, b, c = coefficients
    x = matrix.bfloat16()
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = x.addmm(gram.addmm(gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _factor(name: str | None, rows: int, columns: int) -> float:
    if name == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))
