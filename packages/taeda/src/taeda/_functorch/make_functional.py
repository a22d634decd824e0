"""Modules as functions of tuples of parameters, the older form of `func.functional_call`."""

from __future__ import annotations

import copy
from typing import Any

from taeda.func import functional_call
from taeda_registry.slots import nn, tensor

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "make_functional",
    "make_functional_with_buffers",
]  # fmt: skip


def _own(values: Any, detached: bool) -> tuple[Any, ...]:
    return tuple(v.detach().requires_grad_(False) if detached else v for v in values)


class FunctionalModuleWithBuffers(nn.Module):
    """A module without numbers of its own.

    Args:
        stateless_model: Gives the computation. param_names, buffer_names: In the order of `params` and `buffers`.
    """

    def __init__(self, stateless_model: Any, param_names: Any, buffer_names: Any) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = tuple(param_names), tuple(buffer_names)

    @classmethod
    def _create_from(cls, model: Any, disable_autograd_tracking: bool = False) -> tuple[Any, Any, Any]:
        copied = copy.deepcopy(model)
        params, buffers = dict(copied.named_parameters()), dict(copied.named_buffers())
        made = cls(copied, params, buffers)
        return made, _own(params.values(), disable_autograd_tracking), tuple(buffers.values())

    def forward(self, params: Any, buffers: Any, *args: Any, **kwargs: Any) -> Any:
        """The module's result with other parameters and buffers."""
        given = dict(zip(self.param_names, params, strict=True)) | dict(
            zip(self.buffer_names, buffers, strict=True)
        )
        return functional_call(self.stateless_model, given, args, kwargs)


class FunctionalModule(nn.Module):
    """A module without parameters of its own.

    Args:
        stateless_model: Gives the computation. param_names: In the order of `params`.
    """

    def __init__(self, stateless_model: Any, param_names: Any) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(param_names)

    @classmethod
    def _create_from(cls, model: Any, disable_autograd_tracking: bool = False) -> tuple[Any, Any]:
        copied = copy.deepcopy(model)
        params = dict(copied.named_parameters())
        return cls(copied, params), _own(params.values(), disable_autograd_tracking)

    def forward(self, params: Any, *args: Any, **kwargs: Any) -> Any:
        """The module's result with other parameters."""
        given = dict(zip(self.param_names, params, strict=True))
        return functional_call(self.stateless_model, given, args, kwargs)


def make_functional(model: Any, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, Any]:
    """A function of parameters that computes what a module does, and the tuple of the module's parameters.

    Args:
        model: A module without buffers. disable_autograd_tracking: Parameters that require no grad.

    Raises:
        RuntimeError: The module has buffers; see `make_functional_with_buffers`.

    Example:
        >>> from taeda._functorch.make_functional import make_functional
        >>> func, params = make_functional(taeda.nn.Linear(2, 1))
        >>> func(params, taeda.ones(3, 2)).shape
        Size([3, 1])
    """
    if buffers := list(model.buffers()):
        raise RuntimeError(
            f"make_functional: the module has {len(buffers)} buffers, expected none; "
            "use make_functional_with_buffers"
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Any, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, Any, Any]:
    """A function of parameters and buffers that computes what a module does, and the tuples of both.

    Args:
        model: A module. disable_autograd_tracking: Parameters that require no grad.
    """
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(models: Any) -> tuple[FunctionalModuleWithBuffers, Any, Any]:
    """A function of several modules of one kind, their parameters and their buffers, stacked for `vmap`.

    Raises:
        RuntimeError: There is no module, they are of several classes, or not all in one mode.
    """
    from taeda.func import stack_module_state

    params, buffers = stack_module_state(models)
    function = make_functional_with_buffers(models[0])[0]
    return function, tuple(params.values()), tuple(buffers.values())


def transpose_stack(tuple_of_tuple_of_tensors: Any) -> tuple[Any, ...]:
    """Tuples of the same tensors of several modules, stacked."""
    return tuple(tensor.stack(column).detach() for column in zip(*tuple_of_tuple_of_tensors, strict=True))
