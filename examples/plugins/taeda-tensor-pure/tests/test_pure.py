"""The pure tensors by themselves, and the rest of taeda on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import taeda_tensor_pure as pure

NETWORK = """
    import sys, taeda as torch
    from taeda.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(64, 10),
    )
    other = torch.nn.Sequential(*[type(m)(*a) for m, a in zip(model, [(1, 4, 3), (4,), (), (2,), (), (64, 10)])])
    other[0].padding = model[0].padding
    x, y = torch.randn(6, 1, 8, 8), torch.arange(6)
    data = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for images, labels in data:
        torch.nn.functional.cross_entropy(model(images), labels).item()
        for p in model.parameters():
            p.grad = torch.ones_like(p)
        optimizer.step()
    other.load_state_dict(model.state_dict())
    model.eval(), other.eval()
    print((model(x) == other(x)).all().item(), tuple(model(x).shape), type(x).__module__)
    print([name for name in sys.modules if name == "taeda_tensor_core"])
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
    return result.stdout.splitlines()


@pytest.mark.parametrize("slot", ["tensor:taeda_tensor_pure", "nn", "optim", "data"])
def test_conforms_and_carries_the_other_parts(slot, tmp_path):
    file = tmp_path / "report.json"
    run("-m", "taeda_testing", "provider", slot, "--json", str(file), TAEDA_TENSOR="taeda_tensor_pure")
    report = json.loads(file.read_text())
    assert report["scores"]["all"]["percent"] == 100.0
    skipped = {s["capability"] for item in report["items"] for s in item.get("skips", ())}
    assert skipped <= set(pure.__taeda_lacks__["tensor"])


def test_a_network_runs_and_its_state_travels():
    # Nothing compiled is even imported: the autograd slot has a provider that does not exist.
    program = textwrap.dedent(NETWORK)
    lines = run("-c", program, TAEDA_TENSOR="taeda_tensor_pure", TAEDA_AUTOGRAD="no_such_autograd")
    assert lines == ["True (6, 10) taeda_tensor_pure._tensor", "[]"]


def test_it_is_small():
    lines = sum(len(f.read_text().splitlines()) for f in Path(pure.__file__).parent.glob("*.py"))
    assert lines < 1000


def test_promotion_follows_kinds():
    ints, halves = pure.tensor([1, 2]), pure.tensor([1.0]).half()
    assert (ints + halves).dtype is pure.float16
    assert (halves + pure.tensor(1.0, dtype=pure.float64)).dtype is pure.float16
    assert (pure.tensor(True) + 1).dtype is pure.int64
    assert (ints + 1j).dtype is pure.complex64


def test_views_of_single_elements_write_through():
    x = pure.zeros(2, 2)
    x[0, 1].fill_(3)
    assert x.tolist() == [[0, 3], [0, 0]]


def test_errors_name_operator_and_shapes():
    with pytest.raises(RuntimeError, match=r"add: arguments of shapes \[\(2,\), \(3,\)\]"):
        pure.ones(2) + pure.ones(3)
    with pytest.raises(IndexError, match="sum"):
        pure.ones(2).sum(1)
    with pytest.raises(RuntimeError, match="records nothing"):
        pure.ones(1).backward()
    with pytest.raises(RuntimeError, match="found 'cuda:1'"):
        pure.ones(1, device="cuda:1")
    with pytest.raises(TypeError, match="expected numbers, found ndarray"):
        pure.tensor(np.array(["a"]))


def test_random_numbers_repeat():
    a, b = pure.Generator().manual_seed(3), pure.Generator().manual_seed(3)
    first = pure.randn(4, generator=a).tolist()
    state = a.get_state()
    assert first == pure.randn(4, generator=b).tolist()
    following = pure.rand(2, generator=a).tolist()
    assert following == pure.rand(2, generator=pure.Generator().set_state(state)).tolist()
