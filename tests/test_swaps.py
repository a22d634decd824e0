"""Each slot's first-party provider is replaced by a stand-in, and programs go on working."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

STAND_INS = Path(__file__).parent / "swaps"

FIT = """
    import taeda as torch
    from taeda.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    x = torch.randn(64, 3)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.25
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(30):
        for inputs, targets in DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True):
            optimizer.zero_grad()
            loss = ((model(inputs) - targets) ** 2).mean()
            loss.backward()
            optimizer.step()
    print(loss.item())
"""

REPORT = """
    import json, sys, taeda_registry
    slots = {slot: taeda_registry.active(slot) for slot in taeda_registry.slot_names()}
    active = {slot: found.module.__name__ for slot, found in slots.items() if found}
    print(json.dumps([active, [name for name in sys.modules if name.startswith("taeda_")]]))
"""


def run(source: str, **environment: str) -> tuple[list[str], dict[str, str], list[str]]:
    """Run a program with stand-ins within reach; return its output, the active providers and modules."""
    path = os.pathsep.join(filter(None, [str(STAND_INS), os.environ.get("PYTHONPATH")]))
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("TAEDA_")}
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source) + textwrap.dedent(REPORT)],
        env={**inherited, **environment, "PYTHONPATH": path},
        cwd=STAND_INS,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    *lines, report = result.stdout.splitlines()
    active, modules = json.loads(report)
    return lines, active, modules


@pytest.mark.parametrize("slot", ["nn", "optim", "data", None])
def test_training_goes_on_with_one_slot_swapped(slot):
    environment = {f"TAEDA_{slot.upper()}": f"plain_{slot}"} if slot else {}
    lines, active, modules = run(FIT, **environment)
    assert float(lines[-1]) < 1e-3
    for name in ("nn", "optim", "data"):
        expected = f"plain_{name}" if name == slot else f"taeda_{name}"
        assert active[name] == expected
    assert f"taeda_{slot}" not in modules


def test_all_three_swapped_at_once():
    names = ("nn", "optim", "data")
    lines, _, modules = run(FIT, **{f"TAEDA_{name.upper()}": f"plain_{name}" for name in names})
    assert float(lines[-1]) < 1e-3
    assert not {"taeda_nn", "taeda_optim", "taeda_data"} & set(modules)


def test_swapped_autograd():
    lines, active, modules = run(
        """
        import taeda as torch
        point = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64)
        print(torch.autograd.derivative(lambda x: (x * x * x).sum(), point).tolist())
        """,
        TAEDA_AUTOGRAD="plain_autograd",
    )
    assert json.loads(lines[-1]) == pytest.approx([3.0, 12.0, 27.0], rel=1e-6)
    assert active["autograd"] == "plain_autograd"
    assert "taeda_autograd" not in modules


def test_a_provider_in_one_file_hands_on_modules_that_are_loaded_once():
    lines, active, modules = run(
        """
        import taeda
        import taeda.nn.functional as F
        from taeda.nn.modules.linear import Linear
        from taeda.nn.parameter import Parameter
        import taeda.nn.utils.rnn as rnn
        import taeda_nn
        print(F is taeda.nn.functional is taeda_nn.functional, rnn is taeda_nn.utils.rnn)
        print(Parameter is taeda.nn.Parameter is taeda_nn.Parameter, Linear is taeda.nn.Linear is taeda_nn.Linear)
        print(taeda.nn.Doubling()(taeda.ones(2)).tolist())
        import sys
        found = {id(m): vars(m)["__file__"] for m in sys.modules.values() if "taeda_nn" in str(vars(m).get("__file__"))}
        print(len(found) == len(set(found.values())))
        """,
        TAEDA_NN="handing_nn",
    )
    assert lines == ["True True", "True True", "[2.0, 2.0]", "True"]
    assert active["nn"] == "handing_nn" and not [name for name in modules if name.startswith("handing_nn.")]


def test_swapped_multiprocessing_serves_loaders():
    lines, active, modules = run(
        """
        import taeda
        import taeda.multiprocessing as mp
        from taeda.utils.data import DataLoader
        print(mp.__name__, [batch.tolist() for batch in DataLoader(range(5), batch_size=2, num_workers=2)])
        try:
            taeda.ones(2).share_memory_()
        except RuntimeError as error:
            print(error)
        """,
        TAEDA_MULTIPROCESSING="plain_multiprocessing",
    )
    assert lines[0] == "plain_multiprocessing [[0, 1], [2, 3], [4]]"
    assert "(plain_multiprocessing) shares no tensors" in lines[1]
    assert active["multiprocessing"] == "plain_multiprocessing" and "taeda_multiprocessing" not in modules


def test_swapped_profiler_serves_programs():
    lines, active, modules = run(
        """
        import taeda
        from taeda.profiler import profile, record_function
        def work():
            return taeda.ones(2).exp()
        with profile() as prof:
            with record_function("block"):
                work()
        print("block 1 " in prof.key_averages().table(sort_by="self_cpu_time_total"))
        print(taeda.autograd.profiler.profile is profile, taeda.profiler.__name__)
        """,
        TAEDA_PROFILER="plain_profiler",
    )
    assert lines == ["True", "True plain_profiler"]
    assert active["profiler"] == "plain_profiler" and "taeda_profiler" not in modules


def test_the_stand_in_for_the_profiler_conforms():
    lines, _, modules = run(
        """
        from taeda_testing.conformance import run_provider
        report = run_provider("profiler")
        print([(item.name, item.problems, item.needs) for item in report.items if item.outcome.value != "passed"])
        """,
        TAEDA_PROFILER="plain_profiler",
    )
    assert [line for line in lines if line.startswith("[(")] == [] and "taeda_profiler" not in modules
    assert lines[-1] == "[]"


def test_swapped_tensor_serves_the_first_party_loader():
    lines, active, modules = run(
        """
        import taeda
        from taeda.utils.data import DataLoader, TensorDataset
        x = taeda.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
        for batch, labels in DataLoader(TensorDataset(x, taeda.arange(3)), batch_size=2):
            print(type(batch).__module__, batch.tolist(), labels.tolist())
        """,
        TAEDA_TENSOR="plain_tensor",
    )
    assert lines == ["plain_tensor [[0.0, 1.0], [2.0, 3.0]] [0, 1]", "plain_tensor [[4.0, 5.0]] [2]"]
    assert active == {"tensor": "plain_tensor", "data": "taeda_data"}
    assert not {"taeda_tensor_core", "taeda_autograd"} & set(modules)
