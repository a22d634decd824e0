"""Rules that say which modules of a model become units of their own; they are plain functions of modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip


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


_settings: list[tuple[Any, dict[str, Any]]] = []


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Context in which `wrap` wraps.

    Args:
        wrapper_cls: The wrapper, such as `FullyShardedDataParallel`.
        wrapper_kwargs: Its arguments.
    """
    _settings.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _settings.pop()


def wrap(module: Any, **wrap_overrides: Any) -> Any:
    """The module, wrapped inside `enable_wrap`; the module itself elsewhere."""
    if not _settings:
        return module
    wrapper, kwargs = _settings[-1]
    return wrapper(module, **{**kwargs, **wrap_overrides})


def wrap_parts(
    module: Any, policy: Any, wrapper: Callable[..., Any], kwargs: dict[str, Any], ignored: set[Any]
) -> None:
    """Wrap the modules in a module that a rule chooses, but not itself."""
    if isinstance(policy, CustomPolicy):
        _wrap_chosen(module, policy, wrapper, kwargs, ignored)
        return
    _wrap_by_size(
        module, policy, lambda part, **own: wrapper(part, **{**kwargs, **own}), ignored, set(), True
    )


def _wrap_chosen(
    module: Any, policy: CustomPolicy, wrapper: Callable[..., Any], kwargs: dict[str, Any], ignored: set[Any]
) -> None:
    for name, child in list(module.named_children()):
        if child in ignored:
            continue
        _wrap_chosen(child, policy, wrapper, kwargs, ignored)
        chosen = policy._lambda_fn(child)
        if not isinstance(chosen, (dict, bool)):
            raise ValueError(
                "The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned "
                f"{chosen}"
            )
        if chosen is not False:
            setattr(
                module, name, wrapper(child, **{**kwargs, **(chosen if isinstance(chosen, dict) else {})})
            )


def _recursive_wrap(
    module: Any,
    auto_wrap_policy: Callable[..., bool],
    wrapper_cls: Callable[..., Any],
    ignored_modules: set[Any],
    ignored_params: set[Any],
    only_wrap_children: bool = False,
    **kwargs: Any,
) -> tuple[Any, int]:
    """Wrap what a rule chooses, the innermost first: the module, and how many elements are wrapped."""
    left = {id(p) for p in ignored_params}

    def wrapper(part: Any, **own: Any) -> Any:
        return wrapper_cls(part, **{**kwargs, **own})

    return _wrap_by_size(module, auto_wrap_policy, wrapper, ignored_modules, left, only_wrap_children)


def _wrap_by_size(
    module: Any, policy: Any, wrapper: Callable[..., Any], ignored: set[Any], left: set[int], inner_only: bool = False
) -> tuple[Any, int]:  # fmt: skip
    count = sum(p.numel() for p in module.parameters() if id(p) not in left)
    if not policy(module=module, recurse=True, nonwrapped_numel=count):
        return module, 0
    done = 0
    for name, child in list(module.named_children()):
        if child in ignored:
            continue
        made, wrapped = _wrap_by_size(child, policy, wrapper, ignored, left)
        setattr(module, name, made)
        done += wrapped
    if not inner_only and policy(module=module, recurse=False, nonwrapped_numel=count - done):
        return wrapper(module, **getattr(module, "_wrap_overrides", {})), count
    return module, done
