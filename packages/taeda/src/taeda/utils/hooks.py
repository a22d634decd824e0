"""Handles of hooks, and marks of hooks that are not stored."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeVar

from taeda_registry.slots import autograd, nn, optim

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

T = TypeVar("T", bound="Callable[..., Any]")
#: What registering a hook of a module returns; those of tensors and of optimizers are instances of it too.
RemovableHandle = nn._hooks.RemovableHandle
RemovableHandle.register(autograd.RemovableHandle)
RemovableHandle.register(optim.optimizer.RemovableHook)


class BackwardHook(nn._hooks.AroundBackward):
    """What calls the backward hooks of one call of a module.

    Args:
        module: The module. user_hooks: Called with the gradients of inputs and outputs, when both are there.
        user_pre_hooks: Called with the gradients of the outputs.

    Example:
        >>> around = BackwardHook(net, [lambda module, inputs, outputs: print(inputs)], [])
        >>> y = around.setup_output_hook(net(*around.setup_input_hook((x,))))  # doctest: +SKIP
    """

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments that the module is to be called with."""
        return self.wrap_inputs(args)

    def setup_output_hook(self, args: Any) -> Any:
        """The results that the program is to get."""
        return self.wrap_output(args)


def unserializable_hook(f: T) -> T:
    """Mark of a hook that pickling leaves out with a warning."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn that a tensor's hooks are not stored with it."""
    hooks = getattr(tensor, "_backward_hooks", None)
    for hook in (hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate "
                "the function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )
