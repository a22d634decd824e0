"""An optimizer after whose steps parameters are averaged now and then."""

from __future__ import annotations

import warnings
from typing import Any

from taeda import optim

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(optim.Optimizer):
    """An optimizer after whose steps an averager is called.

    Args:
        optim: The optimizer.
        averager: What averages parameters: see `algorithms.model_averaging`.
    """

    def __init__(self, optim: Any, averager: Any) -> None:
        self.optim, self.averager = optim, averager
        self.param_groups = self.optim.param_groups

    @property
    def state(self) -> Any:
        """The state of the optimizer."""
        return self.optim.state

    @state.setter
    def state(self, value: Any) -> None:
        self.optim.state = value

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """The state of the optimizer, with the steps of the averager under "step"."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes a state."""
        self.optim.load_state_dict({key: value for key, value in state_dict.items() if key != "step"})
        if "step" in state_dict:
            self.averager.step = state_dict["step"]
        else:
            warnings.warn(
                "Loaded state dict does not contain a step counter for an averager. Setting step counter to 0.",
                stacklevel=2,
            )
            self.averager.step = 0

    def step(self, closure: Any = None) -> Any:
        """A step of the optimizer, and one of the averager."""
        found = self.optim.step(closure) if closure is not None else self.optim.step()
        self.averager.average_parameters(params=self.param_groups)
        return found

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes gradients."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters."""
        self.optim.add_param_group(param_group)
