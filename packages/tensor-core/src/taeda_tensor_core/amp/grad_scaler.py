"""Losses scaled up before the backward pass, and gradients down after it.

So that small ones do not vanish in float16.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Iterable
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._modes import no_grad
from taeda_tensor_core.amp import _state

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """How far an optimizer is in this step."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Scales losses, unscales gradients, and leaves out steps whose gradients are not finite.

    The scale shrinks after such a step and grows after `growth_interval` steps without one.

    Args:
        device: Kind of device; by default the first reserved one. Where there is none, the scaler is off, with a
            warning.
        init_scale: The scale at first.
        growth_factor: Above 1.
        backoff_factor: Below 1.
        growth_interval: Steps.
        enabled: False makes it the identity: `scale` gives its argument, `step` calls the optimizer's.

    Example:
        >>> scaler = taeda.amp.GradScaler("cpu")
        >>> scaler.scale(loss).backward()
        >>> scaler.step(optimizer)
        >>> scaler.update()
    """

    def __init__(
        self,
        device: str | None = None,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = _state.accelerator_kind() if device is None else device
        self._enabled = enabled and self._there()
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise ValueError(f"GradScaler: argument 'growth_factor' must be > 1.0, found {growth_factor}")
        if backoff_factor >= 1.0:
            raise ValueError(f"GradScaler: argument 'backoff_factor' must be < 1.0, found {backoff_factor}")
        self._init_scale, self._growth_factor, self._backoff_factor = (
            init_scale,
            growth_factor,
            backoff_factor,
        )
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._scale: float | Tensor | None = None
        self._stages: dict[int, OptState] = {}
        self._found: dict[int, bool] = {}

    def _there(self) -> bool:
        from taeda_tensor_core.device_module import get_device_module

        if self._device == "cpu" or get_device_module(self._device).is_available():
            return True
        warnings.warn(
            f"GradScaler is enabled, but there is no device of the kind '{self._device}'. Disabling.",
            stacklevel=3,
        )
        return False

    def _current(self) -> float:
        return self._init_scale if self._scale is None else float(self._scale)

    def scale(self, outputs: Tensor | Iterable[Tensor]) -> Any:
        """Outputs times the scale; the outputs themselves while it is off."""
        if not self._enabled:
            return outputs
        if self._scale is None:
            self._scale = self._init_scale
        return self._scaled(outputs)

    def _scaled(self, outputs: Any) -> Any:
        if isinstance(outputs, Tensor):
            return outputs * self._current()
        if isinstance(outputs, Iterable):
            items = map(self._scaled, outputs)
            if isinstance(outputs, list | tuple):
                return type(outputs)(items)
            return items
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _expect_scaled(self, name: str) -> None:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {name} but the scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, so that they can be clipped, say.

        Raises:
            RuntimeError: It was called for this optimizer since the last `update`, or after `step`.
            ValueError: A gradient is in float16.
        """
        if not self._enabled:
            return
        self._expect_scaled("unscale_")
        stage = self._stages.get(id(optimizer), OptState.READY)
        if stage is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._found[id(optimizer)] = self._unscale(optimizer)
        self._stages[id(optimizer)] = OptState.UNSCALED

    def _unscale(self, optimizer: Any) -> bool:
        """Whether a gradient is not finite."""
        inverse, infinite = 1.0 / self._current(), False
        with no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    grad = parameter.grad
                    if grad is None:
                        continue
                    if grad.dtype is _C.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    grad.mul_(inverse)
                    infinite = infinite or not bool(_C.isfinite(grad).all())
        return infinite

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step with unscaled gradients, unless one of them is not finite.

        Returns: What the optimizer's step gives; None when it was left out.

        Raises:
            RuntimeError: It was called for this optimizer since the last `update`, or a closure is given.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._expect_scaled("step")
        if self._stages.get(id(optimizer)) is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_itself(optimizer, *args, **kwargs)
        if self._stages.get(id(optimizer), OptState.READY) is OptState.READY:
            self.unscale_(optimizer)
        result = None if self._found[id(optimizer)] else optimizer.step(*args, **kwargs)
        self._stages[id(optimizer)] = OptState.STEPPED
        return result

    def _step_itself(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """For optimizers that unscale by themselves: they find `grad_scale` and `found_inf` as attributes."""
        unscaled = self._stages.get(id(optimizer)) is OptState.UNSCALED
        found = self._found.get(id(optimizer), False) if unscaled else self._any_infinite(optimizer)
        self._found[id(optimizer)] = found
        optimizer.grad_scale = None if unscaled else _C.tensor(self._current())
        optimizer.found_inf = _C.tensor(float(found))
        try:
            result = optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf
        self._stages[id(optimizer)] = OptState.STEPPED
        return result

    @staticmethod
    def _any_infinite(optimizer: Any) -> bool:
        grads = (p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None)
        return any(not bool(_C.isfinite(grad).all()) for grad in grads)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """End a step: shrink or grow the scale, or set it."""
        if not self._enabled:
            return
        self._expect_scaled("update")
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            if not self._found:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._adapt(any(self._found.values()))
        self._stages.clear()
        self._found.clear()

    def _adapt(self, infinite: bool) -> None:
        if infinite:
            self._scale, self._growth_tracker = self._current() * self._backoff_factor, 0
            return
        self._growth_tracker += 1
        if self._growth_tracker == self._growth_interval:
            grown = self._current() * self._growth_factor
            self._scale = grown if grown < float("inf") else self._scale
            self._growth_tracker = 0

    def get_scale(self) -> float:
        """The scale; 1 while it is off."""
        return self._current() if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """By what the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Let the scale grow by another factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By what the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Let the scale shrink by another factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Let the scale grow after another number of steps."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether it scales."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale and its factors; empty while it is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on with the state of another scaler.

        Raises:
            RuntimeError: The state is empty, that of a scaler that was off.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = float(state_dict["scale"])
        if self._scale is not None:
            self._scale = self._init_scale
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = int(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        if self._enabled and self._stages:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                "scaler.update()."
            )
        return dict(self.__dict__)
