"""A weight as a length times a direction, by hooks; `parametrizations.weight_norm` is the present way."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from taeda_nn._bind import Tensor, op
from taeda_nn.modules._whole import Whole
from taeda_nn.modules.module import Module
from taeda_nn.parameter import Parameter, is_lazy

M = TypeVar("M", bound=Module)
_vector_norm = op("vector_norm")


def norm_except_dim(v: Tensor, dim: int) -> Tensor:
    """The norms over all dimensions but ``dim``, which keep their places; over all of them for -1."""
    if dim == -1:
        return _vector_norm(v)
    if v.dim() and not -v.dim() <= dim < v.dim():
        raise IndexError(f"weight_norm: argument 'dim' is {dim}, expected {-v.dim()} to {v.dim() - 1}")
    others = tuple(d for d in range(v.dim()) if d != dim % v.dim())
    return _vector_norm(v, 2, others, True) if others else v.abs()


def weight_norm_product(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """The weight of direction ``v`` and length ``g``, row by row."""
    v = v.contiguous()
    return v * (g / norm_except_dim(v, dim))


class WeightNorm:
    """The forward pre-hook that computes a weight from its length ``name_g`` and direction ``name_v``."""

    name: str
    dim: int

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """The weight of the present length and direction."""
        v, g = getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g")
        return weight_norm_product(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Replaces parameter ``name`` by its length and direction, and adds the hook."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"weight_norm: parameter {name!r} is normalised already")
        fn = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                f"weight_norm: parameter {name!r} is not initialised yet; call the lazy module once before"
            )
        g = norm_except_dim(weight, fn.dim)
        with Whole(module):
            del module._parameters[name]
            module.register_parameter(f"{name}_g", Parameter(g.detach().clone()))
            module.register_parameter(f"{name}_v", Parameter(weight.detach()))
            setattr(module, name, fn.compute_weight(module))
            module.register_forward_pre_hook(fn)
        return fn

    def remove(self, module: Module) -> None:
        """Makes the present weight the parameter again."""
        weight = self.compute_weight(module)
        with Whole(module):
            delattr(module, self.name)
            del module._parameters[f"{self.name}_g"]
            del module._parameters[f"{self.name}_v"]
            setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Replaces a weight by its length ``name_g`` and its direction ``name_v``; deprecated.

    Args:
        module: The module.
        name: Its parameter.
        dim: The dimension of which every index has a length of its own; None for one length of all.

    Returns: the module.

    Example:
        >>> m = nn.utils.weight_norm(nn.Linear(20, 40))

    Source: Salimans and Kingma, "Weight Normalization", 2016.
    """
    warnings.warn(
        "`nn.utils.weight_norm` is deprecated in favor of `nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undoes `weight_norm`; ValueError where there is none."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            with Whole(module):
                hook.remove(module)
                del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"remove_weight_norm: {name!r} of {type(module).__name__} is not normalised")
