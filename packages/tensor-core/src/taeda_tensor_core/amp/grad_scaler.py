"""Losses scaled up before the backward pass, and gradients down after it.

So that small ones do not vanish in float16.
"""

from __future__ import annotations

import enum
import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._modes import no_grad
from taeda_tensor_core.amp import _state
from taeda_tensor_core.private_names import _amp_foreach_non_finite_check_and_unscale_, _amp_update_scale_

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
        >>> weight = taeda.nn.Parameter(taeda.ones(2))
        >>> optimizer = taeda.optim.SGD([weight], lr=1.0)
        >>> scaler.scale(weight.sum()).backward()
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
        self._init_growth_tracker = 0
        # Tensors of one number from the first `scale` on.
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    def _there(self) -> bool:
        from taeda_tensor_core.device_module import get_device_module

        if self._device == "cpu" or get_device_module(self._device).is_available():
            return True
        warnings.warn(
            f"GradScaler is enabled, but there is no device of the kind '{self._device}'. Disabling.",
            stacklevel=3,
        )
        return False

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        """Make the tensors of the scale and of the count of finite steps."""
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = _C.full((), self._init_scale, dtype=_C.float32, device=dev)
        self._growth_tracker = _C.full((), self._init_growth_tracker, dtype=_C.int32, device=dev)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Tensor, Tensor]:
        """Scale and count, which the first `scale` makes."""
        for name, value in (("_scale", self._scale), ("_growth_tracker", self._growth_tracker)):
            if value is None:
                raise AssertionError(
                    f"Attempted {funcname} but the scale is None: {name} is None.  This may indicate your script "
                    "did not use scaler.scale(loss or outputs) earlier in the iteration."
                )
        return self._scale, self._growth_tracker  # type: ignore[return-value]

    def scale(self, outputs: Tensor | Iterable[Tensor]) -> Any:
        """Outputs times the scale; the outputs themselves while it is off."""
        if not self._enabled:
            return outputs
        return self._scaled(outputs)

    def _scaled(self, outputs: Any) -> Any:
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return outputs * self._scale.to(outputs.device)  # type: ignore[union-attr]
        if isinstance(outputs, Iterable):
            items = map(self._scaled, outputs)
            if isinstance(outputs, list | tuple):
                return type(outputs)(items)
            return items
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, so that they can be clipped, say.

        Raises:
            RuntimeError: It was called for this optimizer since the last `update`, or after `step`.
            ValueError: A gradient is in float16.
        """
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = self._scale.double().reciprocal().float()  # type: ignore[union-attr]
        found = _C.zeros((), dtype=_C.float32, device=inverse.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found, False)
        state["stage"] = OptState.UNSCALED

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Any, Tensor]:
        """Multiply all gradients of an optimizer by ``inv_scale``; subclasses override it.

        Returns: for every device of gradients, a tensor of 1 if one there was not finite, of 0 else.

        Raises:
            ValueError: A gradient is in float16 and ``allow_fp16`` is False.
        """
        grads: dict[tuple[Any, Any], list[Tensor]] = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if (grad := parameter.grad) is None:
                    continue
                if grad.dtype is _C.float16 and not allow_fp16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                if grad.is_sparse and grad.dtype is _C.float16:
                    parameter.grad = grad = grad.coalesce()  # sums of half precision may be infinite
                values = grad._values() if grad.is_sparse else grad
                if not values.is_contiguous() and 0 in values.stride():
                    with no_grad():
                        values.mul_(1)  # one with repeated elements is refused before another is changed
                grads.setdefault((values.device, values.dtype), []).append(values)
        found: dict[Any, Tensor] = {}
        with no_grad():
            for (device, _dtype), some in grads.items():
                of_device = found.setdefault(device, found_inf.to(device, copy=True))
                _amp_foreach_non_finite_check_and_unscale_(some, of_device, inv_scale.to(device))
        return found

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
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_itself(optimizer, state, *args, **kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(
        self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """The optimizer's step unless a gradient was not finite."""
        if _any_found(optimizer_state):
            return None
        return optimizer.step(*args, **kwargs)

    def _step_itself(self, optimizer: Any, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """For optimizers that unscale by themselves: they find `grad_scale` and `found_inf` as attributes.

        Whose `step` has an argument `grad_scaler` gets the scaler in it instead.
        """
        from inspect import signature

        if "grad_scaler" in signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer; let the "
                "optimizer use its attributes grad_scale and found_inf",
                FutureWarning,
                stacklevel=3,
            )
            result = optimizer.step(*args, **kwargs, grad_scaler=self)
            state["stage"] = OptState.STEPPED
            return result
        unscaled = state["stage"] is OptState.UNSCALED
        if not unscaled:
            self._check_inf_per_device(optimizer)
        optimizer.grad_scale = None if unscaled else self._scale.clone()  # type: ignore[union-attr]
        optimizer.found_inf = _C.tensor(float(_any_found(state)), device="cpu")
        try:
            result = optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf
        state["stage"] = OptState.STEPPED
        return result

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        """Look whether gradients are finite, and leave them as they are."""
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        found: dict[Any, Tensor] = {}
        for grad in (p.grad for group in optimizer.param_groups for p in group["params"]):
            if grad is not None:
                of_device = found.setdefault(grad.device, _C.zeros((), dtype=_C.float32, device=grad.device))
                if not grad.isfinite().all():
                    of_device.fill_(1.0)
        found = found or {scale.device: _C.zeros((), dtype=_C.float32, device=scale.device)}
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """End a step: shrink or grow the scale, or set it."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            scale.fill_(float(new_scale))
        else:
            states = self._per_optimizer_states.values()
            if not any(state["found_inf_per_device"] for state in states):
                raise AssertionError("No inf checks were recorded prior to update.")
            found = _C.tensor(float(any(map(_any_found, states))), device="cpu")
            _amp_update_scale_(
                scale, tracker, found, self._growth_factor, self._backoff_factor, self._growth_interval
            )
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker)

    def get_scale(self) -> float:
        """The scale; 1 while it is off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale)

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
            "_growth_tracker": self._get_growth_tracker(),
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
            self._scale.fill_(self._init_scale)
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = int(state_dict["_growth_tracker"])
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """What a scaler knows of an optimizer at the beginning of a step."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _any_found(state: dict[str, Any]) -> bool:
    """Whether gradients were not finite."""
    return any(bool(found) for found in state["found_inf_per_device"].values())
