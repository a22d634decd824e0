"""Schedules: in which order the stages of a pipeline run the microbatches of a batch.

All of them share one engine, which does one action after the other; they differ in the order (`_orders`) alone.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

from taeda.distributed.pipelining import _orders
from taeda.distributed.pipelining._engine import _PipelineSchedule
from taeda.distributed.pipelining._orders import B, F, I, W, _Action, _ComputationType
from taeda.distributed.pipelining._stages import _PipelineStageBase
from taeda_registry import files

__all__ = [
    "PipelineScheduleMulti", "PipelineScheduleSingle", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe",
    "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble",
    "get_schedule_class",
]  # fmt: skip

FORWARD, FULL_BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT = F, B, I, W
OVERLAP_F_B = _ComputationType.OVERLAP_F_B


# One stage in each process


class PipelineScheduleSingle(_PipelineSchedule):
    """A schedule of processes that have one stage each.

    Args:
        stage: The stage of this process.
        n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads: As all schedules
            have them: the number of microbatches, the loss of each, how arguments are cut and results joined, and
            whether gradients are divided by the number of microbatches.

    Raises:
        TypeError: No stage. ValueError: There are not as many processes as stages.
    """

    def __init__(
        self,
        stage: _PipelineStageBase,
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: tuple[Any, ...] | None = None,
        kwargs_chunk_spec: dict[str, Any] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        super().__init__(
            n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )
        if not isinstance(stage, _PipelineStageBase):
            raise TypeError(self._text("stage", "one PipelineStage", type(stage).__name__))
        if stage.group_size != stage.num_stages:
            raise ValueError(
                self._text(
                    "stage", f"one of {stage.group_size} stages, as there are processes", stage.num_stages
                )
            )
        self._stage, self._stages, self._num_stages = stage, [stage], stage.num_stages
        self.pipeline_order = self._get_pipeline_order()

    def _get_pipeline_order(self) -> dict[int, list[_Action | None]] | None:
        """What each process does; None where it is not known beforehand."""
        return None

    def _own_order(self) -> Sequence[_Action | None]:
        if self.pipeline_order is None:
            return super()._own_order()
        return self.pipeline_order[self._stage.stage_index]


class _ScheduleForwardOnly(PipelineScheduleSingle):
    """Forwards only."""

    def _get_pipeline_order(self) -> dict[int, list[_Action | None]]:
        return {s: [_Action(s, F, i) for i in range(self._n_microbatches)] for s in range(self._num_stages)}

    def _check_target(self, target_mbs: list[Any] | None, losses: list[Any] | None) -> None:
        if target_mbs is not None or losses is not None:
            raise RuntimeError("Forward-only schedule does not support loss computation")


class ScheduleGPipe(PipelineScheduleSingle):
    """All microbatches forwards, then all backwards (GPipe, Huang et al. 2019, arXiv 1811.06965).

    Arguments and errors are those of `PipelineScheduleSingle`.

    Example:
        >>> schedule = ScheduleGPipe(stage, 4, loss_fn=taeda.nn.functional.mse_loss)  # doctest: +SKIP
        >>> schedule.step(x) if rank == 0 else schedule.step(target=y)  # doctest: +SKIP
    """

    def _get_pipeline_order(self) -> dict[int, list[_Action | None]]:
        return {s: list(_orders.gpipe(s, self._n_microbatches)) for s in range(self._num_stages)}


class Schedule1F1B(PipelineScheduleSingle):
    """One forward, one backward in turn, so that few microbatches are kept (PipeDream, Narayanan et al. 2019).

    Arguments and errors are those of `PipelineScheduleSingle`; besides, ValueError where there are fewer microbatches
    than stages.

    Example:
        >>> schedule = Schedule1F1B(stage, 4, loss_fn=taeda.nn.functional.mse_loss)  # doctest: +SKIP
        >>> schedule.step(x) if rank == 0 else schedule.step(target=y)  # doctest: +SKIP
    """

    def _get_pipeline_order(self) -> dict[int, list[_Action | None]]:
        if self._n_microbatches < self._num_stages:
            raise ValueError(
                f"Number of microbatches ({self._n_microbatches}) must be greater than or equal to the number of "
                f"stages ({self._num_stages})."
            )
        return {
            s: list(_orders.one_forward_one_backward(s, self._num_stages, self._n_microbatches))
            for s in range(self._num_stages)
        }


# Several stages in each process


class PipelineScheduleMulti(_PipelineSchedule):
    """A schedule of processes that have several stages each.

    Args:
        stages: The stages of this process.
        n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads: As all schedules
            have them: the number of microbatches, the loss of each, how arguments are cut and results joined, and
            whether gradients are divided by the number of microbatches.
        use_full_backward: Accepted.
        backward_requires_autograd: Accepted.

    Raises:
        TypeError: Something else than a list of stages. ValueError: They are not those that the schedule gives to this
        process.
    """

    _places = staticmethod(_orders.loop_places)
    #: What a process does, of its number; None in schedules whose orders are given to them.
    _order: Callable[..., list[_Action]] | None = None
    pipeline_order: dict[int, list[_Action | None]]

    def __init__(
        self,
        stages: list[_PipelineStageBase],
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: tuple[Any, ...] | None = None,
        kwargs_chunk_spec: dict[str, Any] | None = None,
        output_merge_spec: Any = None,
        use_full_backward: bool | None = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
    ) -> None:
        super().__init__(
            n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )
        if not isinstance(stages, (list, tuple)) or not stages:
            raise TypeError(self._text("stages", "a list of PipelineStages", type(stages).__name__))
        for stage in stages:
            if not isinstance(stage, _PipelineStageBase):
                raise TypeError(
                    self._text("stages", "a list of PipelineStages", f"a {type(stage).__name__} in it")
                )
        self._stages, self._num_stages = list(stages), stages[0].num_stages
        self.n_local_stages, self.num_stages = len(stages), stages[0].num_stages
        self.pp_group_size, self.rank = stages[0].group_size, stages[0].group_rank
        self.pipeline_order = {}
        self._settle(type(self)._places(self.pp_group_size, self._num_stages))

    def _settle(self, places: dict[int, int]) -> None:
        """Let stages know in which process each of them is."""
        mine = sorted(stage for stage, place in places.items() if place == self.rank)
        found = sorted(stage.stage_index for stage in self._stages)
        if self._order is not None and mine != found:
            text = self._text(
                "stages", f"stages {mine} in process {self.rank} of {self.pp_group_size}", found
            )
            raise ValueError(text)
        self.stage_index_to_group_rank = places
        for stage in self._stages:
            stage.stage_index_to_group_rank = places

    def _plan(self, order: Callable[[int], list[_Action]]) -> None:
        """Make the orders of all processes."""
        self.pipeline_order = {place: list(order(place)) for place in range(self.pp_group_size)}
        _orders.check(
            self.pipeline_order, self.stage_index_to_group_rank, self._n_microbatches, type(self).__name__
        )

    def _own_order(self) -> Sequence[_Action | None]:
        if not self.pipeline_order:
            return super()._own_order()
        return self.pipeline_order[self.rank]

    def _prepare_schedule_with_comms(
        self,
        actions: dict[int, list[_Action | None]],
        format: Literal["compute_only", "compute_comms"] = "compute_only",
    ) -> None:
        """Take an order for each process, which also says which process has which stage."""
        places = {a.stage_index: place for place, row in actions.items() for a in _orders.plain(row)}
        if sorted(places) != list(range(self._num_stages)):
            raise ValueError(
                f"{type(self).__name__}: order: expected all of {self._num_stages} stages, found {sorted(places)}"
            )
        _orders.check(actions, places, self._n_microbatches, type(self).__name__)
        self.pipeline_order = actions
        self._settle(places)

    def _load_csv(
        self, filename: str, format: Literal["compute_only", "compute_comms"] = "compute_only"
    ) -> None:
        """Read the orders of a file: a row for each process, of actions as "0F3" and "1B0".

        Actions that send, receive or gather parameters are left out: the engine does these where they are needed.
        """
        if format not in ("compute_only", "compute_comms"):
            raise NotImplementedError(f"{format=} is not implemented")
        with open(filename, encoding="utf-8", newline="") as file:
            rows = [[_Action.from_str(text) for text in row] for row in csv.reader(file)]
        self._prepare_schedule_with_comms(dict(enumerate(rows)), format)

    def _dump_csv(
        self, filename: str, format: Literal["compute_only", "compute_comms"] = "compute_only"
    ) -> None:
        """Write the orders to a file that `_load_csv` reads."""
        with files.replacing_text(filename, newline="") as file:
            writer = csv.writer(file)
            for place in sorted(self.pipeline_order):
                writer.writerow(["" if a is None else repr(a) for a in self.pipeline_order[place]])


class _PipelineScheduleRuntime(PipelineScheduleMulti):
    """A schedule whose orders are read from a file, or made by a class below.

    Args:
        *args, **kwargs: Those of `PipelineScheduleMulti`.
        defer_pp_recv: Accepted.
    """

    def __init__(self, *args: Any, defer_pp_recv: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self._order is not None:
            self._prepare()
            self._plan(self._order)

    def _prepare(self) -> None:
        """Check and settle what the orders need."""


class ScheduleLoopedBFS(_PipelineScheduleRuntime):
    """Each stage runs all microbatches before the next one does (Lamy-Poirier 2022, arXiv 2211.05953).

    Args:
        stages: The stages of this process: those whose number has the process's as remainder.
        n_microbatches, loss_fn, output_merge_spec, scale_grads, args_chunk_spec, kwargs_chunk_spec: As in
            `PipelineScheduleMulti`.
        backward_requires_autograd, defer_pp_recv: Accepted.

    Example:
        >>> schedule = ScheduleLoopedBFS([stage0, stage2], 4, loss_fn=loss_fn)  # doctest: +SKIP
    """

    def __init__(
        self,
        stages: list[_PipelineStageBase],
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
        *,
        args_chunk_spec: tuple[Any, ...] | None = None,
        kwargs_chunk_spec: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            stages, n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec,
            scale_grads=scale_grads,
        )  # fmt: skip

    def _order(self, place: int) -> list[_Action]:
        return _orders.breadth_first(place, self.pp_group_size, self.n_local_stages, self._n_microbatches)


class _Listed(_PipelineScheduleRuntime):
    """A schedule with the arguments in their usual order."""

    def __init__(
        self,
        stages: list[_PipelineStageBase],
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: tuple[Any, ...] | None = None,
        kwargs_chunk_spec: dict[str, Any] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        super().__init__(
            stages, n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec,
            scale_grads=scale_grads,
        )  # fmt: skip


class _InRounds(_Listed):
    """A schedule in which rounds of microbatches go through all stages of a process."""

    _name: ClassVar[str]
    _zero_bubble: ClassVar[bool] = False

    def _order(self, place: int) -> list[_Action]:
        return _orders.depth_first(
            place, self.pp_group_size, self.n_local_stages, self._n_microbatches, self.microbatches_per_round,
            self._zero_bubble,
        )  # fmt: skip

    def _prepare(self) -> None:
        self.number_of_rounds = max(1, self._n_microbatches // self.pp_group_size)
        self.microbatches_per_round = self._n_microbatches // self.number_of_rounds
        if self._n_microbatches % self.number_of_rounds:
            raise ValueError(
                f"{self._name} requires the number of microbatches to be a multiple of the number of rounds "
                f"({self.number_of_rounds}), but got {self._n_microbatches}."
            )


class ScheduleInterleaved1F1B(_InRounds):
    """One forward, one backward in turn, with rounds of microbatches through all stages of a process.

    After Narayanan et al. 2021 (arXiv 2104.04473). There are `n_microbatches // processes` rounds, at least one, and
    the number of microbatches is a multiple of theirs.

    Args:
        stages: The stages of this process: those whose number has the process's as remainder.
        n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads: As in
            `PipelineScheduleMulti`.
        backward_requires_autograd, defer_pp_recv: Accepted.

    Raises:
        ValueError: The rounds do not come out even, or the stages are not those of this process.

    Example:
        >>> schedule = ScheduleInterleaved1F1B([stage0, stage2], 4, loss_fn=loss_fn)  # doctest: +SKIP
    """

    _name = "Interleaved 1F1B"


class ScheduleInterleavedZeroBubble(_InRounds):
    """`ScheduleInterleaved1F1B` that keeps gradients of weights for pauses (ZB1P, Qi et al. 2023, arXiv 2401.10241).

    The order is that of the paper, the gradients are those of any other schedule. A backward computes both kinds of
    gradients at once unless the stage has a `dw_builder`, so pauses are not filled without one.

    Arguments, errors and use are those of `ScheduleInterleaved1F1B`.
    """

    _name = "Zero bubble"
    _zero_bubble = True


def _need_two(schedule: PipelineScheduleMulti, name: str) -> None:
    if schedule.n_local_stages != 2:
        raise ValueError(f"{name} requires exactly 2 stages per rank, but got {schedule.n_local_stages}.")


class ScheduleZBVZeroBubble(_Listed):
    """Two stages of each process, the first with the last, so that places form a V (ZB-V, Qi et al. 2023, section 6).

    A backward computes gradients of inputs and of weights at once unless the stage has a `dw_builder`.

    Args:
        stages: Two: of process `i` of `p` the stages `i` and `2 * p - 1 - i`.
        n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads: As in
            `PipelineScheduleMulti`.
        backward_requires_autograd, defer_pp_recv: Accepted.

    Raises:
        ValueError: Other stages.

    Example:
        >>> schedule = ScheduleZBVZeroBubble([first, last], 4, loss_fn=loss_fn)  # doctest: +SKIP
    """

    _places = staticmethod(_orders.v_places)

    def _prepare(self) -> None:
        _need_two(self, "ZBV")

    def _order(self, place: int) -> list[_Action]:
        return _orders.zero_bubble_v(place, self.pp_group_size, self._n_microbatches)


class ScheduleDualPipeV(_Listed):
    """Two stages of each process whose places form a V; forwards of one go with backwards of the other.

    After DualPipe (DeepSeek-AI 2024, arXiv 2412.19437). The two are done one after the other.

    Args:
        stages: Two: of process `i` of `p` the stages `i` and `2 * p - 1 - i`.
        n_microbatches: At least as many as stages.
        loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads: As in `PipelineScheduleMulti`.
        backward_requires_autograd, defer_pp_recv: Accepted.

    Raises:
        ValueError: Other stages, or fewer microbatches than stages.

    Example:
        >>> schedule = ScheduleDualPipeV([first, last], 4, loss_fn=loss_fn)  # doctest: +SKIP
    """

    _places = staticmethod(_orders.v_places)

    def _prepare(self) -> None:
        _need_two(self, "DualPipeV")
        if self._n_microbatches < self._num_stages:
            raise ValueError(
                "DualPipeV requires at least as many microbatches as stages, but got "
                f"{self._n_microbatches} microbatches and {self._num_stages} stages."
            )

    def _order(self, place: int) -> list[_Action]:
        return _orders.dual_pipe_v(place, self.pp_group_size, self._n_microbatches)


_BY_NAME: dict[str, type[_PipelineSchedule]] = {
    "1F1B": Schedule1F1B,
    "Interleaved1F1B": ScheduleInterleaved1F1B,
    "GPipe": ScheduleGPipe,
    "LoopedBFS": ScheduleLoopedBFS,
    "InterleavedZeroBubble": ScheduleInterleavedZeroBubble,
    "PipelineScheduleSingle": PipelineScheduleSingle,
    "PipelineScheduleMulti": PipelineScheduleMulti,
    "ZBVZeroBubble": ScheduleZBVZeroBubble,
    "DualPipeV": ScheduleDualPipeV,
}


def get_schedule_class(schedule_name: str) -> type[_PipelineSchedule]:
    """The schedule of a name, small or capital letters alike.

    Args:
        schedule_name: "1F1B", "Interleaved1F1B", "GPipe", "LoopedBFS", "InterleavedZeroBubble",
            "PipelineScheduleSingle", "PipelineScheduleMulti", "ZBVZeroBubble" or "DualPipeV".

    Raises:
        ValueError: There is none.

    Example:
        >>> get_schedule_class("gpipe").__name__
        'ScheduleGPipe'
    """
    for name, found in _BY_NAME.items():
        if name.lower() == schedule_name.lower():
            return found
    raise ValueError(f"Unknown schedule name '{schedule_name}'. The valid options are {list(_BY_NAME)}")
