"""Averages of gradients that are sent as products of thin matrices.

Source: Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization",
2019.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable
from typing import Any

import taeda as torch
from taeda.distributed._world import default_group
from taeda.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks
from taeda.futures import Future

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

_logger = logging.getLogger(__name__)


class PowerSGDState:
    """What the hooks keep from step to step.

    Args:
        process_group: The processes; None for all.
        matrix_approximation_rank: Columns of the thin matrices: more send more, and lose less.
        start_powerSGD_iter: Steps in which gradients are averaged as they are.
        min_compression_rate: Tensors of which fewer than so many times are saved go as they are.
        use_error_feedback: Whether what was lost is added to the next gradients.
        warm_start: Whether matrices go on from those of the step before.
        orthogonalization_epsilon: Added to lengths that columns are divided by; 0 takes a QR decomposition.
        random_seed: Of the first matrices, which are the same in all processes.
        compression_stats_logging_frequency: Steps between two reports of what was saved.
        batch_tensors_with_same_shape: Kept: products of one shape are not joined.

    Raises:
        ValueError: Feedback or warm start with fewer than two steps before.

    Example:
        >>> state = PowerSGDState(None, matrix_approximation_rank=2)     # doctest: +SKIP
        >>> model.register_comm_hook(state, powerSGD_hook)               # doctest: +SKIP
    """

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD "
                f"can only be applied after the first two iterations in DDP; found {start_powerSGD_iter}"
            )
        self.process_group = process_group
        self.matrix_approximation_rank, self.start_powerSGD_iter = (
            matrix_approximation_rank,
            start_powerSGD_iter,
        )
        self.min_compression_rate, self.orthogonalization_epsilon = (
            min_compression_rate,
            orthogonalization_epsilon,
        )
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.rng = random.Random(random_seed)
        #: By bucket: what was lost, and the second matrices.
        self.error_dict: dict[int, Any] = {}
        self.q_memory_dict: dict[int, list[Any]] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.next_stats_report = 0

    def __getstate__(self) -> dict[str, Any]:
        _logger.warning("a process group cannot be saved: PowerSGDState is saved without it")
        return {key: value for key, value in self.__dict__.items() if key != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, process_group=None)

    @property
    def _group(self) -> Any:
        return default_group() if self.process_group is None else self.process_group

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Counts a step at its last bucket."""
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times fewer elements were sent, how many there were, and how many were sent."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0), before, after

    def _count(self, bucket: Any, before: int, after: int) -> None:
        self.total_numel_before_compression += before
        self.total_numel_after_compression += after
        if bucket.is_last() and self.iter >= self.next_stats_report:
            rate, all_of_them, sent = self.compression_stats()
            _logger.info(
                "step %d: %d of %d elements were sent, %.2f times fewer", self.iter, sent, all_of_them, rate
            )
            self.next_stats_report = self.iter + self.compression_stats_logging_frequency


def _orthogonal(matrix: Any, epsilon: float) -> Any:
    """The matrix with columns of length 1 at right angles."""
    if epsilon == 0:
        kind = matrix.dtype
        whole = matrix.float() if kind in (torch.float16, torch.bfloat16) else matrix
        return torch.linalg.qr(whole).Q.to(kind)
    columns: list[Any] = []
    for column in matrix.unbind(1):
        for before in columns:
            column = column - (before @ column) * before
        columns.append(column / (column.norm() + epsilon))
    return torch.stack(columns, 1)


def _sum(state: PowerSGDState, parts: list[Any]) -> list[Any]:
    """Tensors added up over the processes, in one message."""
    if not parts:
        return []
    joined = torch.cat([part.reshape(-1) for part in parts])
    state._group.allreduce([joined]).wait()
    return [
        piece.view_as(part)
        for piece, part in zip(joined.split([p.numel() for p in parts]), parts, strict=True)
    ]


def _compressed(state: PowerSGDState, index: int, matrices: list[Any]) -> list[Any]:
    """Averages of matrices over the processes, as products of thin ones."""
    ranks = [min(*matrix.shape, state.matrix_approximation_rank) for matrix in matrices]
    second = state.q_memory_dict.get(index) if state.warm_start else None
    if second is None:
        # The same numbers in all processes, and the program's own go on as they were.
        source = torch.Generator().manual_seed(state.rng.randint(0, 1_000_000_000))
        second = [
            torch.randn(matrix.shape[1], rank, generator=source).to(matrix)
            for matrix, rank in zip(matrices, ranks, strict=True)
        ]
    second = [_orthogonal(q, state.orthogonalization_epsilon) for q in second]
    first = _sum(state, [matrix @ q for matrix, q in zip(matrices, second, strict=True)])
    first = [_orthogonal(p, state.orthogonalization_epsilon) for p in first]
    second = [
        q.div_(state._group.size())
        for q in _sum(state, [m.t() @ p for m, p in zip(matrices, first, strict=True)])
    ]
    if state.warm_start:
        state.q_memory_dict[index] = second
    return [p @ q.t() for p, q in zip(first, second, strict=True)]


def _saves(state: PowerSGDState, tensor: Any) -> bool:
    if tensor.dim() < 2:
        return False
    rows, columns = tensor.shape[0], tensor.numel() // max(1, tensor.shape[0])
    sent = (rows + columns) * state.matrix_approximation_rank
    return sent * state.min_compression_rate < rows * columns


def _averaged(state: PowerSGDState, bucket: Any, average: Callable[[PowerSGDState, Any], None]) -> Future:
    """The average of a bucket: as it is at first, then by a function, with what was lost before added to it."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks.allreduce_hook(state.process_group, bucket)
    buffer, index = bucket.buffer(), bucket.index()
    with torch.no_grad():
        if state.use_error_feedback and index in state.error_dict:
            buffer.add_(state.error_dict[index])
        before = buffer.clone() if state.use_error_feedback else None
        average(state, bucket)
        if before is not None:
            state.error_dict[index] = before.sub_(buffer)
    state.maybe_increase_iter(bucket)
    return debugging_hooks.noop_hook(None, bucket)


def _average_matrices(state: PowerSGDState, bucket: Any) -> None:
    gradients = bucket.gradients()
    whole = [gradient for gradient in gradients if not _saves(state, gradient)]
    matrices = [gradient.view(gradient.shape[0], -1) for gradient in gradients if _saves(state, gradient)]
    sent = sum(sum(m.shape) * min(*m.shape, state.matrix_approximation_rank) for m in matrices)
    state._count(bucket, bucket.buffer().numel(), sent + sum(gradient.numel() for gradient in whole))
    for gradient, total in zip(whole, _sum(state, whole), strict=True):
        gradient.copy_(total.div_(state._group.size()))
    if matrices:
        for matrix, found in zip(matrices, _compressed(state, bucket.index(), matrices), strict=True):
            matrix.copy_(found)


def _average_square(state: PowerSGDState, bucket: Any) -> None:
    buffer = bucket.buffer()
    side = math.isqrt(max(0, buffer.numel() - 1)) + 1
    square = torch.nn.functional.pad(buffer, (0, side * side - buffer.numel())).view(side, side)
    state._count(bucket, buffer.numel(), 2 * side * min(side, state.matrix_approximation_rank))
    buffer.copy_(_compressed(state, bucket.index(), [square])[0].view(-1)[: buffer.numel()])


def powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future:
    """The average of a bucket, matrix by matrix as a product of thin ones; vectors and small matrices as they are.

    Backward waits meanwhile: the second half of the work needs the first half of all processes.

    Args:
        state: A `PowerSGDState`.
        bucket: Gradients of several parameters.
    """
    return _averaged(state, bucket, _average_matrices)


def batched_powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future:
    """The average of a bucket as one square matrix that is a product of thin ones: faster, and loses more.

    Args:
        state: A `PowerSGDState`.
        bucket: Gradients of several parameters.
    """
    return _averaged(state, bucket, _average_square)
