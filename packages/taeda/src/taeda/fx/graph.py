"""Graphs, as names."""

from taeda import _absent

Graph = _absent.cls("taeda.fx.Graph", "there is no symbolic tracer")
CodeGen = _absent.cls("taeda.fx.CodeGen", "there is no symbolic tracer")
PythonCode = _absent.cls("taeda.fx.graph.PythonCode", "there is no symbolic tracer")
