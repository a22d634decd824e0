"""Adafactor (Shazeer and Stern, ICML 2018)."""

from __future__ import annotations

import math
from typing import Any

from taeda_optim.counting import count_of, next_counts, raise_counts
from taeda_optim.optimizer import Optimizer, ParamsT, check_range, check_rate
from taeda_registry.slots import tensor


class Adafactor(Optimizer):
    """Steps scaled by the root of a second moment that is kept, for matrices, as one number a row and one a column.

    Args:
        params: see `Optimizer`.
        lr: bound of the relative step.
        beta2_decay: power with which the decay of the second moment approaches 1.
        eps: what is added to squares (by default the dtype's machine epsilon), and the least scale of a parameter.
        d: bound of the root mean square of a step before it is scaled.
        weight_decay: shrinks the parameter directly.
        foreach: accepted.
        maximize: climb instead of descend.

    Raises:
        ValueError: options out of range.
        RuntimeError: in ``step``, complex parameters.

    Example:
        >>> optimizer = Adafactor(model.parameters(), lr=1e-2)
    """

    _takes_sparse = False

    _counts = True

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_rate("Adafactor", lr)
        if beta2_decay > 0:
            raise ValueError(f"Adafactor: argument 'beta2_decay' must be at most 0, found {beta2_decay}")
        if eps[0] is not None:
            check_range("Adafactor", "eps[0]", eps[0], 0)
        check_range("Adafactor", "eps[1]", eps[1], 0)
        check_range("Adafactor", "d", d, 1)
        check_range("Adafactor", "weight_decay", weight_decay, 0)
        options = {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay}
        super().__init__(params, {**options, "foreach": foreach, "maximize": maximize})

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        if self._complex:
            raise RuntimeError("Adafactor does not support complex parameters")
        for param, gradient in zip(params, grads, strict=True):
            grad = -gradient if group["maximize"] else gradient
            state = self.state[param]
            if not state:
                state.update(step=count_of(0), **_moments(param))
            (step,) = next_counts([state])
            self._update_one(group, param, grad, state, step)
            raise_counts([state])

    @staticmethod
    def _update_one(group: dict[str, Any], param: Any, grad: Any, state: dict[str, Any], step: int) -> None:
        lr, (eps1, eps2) = float(group["lr"]), group["eps"]
        eps1 = tensor.finfo(param.dtype).eps if eps1 is None else eps1
        share = step ** group["beta2_decay"]
        scale = max(eps2, _mean_root(param)) * min(lr, 1 / math.sqrt(step))
        if group["weight_decay"]:
            param.mul_(1 - lr * group["weight_decay"])
        spread = _followed(state, grad, share, eps1)
        update = spread.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        param.add_(update, alpha=-scale / max(1.0, _mean_root(update) / group["d"]))


def _moments(param: Any) -> dict[str, Any]:
    """The second moment of a matrix by rows and columns, of others whole."""
    if param.dim() < 2:
        return {"variance": tensor.zeros_like(param)}
    *lead, rows, columns = param.shape
    return {"row_var": param.new_zeros((*lead, rows, 1)), "col_var": param.new_zeros((*lead, 1, columns))}


def _followed(state: dict[str, Any], grad: Any, share: float, eps: float) -> Any:
    """The second moment after this gradient, shaped as it."""
    squares = grad * grad
    if "variance" in state:
        return state["variance"].lerp_(squares, share).clone()
    rows, columns = state["row_var"], state["col_var"]
    rows.lerp_(squares.mean(-1, keepdim=True), share)
    columns.lerp_(squares.mean(-2, keepdim=True), share)
    return (rows @ columns).div_(rows.mean(-2, keepdim=True).clamp_(min=eps))


def _mean_root(x: Any) -> float:
    """The root of the mean square."""
    return float((x * x).sum().sqrt()) / math.sqrt(x.numel())
