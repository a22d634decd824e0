"""Questions of programs to a compiler of Python code."""

from taeda.compiler import is_compiling

__all__ = ["is_compiling"]
