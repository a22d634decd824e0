"""Gradients of several parameters as one tensor, which the processes of a group average."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from taeda_nn._bind import Tensor, no_grad, tensor

_MEGABYTE = 1024 * 1024


class GradBucket:
    """What a hook of communication gets: gradients of several parameters, one after the other.

    Hooks return a future of a tensor like `buffer`.
    """

    def __init__(self, index: int, parameters: Sequence[Tensor], last: bool) -> None:
        self._index, self._parameters, self._last = index, list(parameters), last
        self._buffer: Any = None

    def index(self) -> int:
        """Its number: buckets are begun in the order of their numbers."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients in one dimension."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replaces the tensor of all gradients."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """The gradients, as views of `buffer`."""
        parts = self._buffer.split([parameter.numel() for parameter in self._parameters])
        return [
            part.view(tuple(parameter.shape)) for part, parameter in zip(parts, self._parameters, strict=True)
        ]

    def parameters(self) -> list[Tensor]:
        """The parameters."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether it is the one that is begun last."""
        return self._last

    def fill(self) -> None:
        """Copy the gradients together; those that are not there count as zeros."""
        with no_grad():
            self._buffer = tensor.cat([
                (tensor.zeros_like(p) if p.grad is None else p.grad).reshape(-1).to(p.dtype)
                for p in self._parameters
            ])  # fmt: skip

    def spread(self, buffer: Tensor, used: Callable[[Tensor], bool]) -> None:
        """Write the averages back, where any process had a gradient."""
        self._buffer = buffer
        with no_grad():
            for parameter, average in zip(self._parameters, self.gradients(), strict=True):
                if not used(parameter):
                    continue
                if parameter.grad is None:
                    parameter.grad = average.clone()
                else:
                    parameter.grad.copy_(average)


def buckets(parameters: Sequence[Tensor], first: float, cap: float) -> list[GradBucket]:
    """Parameters in the order in which gradients come, cut into buckets of one dtype and device.

    Args:
        first, cap: Sizes in megabytes: of the first bucket, and of the others.
    """
    limits = [first * _MEGABYTE, cap * _MEGABYTE]
    open_ones: dict[Any, tuple[list[Tensor], int]] = {}
    done: list[list[Tensor]] = []
    for parameter in reversed(parameters):
        kind = (parameter.dtype, parameter.device)
        held, size = open_ones.get(kind, ([], 0))
        held, size = [*held, parameter], size + parameter.numel() * parameter.element_size()
        open_ones[kind] = (held, size)
        if size >= limits[min(len(done), 1)]:
            done.append(open_ones.pop(kind)[0])
    done += [held for held, _ in open_ones.values()]
    return [GradBucket(i, held, i == len(done) - 1) for i, held in enumerate(done)]


def broadcast_all(group: Any, values: Sequence[Tensor], root: int = 0) -> None:
    """Give the tensors of one process to all, those of one dtype and device at once."""
    kinds: dict[Any, list[Tensor]] = {}
    for value in values:
        kinds.setdefault((value.dtype, value.device), []).append(value.detach())
    with no_grad():
        for alike in kinds.values():
            together = tensor.cat([value.reshape(-1) for value in alike])
            group.broadcast([together], root).wait()
            for value, part in zip(alike, together.split([v.numel() for v in alike]), strict=True):
                value.copy_(part.view(tuple(value.shape)))
