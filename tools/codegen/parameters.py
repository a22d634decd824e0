"""What a Python caller sees of an operator: the parameters in stubs, and the signatures that `inspect` reads."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from schema import Argument, Operator

_LITERAL = re.compile(r"-?\d[\d.e+-]*|True|False|None|\"[^\"]*\"|'[^']*'|\[[-\d, ]*\]")


@dataclass(frozen=True)
class Parameter:
    """One parameter; the argument behind it is None for the receiver of a method and for `out`."""

    name: str
    argument: Argument | None = None
    default: str | None = None  # as written; None: required
    keyword_only: bool = False
    starred: bool = False


def parameters(op: Operator, in_place: bool, method: bool) -> list[Parameter]:
    """The parameters of one operator, a list that may be given as separate arguments as one list."""
    receiver = next((a for a in op.arguments if a.is_tensor), None) if method else None
    found = [Parameter("self")] if method else []
    for a in op.arguments:
        if a is not receiver:
            name = "input" if a.name == "self" else a.name  # both are understood
            found.append(Parameter(name, a, a.default, a.keyword_only))
    if "out" in op.forms and not in_place:
        found.append(Parameter("out", None, "None", keyword_only=True))
    return found


def starred(op: Operator, each: list[Parameter]) -> list[Parameter] | None:
    """The same with that list as separate arguments, or None where there is none."""
    index = next((i for i, p in enumerate(each) if p.argument and p.name == op.varargs), None)
    if index is None or each[index].keyword_only:
        return None
    before, after = each[:index], each[index + 1 :]
    if any(p.default is None for p in after):
        return None
    star = replace(each[index], default=None, starred=True)
    return [*before, star, *(replace(p, keyword_only=True) for p in after)]


def _text(each: list[Parameter], method: bool) -> str:
    """As `__text_signature__` has it, in which the receiver is `$self`."""
    parts, open_ = [], False
    for i, p in enumerate(each):
        if p.keyword_only and not open_:
            parts.append("*")
        open_ = open_ or p.keyword_only or p.starred
        default = "" if p.default is None else f"={p.default}"
        parts.append(("$" if method and i == 0 else "*" if p.starred else "") + p.name + default)
    return f"({', '.join(parts)})"


def text_signature(ops: list[Operator], in_place: bool, method: bool) -> str | None:
    """What `inspect.signature` reads of the overloads of one name, or None where no one signature tells of them all."""
    said = next((op.signature for op in ops if op.signature), None)
    if said is not None and not in_place:
        return re.sub(r"^\(\w+", "($self", said) if method else said
    texts = set()
    for op in ops:
        each = parameters(op, in_place, method)
        each = starred(op, each) or each
        if not all(p.default is None or _LITERAL.fullmatch(p.default) for p in each):
            return None
        texts.add(_text(each, method))
    return texts.pop() if len(texts) == 1 else None
