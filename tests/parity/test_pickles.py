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


WRITE_WHOLE = """
import pickle, sys
import taeda as torch
sys.modules["torch"] = torch
from torch import nn, optim
from torch.utils import data
torch.manual_seed(0)
x, image, sequence = torch.randn(4, 8), torch.randn(2, 3, 8, 8), torch.randn(5, 2, 8)
classes = torch.tensor([1, 2, 3, 0])
layers = {
    "linear": (nn.Linear(8, 3), x), "same": (nn.Conv2d(3, 4, 3, padding="same"), image),
    "circular": (nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), image),
    "transposed": (nn.ConvTranspose2d(3, 4, 3, stride=2), image), "norm": (nn.BatchNorm2d(3), image),
    "instance": (nn.InstanceNorm2d(3), image), "group": (nn.GroupNorm(3, 3), image), "layer": (nn.LayerNorm(8), x),
    "pool": (nn.MaxPool2d(2), image), "adaptive": (nn.AdaptiveAvgPool2d(2), image),
    "pad": (nn.ReflectionPad2d(1), image),
    "lstm": (nn.LSTM(8, 6, 2, bidirectional=True), sequence), "gru": (nn.GRU(8, 6), sequence),
    "cell": (nn.LSTMCell(8, 6), x), "embedding": (nn.Embedding(10, 4), classes), "dropout": (nn.Dropout(0.5), x),
    "gelu": (nn.GELU(), x), "softmax": (nn.Softmax(dim=1), x), "upsample": (nn.Upsample(scale_factor=2), image),
    "attention": (nn.MultiheadAttention(8, 2), sequence, sequence, sequence),
    "encoder": (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2), sequence),
    "transformer": (nn.Transformer(8, 2, 1, 1, 16), sequence, sequence),
    "nested": (nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Sequential(nn.Dropout(), nn.Linear(4, 2))), x),
    "entropy": (nn.CrossEntropyLoss(weight=torch.ones(8), label_smoothing=0.1), x, classes),
    "mse": (nn.MSELoss(), x, x + 1), "huber": (nn.HuberLoss(), x, x + 1),
    "bce": (nn.BCEWithLogitsLoss(), x, x.sigmoid()),
}
made = {}
for name, (layer, *inputs) in layers.items():
    output = layer.eval()(*inputs)
    output = output if isinstance(output, tuple) else (output,)
    made[name] = layer, inputs, [part.detach() for part in output if isinstance(part, torch.Tensor)]
steppers = {}
for kind in ("SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "ASGD"):
    parameter = nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)
    steppers[kind] = getattr(optim, kind)([parameter], lr=0.1)
    steppers[kind].step()
    steppers[kind].add_param_group({"params": [nn.Parameter(torch.ones(2))], "lr": 0.2})
schedule = optim.lr_scheduler
stepper = optim.SGD([nn.Parameter(torch.ones(3))], lr=0.1, momentum=0.9)
schedules = [
    schedule.StepLR(stepper, 2), schedule.CosineAnnealingLR(stepper, 5), schedule.OneCycleLR(stepper, 0.1, 10),
    schedule.SequentialLR(stepper, [schedule.ConstantLR(stepper), schedule.StepLR(stepper, 2)], [2]),
]
rows = data.TensorDataset(torch.arange(6.0))
sets = [
    rows, data.Subset(rows, [1, 2]), data.ConcatDataset([rows, rows]), data.RandomSampler(rows),
    data.DataLoader(rows, batch_size=2), data.DataLoader(rows, batch_size=4, shuffle=True),
]
shapes = torch.distributions
densities = [
    shapes.Normal(0.0, torch.ones(2)), shapes.Categorical(logits=torch.randn(3)), shapes.Gamma(torch.ones(2), 1.0),
    shapes.MultivariateNormal(torch.zeros(2), torch.eye(2)), shapes.Independent(shapes.Laplace(torch.zeros(2), 1.0), 1),
    shapes.TransformedDistribution(shapes.Normal(torch.zeros(2), 1.0), [shapes.ExpTransform()]),
]
samples = [kind.sample() for kind in densities]
densities = [(kind, x, kind.log_prob(x)) for kind, x in zip(densities, samples)]
names = [
    nn.functional.relu, nn.functional.cross_entropy, torch.add, torch.linalg.inv, torch.fft.fft, torch.einsum,
    nn.Linear,
    nn.init.xavier_normal_, torch.no_grad, data.default_collate, optim.Optimizer, torch.autograd.Function, torch.finfo,
    torch.optim.Adagrad, torch.optim.lr_scheduler.StepLR, torch.utils.checkpoint.checkpoint, nn.Linear.forward,
]
everything = [made, steppers, schedules, sets, densities, names]
again = pickle.loads(pickle.dumps(everything))
assert again[5] == names
torch.save(made["nested"][0], sys.argv[1] + ".pt")
text = pickle.dumps(everything)
assert b"taeda" not in text, text[text.index(b"taeda") :][:80]
open(sys.argv[1], "wb").write(text)
"""


@pytest.mark.filterwarnings(
    "ignore:Seems like:UserWarning"
)  # the optimizer's step is no longer the schedule's
def test_whole_objects_that_are_written_under_pytorchs_name_are_read_by_pytorch(tmp_path):
    import pickle

    import torch

    path = tmp_path / "made.pkl"
    subprocess.run([sys.executable, "-W", "ignore", "-c", WRITE_WHOLE, path], check=True)
    made, steppers, schedules, sets, densities, names = pickle.loads(path.read_bytes())
    for name, (layer, inputs, expected) in made.items():
        assert type(layer) is getattr(torch.nn, type(layer).__name__)
        with torch.no_grad():
            found = layer(*inputs)
        found = [
            part
            for part in (found if isinstance(found, tuple) else (found,))
            if isinstance(part, torch.Tensor)
        ]
        assert len(found) >= len(expected) > 0, name
        assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(found, expected, strict=False)), name
        layer.train()(*inputs)
        layer.load_state_dict(layer.state_dict())
        assert repr(layer).startswith(type(layer).__name__)
    whole = torch.load(f"{path}.pt", weights_only=False)
    assert torch.equal(whole.eval()(made["nested"][1][0]), made["nested"][0].eval()(made["nested"][1][0]))
    for name, stepper in steppers.items():
        assert type(stepper) is getattr(torch.optim, name)
        for group in stepper.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.ones_like(parameter)
        before = stepper.param_groups[1]["params"][0].clone()
        stepper.step()
        assert not torch.equal(stepper.param_groups[1]["params"][0], before), name
    for schedule in schedules:
        schedule.step()
        assert schedule.get_last_lr()
    assert [len(list(rows)) for rows in sets] == [6, 2, 12, 6, 3, 2]
    assert all(torch.allclose(kind.log_prob(x), value, atol=1e-5) for kind, x, value in densities)
    functions = torch.nn.functional
    assert names[:3] == [functions.relu, functions.cross_entropy, torch.add] and names[6] is torch.nn.Linear
    assert names[-1] is torch.nn.Linear.forward
