"""The rule that each way of training is applied to a module once, and keeps its state there."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RegistryItem", "contract"]

_PLACE = "_composable_registry"


class RegistryItem(NamedTuple):
    """That a way of training was applied."""


class _State:
    """What a way of training keeps of a module, unless it has a class of its own."""


def _registry(module: Any) -> dict[Any, Any]:
    """States by function."""
    return vars(module).setdefault(_PLACE, {})  # type: ignore[no-any-return]


def _get_registry(module: Any) -> dict[str, RegistryItem]:
    """What was applied to a module, by name."""
    return {function.__name__: RegistryItem() for function in _registry(module)}


def contract(state_cls: type = _State) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of functions that change a module, or a list of modules, and give it back.

    The function gets an attribute `state`, which gives what it keeps of a module: an instance of `state_cls`, or None.

    Raises:
        AssertionError: When it is called for a module the second time.
        RuntimeError: When the module that it gives has parameters or modules of other names.

    Example:
        >>> @contract()
        ... def frozen(module):
        ...     frozen.state(module).count = len(list(module.parameters()))
        ...     return module.requires_grad_(False)
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def apply(module: Any, *args: Any, **kwargs: Any) -> Any:
            modules = [module] if isinstance(module, nn.Module) else list(module)
            state = state_cls()
            for each in modules:
                if function in _registry(each):
                    raise AssertionError(
                        f"{function.__name__}: it has been applied to this {type(each).__name__} already, expected once"
                    )
                _registry(each)[function] = state
            before = [_names(each) for each in modules]
            made = function(module, *args, **kwargs)
            results = modules if made is None else [made] if isinstance(made, nn.Module) else list(made)
            if [_names(each) for each in results] != before:
                raise RuntimeError(
                    f"{function.__name__}: the module that it gives has parameters or modules of other names"
                )
            return made

        apply.state = lambda module: _registry(module).get(function)  # type: ignore[attr-defined]
        return apply

    return decorate


def _names(module: Any) -> tuple[list[str], list[str], list[str]]:
    return (
        [name for name, _ in module.named_parameters()],
        [name for name, _ in module.named_buffers()],
        [name for name, _ in module.named_modules()],
    )
