"""Check of small rules: purpose lines, equal licence copies, no machine's own paths, no accelerator's name in the core,
no backend beneath inference, no file that is too long to be one room, no text file read by the locale's encoding, no
lock of a module that a forked child may find held, no reference to a Note that is not there.

Run as `python tools/checks/house_rules.py`; prints one line per violation and fails when there is any.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

HEADS = {
    ".py": re.compile(r'\A(#!.*\n)?(# .+|r?""".+)'),
    ".pyi": re.compile(r"\A(# .+|\"\"\".+)"),
    ".cpp": re.compile(r"\A(// .+|/\*.+)"),
    ".h": re.compile(r"\A(// .+|/\*.+)"),
    ".c": re.compile(r"\A(// .+|/\*.+)"),
    ".yaml": re.compile(r"\A# .+"),
    ".toml": None,
    ".md": None,
}
# Code of more lines than this holds two things (a declaration per line is no such thing).
LONGEST = 900
CODE = {".py", ".cpp", ".h", ".c"}
# Homes, temporary folders and working folders of some machine.
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:home|root|tmp|work|Users)/[\w.]+")
# The core knows devices by what their backends say, so no file of it names one, the list of reserved names apart.
CORE_SOURCES = ("packages/tensor-core/src", "packages/tensor-core/include", "packages/tensor-core/ops")
RESERVED_NAMES = {"reserved.h", "_C.pyi"}
ACCELERATOR = re.compile(r"cuda", re.IGNORECASE)
# All backends share inference, so it takes nothing of one.
INFERENCE = "packages/tensor-core/src/infer/"
OF_A_BACKEND = re.compile(r'#include "cpu/[^"]*"|TAEDA_WITH_\w+')
# A machine's locale says nothing of the files that taeda reads and writes.
LOCALES = ("packages/", "tools/", "benchmarks/", "noxfile.py")

# "Note [Title]", also over the end of a line of comment; where it begins a line, the Note itself follows.
NOTE = re.compile(
    r"(?P<begin>^[ \t]*(?:///?|#|\*|\"\"\")?[ \t]*)?\bNote \[(?P<title>[^\]]+)\](?P<end>[.:]?)", re.MULTILINE
)
COMMENT_BREAK = re.compile(r"\s*\n\s*(?:///?|#|\*)?\s*")

# Where such things stand that the checks are about.
EXAMPLES = {Path(__file__).resolve(), ROOT / "tests" / "test_surroundings.py"}

LOCK = re.compile(r"(threading\.)?(Lock|RLock|Condition|Semaphore|BoundedSemaphore)\(")


def by_locale(text: str) -> list[int]:
    """Lines on which a text file is opened without an encoding."""

    def opens(call: ast.Call) -> bool:
        if isinstance(call.func, ast.Attribute):
            return call.func.attr in ("read_text", "write_text")
        if not (isinstance(call.func, ast.Name) and call.func.id == "open"):
            return False
        mode = call.args[1:2] + [each.value for each in call.keywords if each.arg == "mode"]
        return not any("b" in ast.unparse(each) for each in mode)

    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and opens(node)]
    return [call.lineno for call in calls if not any(each.arg == "encoding" for each in call.keywords)]


def kept_locks(text: str) -> list[int]:
    """Lines on which a module or class gets a lock for itself that fork does not know of."""
    tree = ast.parse(text)
    if any(isinstance(node, ast.Attribute) and node.attr == "register_at_fork" for node in ast.walk(tree)):
        return []  # the module has an answer of its own
    rooms = [node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef))]
    values = [
        line.value for room in rooms for line in room.body if isinstance(line, (ast.Assign, ast.AnnAssign))
    ]
    return sorted(v.lineno for v in values if v is not None and LOCK.match(ast.unparse(v)))


def lost_notes(texts: dict[str, str]) -> list[str]:
    """Complaints about references to Notes that no file has."""
    there, asked = set(), {}
    for name, text in texts.items():
        for found in NOTE.finditer(text):
            title = COMMENT_BREAK.sub(" ", found["title"])
            if found["begin"] is not None and (found["end"] or text[found.end() : found.end() + 1] == "\n"):
                there.add(title)
            else:
                asked.setdefault(title, name)
    return [f"{name}: there is no Note [{title}]" for title, name in asked.items() if title not in there]


def tracked() -> list[Path]:
    """Files under version control, new ones included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.splitlines() if (ROOT / name).is_file()]


def check_file(path: Path) -> list[str]:
    """Return the complaints about one file."""
    text = path.read_text(encoding="utf-8")
    complaints = []
    head = HEADS[path.suffix]
    if head is not None and text.strip() and not head.match(text):
        complaints.append("no purpose line at its head")
    if path.suffix in CODE and (lines := text.count("\n")) > LONGEST:
        complaints.append(f"{lines} lines are more than {LONGEST}: split it")
    if found := MACHINE_PATH.search(text):
        complaints.append(f"names a path of one machine: {found.group()}")
    name = path.relative_to(ROOT).as_posix()
    if (
        name.startswith(CORE_SOURCES)
        and path.name not in RESERVED_NAMES
        and (found := ACCELERATOR.search(text))
    ):
        complaints.append(f"names an accelerator outside the reserved device names: {found.group()}")
    if name.startswith(INFERENCE) and (found := OF_A_BACKEND.search(text)):
        complaints.append(f"inference takes something of one backend: {found.group()}")
    if path.suffix == ".py" and name.startswith(LOCALES) and "tests" not in path.parts:
        complaints += [f"line {line} opens a text file without an encoding" for line in by_locale(text)]
        complaints += [f"line {line} makes a lock without held_at_fork" for line in kept_locks(text)]
    return complaints


def check() -> list[str]:
    """Return all complaints about the repository."""
    complaints = []
    for path in tracked():
        if path.suffix in HEADS and path != Path(__file__).resolve():
            complaints += [f"{path.relative_to(ROOT)}: {text}" for text in check_file(path)]
    commented = (
        path for path in tracked() if path.suffix in CODE | {".md", ".yaml"} and path not in EXAMPLES
    )
    complaints += lost_notes(
        {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in commented}
    )
    licence = ROOT.joinpath("LICENSE").read_bytes()
    for copy in sorted(ROOT.glob("packages/*/LICENSE")):
        if copy.read_bytes() != licence:
            complaints.append(f"{copy.relative_to(ROOT)}: differs from the repository's LICENSE")
    return complaints


if __name__ == "__main__":
    problems = check()
    print("\n".join(problems) or "house rules: fine")
    sys.exit(bool(problems))
