"""What may be said of an operator besides its schema."""

from __future__ import annotations

import enum
from typing import Any

#: The class that `Overload.tags` gives members of.
_used: list[Any] = [enum.Enum("Tag", "inplace nondeterministic_seeded out pt2_compliant_tag")]


def use_tags(tags: Any) -> None:
    """Let `Overload.tags` give members of this class, which has the names that stand here and may have others."""
    _used[0] = tags


#: By name of an operator: what its definition says of it.
_given: dict[str, list[Any]] = {}
#: Names of operators that `custom_op` has made.
_of_functions: set[str] = set()


def mark_function(name: str) -> None:
    """Say that `custom_op` has made this operator."""
    _of_functions.add(name)


def give_tags(name: str, tags: Any) -> None:
    """Keep what a definition says of its operator: a tag or several; nothing takes away what was said."""
    _given.pop(name, None)
    _of_functions.discard(name)
    if listed := list(tags) if isinstance(tags, list | tuple | set | frozenset) else [tags]:
        _given[name] = listed


def tags_of(operator: Any) -> list[Any]:
    """What the schema of an operator, and its definition, tell of it."""
    tags, is_out = _used[0], operator._form == "out"
    found = {
        tags.inplace: not is_out and operator.form == "inplace",
        tags.nondeterministic_seeded: any(argument.name == "generator" for argument in operator.arguments),
        tags.out: is_out,
        tags.pt2_compliant_tag: "::" not in operator.name or operator.name in _of_functions,
    }
    return list(dict.fromkeys([tag for tag, holds in found.items() if holds] + _given.get(operator.name, [])))
