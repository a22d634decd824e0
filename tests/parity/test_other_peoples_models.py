"""Other people's unmodified models on taeda beside PyTorch: keys, text, results, gradients and a step.

They are torchvision's, timm's and transformers'.

Each library runs all chosen models in a process of its own, the two after one another, one model at a time.
"""

from __future__ import annotations

import importlib.util
import pickle
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the models are compared with PyTorch, which is not installed")

WORKER = Path(__file__).with_name("zoo_worker.py")
# Constants that models and PyTorch's kernels (the sixth of hardsigmoid's gradient) have in float32 show at 1e-7.
# Transformers' models compute parts of theirs in float32 whatever the dtype: norms, rotations, losses.
TOLERANCES = {"torchvision": 1e-6, "timm": 1e-6, "transformers": 2e-5}
# Those of timm that do so too.
IN_SINGLE = {"efficientvit_b0@96"}
# From 250 million parameters on, a model and its optimizer's state fill the memory of a small machine in float64.
HUGE = {"regnet_y_128gf", "vit_h_14", "vit_l_16", "vit_l_32"}
TIMM = Path(__file__).with_name("timm_models.txt").read_text(encoding="utf-8").split()
FAMILIES = list(runpy.run_path(str(Path(__file__).with_name("transformers_families.py")))["FAMILIES"])


def torchvision_names() -> list[str]:
    """All classifiers, as the files of torchvision's models say; importing it here would bind it to one library."""
    source = (
        "import zoo_worker as z; z.library('torch'); import torchvision.models as m; print(*m.list_models(m))"
    )
    if importlib.util.find_spec("torchvision") is None:
        return []
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", source],
        cwd=WORKER.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in done.stdout.split() if name not in HUGE]


MODELS = {
    "torchvision": torchvision_names(),
    "timm": TIMM if importlib.util.find_spec("timm") else [],
    "transformers": FAMILIES if importlib.util.find_spec("transformers") else [],
}
CASES = [f"{collection} {name}" for collection, names in MODELS.items() for name in names]


@pytest.fixture(scope="session")
def steps(request, tmp_path_factory):
    """The folder of what both libraries gave for every chosen model."""
    folder = tmp_path_factory.mktemp("models")
    chosen = [
        item.callspec.params["case"]
        for item in request.session.items
        if getattr(item, "callspec", None) and "case" in item.callspec.params and item.path == Path(__file__)
    ]
    for collection in MODELS:
        names = [case.partition(" ")[2] for case in chosen if case.startswith(f"{collection} ")]
        for library in ("torch", "taeda"):
            command = [sys.executable, str(WORKER), library, collection, str(folder), *names]
            if names:
                subprocess.run(command, check=True, cwd=WORKER.parent)
    return folder


@pytest.mark.skipif(not CASES, reason="neither torchvision nor timm nor transformers is installed")
@pytest.mark.parametrize("case", CASES)
def test_one_step(case, steps):
    collection, _, name = case.partition(" ")
    tolerance = TOLERANCES["transformers" if name in IN_SINGLE else collection]
    mine, theirs = (
        pickle.loads(Path(steps, f"{library} {name}").read_bytes()) for library in ("taeda", "torch")
    )
    assert "error" not in theirs, theirs["error"]
    assert "error" not in mine, mine["error"]
    assert mine["keys"] == theirs["keys"]
    assert mine["text"] == theirs["text"]
    assert mine["samples"].keys() == theirs["samples"].keys()
    # A sum whose terms cancel (a bias before a batch norm) leaves the rounding of what was added.
    floor = 1e-12 * max(1.0, *(given[1] for given in theirs["samples"].values() if given is not None))
    for key, expected in theirs["samples"].items():
        found = mine["samples"][key]
        assert (found is None) == (expected is None), key
        if expected is not None:
            scale = expected[1]
            assert abs(found[1] - scale) <= tolerance * scale + floor, key
            np.testing.assert_allclose(
                found[0], expected[0], rtol=0, atol=tolerance * scale + floor, err_msg=key
            )
    # What transformers' models generate, and whether their files came back as they were.
    assert mine.get("tokens") == theirs.get("tokens")
    assert mine.get("kept") == theirs.get("kept")
