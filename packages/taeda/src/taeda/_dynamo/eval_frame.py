"""Where programs look for the class of compiled modules."""

from taeda._dynamo import OptimizedModule

__all__ = ["OptimizedModule", "is_dynamo_supported"]


def is_dynamo_supported() -> bool:
    """Whether programs are compiled: False."""
    return False
