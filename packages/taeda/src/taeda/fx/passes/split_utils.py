"""Cuts a graph by tags of its nodes."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

from taeda.fx.graph_module import GraphModule
from taeda.fx.passes.split_module import split_module

__all__ = ["getattr_recursive", "move_non_tensor_nodes_on_boundary", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: Any, name: str) -> Any:
    """The attribute at a dotted path; None where a part of it is missing."""
    return reduce(lambda found, part: getattr(found, part, None), name.split("."), obj)


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Set the attribute at a dotted path."""
    *path, last = attr.split(".")
    setattr(operator.attrgetter(".".join(path))(obj) if path else obj, last, value)


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> Any:
    """A graph module whose submodules are the parts of another's graph, called by the tags of their nodes.

    Args:
        gm: A graph module, whose calls have a `tag`.
        tags: The tags.
        return_fqn_mapping: Give a mapping from the old paths of attributes to the new ones too.

    Raises:
        ValueError: A call has none of the tags.
    """
    for node in gm.graph.nodes:
        if node.op.startswith("call") and getattr(node, "tag", None) not in tags:
            raise ValueError(
                f"split_by_tags: node {node} has the tag {getattr(node, 'tag', None)!r}, expected one of {tags}"
            )
    paths: dict[str, str] = {}
    made = split_module(gm, gm, lambda node: getattr(node, "tag", tags[0]), paths, keep_original_order=True)
    for node in made.graph.nodes:
        if node.op == "call_module" and str(node.target).startswith("submod_"):
            tag = str(node.target).removeprefix("submod_")
            made.add_module(tag, made.get_submodule(str(node.target)))
            made.delete_submodule(str(node.target))
            node.target = node.name = tag
    made.recompile()
    renamed = {old: new.removeprefix("submod_") for new, old in paths.items()}
    for node in gm.graph.nodes:
        if node.op == "get_attr" and node.users:
            renamed.setdefault(str(node.target), f"{next(iter(node.users)).tag}.{node.target}")
    return (made, renamed) if return_fqn_mapping else made


def move_non_tensor_nodes_on_boundary(subgraphs: Any) -> None:
    """Accepted: values that are no tensors pass between parts."""
