"""Modules whose results are computed again in the backward, or rest in the host's memory until then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

import taeda as torch
from taeda import nn
from taeda.distributed.fsdp import wrap
from taeda.utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "OffloadWrapper", "apply_activation_checkpointing",
    "checkpoint_wrapper", "offload_wrapper",
]  # fmt: skip

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """How results are computed again: see `utils.checkpoint.checkpoint`."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(nn.Module):
    """A module around another one, whose names do not show.

    Args:
        mod: The module.
    """

    def __init__(self, mod: Any) -> None:
        super().__init__()
        setattr(self, _CHECKPOINT_WRAPPED_MODULE, mod)
        self._register_state_dict_hook(_shortened)
        self._register_load_state_dict_pre_hook(_lengthened)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's result."""
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == _CHECKPOINT_WRAPPED_MODULE:
                raise
            return getattr(super().__getattr__(_CHECKPOINT_WRAPPED_MODULE), name)

    def __getitem__(self, key: int) -> Any:
        return self._modules[_CHECKPOINT_WRAPPED_MODULE][key]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Parameters by the names that they have in the module."""
        for name, value in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), value


def _shortened(module: Any, state: dict[str, Any], prefix: str, *_: Any) -> None:
    start = prefix + _CHECKPOINT_PREFIX
    for key in [key for key in state if key.startswith(start)]:
        state[prefix + key[len(start) :]] = state.pop(key)


def _lengthened(state: dict[str, Any], prefix: str, *_: Any) -> None:
    start = prefix + _CHECKPOINT_PREFIX
    for key in [key for key in state if key.startswith(prefix) and not key.startswith(start)]:
        state[start + key[len(prefix) :]] = state.pop(key)


class OffloadWrapper(ActivationWrapper):
    """A module whose tensors for the backward rest in the host's memory."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's result."""
        with torch.autograd.graph.save_on_cpu(pin_memory=False):
            return self._modules[_CHECKPOINT_WRAPPED_MODULE](*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """A module whose inner results are computed again in the backward.

    Args:
        mod: The module.
        checkpoint_impl: How.
        checkpoint_fn: A function in the place of `utils.checkpoint.checkpoint`.
        checkpoint_fn_kwargs: Its arguments.
    """

    def __init__(
        self,
        mod: Any,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            again = checkpoint_impl is CheckpointImpl.REENTRANT
            self.checkpoint_fn = partial(checkpoint, use_reentrant=again, **checkpoint_fn_kwargs)
        else:
            self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's result."""
        module = self._modules[_CHECKPOINT_WRAPPED_MODULE]
        if self.checkpoint_impl is CheckpointImpl.REENTRANT and kwargs:
            count = len(args)

            def positional(*given: Any) -> Any:
                return module(*given[:count], **dict(zip(kwargs, given[count:], strict=True)))

            return self.checkpoint_fn(positional, *args, *kwargs.values())
        return self.checkpoint_fn(module, *args, **kwargs)


def offload_wrapper(module: Any) -> OffloadWrapper:
    """A module whose tensors for the backward rest in the host's memory."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Any,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> CheckpointWrapper:
    """A module whose inner results are computed again in the backward.

    Example:
        >>> block = checkpoint_wrapper(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
        >>> block(taeda.ones(2, 4)).shape
        Size([2, 4])
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Any,
    checkpoint_wrapper_fn: Callable[[Any], Any] = checkpoint_wrapper,
    check_fn: Callable[[Any], bool] = lambda _: True,
    auto_wrap_policy: Any = None,
) -> None:
    """Wraps modules in a model, in place.

    Args:
        model: The model.
        checkpoint_wrapper_fn: Gives the wrapped module.
        check_fn: Chooses modules.
        auto_wrap_policy: Chooses them in its place: a rule of `fsdp.wrap`.
    """
    if isinstance(auto_wrap_policy, wrap._Policy) and not callable(auto_wrap_policy):
        wrap.wrap_parts(model, auto_wrap_policy, checkpoint_wrapper_fn, {}, set())
        return
    policy = auto_wrap_policy or partial(wrap.lambda_auto_wrap_policy, lambda_fn=check_fn)
    wrap._recursive_wrap(model, policy, checkpoint_wrapper_fn, set(), set(), only_wrap_children=True)
