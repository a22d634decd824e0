"""The benchmark of all operators: a row can be measured, and the reasons for slow rows name rows."""

import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def run(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_row_is_measured_and_kept(tmp_path):
    kept = tmp_path / "kept.json"
    options = ("--libraries=taeda", "--sizes=tiny", "--threads=1", "--only=^a [+] b$", f"--kept={kept}")
    assert "| a + b |" in run("database.py", *options)
    times = json.loads(kept.read_text())
    assert set(times) == {"tiny: a + b"}
    assert times["tiny: a + b"]["taeda"] > 0


def test_reasons_name_rows():
    program = """
import database, _reasons
rows = {label for size in database.SIZES for label, _, _ in database.cases(size)}
labels = [label for reason in _reasons._reasons() for label in reason.labels]
print([label for label in labels if label not in rows or labels.count(label) > 1])
"""
    assert run("-c", program).strip() == "[]"
