"""The check of the C ABI's header finds what breaks old plug-ins, and lets it grow."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "tools" / "checks" / "abi.py"
spec = importlib.util.spec_from_file_location("abi_check", PATH)
abi = importlib.util.module_from_spec(spec)
sys.modules["abi_check"] = abi
spec.loader.exec_module(abi)

HEADER = abi.HEADER.read_text()
RECORDED = abi.parse_record(abi.newest_record().read_text())


def changed(old: str, new: str) -> list[str]:
    assert HEADER.count(old) == 1, f"expected {old!r} once in the header"
    return abi.complaints(RECORDED, abi.parse_header(HEADER.replace(old, new)))


@pytest.mark.parametrize("record", sorted(abi.HEADERS.glob("abi-*.txt")), ids=lambda path: path.stem)
def test_the_header_agrees_with_the_record_of_each_version(record):
    assert abi.complaints(abi.parse_record(record.read_text()), abi.parse_header(HEADER)) == []


def test_the_record_reads_back_as_it_was_written():
    now = abi.parse_header(HEADER)
    assert abi.parse_record(now.text()) == now
    assert len(now.structs) >= 12 and all(len(members) >= 2 for members in now.structs.values())


APPENDED = "  int32_t (*set_error_at)(int32_t status, const char* message, uint64_t site);\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (APPENDED, APPENDED + "  int32_t (*later)(void);\n"),
        ("  TAEDA_DECLINED = 101\n", "  TAEDA_DECLINED = 101,\n  TAEDA_E_LATER = 102\n"),
        ("typedef void* taeda_event;", "typedef void* taeda_later;\ntypedef void* taeda_event;"),
        ("#define TAEDA_ABI_MINOR 7u", "#define TAEDA_ABI_MINOR 8u"),
    ],
)
def test_growing_is_allowed(old, new):
    assert changed(old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (APPENDED, "", "struct taeda_api: expected member 54"),
        (
            "  void* (*host_release)(void);\n",
            "  int32_t (*sooner)(void);\n  void* (*host_release)(void);\n",
            "found 'int32_t (*sooner)(void)'",
        ),
        ("  uint32_t item_size;\n", "  uint64_t item_size;\n", "struct taeda_tensor_info: expected member 9"),
        ("  double parts[2];\n", "    double parts[3];\n", "struct taeda_value"),
        ("  const char* reason;\n", "  const char* reason;\n  void* more;\n", "struct taeda_lack is frozen"),
        (
            "  TAEDA_E_INDEX = 3,\n",
            "  TAEDA_E_INDEX = 4,\n",
            "constant TAEDA_E_INDEX has changed: was 3, is 4",
        ),
        ("  TAEDA_E_INDEX = 3,\n", "", "constant TAEDA_E_INDEX is gone"),
        ("typedef void* taeda_event;", "typedef int taeda_event;", "type taeda_event has changed"),
        ("typedef void* taeda_event;", "", "type taeda_event is gone"),
        ("#define TAEDA_ABI_MAJOR 1u", "#define TAEDA_ABI_MAJOR 2u", "TAEDA_ABI_MAJOR has changed"),
    ],
)
def test_anything_else_is_named(old, new, complaint):
    found = changed(old, new)
    assert any(complaint in line for line in found), found
