"""Pipeline parallelism: a model cut into stages, one or several for each process, through which microbatches go.

`pipeline` cuts a model, `PipelineStage` takes parts that a program made itself, and schedules run them.
"""

from __future__ import annotations

from taeda.distributed.pipelining._split import Pipe, SplitPoint, pipe_split, pipeline
from taeda.distributed.pipelining._stages import PipelineStage
from taeda.distributed.pipelining._traced import build_stage
from taeda.distributed.pipelining.schedules import (
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from taeda.distributed.pipelining.schedules import (
    _ScheduleForwardOnly as _ScheduleForwardOnly,
)

__all__ = [
    "Pipe", "PipelineStage", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "SplitPoint",
    "build_stage", "pipe_split", "pipeline",
]  # fmt: skip
