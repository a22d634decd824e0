"""What passes share."""

from taeda.fx.passes.utils.common import HolderModule, lift_subgraph_as_module

__all__ = ["HolderModule", "lift_subgraph_as_module"]
