"""Copies between devices as steps of a graph, where older programs import them from."""

from __future__ import annotations

from typing import Any

from taeda_nn.parallel import comm

__all__ = ["Broadcast", "Gather", "ReduceAddCoalesced", "Scatter"]


def _get_stream(device: Any) -> None:
    """None: copies to a device go by its current stream, without one of their own."""


class Broadcast:
    """Tensors on several devices; their gradients are added."""

    @staticmethod
    def apply(target_gpus: Any, *inputs: Any) -> tuple[Any, ...]:
        """All tensors on the first device, then all on the next."""
        return tuple(copy for copies in comm.broadcast_coalesced(inputs, target_gpus) for copy in copies)


class ReduceAddCoalesced:
    """Sums of tensors of several devices."""

    @staticmethod
    def apply(destination: Any, num_inputs: int, *grads: Any) -> tuple[Any, ...]:
        """The sums of `num_inputs` tensors each device has, on the device `destination`."""
        rows = [grads[start : start + num_inputs] for start in range(0, len(grads), num_inputs)]
        return comm.reduce_add_coalesced(rows, destination)


class Gather:
    """Tensors of several devices joined on one."""

    @staticmethod
    def apply(target_device: Any, dim: int, *inputs: Any) -> Any:
        """Joined along `dim`; numbers of no dimension become a vector."""
        parts = [item.view(1) if item.dim() == 0 else item for item in inputs]
        return comm.gather(parts, dim, target_device)


class Scatter:
    """Pieces of a tensor on several devices."""

    @staticmethod
    def apply(target_gpus: Any, chunk_sizes: Any, dim: int, input: Any) -> tuple[Any, ...]:
        """One piece for each device."""
        return comm.scatter(input, target_gpus, chunk_sizes, dim)
