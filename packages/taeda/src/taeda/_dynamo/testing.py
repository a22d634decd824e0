"""Backends that count and keep graphs."""

from __future__ import annotations

from typing import Any

from taeda._dynamo.utils import clone_inputs, same

__all__ = ["CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs", "clone_inputs", "same"]


class CompileCounter:
    """A backend that takes graphs as they are.

    Attributes:
        frame_count: How many graphs it got.
        op_count: How many calls there are in them.
    """

    def __init__(self) -> None:
        self.clear()

    def __call__(self, gm: Any, example_inputs: Any) -> Any:
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)
        return gm.forward

    def clear(self) -> None:
        """Count from zero."""
        self.frame_count, self.op_count = 0, 0


class CompileCounterWithBackend(CompileCounter):
    """A backend that counts and hands graphs on; `graphs` has them.

    Args:
        backend: A function, or the name of one.
    """

    def __init__(self, backend: Any) -> None:
        super().__init__()
        self.backend = backend

    def __call__(self, gm: Any, example_inputs: Any) -> Any:
        from taeda._dynamo import lookup_backend

        super().__call__(gm, example_inputs)
        self.graphs.append(gm)
        return lookup_backend(self.backend)(gm, example_inputs)

    def clear(self) -> None:
        """Count from zero, and forget the graphs."""
        super().clear()
        self.graphs: list[Any] = []


class EagerAndRecordGraphs:
    """A backend that takes graphs as they are and keeps them in `graphs`."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: Any) -> Any:
        self.graphs.append(gm)
        return gm.forward
