"""Settings that programs make for a code generator that is not there."""

from taeda.compiler import _Config

__all__ = ["config"]

config = _Config("taeda._inductor.config", triton=_Config("taeda._inductor.config.triton"))
