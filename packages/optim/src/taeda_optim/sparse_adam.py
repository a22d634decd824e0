"""Adam for sparse gradients."""

from __future__ import annotations

from typing import Any

from taeda_optim.adam import check_adam
from taeda_optim.optimizer import Optimizer, ParamsT


class SparseAdam(Optimizer):
    """Adam that updates only what a sparse gradient holds.

    taeda has no sparse tensors yet, so that every gradient is dense, which this optimizer refuses as PyTorch's does.
    Programs can make it, and load states.

    Args:
        params: see `Optimizer`.
        lr, betas, eps, maximize: as in `Adam`.

    Raises:
        ValueError: options out of range, or complex parameters.
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
        at = [i for i, param in enumerate(params) if param.is_complex()]
        if at:
            raise ValueError(f"SparseAdam does not support complex parameters, found some at {at}")

    def _update(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        raise RuntimeError(
            "SparseAdam does not support dense gradients, please consider Adam instead "
            f"(gradient of shape {tuple(grads[0].shape)})"
        )
