"""The list of compilers of graphs."""

from taeda._dynamo import list_backends, register_backend

__all__ = ["list_backends", "register_backend"]
