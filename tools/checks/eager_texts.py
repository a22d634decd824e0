"""Check that what holds pays nothing for its text: `check(...)` evaluates its parts, so none of them may be made.

A shape travels as `shape_text`, which is written later; what has to be put together first (`describe`, `to_string`,
strings) belongs behind `if (...) [[unlikely]] fail(...)`. Run as `python tools/checks/eager_texts.py`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')
CHECK = re.compile(r"(?<![\w:.>])check\((.*?)\);\n", re.DOTALL)
MADE = re.compile(r'\b(?:describe|to_string|known_names|result_text|type_text|std::string)\(|"" \+|\+ ""')


def check_text(text: str) -> list[str]:
    """What is made in the checks of one source, by line."""
    found = []
    bare = LITERAL.sub('""', text)
    for statement in CHECK.finditer(bare):
        if made := MADE.search(statement.group(1)):
            line = bare.count("\n", 0, statement.start()) + 1
            found.append(f"{line}: a check that holds makes {made.group()!r}; write if (...) fail(...)")
    return found


def check() -> list[str]:
    """All complaints about the native sources."""
    complaints = []
    for kind in ("src/**/*.cpp", "src/**/*.h", "include/**/*.h"):
        for path in sorted(ROOT.glob(f"packages/*/{kind}")):
            found = check_text(path.read_text(encoding="utf-8"))
            complaints += [f"{path.relative_to(ROOT)}:{text}" for text in found]
    return complaints


if __name__ == "__main__":
    problems = check()
    print("\n".join(problems) or "eager texts: fine")
    sys.exit(bool(problems))
