"""Adam for sparse gradients."""

from __future__ import annotations

from typing import Any

from taeda_optim.adam import check_adam
from taeda_optim.optimizer import Optimizer, ParamsT, is_sparse


class SparseAdam(Optimizer):
    """Adam that moves, and remembers, only the entries that a sparse gradient holds: rows left alone cost nothing.

    Args:
        params: see `Optimizer`; dense and real. Their gradients are sparse tensors.
        lr, betas, eps, maximize: as in `Adam`.

    Raises:
        ValueError: options out of range, or parameters that are sparse or complex.
        RuntimeError: in ``step``, a dense gradient.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_adam("SparseAdam", lr, betas, eps, 0)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def _check_new(self, params: list[Any], names: list[str] | None) -> None:
        super()._check_new(params, names)
        for kind in ("sparse", "complex"):
            at = [i for i, p in enumerate(params) if (is_sparse(p) if kind == "sparse" else p.is_complex())]
            if at:
                raise ValueError(f"SparseAdam requires dense, real parameters, found {kind} ones at {at}")

    def _state_names(self, group: dict[str, Any]) -> set[str]:
        return {"exp_avg", "exp_avg_sq"}

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        for grad in grads:
            if not is_sparse(grad):
                raise RuntimeError(
                    "SparseAdam does not support dense gradients, please consider Adam instead "
                    f"(gradient of shape {tuple(grad.shape)})"
                )
        states = self._states(params, "exp_avg", "exp_avg_sq", step=0)
        for param, grad, state in zip(params, grads, states, strict=True):
            self._update_one(group, param, grad.coalesce(), state)

    @staticmethod
    def _update_one(group: dict[str, Any], param: Any, grad: Any, state: dict[str, Any]) -> None:
        (beta1, beta2), step = group["betas"], state["step"] + 1
        places, values = tuple(grad.indices().unbind(0)), grad.values()
        values = -values if group["maximize"] else values
        state["step"] = step
        if not values.numel():
            return
        average = state["exp_avg"][places].lerp_(values, 1 - beta1)
        square = state["exp_avg_sq"][places].lerp_(values * values, 1 - beta2)
        state["exp_avg"][places] = average
        state["exp_avg_sq"][places] = square
        size = float(group["lr"]) * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        param[places] = param[places].addcdiv_(average, square.sqrt().add_(group["eps"]), value=-size)
