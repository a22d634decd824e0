"""`taeda.while_loop` by the name of its file in PyTorch."""

from taeda import while_loop

__all__ = ["while_loop"]
