"""The older home of `taeda.library.get_ctx`."""

from taeda_registry.slots import tensor

get_ctx = tensor.library.get_ctx

__all__ = ["get_ctx"]
