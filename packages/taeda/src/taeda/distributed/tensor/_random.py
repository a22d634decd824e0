"""Seeds of the numbers that processes draw for tensors that they have together."""

from __future__ import annotations

import warnings
from typing import Any

import taeda as torch
from taeda import _absent

__all__ = ["OffsetBasedRNGTracker", "is_rng_supported_mesh", "manual_seed"]

OffsetBasedRNGTracker = _absent.cls(
    f"{__name__}.OffsetBasedRNGTracker", "each process draws its part by its own generator"
)


def is_rng_supported_mesh(device_mesh: Any) -> bool:
    """Whether the mesh's devices have generators of their own, which `manual_seed` seeds; warns where not."""
    kind = device_mesh.device_type
    if kind != "cpu" and hasattr(getattr(torch, kind, None), "set_rng_state"):
        return True
    warnings.warn(
        f"DTensor random operators may not have complete support on {kind} device mesh",
        stacklevel=2,
    )
    return False


def manual_seed(seed: int, device_mesh: Any) -> None:
    """Begin the numbers of this process's device anew; on the cpu nothing happens but a warning.

    Args:
        seed: The same in all processes of the mesh.
        device_mesh: Where they are.

    Raises:
        RuntimeError: This process is not in the mesh.
    """
    if not is_rng_supported_mesh(device_mesh):
        return
    if device_mesh.get_coordinate() is None:
        raise RuntimeError(
            "manual_seed requires the current rank to be a part of the device mesh, otherwise DTensor RNG state on "
            "the rank will not be initialized"
        )
    getattr(torch, device_mesh.device_type).manual_seed(seed)
