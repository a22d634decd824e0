"""What `taeda.func` has, under older and private names; settings for a compiler that is not there."""

from taeda.compiler import _Config

__all__ = ["config"]

config = _Config("taeda._functorch.config")
