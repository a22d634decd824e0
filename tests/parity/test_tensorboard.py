"""Event files that taeda and PyTorch write hold the same summaries."""

from __future__ import annotations

import importlib
import warnings
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorboard", reason="events are written through the package tensorboard")
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.graph_pb2 import GraphDef

LIBRARIES = ("taeda", "torch")


def write(name: str, folder: Path) -> None:
    """The same calls with either library."""
    torch: Any = importlib.import_module(name)
    writer_class = importlib.import_module(f"{name}.utils.tensorboard").SummaryWriter
    random = np.random.default_rng(20260504)
    numbers = torch.from_numpy(random.standard_normal((20, 30)))
    picture = torch.from_numpy(random.random((3, 8, 6), dtype=np.float32))
    labels, chances = torch.from_numpy(random.integers(0, 2, 100)), torch.from_numpy(random.random(100))
    with writer_class(folder, flush_secs=1, filename_suffix=".x") as writer:
        for step in range(3):
            writer.add_scalar("loss", 1 / (step + 1), step, walltime=10.0)
            writer.add_scalar("tensor", torch.tensor(2.5, requires_grad=True), global_step=step)
            writer.add_scalars("both/parts", {"a": step, "b": numbers.sum()}, step)
        writer.add_scalar("new", 3.0, 1, new_style=True)
        writer.add_scalar("double", 1 / 3, 1, new_style=True, double_precision=True)
        writer.add_tensor("numbers", picture)
        writer.add_histogram("values", numbers, 1)
        writer.add_histogram("few", numbers, 2, bins="auto")
        writer.add_histogram("bytes", torch.tensor([1, 1, 7], dtype=torch.uint8))
        writer.add_histogram_raw("raw", 0, 2, 3, 3.0, 5.0, [1, 2], [1, 2])
        writer.add_image("picture", picture, 1)
        writer.add_image("grey", picture[0], dataformats="HW")
        writer.add_images("pictures", torch.stack([picture] * 10), 2)
        writer.add_image("bytes", (picture * 255).to(torch.uint8).permute(1, 2, 0), dataformats="HWC")
        writer.add_audio("sound", numbers.reshape(-1).float() / 5, 1, sample_rate=8000)
        writer.add_text("words", "*some* text", 3)
        writer.add_pr_curve("curve", labels, chances, 1)
        writer.add_custom_scalars(
            {"group": {"lines": ["Multiline", ["a", "b"]], "band": ["Margin", ["a", "b", "c"]]}}
        )
        writer.add_hparams(
            {"lr": 0.1, "name": "adam", "size": 3, "none": None}, {"best": 0.5}, run_name="run"
        )
        corners = picture[:, :4, :3]
        writer.add_mesh("cloud", corners, global_step=1)
        faces = torch.tensor([[[0, 1, 2], [1, 2, 3]]] * 3)
        writer.add_mesh(
            "body", corners, (corners * 255).int(), faces, {"camera": {"cls": "PerspectiveCamera"}}, 2
        )
        writer.add_embedding(numbers[:4], metadata=["a", "b", "c", "d"], tag="points", global_step=1)


def summaries(folder: Path) -> dict[str, list[Any]]:
    """What the files of a folder hold, by the place of the file."""
    found: dict[str, list[Any]] = {}
    for file in sorted(folder.rglob("events.out.*")):
        place = str(file.parent.relative_to(folder))
        for event in map(Event.FromString, RawEventFileLoader(str(file)).Load()):
            found.setdefault(place, []).extend((event.step, value) for value in event.summary.value)
    return found


def pixels(encoded: bytes) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(BytesIO(encoded)))


def test_files_hold_the_same(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in LIBRARIES:
            write(name, tmp_path / name)
    ours, theirs = (summaries(tmp_path / name) for name in LIBRARIES)
    assert ours.keys() == theirs.keys() and {".", "run", "both_parts_a"} <= ours.keys()
    for place, expected in theirs.items():
        assert [(step, value.tag) for step, value in ours[place]] == [
            (step, value.tag) for step, value in expected
        ]
        for (_, mine), (_, value) in zip(ours[place], expected, strict=True):
            kind = value.WhichOneof("value")
            assert mine.WhichOneof("value") == kind and mine.metadata == value.metadata, value.tag
            if kind == "image":
                a, b = pixels(mine.image.encoded_image_string), pixels(value.image.encoded_image_string)
                assert a.shape == b.shape and abs(a.astype(int) - b).max() <= 1, value.tag
            elif kind == "histo":
                np.testing.assert_allclose(
                    list(mine.histo.bucket), list(value.histo.bucket), err_msg=value.tag
                )
                np.testing.assert_allclose(
                    list(mine.histo.bucket_limit), list(value.histo.bucket_limit), rtol=1e-12
                )
                for field in ("min", "max", "num", "sum", "sum_squares"):
                    assert getattr(mine.histo, field) == pytest.approx(getattr(value.histo, field), rel=1e-12)
            else:
                assert mine == value, value.tag
    a, b = (tmp_path / name / "projector_config.pbtxt" for name in LIBRARIES)
    assert a.read_text().split() == b.read_text().split()
    for part in ("tensors.tsv", "metadata.tsv"):
        a, b = (tmp_path / name / "00001" / "points" / part for name in LIBRARIES)
        if part == "metadata.tsv":
            assert a.read_text() == b.read_text()
        else:
            np.testing.assert_allclose(np.loadtxt(a), np.loadtxt(b))


def drawn(name: str, folder: Path) -> tuple[list[tuple[str, str, list[int]]], list[list[int]]]:
    """Of a network's graph: scope, operator and sizes of each call, and the sizes of inputs and outputs."""
    torch: Any = importlib.import_module(name)
    nn = torch.nn
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    with importlib.import_module(f"{name}.utils.tensorboard").SummaryWriter(folder) as writer:
        writer.add_graph(network, torch.ones(2, 1, 8, 8))
    calls, ends = [], []
    for file in folder.rglob("events.out.*"):
        for raw in RawEventFileLoader(str(file)).Load():
            graph = GraphDef.FromString(Event.FromString(raw).graph_def)
            names = {node.name for node in graph.node}
            for node in graph.node:
                # PyTorch leaves out the modules that it takes parameters from.
                assert name == "torch" or all(taken in names for taken in node.input)
                sizes = [d.size for s in node.attr["_output_shapes"].list.shape for d in s.dim]
                if node.op == "IO Node":
                    ends.append(sizes)
                elif node.op.startswith("aten::"):
                    calls.append((node.name.rpartition("/")[0], node.op, sizes))
    return calls, sorted(ends)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
def test_graphs_of_a_network_have_the_same_calls(tmp_path):
    ours, theirs = (drawn(name, tmp_path / name) for name in LIBRARIES)
    assert len(theirs[0]) == 4 and ours == theirs


@pytest.mark.filterwarnings("ignore:.torch.jit.trace:DeprecationWarning")
def test_other_writers_find_the_function_that_makes_a_graph():
    def kinds(name: str) -> list[str]:
        torch: Any = importlib.import_module(name)
        graph = importlib.import_module(f"{name}.utils.tensorboard._pytorch_graph").graph
        made, cost = graph(torch.nn.ReLU(), torch.ones(2, 3), False, use_strict_trace=True)
        assert cost.step_stats.dev_stats[0].device
        return sorted(node.op for node in made.node if not node.name.startswith("input"))

    assert kinds("taeda") == kinds("torch")


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace.* is deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", ["taeda", "torch"])
def test_a_graph_leaves_the_network_as_it_was(name, tmp_path):
    torch: Any = importlib.import_module(name)
    network = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5))
    with importlib.import_module(f"{name}.utils.tensorboard").SummaryWriter(tmp_path) as writer:
        writer.add_graph(network, torch.ones(4, 3))
    assert network.training and network[0].training
    assert network[0].num_batches_tracked == 0 and network[0].running_mean.tolist() == [0, 0, 0]


def test_a_graph_is_one_of_a_module(tmp_path):
    from taeda.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer, pytest.raises(TypeError, match="add_graph: expected a module"):
        writer.add_graph(len, ())
