"""A module that lies in another process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import taeda as torch
from taeda import nn
from taeda.distributed import rpc
from taeda.distributed.remote_device import _remote_device

__all__ = ["RemoteModule"]


def _make(module_cls: type, args: Sequence[Any], kwargs: Mapping[str, Any], device: str) -> nn.Module:
    module = module_cls(*args, **kwargs)
    if not isinstance(module, nn.Module):
        raise ValueError(
            f"Expect `module_cls(*args, **kwargs)` returns an instance of <class nn.Module>, found {module}"
        )
    return module.to(device)


def _forward(module: Any, device: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    moved = [value.to(device) if isinstance(value, torch.Tensor) else value for value in args]
    return module.local_value()(*moved, **kwargs)


def _parameters(module: Any, recurse: bool) -> list[Any]:
    return [rpc.RRef(parameter) for parameter in module.local_value().parameters(recurse)]


class RemoteModule(nn.Module):
    """A module that is made and run in another process.

    Args:
        remote_device: The process and its device: ``"worker1"``, ``"worker1/cpu"``, ``"rank:1/cuda:0"``.
        module_cls: The class of the module, which the other process imports.
        args, kwargs: What the class gets.

    Raises:
        RuntimeError: `rpc.init_rpc` was not called, or there is no such process.
        ValueError: A text that names no process.

    Example:
        >>> linear = RemoteModule("worker1/cpu", nn.Linear, args=(20, 30))           # doctest: +SKIP
        >>> linear(torch.randn(128, 20)).shape                                       # doctest: +SKIP
        torch.Size([128, 30])
    """

    def __init__(
        self,
        remote_device: str,
        module_cls: type,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        _module_interface_cls: Any = None,
    ) -> None:
        super().__init__()
        place = _remote_device(remote_device)
        self.on = place.worker_name() if place.rank() is None else place.rank()
        if self.on is None:
            raise ValueError(
                f"RemoteModule: argument 'remote_device' is {remote_device!r}, which names no process"
            )
        self.device = str(place.device())
        self.module_rref = rpc.rpc_sync(
            self.on, _make_reference, (module_cls, tuple(args or ()), dict(kwargs or {}), self.device)
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives, when it is there."""
        return self.forward_async(*args, **kwargs).wait()

    def forward_async(self, *args: Any, **kwargs: Any) -> Any:
        """A future of what the module gives."""
        return rpc.rpc_async(self.on, _forward, (self.module_rref, self.device, args, kwargs))

    def remote_parameters(self, recurse: bool = True) -> list[Any]:
        """References to the module's parameters, as `DistributedOptimizer` takes them."""
        return rpc.rpc_sync(self.on, _parameters, (self.module_rref, recurse))

    def get_module_rref(self) -> Any:
        """A reference to the module."""
        return self.module_rref


def _make_reference(module_cls: type, args: Sequence[Any], kwargs: Mapping[str, Any], device: str) -> Any:
    return rpc.RRef(_make(module_cls, args, kwargs, device))


def _refused(name: str) -> Any:
    def method(self: RemoteModule, *args: Any, **kwargs: Any) -> Any:
        raise ValueError(f"Method ``{name}`` not supported for RemoteModule")

    method.__name__ = name
    method.__doc__ = "Raises ValueError: parameters lie in another process."
    return method


for _name in (
    "register_buffer", "register_parameter", "add_module", "apply", "cuda", "ipu", "xpu", "cpu", "type", "float",
    "double", "half", "bfloat16", "to", "register_forward_pre_hook", "register_forward_hook", "state_dict",
    "load_state_dict", "parameters", "named_parameters", "buffers", "named_buffers", "children", "named_children",
    "modules", "named_modules", "requires_grad_", "zero_grad", "share_memory", "register_full_backward_hook",
    "register_backward_hook",
):  # fmt: skip
    setattr(RemoteModule, _name, _refused(_name))
