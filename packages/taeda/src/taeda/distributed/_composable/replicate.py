"""Modules whose gradients are averaged over processes, without a module around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda
from taeda.distributed._composable.contract import contract
from taeda.distributed.fsdp import FSDPModule
from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DDP", "replicate"]


class _Replicated:
    """What is known of a module: its parameters' averaging, which begins with the first forward."""

    def __init__(self) -> None:
        self.averaging: Any = None
        self.hooks: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        self.options: tuple[set[Any], dict[str, Any]] = set(), {}
        self.syncs = True

    def begin(self, module: Any) -> None:
        """Take the parameters that there are now: until then they may be without elements."""
        left, options = self.options
        ignored = {id(parameter) for part in left for parameter in part.parameters()}
        ignored |= {
            id(p) for part in module.modules() if isinstance(part, FSDPModule) for p in part.parameters()
        }
        taken = nn.ParameterList([p for p in module.parameters() if id(p) not in ignored])
        self.averaging = nn.parallel.DistributedDataParallel(taken, **options)
        self.averaging.require_backward_grad_sync = self.syncs
        for args, kwargs in self.hooks:
            self.averaging.register_comm_hook(*args, **kwargs)

    def before(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Before each forward."""
        if self.averaging is None:
            self.begin(module)
        return self.averaging._pre_forward(*args, **kwargs)

    def after(self, module: Any, args: tuple[Any, ...], output: Any) -> Any:
        """After each forward."""
        return self.averaging._post_forward(output)


class DDP:
    """What a module can besides, once it is replicated."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool) -> None:
        """Whether backwards average gradients; what was not averaged is added to what will be."""
        state = replicate.state(self)  # type: ignore[attr-defined]
        state.syncs = requires_gradient_sync
        if state.averaging is not None:
            state.averaging.require_backward_grad_sync = requires_gradient_sync

    def register_comm_hook(self, *args: Any, **kwargs: Any) -> None:
        """`DistributedDataParallel.register_comm_hook`."""
        state = replicate.state(self)  # type: ignore[attr-defined]
        if state.averaging is None:
            state.hooks.append((args, kwargs))
        else:
            state.averaging.register_comm_hook(*args, **kwargs)


@contract(state_cls=_Replicated)
def replicate(
    module: nn.Module, ignored_modules: Iterable[nn.Module] | None = None, **kwargs: Any
) -> nn.Module:
    """Let the gradients of a module be averaged over processes, as `DistributedDataParallel` does.

    Args:
        module: Changed in place; it can what `DDP` can besides.
        ignored_modules: Parts whose gradients are left alone.
        kwargs: Arguments of `DistributedDataParallel`; `device_id` is the one GPU of the module.

    Raises:
        RuntimeError: `fully_shard` was applied to the module, or `device_id` is no device.

    Example:
        >>> from taeda.distributed._composable import replicate
        >>> net = replicate(taeda.nn.Linear(2, 2))  # doctest: +SKIP
    """
    if isinstance(module, FSDPModule):
        raise RuntimeError("Cannot apply `replicate()` on a Module already managed by `fully_shard`")
    if "device_id" in kwargs:
        device = kwargs.pop("device_id")
        if device is not None and not isinstance(device, (int, taeda.device)):
            raise RuntimeError(f"Expected device_id to be int or torch.device, but got {type(device)}")
        on_host = device is None or (isinstance(device, taeda.device) and device.type == "cpu")
        kwargs["device_ids"] = None if on_host else [device]
    state = replicate.state(module)  # type: ignore[attr-defined]
    state.options = set(ignored_modules or ()), kwargs
    module.register_forward_pre_hook(state.before, with_kwargs=True)
    module.register_forward_hook(state.after)
    module.__class__ = type(f"DDP{type(module).__name__}", (DDP, type(module)), {})
    return module
