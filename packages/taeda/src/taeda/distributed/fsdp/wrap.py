"""Rules that say which modules of a model would be spread; they are plain functions of modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda import _absent

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip

_REASON = "there are no tensors spread over processes; DistributedDataParallel keeps a copy in each"
enable_wrap = _absent.function("taeda.distributed.fsdp.wrap.enable_wrap", _REASON)
_recursive_wrap = _absent.function("taeda.distributed.fsdp.wrap._recursive_wrap", _REASON)


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Every module: True."""
    return True


def lambda_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Any], bool]
) -> bool:
    """Modules that a function chooses; True while the parts of a module are gone through."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type]
) -> bool:
    """Modules of the given classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


_module_wrap_policy = transformer_auto_wrap_policy
_wrap_module_cls_individually = transformer_auto_wrap_policy


def size_based_auto_wrap_policy(
    module: Any,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type] | None = None,
    exclude_wrap_modules: set[type] | None = None,
) -> bool:
    """Modules of at least so many parameters that are not spread yet, but for lists and dicts of modules."""
    from taeda_registry.slots import nn

    leaves = {nn.MultiheadAttention} if force_leaf_modules is None else force_leaf_modules
    lists = {nn.ModuleList, nn.ModuleDict} if exclude_wrap_modules is None else exclude_wrap_modules
    large = nonwrapped_numel >= min_num_params
    return large and not isinstance(module, tuple(leaves if recurse else lists))


def _or_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, policies: list[Callable[..., bool]]
) -> bool:
    """Modules that one of several rules chooses."""
    return any(
        policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies
    )


class _Policy:
    """A rule as an object."""


class ModuleWrapPolicy(_Policy):
    """Modules of the given classes.

    Args:
        module_classes: The classes.
    """

    def __init__(self, module_classes: Any) -> None:
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def __call__(self, module: Any, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, tuple(self._module_classes))

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy(_Policy):
    """Modules for which a function gives True or a dict of settings.

    Args:
        lambda_fn: The function.
    """

    def __init__(self, lambda_fn: Callable[[Any], Any]) -> None:
        self._lambda_fn = lambda_fn


def wrap(module: Any, **wrap_overrides: Any) -> Any:
    """The module itself: it is spread only inside `enable_wrap`."""
    return module
