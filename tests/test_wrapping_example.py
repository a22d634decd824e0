"""The example of a tensor class: it trains, and keeps 8 bits."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import taeda

FILE = Path(__file__).parents[1] / "examples" / "wrapping" / "eight_bits.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("eight_bits", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_learns_a_curve_in_eight_bits(example):
    model = example.keep_in_eight_bits(example.network())
    before = example.fit(model, steps=1)
    after = example.fit(model)
    assert before > 0.3 and after < 0.05
    weight = model[0].weight
    assert type(weight) is example.EightBits and weight.codes.dtype == taeda.int8
    assert type(weight.grad) is taeda.Tensor and weight.grad.shape == (32, 1)
    with pytest.raises(NotImplementedError, match=r"EightBits: aten::exp"):
        weight.exp()


def test_it_prints_both_losses():
    done = subprocess.run(
        [sys.executable, str(FILE)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout.startswith("plain  loss 0.0") and "\n8 bits loss 0.0" in done.stdout
