"""Check of the C ABI: the header may only grow beyond the recorded version.

Run as `python tools/checks/abi.py`; prints one line per difference and fails when there is any. The record is
written once for each minor version, by `python tools/checks/abi.py --record`, which refuses what is no extension.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

HEADERS = Path(__file__).resolve().parents[2] / "packages/registry/src/taeda_registry/include/taeda"
HEADER = HEADERS / "abi.h"

# Structs whose first member is this may be longer than recorded; the others are frozen.
SIZE = "size_t size"


@dataclass
class Description:
    """What of the header binds both sides: members in order, constants, types."""

    structs: dict[str, list[str]] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """As lines that `parse_record` reads."""
        lines = [f"constant {name} = {value}" for name, value in self.constants.items()]
        lines += [f"type {name} = {value}" for name, value in self.types.items()]
        for name, members in self.structs.items():
            lines += [f"struct {name}", *(f"  {member}" for member in members)]
        return "\n".join(lines) + "\n"


def parse_record(text: str) -> Description:
    """Read what `Description.text` wrote."""
    found = Description()
    members: list[str] = []
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        word, _, rest = line.strip().partition(" ")
        if line.startswith("  "):
            members.append(line.strip())
        elif word == "struct":
            members = found.structs[rest] = []
        else:
            name, _, value = rest.partition(" = ")
            (found.constants if word == "constant" else found.types)[name] = value
    return found


def parse_header(text: str) -> Description:
    """Read the declarations of the header; its style is regular enough for expressions."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    found = Description()
    for name, value in re.findall(r"^#define (TAEDA_\w+) (\S.*)$", text, flags=re.M):
        if name not in ("TAEDA_ABI_MINOR", "TAEDA_PLUGIN_EXPORT"):
            found.constants[name] = value.strip()
    text = re.sub(r"^\s*#(?:.*\\\n)*.*$", "", text, flags=re.M)
    for body in re.findall(r"\benum \{(.*?)\};", text, flags=re.S):
        for item in body.split(","):
            name, _, value = (part.strip() for part in item.partition("="))
            found.constants[name] = value
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\n\} \1;", text, flags=re.S):
        found.structs[name] = _members(body)
    rest = re.sub(r"typedef struct (\w+) \{.*?\n\} \1;", "", text, flags=re.S)
    for declaration in re.findall(r"typedef ([^{};]*);", rest):
        declaration = _tidy(declaration)
        function = re.search(r"\(\*(\w+)\)", declaration)
        name = function.group(1) if function else declaration.split()[-1].lstrip("*")
        found.types[name] = declaration
    return found


def _tidy(text: str) -> str:
    return re.sub(r"\(\s+", "(", re.sub(r"\s+", " ", text)).strip()


def _members(body: str) -> list[str]:
    """Members of a struct, each in one line; a union inside is one member."""
    members, depth, current = [], 0, ""
    for character in body:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == ";" and depth == 0:
            members.append(_tidy(current))
            current = ""
        else:
            current += character
    return members


def complaints(recorded: Description, now: Description) -> list[str]:
    """Every way in which the header is not the record with something appended."""
    found = []
    for kind, before, after in (
        ("constant", recorded.constants, now.constants),
        ("type", recorded.types, now.types),
    ):
        for name, value in before.items():
            if name not in after:
                found.append(f"{kind} {name} is gone, it was {value}")
            elif after[name] != value:
                found.append(f"{kind} {name} has changed: was {value}, is {after[name]}")
    for name, before_members in recorded.structs.items():
        found += _struct_complaints(name, before_members, now.structs.get(name))
    return found


def _struct_complaints(name: str, before: list[str], after: list[str] | None) -> list[str]:
    if after is None:
        return [f"struct {name} is gone"]
    for place, member in enumerate(before):
        there = after[place] if place < len(after) else "nothing"
        if there != member:
            return [f"struct {name}: expected member {place} to be '{member}', found '{there}'"]
    if len(after) > len(before) and before[0] != SIZE:
        return [f"struct {name} is frozen and has grown by '{after[len(before)]}'"]
    return []


def newest_record() -> Path | None:
    """The record of the highest minor version."""
    records = HEADERS.glob("abi-*.txt")
    return max(records, key=lambda path: [int(n) for n in path.stem[4:].split(".")], default=None)


def main() -> int:
    """Run the check, or write the record of the header's version; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="record the header's version")
    options = parser.parse_args()
    text = HEADER.read_text(encoding="utf-8")
    now = parse_header(text)
    version = ".".join(re.search(rf"TAEDA_ABI_{part} (\d+)u", text).group(1) for part in ("MAJOR", "MINOR"))
    newest = newest_record()
    found = complaints(parse_record(newest.read_text(encoding="utf-8")), now) if newest else []
    for line in found:
        print(f"{HEADER.name}: {line}", file=sys.stderr)
    if found:
        return 1
    record = HEADERS / f"abi-{version}.txt"
    if options.record:
        record.write_text(
            f"# Version {version} of taeda's C ABI; never edited.\n{now.text()}", encoding="utf-8"
        )
    elif not record.exists():
        print(
            f"{HEADER.name}: version {version} has no record; run {Path(__file__).name} --record",
            file=sys.stderr,
        )
        return 1
    elif parse_record(record.read_text(encoding="utf-8")) != now:
        print(
            f"{HEADER.name}: has grown beyond the record of {version}; raise TAEDA_ABI_MINOR", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
