"""`taeda.cond` by the name of its file in PyTorch."""

from taeda import cond

__all__ = ["cond"]
