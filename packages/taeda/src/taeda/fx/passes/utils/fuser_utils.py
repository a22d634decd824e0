"""Groups of nodes as modules."""

from taeda.fx.passes.infra.partitioner import fuse_by_partitions

__all__ = ["fuse_by_partitions"]
