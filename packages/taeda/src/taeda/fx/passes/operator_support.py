"""Which nodes of a graph another program can run."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

from taeda.fx._names import qualified_name
from taeda.fx.node import Node

__all__ = [
    "FunctionalOperatorSupport", "OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain",
    "create_op_support",
]  # fmt: skip

_CALLS = frozenset({"call_function", "call_method", "call_module"})


class OperatorSupportBase(abc.ABC):
    """Answers whether a node is supported."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Whether a node, whose modules stand in `submodules`, is supported."""


def _target_name(submodules: Mapping[str, Any], node: Node) -> str:
    """A node's target as the table names it: a function's or a module class's dotted name, or a method's name."""
    if node.op == "call_module":
        kind = type(submodules[node.target])  # type: ignore[index]
        return f"{kind.__module__}.{kind.__qualname__}".replace("taeda_nn.", "torch.nn.", 1)
    if node.op == "call_method":
        return str(node.target)
    name = qualified_name(node.target)
    return f"_{name}" if name.startswith("operator.") else name


class OperatorSupport(OperatorSupportBase):
    """Supports calls whose names are in a table.

    Args:
        support_dict: By the dotted name of a function or class, or the name of a method: None where all dtypes are
            supported, else (dtypes of each positional argument, dtypes by name of the others).
    """

    def __init__(self, support_dict: Mapping[str, Any] | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Whether the node is a call that the table has, with dtypes that it has."""
        if node.op not in _CALLS:
            return True
        name = _target_name(submodules, node)
        own = name.replace("torch.nn.", "taeda_nn.", 1)
        if name not in self._support_dict and own not in self._support_dict:
            return False
        wanted = self._support_dict[name if name in self._support_dict else own]
        if wanted is None:
            return True
        by_place, by_name = wanted
        given = [*zip(node.args, by_place, strict=False)]
        given += [(node.kwargs.get(key), dtypes) for key, dtypes in by_name.items()]
        return all(_dtype_of(item) in dtypes for item, dtypes in given if isinstance(item, Node))


def _dtype_of(node: Node) -> Any:
    """What is known of the dtype of a node's result: `meta` has it after `ShapeProp`."""
    meta = node.meta.get("tensor_meta")
    if isinstance(meta, tuple) and not hasattr(meta, "dtype"):
        meta = meta[0]
    return getattr(meta, "dtype", None)


class FunctionalOperatorSupport(OperatorSupportBase):
    """Asks a function.

    Args:
        is_node_supported: The function.
    """

    def __init__(self, is_node_supported: Callable[[Mapping[str, Any], Node], bool]) -> None:
        self._ask = is_node_supported

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """What the function says."""
        return self._ask(submodules, node)


def create_op_support(is_node_supported: Callable[[Mapping[str, Any], Node], bool]) -> OperatorSupportBase:
    """What a function says."""
    return FunctionalOperatorSupport(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What all of these support."""
    return create_op_support(lambda mods, node: all(s.is_node_supported(mods, node) for s in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What one of these supports."""
    return create_op_support(lambda mods, node: any(s.is_node_supported(mods, node) for s in op_support))


class OpSupports:
    """Ready-made answers."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: Any) -> OperatorSupportBase:
        """All nodes but those with an argument of a dtype.

        Raises:
            RuntimeError: From the answer, where `ShapeProp` has not told the dtypes.
        """

        def ask(_: Mapping[str, Any], node: Node) -> bool:
            for item in node.all_input_nodes:
                found = _dtype_of(item)
                if found is None:
                    raise RuntimeError(
                        f"decline_if_input_dtype: the dtype of {item.name} is not known; run ShapeProp"
                    )
                if found == dtype:
                    return False
            return True

        return create_op_support(ask)

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """All nodes but those of these names."""
        return create_op_support(lambda _, node: node.name not in disallow_set)
