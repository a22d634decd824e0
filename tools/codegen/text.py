"""Small help for writing source text: templates with `$name`, indented blocks, words and string literals of C++."""

from __future__ import annotations

from string import Template

#: Words of C++ that operators are named by, or might be.
KEYWORDS = frozenset({
    "and", "or", "not", "xor", "float", "double", "int", "bool", "short", "long", "char", "new", "default", "const",
    "auto", "switch", "case", "delete", "register", "union", "signed", "unsigned", "typeid",
})  # fmt: skip


def fill(template: str, **values: object) -> str:
    """The template with its `$name`s replaced; a value of several lines goes in as it stands."""
    return Template(template).substitute({key: str(value) for key, value in values.items()})


def indented(lines: list[str], by: int) -> str:
    """Lines, each indented and ended."""
    return "".join(f"{' ' * by}{line}\n" for line in lines)


def joined(*parts: str) -> str:
    """The non-empty parts with commas between: lists of parameters and arguments."""
    return ", ".join(part for part in parts if part)


def literal(text: str) -> str:
    """A C++ string literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def truth(value: bool) -> str:
    """`true` or `false`."""
    return "true" if value else "false"
