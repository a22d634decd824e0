"""Tensors from one device to several and back: copies, pieces, sums.

Devices are named as everywhere; a number counts accelerators.

Example:
    >>> a, b = taeda.nn.parallel.comm.scatter(taeda.arange(5), ["cpu", "cpu"])
    >>> a, b
    (tensor([0, 1, 2]), tensor([3, 4]))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda_nn._bind import Tensor
from taeda_nn._bind import tensor as _tensor
from taeda_nn.parallel.data_parallel import _place

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def _devices(name: str, devices: Any, out: Any) -> None:
    if (devices is None) == (out is None):
        raise RuntimeError(f"{name}: give either 'devices' or 'out', found {devices} and {out}")


def broadcast(tensor: Tensor, devices: Any = None, *, out: Sequence[Tensor] | None = None) -> tuple[Any, ...]:
    """The tensor on each of the devices; itself on its own.

    Args:
        tensor: What is copied.
        devices: Devices; or `out`, tensors of its shape that take the copies.

    Raises:
        RuntimeError: Both or neither are given.
    """
    _devices("broadcast", devices, out)
    if out is not None:
        return tuple(target.copy_(tensor) for target in out)
    return tuple(tensor.to(_place(device)) for device in devices)


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Sequence[Any], buffer_size: int = 10485760
) -> tuple[tuple[Tensor, ...], ...]:
    """All tensors on each of the devices: for each device a tuple. `buffer_size` is not used."""
    return tuple(tuple(tensor.to(_place(device)) for tensor in tensors) for device in devices)


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """The sum of tensors of one shape, on the device `destination` or on the first one's.

    Raises:
        RuntimeError: There are none. ValueError: Their shapes differ.
    """
    if not inputs:
        raise RuntimeError("reduce_add: argument 'inputs' is empty, expected at least one tensor")
    for place, item in enumerate(inputs):
        if item.shape != inputs[0].shape:
            raise ValueError(
                f"reduce_add: input {place} has shape {tuple(item.shape)}, expected {tuple(inputs[0].shape)}"
            )
    target = inputs[0].device if destination is None else _place(destination)
    total = inputs[0].to(target)
    for item in inputs[1:]:
        total = total + item.to(target)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """Sums over the devices of the tensors that each of them has. `buffer_size` is not used."""
    return tuple(reduce_add(items, destination) for items in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor,
    devices: Any = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Any, ...]:
    """Pieces of a tensor along `dim`, one for each device.

    Args:
        tensor: What is divided.
        devices: Devices; or `out`, tensors that take the pieces.
        chunk_sizes: How long the pieces are; about equal by default.
        dim: The dimension that is divided.
        streams: Not used.

    Raises:
        RuntimeError: Both or neither of `devices` and `out` are given, or the sizes do not add up.
    """
    _devices("scatter", devices, out)
    if out is not None:
        sizes = [target.shape[dim] for target in out]
        return tuple(target.copy_(part) for target, part in zip(out, tensor.split(sizes, dim), strict=True))
    parts = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple(part.to(_place(device)) for part, device in zip(parts, devices, strict=False))


def gather(tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *, out: Any = None) -> Tensor:
    """The tensors one behind the other along `dim`, on the device `destination`: by default the first one's.

    Args:
        tensors: Of one shape but for `dim`.
        dim: The dimension along which they are joined.
        destination: A device; -1 is the cpu.
        out: A tensor that takes the result, in the place of `destination`.

    Raises:
        RuntimeError: Both `destination` and `out` are given.
    """
    if out is not None:
        if destination is not None:
            raise RuntimeError("gather: give either 'destination' or 'out', found both")
        return out.copy_(gather(tensors, dim, out.device))
    target = tensors[0].device if destination is None else "cpu" if destination == -1 else destination
    return _tensor.cat([item.to(_place(target)) for item in tensors], dim)
