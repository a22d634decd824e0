"""What tensors that lie over processes do."""

from __future__ import annotations

from typing import Any

from taeda.distributed.tensor.debug._comm_mode import CommDebugMode

__all__ = ["CommDebugMode", "visualize_sharding"]


def visualize_sharding(dtensor: Any, header: str = "", use_rich: bool = False) -> None:
    """Print which part of a DTensor this process has."""
    from taeda.distributed.tensor._utils import compute_local_shape_and_global_offset

    sizes, starts = compute_local_shape_and_global_offset(
        dtensor.shape, dtensor.device_mesh, dtensor.placements
    )
    spans = ", ".join(f"{start}:{start + size}" for size, start in zip(sizes, starts, strict=True))
    print(f"{header}[{spans}] of {tuple(dtensor.shape)} in process {dtensor.device_mesh.get_rank()}")
