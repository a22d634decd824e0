"""What may be said of an operator besides its schema."""

from __future__ import annotations

import enum
from typing import Any

#: The class that `Overload.tags` gives members of.
_used: list[Any] = [enum.Enum("Tag", "inplace nondeterministic_seeded out pt2_compliant_tag")]


def use_tags(tags: Any) -> None:
    """Let `Overload.tags` give members of this class, which has the names that stand here and may have others."""
    _used[0] = tags


def tags_of(operator: Any) -> list[Any]:
    """What the schema of an operator tells of it."""
    tags, is_out = _used[0], operator._form == "out"
    found = {
        tags.inplace: not is_out and operator.form == "inplace",
        tags.nondeterministic_seeded: any(argument.name == "generator" for argument in operator.arguments),
        tags.out: is_out,
        tags.pt2_compliant_tag: True,
    }
    return [tag for tag, holds in found.items() if holds]
