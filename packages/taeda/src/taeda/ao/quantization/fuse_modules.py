"""Putting layers that follow each other into one module."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from taeda.ao.nn import intrinsic as nni
from taeda_registry.slots import nn


def _kinds(modules: list[Any]) -> tuple[str, ...]:
    return tuple(
        next((name for name in _LAYERS if isinstance(m, getattr(nn, name))), type(m).__name__)
        for m in modules
    )


_LAYERS = ("Conv1d", "Conv2d", "Conv3d", "Linear", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "ReLU",
           "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")  # fmt: skip


def fuse_known_modules(
    mod_list: list[Any], is_qat: bool, additional_fuser_method_mapping: Any = None
) -> list[Any]:
    """The modules as one and as many `Identity` as remain; a normalization in eval mode becomes part of the weight.

    Raises:
        NotImplementedError: A sequence that is not computed as one.
    """
    kinds = _kinds(mod_list)
    own = (additional_fuser_method_mapping or {}).get(tuple(type(m) for m in mod_list))
    made = own(is_qat, *mod_list) if own is not None else _fused(kinds, mod_list, is_qat)
    for hook in mod_list[0]._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    mod_list[0]._forward_pre_hooks.clear()
    for hook in mod_list[-1]._forward_hooks.values():
        made.register_forward_hook(hook)
    mod_list[-1]._forward_hooks.clear()
    rest = []
    for _ in mod_list[1:]:
        identity = nn.Identity()
        identity.training = mod_list[0].training
        rest.append(identity)
    return [made, *rest]


def fused_as(kinds: tuple[str, ...]) -> str | None:
    """The module for a sequence of layers, by their names; "" for none of its own, None where there is none."""
    first = kinds[0]
    dims = first[-2:] if first[-1] == "d" else ""
    name = {
        ("BN", "ReLU"): f"BNReLU{dims}",
        ("Conv", "BN"): f"ConvBn{dims}",
        ("Conv", "BN", "ReLU"): f"ConvBnReLU{dims}",
        ("Conv", "ReLU"): f"ConvReLU{dims}",
        ("Linear", "ReLU"): "LinearReLU",
        ("Linear", "BN"): "LinearBn1d",
        ("ConvTranspose", "BN"): "",
    }.get(tuple(_short(k) for k in kinds))
    others = {kind[-2:] for kind in kinds if kind.startswith("BatchNorm")}
    return None if dims and others - {dims} else name


def _fused(kinds: tuple[str, ...], modules: list[Any], is_qat: bool) -> Any:
    first, *others = kinds
    dims = first[-2:] if first[-1] == "d" else ""
    batch_norm = next((k for k in others if k.startswith("BatchNorm")), None)
    name = fused_as(kinds)
    if name is None:
        raise NotImplementedError(f"Cannot fuse modules: {kinds}")
    if batch_norm is None or first.startswith("BatchNorm"):
        return getattr(nni, name)(*modules)
    if len({m.training for m in modules}) > 1:
        raise AssertionError("Conv and BN both must be in the same mode (train or eval).")
    if is_qat:
        if not name:
            raise RuntimeError("Fusing ConvTranspose+BatchNorm is not supported in QAT.")
        if modules[1].num_features != getattr(
            modules[0], "out_channels", getattr(modules[0], "out_features", None)
        ):
            raise AssertionError("Output channel of Conv2d must match num_features of BatchNorm2d")
        return getattr(nni, name)(*modules)
    if modules[0].training:
        raise AssertionError(
            "fuse_modules: a normalization is part of the weight in eval mode alone; call eval() first"
        )
    if first == "Linear":
        whole = nn.utils.fuse_linear_bn_eval(*modules[:2])
    else:
        whole = nn.utils.fuse_conv_bn_eval(*modules[:2], transpose=first.startswith("ConvTranspose"))
    return getattr(nni, f"ConvReLU{dims}")(whole, modules[2]) if len(modules) > 2 else whole


def _short(kind: str) -> str:
    for start, short in (("ConvTranspose", "ConvTranspose"), ("Conv", "Conv"), ("BatchNorm", "BN")):
        if kind.startswith(start):
            return short
    return kind


def _place(model: Any, path: str) -> tuple[Any, str]:
    home, _, name = path.rpartition(".")
    return model.get_submodule(home), name


def _fuse(
    model: Any,
    modules_to_fuse: Any,
    is_qat: bool,
    inplace: bool,
    fuser_func: Callable[..., Any],
    options: Any,
) -> Any:
    if not inplace:
        model = copy.deepcopy(model)
    groups = modules_to_fuse
    if all(isinstance(item, str) for item in modules_to_fuse):
        groups = [modules_to_fuse]
    more = (options or {}).get("additional_fuser_method_mapping")
    for group in groups:
        places = [_place(model, path) for path in group]
        made = fuser_func([getattr(home, name) for home, name in places], is_qat, more)
        for (home, name), module in zip(places, made, strict=True):
            setattr(home, name, module)
    return model


def fuse_modules(
    model: Any,
    modules_to_fuse: Any,
    inplace: bool = False,
    fuser_func: Callable[..., Any] = fuse_known_modules,
    fuse_custom_config_dict: Any = None,
) -> Any:
    """A model with layers that follow each other as one module: the first is replaced, the others do nothing.

    Args:
        model: In eval mode where normalizations are among the layers.
        modules_to_fuse: Names of modules, ``["conv", "bn", "relu"]``, or several such lists.
        inplace: Whether the model itself is changed.

    Raises:
        NotImplementedError: A sequence that is not computed as one.

    Example:
        >>> m = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        >>> type(taeda.ao.quantization.fuse_modules(m, ["0", "1"])[0]).__name__
        'LinearReLU'
    """
    return _fuse(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model: Any,
    modules_to_fuse: Any,
    inplace: bool = False,
    fuser_func: Callable[..., Any] = fuse_known_modules,
    fuse_custom_config_dict: Any = None,
) -> Any:
    """`fuse_modules` for training: normalizations stay layers."""
    return _fuse(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
