"""What runs graphs, as names."""

from taeda import _absent

Interpreter = _absent.cls("taeda.fx.Interpreter", "there is no symbolic tracer")
Transformer = _absent.cls("taeda.fx.Transformer", "there is no symbolic tracer", Interpreter)
