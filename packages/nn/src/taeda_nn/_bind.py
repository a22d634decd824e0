"""Binds the active tensor provider once, at import, so that no call pays for a look-up."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from taeda_registry import ProviderNotFoundError, RegistryError
from taeda_registry.slots import autograd, tensor

Tensor = tensor.Tensor
no_grad = tensor.no_grad
#: Whether autocast chooses dtypes on devices of a type; providers without it have none.
autocasts = getattr(tensor, "is_autocast_enabled", lambda _device_type: False)
#: The dtype that it chooses there.
autocast_dtype = getattr(tensor, "get_autocast_dtype", lambda _device_type: tensor.bfloat16)

has_autograd = False
try:
    # Gradients are recorded once the autograd provider is imported; without one, inference still works.
    getattr(autograd, "Function", None)
    has_autograd = True
except RegistryError as error:
    # Nobody misses a part that is not installed; one that is there and fails must say why.
    if not isinstance(error, ProviderNotFoundError):
        warnings.warn(f"nn: without gradients, because {error}", RuntimeWarning, stacklevel=2)

_places = [place for place in (getattr(tensor, "ops", None), tensor) if place is not None]


def provided(name: str) -> Callable[..., Any] | None:
    """Operator ``name`` of the active provider, if it has one."""
    found = (getattr(place, name, None) for place in _places)
    return next((operator for operator in found if operator is not None), None)


@cache
def op(name: str) -> Callable[..., Any]:
    """Returns operator ``name`` of the active provider, else its decomposition, else a stub that says what is missing.

    A provider may lack operators; a network that does not use them must still import and run.
    """
    found = provided(name)
    if found is not None:
        return found
    from taeda_nn import _decompose

    composed = _decompose.find(name)
    if composed is not None:
        return composed

    def missing(*_args: Any, **_kwargs: Any) -> Any:
        return needed(name)

    missing.__name__ = name
    return missing


def needed(name: str) -> Callable[..., Any]:
    """Operator ``name``, which no other can stand for; NotImplementedError where the provider has none."""
    found = provided(name)
    if found is None:
        raise NotImplementedError(f"{name}: the active tensor provider has no operator of this name")
    return found


def placed(namespace: str) -> dict[str, Callable[..., Any]]:
    """The operators that the provider's declarations place in one of nn's modules ("nn.functional"), by their names."""
    place: Any = tensor
    for part in namespace.split("."):
        place = getattr(place, part, None)
    return {name: value for name, value in vars(place).items() if name[0] != "_"} if place else {}


def overridable(
    functions: Iterable[Callable[..., Any]], composed: bool = False, spelled: bool = False
) -> None:
    """Lets classes of tensors answer for these functions, where the provider has such classes.

    With `composed` only what is no tensor answers: the functions are made of others that ask. With `spelled` who
    answers gets their options by name.
    """
    put = getattr(tensor, "overridable", None)
    if put is not None:
        put(functions, composed, spelled)


#: As a class's ``__torch_function__``: its instances are treated as plain tensors.
disabled_torch_function = getattr(getattr(tensor, "_C", None), "_disabled_torch_function_impl", None)

__all__ = [
    "Tensor",
    "autograd",
    "disabled_torch_function",
    "has_autograd",
    "needed",
    "no_grad",
    "op",
    "overridable",
    "placed",
    "provided",
    "tensor",
]
