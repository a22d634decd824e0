"""Plug-ins built for a later version of the C ABI, which ask for what they need, on this one."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_a_device_built_for_a_later_version_works_on_this_one(tmp_path):
    spec = importlib.util.spec_from_file_location("growth", ROOT / "tools/growth.py")
    growth = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(growth)
    header = tmp_path / "include/taeda/abi.h"
    header.parent.mkdir(parents=True)
    shutil.copy(ROOT / growth.HEADER, header)
    before = header.read_text()
    growth.grow_header(header)
    assert header.read_text() != before
    growth.compile_device(tmp_path / "libsim.so", header)
    done = subprocess.run(
        [sys.executable, "-c", growth.DEVICE, str(tmp_path / "libsim.so")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "the device works\n"), done.stderr
