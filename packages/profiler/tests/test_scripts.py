"""Programs under the profiler from outside: the report, the costliest places, hints, bottlenecks."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

import taeda
from taeda.profiler import profile
from taeda_profiler.hints import costliest_places, hints
from taeda_testing.settling import eventually

SCRIPT = """
import sys
import taeda

def slow(x):
    for _ in range(300):
        x = x @ x * 0.005
    return x

def quick(x):
    return x + 1

if __name__ == "__main__":
    assert sys.argv[1:] == ["--size", "200"], sys.argv
    x = taeda.ones(200, 200)
    slow(x)
    quick(x)
    print("done")
    sys.exit(int(taeda.ones(1).item()) - 1)
"""


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    return file


def run(module, *arguments, cwd, status=0):
    result = subprocess.run(
        [sys.executable, "-W", "error", "-m", module, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=600,
    )
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout


def test_the_report_names_the_costliest_places(script, tmp_path):
    def reported():
        """Which line that is, others may have a part in."""
        shown = run("taeda_profiler", "--trace", "t.json", "--rows", 3, script, "--size", "200", cwd=tmp_path)
        assert shown.startswith("done\n") and "aten::mm" in shown
        places = shown.split("The costliest places:\n")[1].splitlines()
        assert places[0].endswith("script.py(7): slow") and "/work" not in places[0].replace(
            str(tmp_path), ""
        )
        return shown

    shown = eventually(reported, within=600)
    assert "The timeline is in profile.html" in shown
    assert "<title>" in (tmp_path / "profile.html").read_text()
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_the_status_is_the_scripts(tmp_path):
    (tmp_path / "fails.py").write_text("import sys, taeda\ntaeda.ones(1)\nsys.exit(3)\n")
    assert "aten::ones" in run("taeda_profiler", "fails.py", cwd=tmp_path, status=3)
    (tmp_path / "raises.py").write_text("raise ArithmeticError('no')\n")
    run("taeda_profiler", "raises.py", cwd=tmp_path, status=1)


def test_bottleneck_shows_functions_and_operators(script, tmp_path):
    shown = run("taeda_profiler.bottleneck", script, "--size", "200", cwd=tmp_path)
    assert shown.count("done") == 2
    functions, operators = shown.split("Operators, by the time in themselves")
    assert "script.py:5(slow)" in functions and "aten::mm" in operators
    assert taeda.utils.bottleneck.main


def told(prof):
    return "\n".join(hints(prof._results))


class Slow(taeda.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        time.sleep(0.005)
        return index


BIG = taeda.ones(1000, 1000)


def a_program_waits_for_data():
    with profile() as prof:
        for _ in taeda.utils.data.DataLoader(Slow()):
            taeda.ones(2) + 1
    assert "waited for data" in told(prof)


def operators_are_small():
    x = taeda.ones(2)
    with profile() as prof:
        for _ in range(2000):
            x + x
    assert "less than 5 us each" in told(prof)


def much_is_copied():
    with profile() as prof:
        for _ in range(5):
            BIG.t().contiguous()
    assert "went into copies" in told(prof) and "waited" not in told(prof)


def memory_is_needed_by_a_module():
    model = taeda.nn.Sequential(taeda.nn.Linear(100, 5000), taeda.nn.Linear(5000, 1))
    with profile(profile_memory=True, with_modules=True) as prof, taeda.no_grad():
        model(taeda.ones(100, 100))
    assert "in the forward of Sequential." in told(prof) and "memory was at most" in told(prof)


def nothing_stands_out():
    with profile() as prof:
        BIG @ BIG
    assert hints(prof._results) == []


@pytest.mark.parametrize(
    "program",
    [
        a_program_waits_for_data,
        operators_are_small,
        much_is_copied,
        memory_is_needed_by_a_module,
        nothing_stands_out,
    ],
)
def test_hints(program):
    """As a program is that has the processor for itself at least now and then."""
    eventually(program)


def test_places_without_stacks_are_none():
    with profile() as prof:
        taeda.ones(1)
    assert costliest_places(prof.trace) == []
