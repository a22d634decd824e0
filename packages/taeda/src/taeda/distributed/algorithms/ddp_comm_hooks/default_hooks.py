"""Averages of gradients as they are, and of gradients rounded to 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda as torch
from taeda.distributed._world import default_group
from taeda.futures import Future

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def _averaged(group: Any, buffer: Any) -> Future:
    group = default_group() if group is None else group
    return group.allreduce([buffer.div_(group.size())]).get_future().then(lambda done: done.value()[0])


def _back(bucket: Any, future: Future) -> Future:
    """The average in the gradients' own dtype."""
    return future.then(lambda done: bucket.buffer().copy_(done.value()))


def allreduce_hook(process_group: Any, bucket: Any) -> Future:
    """The average over a group, all processes for None."""
    return _averaged(process_group, bucket.buffer())


def fp16_compress_hook(process_group: Any, bucket: Any) -> Future:
    """The average of gradients that are sent as float16."""
    return _back(bucket, _averaged(process_group, bucket.buffer().to(torch.float16)))


def bf16_compress_hook(process_group: Any, bucket: Any) -> Future:
    """The average of gradients that are sent as bfloat16."""
    return _back(bucket, _averaged(process_group, bucket.buffer().to(torch.bfloat16)))


def _wrapper(hook: Callable[[Any, Any], Future], dtype: Any) -> Callable[[Any, Any], Future]:
    def rounded(state: Any, bucket: Any) -> Future:
        whole = bucket.buffer()
        bucket.set_buffer(whole.to(dtype))
        return hook(state, bucket).then(lambda done: whole.copy_(done.value()))

    return rounded


def fp16_compress_wrapper(hook: Callable[[Any, Any], Future]) -> Callable[[Any, Any], Future]:
    """Another hook, which gets gradients as float16."""
    return _wrapper(hook, torch.float16)


def bf16_compress_wrapper(hook: Callable[[Any, Any], Future]) -> Callable[[Any, Any], Future]:
    """Another hook, which gets gradients as bfloat16."""
    return _wrapper(hook, torch.bfloat16)
