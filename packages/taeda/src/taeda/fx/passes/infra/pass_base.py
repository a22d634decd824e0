"""The class that passes derive from."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """A graph module, and whether it was changed."""

    graph_module: Any
    modified: bool


class PassBase(abc.ABC):
    """A change of graph modules, with conditions before and after.

    Example:
        >>> class Double(PassBase):
        ...     def call(self, graph_module):
        ...         return PassResult(graph_module, False)
    """

    def __call__(self, graph_module: Any) -> PassResult | None:
        """Check, change, check."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: Any) -> PassResult | None:
        """Change the graph module; derived classes say how."""

    def requires(self, graph_module: Any) -> None:  # noqa: B027 (most passes ask nothing)
        """Raise where the graph module is not fit for this pass."""

    def ensures(self, graph_module: Any) -> None:  # noqa: B027
        """Raise where the graph module is not what this pass promises."""
