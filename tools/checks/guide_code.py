"""Check that code shown in the guides is the code of the files it is taken from.

A guide shows code below a line `<!-- code: PATH -->` or `<!-- code: PATH NAME -->`, as a fenced block. PATH is
relative to the repository. NAME is a function, class, method or assignment of a Python file (`Lion._move`), a table of
a TOML file (`project.entry-points`), a function, variable or struct of a C file, or, in any file, the text between the
comments `begin NAME` and `end NAME`.

Run as `python tools/checks/guide_code.py` to check, with `--write` to bring the guides up to date.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"(<!-- code: (?P<path>\S+)(?: (?P<name>\S+))? -->\n+)```(?P<kind>\w*)\n(?P<code>.*?)```\n", re.S
)
KINDS = {".py": "python", ".toml": "toml", ".c": "c", ".cpp": "cpp", ".h": "c", ".txt": "text"}


def excerpt(path: Path, name: str | None) -> str:
    """The text of a file, or of one named part of it.

    Raises:
        LookupError: the file has no such part.
    """
    text = path.read_text(encoding="utf-8")
    if name is None:
        return text
    for find in (
        _marked,
        {
            ".toml": _table,
            ".py": _definition,
            ".c": _c_definition,
            ".cpp": _c_definition,
            ".h": _c_definition,
        }.get(path.suffix, _nothing),
    ):
        found = find(text, name)
        if found is not None:
            return found
    raise LookupError(f"{path.relative_to(ROOT)} has no part {name!r}")


def _nothing(text: str, name: str) -> None:
    return None


def _marked(text: str, name: str) -> str | None:
    found = re.search(
        rf"^[^\n]*\bbegin {re.escape(name)}\b[^\n]*\n(.*?)^[^\n]*\bend {re.escape(name)}\b", text, re.S | re.M
    )
    return found[1] if found else None


def _c_definition(text: str, name: str) -> str | None:
    """From the line at the margin that defines a function, variable or type to the brace that ends it."""
    lines = text.splitlines(keepends=True)
    for first, line in enumerate(lines):
        if re.match(rf"\w[^;=]*\b{re.escape(name)}\b", line) and not line.rstrip().endswith(";"):
            last = first
            while not lines[last].rstrip().endswith("}") and not lines[last].startswith("}"):
                last += 1
            return "".join(lines[first : last + 1])
    return None


def _table(text: str, name: str) -> str | None:
    found = re.search(rf"^\[{re.escape(name)}[^\n]*\]\n(?:[^\[\n][^\n]*\n)+", text, re.M)
    return found[0] if found else None


def _definition(text: str, name: str) -> str | None:
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        inner = [child for child in ast.iter_child_nodes(node) if part in _names(child)]
        if not inner:
            return None
        node = inner[0]
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])  # type: ignore[attr-defined]
    lines = text.splitlines(keepends=True)[first - 1 : node.end_lineno]  # type: ignore[attr-defined]
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "".join(line[indent:] if line.strip() else line for line in lines)


def _names(node: ast.AST) -> list[str]:
    """The names that a statement defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def renewed(guide: str) -> tuple[str, list[str]]:
    """A guide's text with its code brought up to date, and what was wrong with it."""
    complaints: list[str] = []

    def replace(found: re.Match[str]) -> str:
        path = ROOT / found["path"]
        try:
            code = excerpt(path, found["name"])
        except (LookupError, OSError) as error:
            complaints.append(str(error))
            return found[0]
        if code != found["code"]:
            complaints.append(f"code differs from {found['path']} {found['name'] or ''}".rstrip())
        return f"{found[1]}```{KINDS.get(path.suffix, '')}\n{code}```\n"

    text = BLOCK.sub(replace, guide)
    if len(re.findall("<!-- code:", guide)) != len(BLOCK.findall(guide)):
        complaints.append("a '<!-- code: ... -->' line without a fenced block below it")
    return text, complaints


def main(arguments: list[str]) -> int:
    """Checks or rewrites all guides; the status is 1 when a check found something."""
    failed = 0
    for guide in sorted(ROOT.glob("docs/**/*.md")):
        text, complaints = renewed(guide.read_text(encoding="utf-8"))
        if "--write" in arguments:
            guide.write_text(text, encoding="utf-8")
            _, complaints = renewed(text)
        for complaint in complaints:
            print(f"{guide.relative_to(ROOT)}: {complaint}")
        failed += len(complaints)
    if not failed:
        print("guide code: fine")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
