"""What writes a file of a given path keeps the old one when the new one cannot be written."""

from __future__ import annotations

import subprocess
import sys

import pytest

CHILD = """
import resource, signal, sys
from pathlib import Path
import taeda
path = sys.argv[1]
class Flat(taeda.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = taeda.nn.Parameter(taeda.arange(300_000.0))
    def forward(self, x):
        return x + self.weight
net = Flat()
def records():
    writer = taeda.PyTorchFileWriter(path)
    writer.write_record("data", bytes(300_000), 300_000)
    writer.write_end_of_file()
def package():
    with taeda.package.PackageExporter(path) as exporter:
        exporter.save_pickle("weights", "weights.pkl", net.weight.detach())
def recorded():
    with taeda.profiler.profile(with_stack=True, profile_memory=True) as profile:
        for _ in range(1000):
            taeda.ones(2) + 1
    return profile
def distributed():
    from taeda.distributed import checkpoint
    checkpoint.save({"w": net.weight.detach()}, storage_writer=checkpoint.FileSystemWriter(Path(path).parent))
def onnx():
    taeda.onnx.export(net, (taeda.ones(300_000),), path)
WAYS = {
    "save": lambda: taeda.save(net, path),
    "jit": lambda: taeda.jit.save(taeda.jit.script(net), path),
    "export": lambda: taeda.export.save(taeda.export.export(net, (taeda.ones(300_000),)), path),
    "records": records, "package": package, "distributed": distributed, "onnx": onnx,
    "to_folder": lambda: taeda.fx.symbolic_trace(net).to_folder(Path(path).parent),
}
profile = recorded() if sys.argv[2] in {"chrome", "html"} else None
WAYS["chrome"] = lambda: profile.export_chrome_trace(path)
WAYS["html"] = lambda: profile.export_html(path)
run = WAYS.get(sys.argv[2])
size = 10_000 if profile else 100_000
if sys.argv[2] == "download":
    source = Path(path).parents[1] / "source"
    source.write_bytes(bytes(300_000))
    run = lambda: taeda.hub.download_url_to_file(source.as_uri(), path, progress=False)
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    run()
except (OSError, taeda.distributed.checkpoint.CheckpointException) as error:
    print(error)
"""

NAMES = {"distributed": "__0_0.distcp", "to_folder": "state_dict.pt", "chrome": "trace.json"}
WAYS = [
    "save",
    "jit",
    "export",
    "records",
    "package",
    "distributed",
    "download",
    "onnx",
    "to_folder",
    "chrome",
    "html",
]


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_may_not_grow_leaves_the_old_one(tmp_path, way):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / NAMES.get(way, "model")
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", CHILD, path, way], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "File too large" in done.stdout and str(path) in done.stdout
    assert path.read_bytes() == b"old"
    assert list(folder.iterdir()) == [path]
