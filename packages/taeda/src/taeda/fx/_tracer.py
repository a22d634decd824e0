"""The class that tracers derive from."""

from taeda import _absent

_REASON = "there is no symbolic tracer; run the function or module itself"

TracerBase = _absent.cls("taeda.fx.TracerBase", _REASON)
Tracer = _absent.cls("taeda.fx.Tracer", _REASON, TracerBase)
symbolic_trace = _absent.function("taeda.fx.symbolic_trace", _REASON)


class ProxyableClassMeta(type):
    """Metaclass of classes that a tracer may make while it runs; here they are classes like any."""
