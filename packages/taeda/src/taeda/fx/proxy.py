"""What a tracer gives in the place of values, as names."""

from taeda import _absent
from taeda.fx._tracer import TracerBase

Proxy = _absent.cls("taeda.fx.Proxy", "there is no symbolic tracer")
Attribute = _absent.cls("taeda.fx.proxy.Attribute", "there is no symbolic tracer", Proxy)


class TraceError(ValueError):
    """A program that cannot be traced."""


__all__ = ["Attribute", "Proxy", "TraceError", "TracerBase"]
