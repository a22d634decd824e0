"""Calling a module with other parameters and buffers than its own."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from taeda_nn._bind import Tensor
from taeda_nn.modules.module import Module
from taeda_nn.parameter import Parameter

__all__ = ["functional_call"]

_NOTHING = object()


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with the given tensors in place of its parameters and buffers; deprecated name.

    Args:
        module: The module.
        parameters_and_buffers: Tensors by dotted name; the others stay the module's own.
        args: Arguments of forward, a tuple or a single one.
        kwargs: Further ones by keyword.
        tie_weights: Whether a tensor that stands under several names is replaced under all.
        strict: Whether all names must be given, and no others.

    Raises:
        RuntimeError: Names that do not fit, when strict.
        ValueError: Different tensors for names of one tensor.
        TypeError: What is given, or stands under its name in the module, is no tensor.
    """
    warnings.warn(
        "`nn.utils.stateless.functional_call` is deprecated in favor of `func.functional_call`.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


def _named_tensors(module: Module) -> dict[str, Tensor]:
    """All parameters and buffers under every name that they have."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _untie_named_tensors_map(module: Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """The given tensors, also under the other names of those that they replace."""
    names: dict[int, list[str]] = {}
    for name, value in _named_tensors(module).items():
        names.setdefault(id(value), []).append(name)
    complete = dict(given)
    for tied in names.values():
        chosen = [name for name in tied if name in given]
        if len({id(given[name]) for name in chosen}) > 1:
            raise ValueError(f"functional_call: got different tensors for the tied names {sorted(chosen)}")
        for name in tied if chosen else ():
            complete[name] = given[chosen[0]]
    return complete


def _checked_owner(module: Module, path: str, name: str, value: Any) -> Module:
    """The module in which a tensor is to stand; an error where it, the name or the tensor is none."""
    if not name:
        raise KeyError(f"functional_call of {type(module).__name__}: the name of a tensor is empty")
    owner = module.get_submodule(path)
    if value is not None and not isinstance(value, Tensor):
        raise TypeError(
            f"functional_call: {path + '.' if path else ''}{name}: {value!r} is not an instance of Tensor"
        )
    found = getattr(owner, name, None)
    if found is not None and not isinstance(found, Tensor):
        raise TypeError(
            f"functional_call of {type(owner).__name__}: attribute `{name}`: {found!r} is not an instance of Tensor"
        )
    return owner


@contextlib.contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """Puts tensors in the places of parameters and buffers, and the old ones back at the end.

    What the module assigns to a buffer meanwhile goes into ``parameters_and_buffers``.
    """
    given = parameters_and_buffers
    if tie_weights:
        given = _untie_named_tensors_map(module, given)
    if strict:
        known = _named_tensors(module)
        missing = sorted(set(known) - set(given))
        unexpected = sorted(set(given) - set(known))
        problems = [f"missing {missing}"] if missing else []
        problems += [f"unexpected {unexpected}"] if unexpected else []
        if problems:
            raise RuntimeError(f"functional_call of {type(module).__name__}: {'; '.join(problems)}")
    places: list[tuple[Module, str, str, Any]] = []
    try:
        for name, value in given.items():
            path, _, last = name.rpartition(".")
            owner = _checked_owner(module, path, last, value)
            members = owner.__dict__
            places.append((owner, last, name, members.get(last, _NOTHING)))
            if last not in members and isinstance(value, Parameter):
                owner.register_parameter(last, value)
            else:  # past the checks of assignment: a plain tensor may stand where a parameter was, or where nothing is
                members[last] = value
        yield
    finally:
        try:
            _put_back(places, given, parameters_and_buffers)
        except BaseException:  # Ctrl-C in the midst of it
            _put_back(places, given, parameters_and_buffers)
            raise


def _put_back(
    places: list[tuple[Module, str, str, Any]], given: dict[str, Tensor], told: dict[str, Tensor]
) -> None:
    while places:
        owner, last, name, before = places[-1]
        members = owner.__dict__
        now = members.get(last)
        if now is not given[name] and name in told:
            told[name] = now
        if before is _NOTHING:
            members.pop(last, None)
            owner._parameter_names.pop(last, None)
        else:
            members[last] = before
        del places[-1]
