"""The parametrization that masks a tensor, and names of tensors within models."""

from __future__ import annotations

from typing import Any

from taeda_registry.slots import nn, tensor

__all__ = [
    "FakeSparsity", "fqn_to_module", "get_arg_info_from_tensor_fqn", "module_contains_param", "module_to_fqn",
    "swap_module",
]  # fmt: skip


class FakeSparsity(nn.Module):
    """A parametrization: the tensor times a mask, which no state holds.

    Args:
        mask: Of the tensor's shape; its values may change, not the tensor itself.
    """

    mask: tensor.Tensor

    def __init__(self, mask: tensor.Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x: tensor.Tensor) -> tensor.Tensor:
        if self.mask.shape != x.shape:
            raise AssertionError(
                f"FakeSparsity: mask shape ({tuple(self.mask.shape)}) must match x shape ({tuple(x.shape)})"
            )
        return self.mask * x

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """Nothing: sparsifiers save masks."""
        return {}


def module_contains_param(module: nn.Module, parametrization: type[nn.Module]) -> bool:
    """Whether a tensor of the module has a parametrization of this class."""
    if not nn.utils.parametrize.is_parametrized(module):
        return False
    return any(
        isinstance(one, parametrization) for several in module.parametrizations.values() for one in several
    )  # type: ignore[attr-defined]


def swap_module(mod: nn.Module, mapping: dict[type[nn.Module], Any]) -> nn.Module:
    """What ``from_dense`` of the class that the mapping gives makes of a module, with its hooks and on its device.

    Raises:
        AssertionError: The module is on several devices.
    """
    kind = nn.utils.parametrize.type_before_parametrizations(mod)
    if kind not in mapping:
        return mod
    made = mapping[kind].from_dense(mod)
    for before in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(before)
    for after in mod._forward_hooks.values():
        made.register_forward_hook(after)
    devices = {held.device for held in (*mod.parameters(), *mod.buffers())}
    if len(devices) > 1:
        raise AssertionError(f"swap_module: expected a module on one device, found {devices}")
    return made.to(devices.pop()) if devices else made


def module_to_fqn(model: nn.Module, module: nn.Module, prefix: str = "") -> str | None:
    """The dotted name of a module within a model; None if it is not there."""
    found = next((name for name, inner in model.named_modules() if inner is module), None)
    return found if not found else prefix + found


def fqn_to_module(model: nn.Module | None, path: str) -> Any:
    """The module or tensor of a dotted name; None if there is none."""
    found: Any = model
    for name in path.split(".") if path else ():
        found = getattr(found, name, None)
    return found


def get_arg_info_from_tensor_fqn(model: nn.Module, tensor_fqn: str) -> dict[str, Any]:
    """The module of a tensor's dotted name, the module's name and the tensor's within it."""
    module_fqn, _, tensor_name = tensor_fqn.rpartition(".")
    return {
        "module_fqn": module_fqn,
        "module": fqn_to_module(model, module_fqn),
        "tensor_name": tensor_name,
        "tensor_fqn": tensor_fqn,
    }
