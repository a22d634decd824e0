"""Modules made of graphs, as names."""

from __future__ import annotations

from taeda import _absent
from taeda_registry.slots import nn

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_REASON = "there is no symbolic tracer; use the module itself"

GraphModule = _absent.cls("taeda.fx.GraphModule", _REASON, nn.Module)
_CodeOnlyModule = _absent.cls("taeda.fx.graph_module._CodeOnlyModule", _REASON, nn.Module)
_copy_attr = _absent.function("taeda.fx.graph_module._copy_attr", _REASON)
reduce_graph_module = _absent.function("taeda.fx.graph_module.reduce_graph_module", _REASON)
