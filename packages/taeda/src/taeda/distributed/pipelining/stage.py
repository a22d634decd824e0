"""Stages of a pipeline, under the name that programs import them by."""

from __future__ import annotations

from taeda.distributed.pipelining._stages import PipelineStage, _PipelineStageBase
from taeda.distributed.pipelining._traced import _PipelineStage, build_stage

__all__ = ["PipelineStage", "_PipelineStage", "_PipelineStageBase", "build_stage"]
