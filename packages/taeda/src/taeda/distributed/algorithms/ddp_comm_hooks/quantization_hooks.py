"""Averages of gradients that are sent as codes of 8 bits.

Source: Alistarh et al., "QSGD: Communication-Efficient SGD via Gradient Quantization and Encoding", 2017. Codes are the
nearest ones here, between the least and the greatest number.
"""

from __future__ import annotations

from typing import Any

import taeda as torch
import taeda.distributed as dist
from taeda.distributed._world import default_group
from taeda.distributed.algorithms.ddp_comm_hooks import debugging_hooks
from taeda.futures import Future

__all__ = ["quantization_perchannel_hook", "quantization_pertensor_hook"]

_CODES = 255


def _gathered(group: Any, tensor: Any) -> list[Any]:
    parts = [torch.empty_like(tensor) for _ in range(group.size())]
    dist.all_gather(parts, tensor, group=group)
    return parts


def _averaged(process_group: Any, bucket: Any, length: int) -> Future:
    """The average of a bucket, each row of so many numbers with a scale and a zero of its own."""
    group, buffer = default_group() if process_group is None else process_group, bucket.buffer()
    with torch.no_grad():
        padding = -buffer.numel() % length
        rows = torch.nn.functional.pad(buffer, (0, padding)).view(-1, length)
        low, high = rows.amin(1, keepdim=True).clamp(max=0), rows.amax(1, keepdim=True).clamp(min=0)
        scale = ((high - low) / _CODES).clamp(min=torch.finfo(rows.dtype).tiny)
        zero = (-low / scale).round().clamp(0, _CODES)
        codes = ((rows / scale).round() + zero).clamp(0, _CODES).to(torch.uint8)
        facts = _gathered(group, torch.cat([scale, zero], 1))
        total = sum(
            (theirs.to(rows.dtype) - fact[:, 1:]) * fact[:, :1]
            for theirs, fact in zip(_gathered(group, codes), facts, strict=True)
        )
        buffer.copy_((total / group.size()).view(-1)[: buffer.numel()])
    return debugging_hooks.noop_hook(None, bucket)


def quantization_pertensor_hook(process_group: Any, bucket: Any) -> Future:
    """The average of a bucket whose numbers share a scale; backward waits meanwhile.

    Args:
        process_group: The processes; None for all.
        bucket: Gradients of several parameters.
    """
    return _averaged(process_group, bucket, max(1, bucket.buffer().numel()))


def quantization_perchannel_hook(process_group: Any, bucket: Any, bucket_size: int = 512) -> Future:
    """The average of a bucket of which every so many numbers share a scale; backward waits meanwhile.

    Args:
        process_group: The processes; None for all.
        bucket: Gradients of several parameters.
        bucket_size: How many numbers share a scale.
    """
    return _averaged(process_group, bucket, bucket_size)
