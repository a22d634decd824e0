"""The small loader as a provider, alone and under the rest of taeda."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest
import taeda_data_simple as simple

import taeda

TRAINING = """
    import sys, taeda as torch
    from taeda.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    x = torch.randn(64, 3)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]])
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(30):
        for inputs, targets in DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True):
            optimizer.zero_grad()
            loss = ((model(inputs) - targets) ** 2).mean()
            loss.backward()
            optimizer.step()
    print(loss.item(), DataLoader.__module__, "taeda_data" in sys.modules)
"""


def run(*arguments, **environment):
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("TAEDA_")}
    result = subprocess.run(
        [sys.executable, *arguments],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_conforms(tmp_path):
    file = tmp_path / "report.json"
    run("-m", "taeda_testing", "provider", "data:taeda_data_simple", "--json", str(file))
    report = json.loads(file.read_text())
    assert report["scores"]["all"]["percent"] == 100.0
    assert report["lacks"] == {}


def test_training_goes_on_with_it():
    loss, module, ours = run("-c", textwrap.dedent(TRAINING), TAEDA_DATA="taeda_data_simple").split()
    assert float(loss) < 1e-3
    assert (module, ours) == ("taeda_data_simple.loader", "False")


def test_worker_processes_are_refused():
    with pytest.raises(NotImplementedError, match="num_workers"):
        simple.DataLoader([1, 2], num_workers=2)


def test_length_of_a_stream_is_unknown():
    class Stream(simple.IterableDataset):
        def __iter__(self):
            return iter(range(3))

    loader = simple.DataLoader(Stream(), batch_size=2)
    assert [batch.tolist() for batch in loader] == [[0, 1], [2]]
    with pytest.raises(TypeError):
        len(loader)


def test_dictionaries_are_joined():
    batch = simple.default_collate([{"a": 1, "b": ("x", 2.0)}, {"a": 3, "b": ("y", 4.0)}])
    assert batch["a"].tolist() == [1, 3]
    assert batch["b"][0] == ["x", "y"]
    assert batch["b"][1].dtype is taeda.float64
