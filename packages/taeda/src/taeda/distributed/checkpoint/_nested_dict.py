"""Nested dicts and lists as one dict of dotted names."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import taeda as torch

__all__ = ["flatten_state_dict", "get_element", "set_element", "unflatten_state_dict"]


def _keeps(value: Any) -> bool:
    """Whether a list or a dict stays as it is: it has no tensors, and is no dict."""
    if isinstance(value, dict):
        return not value
    return not any(
        isinstance(item, torch.Tensor) or (isinstance(item, (dict, list)) and not _keeps(item))
        for item in value
    )


def flatten_state_dict(state_dict: dict[str, Any]) -> tuple[dict[str, Any], dict[str, tuple]]:
    """One dict of dotted names, and for each the keys that lead to it.

    Example:
        >>> flatten_state_dict({"a": {"b": 1}})
        ({'a.b': 1}, {'a.b': ('a', 'b')})
    """
    flat: dict[str, Any] = {}
    paths: dict[str, tuple] = {}

    def visit(value: Any, path: tuple) -> None:
        if isinstance(value, dict) and not _keeps(value):
            for key, item in value.items():
                visit(item, (*path, key if isinstance(key, str) else str(key)))
        elif isinstance(value, list) and not _keeps(value):
            for number, item in enumerate(value):
                visit(item, (*path, number))
        else:
            name = ".".join(map(str, path))
            if name in flat:
                raise ValueError(f"duplicated flatten key {name}")
            flat[name], paths[name] = value, path

    for key, item in state_dict.items():
        visit(item, (str(key),))
    return flat, paths


def set_element(root: Any, path: tuple, value: Any) -> None:
    """Put a value into nested dicts and lists, which are made where they are missing."""
    for key, following in pairwise(path):
        made: Any = [] if isinstance(following, int) else {}
        if isinstance(root, list):
            root.extend([None] * (key + 1 - len(root)))
            root[key] = root[key] if root[key] is not None else made
        else:
            key = _present(root, key)
            root.setdefault(key, made)
        root = root[key]
    if isinstance(root, list):
        root.extend([None] * (path[-1] + 1 - len(root)))
        root[path[-1]] = value
    else:
        root[_present(root, path[-1])] = value


def get_element(root: Any, path: tuple, default_value: Any = None) -> Any:
    """The value that keys lead to in nested dicts and lists, or another one where there is none."""
    for key in path:
        if isinstance(key, int) and isinstance(root, list):
            if len(root) <= key:
                return default_value
        elif not isinstance(root, dict) or key not in root:
            return default_value
        root = root[key]
    return root


def _present(root: dict[Any, Any], key: Any) -> Any:
    """The key as the dict has it: numbers were written as texts."""
    if key not in root and isinstance(key, str) and key.isdigit() and int(key) in root:
        return int(key)
    return key


def unflatten_state_dict(state_dict: dict[str, Any], mapping: dict[str, tuple]) -> dict[str, Any]:
    """Nested dicts and lists again."""
    nested: dict[str, Any] = {}
    for name, value in state_dict.items():
        set_element(nested, mapping[name], value)
    return nested
