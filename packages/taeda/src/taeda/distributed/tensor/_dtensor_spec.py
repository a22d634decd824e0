"""What a tensor that lies over processes is: the mesh, how it lies, and the shape of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from taeda.distributed.device_mesh import DeviceMesh
from taeda.distributed.tensor.placement_types import Placement, Shard

__all__ = ["DTensorSpec", "TensorMeta"]


class TensorMeta(NamedTuple):
    """Shape, strides and dtype of the whole."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: Any


@dataclass
class DTensorSpec:
    """The mesh, how a tensor lies over it, and what the whole is.

    Args:
        mesh: The mesh.
        placements: For each dimension of the mesh.
        tensor_meta: Shape, strides and dtype of the whole.
    """

    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    tensor_meta: TensorMeta | None = None

    def _meta(self) -> TensorMeta:
        if self.tensor_meta is None:
            raise ValueError("tensor_meta is not set")
        return self.tensor_meta

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh."""
        return self.mesh

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole."""
        return self._meta().shape

    @property
    def stride(self) -> tuple[int, ...]:
        """The strides of the whole."""
        return self._meta().stride

    @property
    def ndim(self) -> int:
        """How many dimensions the tensor has."""
        return len(self.shape)

    @property
    def num_shards(self) -> int:
        """Into how many parts it is cut."""
        count = 1
        for size, placement in zip(self.mesh.shape, self.placements, strict=True):
            count *= size if isinstance(placement, Shard) else 1
        return count

    @property
    def dim_map(self) -> list[int]:
        """For each dimension of the tensor the dimension of the mesh over which it is cut, -1 for none."""
        found = [-1] * self.ndim
        for at, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                found[placement.dim] = at
        return found

    @property
    def sums(self) -> list[int]:
        """The dimensions of the mesh over which there are summands."""
        return [at for at, placement in enumerate(self.placements) if placement.is_partial()]

    def is_replicated(self) -> bool:
        """Whether all processes have all of it."""
        return all(placement.is_replicate() for placement in self.placements)

    def is_sharded(self) -> bool:
        """Whether it is cut anywhere."""
        return any(placement.is_shard() for placement in self.placements)

    def with_placements(self, placements: Sequence[Placement]) -> DTensorSpec:
        """The same tensor lying in another way."""
        return replace(self, placements=tuple(placements))

    def __hash__(self) -> int:
        return hash((self.mesh, self.placements, self.tensor_meta and self.tensor_meta.shape))
