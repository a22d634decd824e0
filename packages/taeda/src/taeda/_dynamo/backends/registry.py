"""The list of compilers of graphs."""

from taeda._dynamo import list_backends, lookup_backend, register_backend

__all__ = [
    "list_backends",
    "lookup_backend",
    "register_backend",
    "register_debug_backend",
    "register_experimental_backend",
]

register_debug_backend = register_experimental_backend = register_backend
