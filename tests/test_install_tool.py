"""The installer's decisions: order, names, what comes from outside."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[1] / "tools" / "install.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("install_tool", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["install_tool"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["install_tool"]


@pytest.fixture(scope="module")
def packages(tool):
    return tool.read_packages()


def names(order):
    return [package.name for package in order]


def test_folder_and_distribution_correspond(packages):
    for name, package in packages.items():
        expected = "taeda" if package.folder.name == "taeda" else f"taeda-{package.folder.name}"
        assert name == expected
        assert package.folder.joinpath("src", name.replace("-", "_")).is_dir()


def test_dependencies_come_first(tool, packages):
    order = names(tool.in_order(packages, list(packages), []))
    assert sorted(order) == sorted(packages)
    for name in order:
        needed = [*packages[name].requirements, *packages[name].build_requirements]
        for requirement in map(tool.requirement_name, needed):
            assert requirement not in packages or order.index(requirement) < order.index(name)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (["registry"], ["taeda-registry"]),
        (["nn"], ["taeda-registry", "taeda-nn"]),
        (["taeda-autograd"], ["taeda-registry", "taeda-tensor-core", "taeda-autograd"]),
    ],
)
def test_a_package_brings_what_it_needs(tool, packages, wanted, expected):
    assert names(tool.in_order(packages, tool.select(packages, wanted), [])) == expected


def test_extras_bring_siblings_too(tool, packages):
    order = names(tool.in_order(packages, ["taeda-nn"], ["test"]))
    assert {"taeda-tensor-core", "taeda-autograd"} <= set(order)


def test_outsiders_are_not_ours_and_come_once(tool, packages):
    needs = ["numpy>=1.26", "taeda-registry>=0.1,<0.2", "numpy>=1.26", "Taeda_NN"]
    assert tool.outsiders(packages, needs) == ["numpy>=1.26"]


def test_unknown_package_is_named(tool, packages):
    with pytest.raises(SystemExit, match="unknown package tensr; there are: autograd"):
        tool.select(packages, ["tensr"])


def test_circles_are_refused(tool, packages):
    one = packages["taeda-registry"]
    circle = {
        "a": tool.Package(one.folder, "a", (), ("b",), {}),
        "b": tool.Package(one.folder, "b", (), ("a>=1",), {}),
    }
    with pytest.raises(SystemExit, match="circle: a -> b -> a"):
        tool.in_order(circle, ["a"], [])


def test_what_cannot_be_built_here_is_left_out_unless_it_is_named(tool, packages, monkeypatch, capsys):
    needing = [name for name, package in packages.items() if package.needs]
    assert needing == ["taeda-tensor-cuda"]
    monkeypatch.setattr(tool.shutil, "which", lambda program: None)
    assert set(packages) - set(tool.select(packages, [])) == set(needing)
    assert capsys.readouterr().out == "taeda-tensor-cuda is left out: there is no nvcc; name it to build it\n"
    assert tool.select(packages, ["tensor-cuda"]) == needing
    monkeypatch.setattr(tool.shutil, "which", lambda program: f"/bin/{program}")
    assert tool.select(packages, []) == list(packages)
