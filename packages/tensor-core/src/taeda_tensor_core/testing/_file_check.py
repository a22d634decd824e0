"""Checks of text by directives in their order, as programs that look at printed graphs use them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass
class _Directive:
    kind: str
    text: str
    count: int = 1
    exactly: bool = False

    def find(self, text: str, begin: int, end: int | None = None) -> tuple[int, int] | None:
        """Where it stands in the text between two places."""
        pattern = self.text if self.kind == "regex" else re.escape(self.text)
        found = re.compile(pattern).search(text, begin, len(text) if end is None else end)
        return None if found is None else found.span()


class FileCheck:
    """Directives that a text must fulfil, one behind the other; each looks behind where the last one was found.

    Example:
        >>> FileCheck().check("add").check_same("x").check_next("mul").check_not("div").run("add x\\nmul y\\n")
    """

    def __init__(self) -> None:
        self._directives: list[_Directive] = []

    def _with(self, kind: str, text: str, count: int = 1, exactly: bool = False) -> FileCheck:
        self._directives.append(_Directive(kind, text, count, exactly))
        return self

    def check(self, text: str) -> FileCheck:
        """The text stands somewhere behind."""
        return self._with("check", text)

    def check_same(self, text: str) -> FileCheck:
        """It stands behind in the same line."""
        return self._with("same", text)

    def check_next(self, text: str) -> FileCheck:
        """It stands in the next line."""
        return self._with("next", text)

    def check_dag(self, text: str) -> FileCheck:
        """It stands behind; directives of this kind that follow each other may be found in any order."""
        return self._with("dag", text)

    def check_not(self, text: str) -> FileCheck:
        """It stands nowhere between what the directives before and after it find."""
        return self._with("not", text)

    def check_count(self, str: str, count: int, exactly: bool = False) -> FileCheck:
        """It stands so many times behind; with `exactly` no more often."""
        return self._with("count", str, count, exactly)

    def check_regex(self, pattern: str) -> FileCheck:
        """What the regular expression describes stands behind."""
        return self._with("regex", pattern)

    def run(self, text: Any) -> None:
        """Hold a text against the directives; of what is no text, what it prints as.

        Raises:
            RuntimeError: A directive is not fulfilled; the message has it, and the text from where it was looked for.
        """
        text, at, absent, group = str(text), 0, [], -1
        for number, one in enumerate(self._directives):
            if one.kind == "not":
                absent.append(one)
                continue
            if one.kind == "dag" and number and self._directives[number - 1].kind == "dag":
                span = self._found(one, text, group, None)
                at = max(at, span[1])
                continue
            group = at
            end, spans = None, []
            if one.kind in ("same", "next"):
                line = at if one.kind == "same" else text.find("\n", at) + 1 or len(text)
                end = text.find("\n", line) % (len(text) + 1)
                at = max(at, line)
            for _ in range(one.count if one.kind == "count" else 1):
                spans.append(self._found(one, text, spans[-1][1] if spans else at, end))
            self._none_between(absent, text, group, spans[0][0] if spans else at)
            absent = []
            at = spans[-1][1] if spans else at
            if one.exactly and one.find(text, at) is not None:
                what = f"Expected to not find {one.text!r} more than {one.count} times"
                raise RuntimeError(self._message(what, text, at))
        self._none_between(absent, text, at, len(text))

    def _found(self, one: _Directive, text: str, begin: int, end: int | None) -> tuple[int, int]:
        span = one.find(text, begin, end)
        if span is None:
            where = {"same": "in the same line", "next": "in the next line"}.get(
                one.kind, "but did not find it"
            )
            raise RuntimeError(self._message(f"Expected to find {one.text!r} {where}", text, begin))
        return span

    def _none_between(self, absent: list[_Directive], text: str, begin: int, end: int) -> None:
        for one in absent:
            if one.find(text, begin, end) is not None:
                raise RuntimeError(
                    self._message(f"Expected to not find {one.text!r} but found it", text, begin)
                )

    @staticmethod
    def _message(what: str, text: str, begin: int) -> str:
        return f"{what}\nSearched string:\n{text[begin:]}"

    def __repr__(self) -> str:
        return f"FileCheck({', '.join(f'{one.kind} {one.text!r}' for one in self._directives)})"
