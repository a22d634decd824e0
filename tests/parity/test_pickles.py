"""Plain pickles that PyTorch's programs wrote, read where taeda stands under torch's name, and the other way round."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="the pickles are PyTorch's")

WRITE = """
import pickle, sys, warnings
import torch
from torch import nn
warnings.simplefilter("ignore")
torch.manual_seed(0)
base = torch.arange(6.0).reshape(2, 3)
marked, parameter = torch.ones(2), nn.Parameter(torch.ones(2))
marked.tag, parameter.tag = "x", 3
layer = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(18, 3))
layer(torch.randn(4, 1, 5, 5)).sum().backward()
optimizer = torch.optim.AdamW([parameter], lr=0.1)
parameter.grad = torch.ones(2)
optimizer.step()
made = {
    "dtypes": [torch.tensor([0, 1]).to(d) for d in (torch.int8, torch.bool, torch.bfloat16, torch.complex64)],
    "view": base[:, 1], "leaf": torch.ones(2, requires_grad=True), "marked": marked, "parameter": parameter,
    "meta": torch.ones(2, 3, device="meta"), "sparse": torch.eye(2).to_sparse(), "rows": torch.eye(2).to_sparse_csr(),
    "layer": layer, "input": torch.randn(2, 1, 5, 5), "optimizer": optimizer, "storage": base.untyped_storage(),
    "packed": nn.utils.rnn.pack_sequence([torch.ones(2, 1)]), "normal": torch.distributions.Normal(0.0, 1.0),
    "recurrent": nn.LSTM(1, 2), "attention": nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0),
    "names": [torch.float16, torch.strided, torch.channels_last, torch.add, nn.functional.relu, torch.Size([1, 2])],
}
layer.eval()
made["output"] = layer(made["input"]).detach()
made["recurrent_output"] = made["recurrent"](torch.ones(3, 1, 1))[0].detach()
made["attention_output"] = made["attention"](torch.ones(3, 1, 4)).detach()
pickle.dump({name: pickle.dumps(value) for name, value in made.items()}, open(sys.argv[1], "wb"))
"""

READ = """
import json, pickle, sys
import taeda as torch
sys.modules["torch"] = torch
made = {name: pickle.loads(value) for name, value in pickle.load(open(sys.argv[1], "rb")).items()}
assert all(type(made[name]) is torch.Tensor for name in ("view", "leaf", "marked", "meta"))
far = lambda ours, theirs: (ours - theirs).abs().max().item()
(stepped,) = made["optimizer"].param_groups[0]["params"]
before, stepped.grad = stepped.detach().clone(), torch.ones(2)
made["optimizer"].step()
print(json.dumps({
    "dtypes": [(str(value.dtype), value.float().tolist()) for value in made["dtypes"][:3]],
    "complex": [value.real for value in made["dtypes"][3].tolist()],
    "view": made["view"].tolist(), "leaf": made["leaf"].requires_grad, "marked": made["marked"].tag,
    "parameter": [type(made["parameter"]) is torch.nn.Parameter, made["parameter"].tag, made["parameter"].tolist()],
    "meta": [str(made["meta"].device), list(made["meta"].shape)],
    "sparse": [str(made["sparse"].layout), made["sparse"].to_dense().tolist()],
    "rows": [str(made["rows"].layout), made["rows"].to_dense().tolist()],
    "storage": made["storage"].nbytes(), "packed": made["packed"].data.tolist(),
    "density": made["normal"].log_prob(torch.tensor(0.0)).item(),
    "changed": far(before, stepped.detach()),
    "layer": far(made["layer"](made["input"]), made["output"]),
    "recurrent": far(made["recurrent"](torch.ones(3, 1, 1))[0], made["recurrent_output"]),
    "attention": far(made["attention"](torch.ones(3, 1, 4)), made["attention_output"]),
    "names": made["names"] == [
        torch.float16, torch.strided, torch.channels_last, torch.add, torch.nn.functional.relu, torch.Size([1, 2])
    ],
}))
"""


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """What was found in the pickles."""
    path = tmp_path_factory.mktemp("pickles") / "made.pkl"
    texts = [
        subprocess.run(
            [sys.executable, "-c", program, path], check=True, capture_output=True, text=True
        ).stdout
        for program in (WRITE, READ)
    ]
    return json.loads(texts[1])


def test_tensors(read):
    assert read["dtypes"] == [["torch.int8", [0, 1]], ["torch.bool", [0, 1]], ["torch.bfloat16", [0, 1]]]
    assert read["complex"] == [0, 1] and read["view"] == [1, 4] and read["leaf"] and read["marked"] == "x"
    assert read["meta"] == ["meta", [2, 3]] and read["storage"] == 24
    kind, tag, values = read["parameter"]
    assert (
        kind and tag == 3 and values == pytest.approx([0.8990, 0.8990], abs=1e-5)
    )  # one step: 1 - 0.1 - 0.001


def test_sparse_tensors(read):
    assert read["sparse"] == ["torch.sparse_coo", [[1, 0], [0, 1]]]
    assert read["rows"] == ["torch.sparse_csr", [[1, 0], [0, 1]]]


def test_modules_and_what_belongs_to_them(read):
    assert read["layer"] < 1e-6 and read["recurrent"] < 1e-6 and read["attention"] < 1e-5
    assert read["changed"] == pytest.approx(0.1, rel=0.05) and read["packed"] == [[1], [1]]
    assert read["density"] == pytest.approx(-0.9189385)


def test_names(read):
    assert read["names"]


WRITE_HERE = """
import copy, pickle, sys
import taeda as torch
sys.modules["torch"] = torch
base = torch.arange(6.0).reshape(2, 3)
parameter = torch.nn.Parameter(torch.ones(2))
made = {
    "base": base, "column": base[:, 1], "turned": base.t(), "leaf": torch.ones(2, requires_grad=True),
    "parameter": parameter, "again": parameter, "frozen": torch.nn.Parameter(torch.ones(2), False),
    "empty": torch.empty(0, 3), "number": torch.tensor(3), "meta": torch.ones(2, 3, device="meta"),
    "state": torch.nn.Linear(2, 3).state_dict(), "size": base.shape, "dtype": base.dtype, "device": base.device,
    **{name: torch.tensor([0, 1]).to(getattr(torch, name)) for name in (
        "bool", "uint8", "int8", "int16", "uint16", "uint32", "float16", "bfloat16", "complex64", "float8_e5m2"
    )},
}
for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
    back = pickle.loads(pickle.dumps(made, protocol))
    assert back["parameter"] is back["again"] and back["leaf"].requires_grad and not back["frozen"].requires_grad
    back["base"][0, 1] = 9
    assert back["column"][0] == 9 and back["turned"].T.equal(back["base"]) and made["base"][0, 1] == 1
    for name, value in made.items():
        if isinstance(value, torch.Tensor):
            now = back[name]
            assert (type(now), now.dtype, now.stride(), now.device) == (
                type(value), value.dtype, value.stride(), value.device
            )
pickle.dump(made, open(sys.argv[1], "wb"))
"""


def test_tensors_that_are_written_under_pytorchs_name_are_read_by_pytorch(tmp_path):
    import pickle

    import torch

    path = tmp_path / "made.pkl"
    subprocess.run([sys.executable, "-c", WRITE_HERE, path], check=True)
    made = pickle.loads(path.read_bytes())
    base = torch.arange(6.0).reshape(2, 3)
    assert made["base"].equal(base) and made["column"].equal(base[:, 1]) and made["turned"].stride() == (1, 3)
    assert made["leaf"].requires_grad and made["leaf"].is_leaf
    assert type(made["parameter"]) is torch.nn.Parameter and made["parameter"] is made["again"]
    assert not made["frozen"].requires_grad and made["empty"].shape == (0, 3) and made["number"].item() == 3
    assert made["meta"].is_meta and torch.nn.Linear(2, 3).load_state_dict(made["state"])
    assert (made["size"], made["dtype"], made["device"]) == (base.shape, base.dtype, base.device)
    for name in (
        "bool",
        "uint8",
        "int8",
        "int16",
        "uint16",
        "uint32",
        "float16",
        "bfloat16",
        "complex64",
        "float8_e5m2",
    ):
        assert made[name].dtype == getattr(torch, name) and made[name].to(torch.complex64).tolist() == [0, 1]
