"""Attributes of modules as parts of the nodes that call them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda._checks import typename
from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda.fx.graph_module import GraphModule

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]

_LINEAR = ["weight", "bias"]
_CONVOLUTION = [*_LINEAR, "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"]
_NORM = [*_LINEAR, "running_mean", "running_var", "eps"]


def default_matching(name: str, target_version: int) -> str:
    """The name itself."""
    return name


#: By class of module: its version, the attributes that matter, and what gives their older names.
module_fetch_book: dict[type, tuple[int, list[str], Callable[[str, int], str]]] = {
    nn.Linear: (1, _LINEAR, default_matching),
    nn.Conv2d: (1, _CONVOLUTION, default_matching),
    nn.BatchNorm2d: (2, _NORM, default_matching),
    nn.AdaptiveAvgPool2d: (1, [], default_matching),
    nn.MaxPool2d: (
        1, ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"], default_matching,
    ),
    nn.ReLU: (1, ["inplace"], default_matching),
}  # fmt: skip


def extract_attrs_for_lowering(mod: nn.Module) -> dict[str, Any]:
    """The attributes of a module that say what it computes, and the name of its class.

    Raises:
        RuntimeError: The class is not in `module_fetch_book`, or of a newer version.
    """
    if type(mod) not in module_fetch_book:
        raise RuntimeError(f"extract_attrs_for_lowering: no attributes are known of {type(mod).__name__}")
    version, names, match = module_fetch_book[type(mod)]
    if mod._version > version:
        raise RuntimeError(
            f"extract_attrs_for_lowering: {type(mod).__name__} has version {mod._version}, expected {version}"
        )
    found: dict[str, Any] = {"name": typename(mod)}
    for name in names:
        found[name] = getattr(mod, match(name, mod._version))
    return found


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Keep in every node that calls a module as `attrs_for_lowering` what says what the module computes."""
    modules = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op == "call_module":
            called = modules[str(node.target)]
            if hasattr(called, "graph"):
                lift_lowering_attrs_to_nodes(called)
            else:
                node.attrs_for_lowering = extract_attrs_for_lowering(called)
