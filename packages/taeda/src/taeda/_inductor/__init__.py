"""Settings that programs make for a code generator that is not there."""

from taeda.compiler import _Config

__all__ = ["config"]

config = _Config()
