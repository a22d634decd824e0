"""The C ABI's header: where it is, and that C and C++ compilers take it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import taeda_registry

INCLUDE = Path(taeda_registry.include_dir())


def test_the_command_line_prints_the_folder_of_the_header():
    result = subprocess.run(
        [sys.executable, "-m", "taeda_registry", "--include"], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == str(INCLUDE)
    assert (INCLUDE / "taeda" / "abi.h").is_file()
    assert {path.name for path in (INCLUDE / "taeda").glob("abi-1.*.txt")} >= {"abi-1.0.txt", "abi-1.1.txt"}


@pytest.mark.parametrize(
    ("compiler", "standard", "suffix"),
    [("cc", "c11", "c"), ("c++", "c++11", "cpp"), ("c++", "c++20", "cpp")],
)
def test_compilers_take_the_header_alone(tmp_path, compiler, standard, suffix):
    # The header's static assertions hold the layouts, so that compiling is the test.
    if shutil.which(compiler) is None:
        pytest.skip(f"no compiler: {compiler} is not on the path")
    source = tmp_path / f"plugin.{suffix}"
    source.write_text("#include <taeda/abi.h>\nint main(void) { return (int)TAEDA_ABI_MINOR; }\n")
    options = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
    result = subprocess.run(
        [compiler, *options, f"-I{INCLUDE}", str(source)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("struct", ["taeda_backend", "taeda_operator", "taeda_api", "taeda_plugin"])
def test_every_function_has_a_text_of_its_own(struct):
    header = (INCLUDE / "taeda" / "abi.h").read_text()
    body = header.split(f"typedef struct {struct} {{")[1].split(f"}} {struct};")[0]
    # What stands between two declarations: one comment, or nothing.
    pieces = re.split(r";[ \t]*(?:/\*[^\n]*\*/)?\n", body)
    functions = {re.search(r"\(\*(\w+)\)", piece)[1]: piece.strip() for piece in pieces if "(*" in piece}
    assert functions
    assert [name for name, text in functions.items() if not text.startswith("/*")] == []


def test_a_changed_layout_does_not_compile(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no compiler: cc is not on the path")
    header = (INCLUDE / "taeda" / "abi.h").read_text()
    swapped = header.replace(
        "  int32_t backend;\n  int32_t index;\n", "  int64_t backend;\n  int32_t index;\n"
    )
    assert swapped != header
    (tmp_path / "abi.h").write_text(swapped)
    result = subprocess.run(
        ["cc", "-std=c11", "-fsyntax-only", str(tmp_path / "abi.h")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    assert "taeda ABI layout" in result.stderr
