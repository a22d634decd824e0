"""What a change of the element-wise arithmetic rebuilds: the sources of its own family, and no others."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[1] / "packages" / "tensor-core" / "src"
FAMILIES = sorted(path.stem for path in (SOURCES / "scalar").glob("*.inc"))
# A family's lines are named by a macro, which the headers then include.
READ = re.compile(r'^#(?:include|define TAEDA_LINES) "([^"]+)"', re.M)


@cache
def read_directly(path: Path) -> list[Path]:
    named = (SOURCES / name for name in READ.findall(path.read_text(encoding="utf-8")))
    return [each for each in named if each.is_file()]


def read_by(path: Path) -> set[Path]:
    """What a source reads of the library's own files, itself included."""
    found, left = {path}, [path]
    while left:
        fresh = set(read_directly(left.pop())) - found
        found |= fresh
        left += fresh
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_a_new_line_rebuilds_its_family_alone(family: str) -> None:
    lines = SOURCES / "scalar" / f"{family}.inc"
    readers = {
        path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.cpp") if lines in read_by(path)
    }
    assert readers == {f"cpu/{family}.cpp", f"cpu/loops/{family}.cpp"}
