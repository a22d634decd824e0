"""Where programs look for the class of compiled modules."""

from taeda._dynamo import OptimizedModule

__all__ = ["OptimizedModule"]
