"""The guide to adding an operator: its page is followed in a copy of the sources, and the skeletons' gaps are named."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
COPIED = (
    "tools/codegen", "packages/tensor-core/ops", "packages/tensor-core/src/cpu", "packages/tensor-core/src/core",
    "packages/tensor-core/src/composite", "packages/tensor-core/src/infer", "packages/tensor-core/src/scalar",
    "packages/autograd/derivatives", "packages/testing/src", "packages/registry/src/taeda_registry/include",
)  # fmt: skip
NAMES = ("absolute_difference", "peak_to_peak", "cube", "neighbour_sum")


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for part in COPIED:
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(copy: Path, script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(copy / "tools/codegen" / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def generated(copy: Path) -> subprocess.CompletedProcess[str]:
    ops = ("--ops", copy / "packages/tensor-core/ops")
    done = run(copy, "generate.py", *ops, "--out", copy / "out")
    derivatives = ("--derivatives", copy / "packages/autograd/derivatives")
    return (
        done
        if done.returncode
        else run(copy, "generate_autograd.py", *ops, *derivatives, "--out", copy / "layer")
    )


def test_the_page_adds_operators_of_every_kind(copy: Path) -> None:
    added = load("try_operators").apply(copy)
    assert set(added) == set(NAMES)
    done = generated(copy)
    assert done.returncode == 0, done.stderr
    checked = run(copy, "check.py")
    assert not any(name in checked.stdout for name in NAMES), checked.stdout
    for name in NAMES:
        places = [p for p, texts in added[name].items() if any(texts)]
        lines = sum(len(text.splitlines()) for texts in added[name].values() for text in texts)
        assert len(places) <= 5 and lines <= 32, (name, len(places), lines)
        assert f"def {name}(" in (copy / "out/_ops.pyi").read_text()
    element = added["absolute_difference"]
    assert len(element) == 4 and sum(len(t.splitlines()) for texts in element.values() for t in texts) <= 15


@pytest.mark.parametrize(
    ("family", "kind", "formula"),
    [
        ("arith", "elementwise", True),
        ("reduce", "reduction", True),
        ("unary", "composite", False),
        ("shape", "inference", True),
    ],
)
def test_gaps_of_skeletons_are_named(copy: Path, family: str, kind: str, formula: bool) -> None:
    tool = load("new_operator")
    assert tool.main([family, "brand_new", "--kind", kind, "--root", str(copy)]) == 0
    declared = copy / f"packages/tensor-core/ops/{family}.yaml"
    done = generated(copy)
    assert done.returncode == 1 and f"{family}.yaml: brand_new: field 'doc' is empty" in done.stderr
    declared.write_text(declared.read_text().replace("  doc: ''\n", "  doc: Something new.\n"))
    done = generated(copy)
    if formula:
        assert done.returncode == 1 and "the formula of 'self' must be a C++ expression" in done.stderr
        derivatives = copy / f"packages/autograd/derivatives/{family}.yaml"
        derivatives.write_text(re.sub(r"(  \w+): ''\n", r"\1: grad\n", derivatives.read_text()))
        done = generated(copy)
    assert done.returncode == 0, done.stderr
    written = (copy / "packages/tensor-core/src").rglob("*")
    sources = "".join(path.read_text() for path in written if path.suffix in (".cpp", ".inc"))
    assert sources.count('#error "brand_new: ') == 1 + (kind == "inference")
    record = copy / f"packages/testing/src/taeda_testing/records/{family}.py"
    assert "reference_of_brand_new" in record.read_text()  # ruff calls it undefined
    complaint = f"brand_new: no sample record in taeda_testing/records/{family}.py"
    assert complaint not in run(copy, "check.py").stdout
    record.write_text(record.read_text().replace('OpRecord("brand_new"', 'OpRecord("another"'))
    assert complaint in run(copy, "check.py").stdout


@pytest.mark.parametrize(
    ("family", "name", "said"),
    [("nowhere", "x", "no family 'nowhere'"), ("arith", "hypot", "declared already in arith.yaml")],
)
def test_a_place_that_cannot_be_is_refused(copy: Path, family: str, name: str, said: str) -> None:
    with pytest.raises(SystemExit, match=said):
        load("new_operator").main([family, name, "--root", str(copy)])
