"""The old name of `vmap`, which libraries still call."""

from taeda.func import vmap

__all__ = ["_vmap", "vmap"]

_vmap = vmap
