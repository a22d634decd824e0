"""Threads with the least stack that Python gives: kernels keep what is large elsewhere."""

from __future__ import annotations

import subprocess
import sys

# A crash would take the tests along, so the thread has a process of its own. What it computes is computed before on
# the main thread's stack.
PROGRAM = """
import threading
import numpy
import taeda
from taeda.nn import functional as F

random = numpy.random.default_rng(20)
whole = taeda.from_numpy(random.standard_normal((300, 70)))
wide = taeda.complex(whole, whole + 1)
picture = taeda.from_numpy(random.standard_normal((1, 3, 9, 9))).float()
grid = taeda.from_numpy(random.uniform(-1, 1, (1, 8, 8, 2))).float()
rows = taeda.from_numpy(random.standard_normal((5000, 7))).float()
square = whole[:70]
layer = taeda.nn.Sequential(taeda.nn.Conv2d(3, 8, 3), taeda.nn.ReLU(), taeda.nn.Flatten(), taeda.nn.Linear(8 * 49, 4))
memory = taeda.nn.LSTM(7, 8)


def gradients(module, x):
    result = module(x)
    result = result[0] if isinstance(result, tuple) else result
    return taeda.autograd.grad(result.sum(), list(module.parameters()))


TRIES = {
    "conversion": lambda: whole.half() + whole.t().float().t(),
    "turned": lambda: square.t() * square + square.bfloat16().t(),
    "broadcast": lambda: whole.float() * whole[:, :1].half() - whole[0].int(),
    "columns": lambda: [wide.sum(0), wide.prod(0), whole.amax(0), rows.half().sum(0), rows.bfloat16().t().sum(1)],
    "rows": lambda: [rows.half().sum(1), rows.half().reshape(-1).sum(), whole.to(taeda.int8).sum(1)],
    "points": lambda: [F.grid_sample(picture, grid, mode=m, align_corners=False) for m in ("bilinear", "bicubic")],
    "sort": lambda: [*rows.sort(0), *rows.reshape(-1).topk(50), rows.reshape(-1).median(), rows.cumsum(0)],
    "linalg": lambda: [square @ square, (100 * square).int() @ (100 * square).int().t(), taeda.linalg.svdvals(square)],
    "fft": lambda: [taeda.fft.fft(whole), taeda.fft.rfft2(whole)],
    "attention": lambda: F.scaled_dot_product_attention(*[rows.reshape(1, 50, 100, 7) for _ in range(3)]),
    "layers": lambda: [*gradients(layer, picture), *gradients(memory, rows[:100].reshape(10, 10, 7))],
    "softmax": lambda: [rows.softmax(1), whole.log_softmax(0), F.layer_norm(whole, (70,))],
    "picked": lambda: [rows[taeda.arange(0, 5000, 3)], rows.scatter_reduce(0, (rows.abs() * 9).long(), rows, "amax")],
}


def numbers(result):
    results = result if isinstance(result, list) else [result]
    return [r.detach().to(taeda.complex128).numpy() for r in results]


expected = {name: numbers(run()) for name, run in TRIES.items()}
found = {}
threading.stack_size(64 * 1024)
for name, run in TRIES.items():
    print(name, flush=True)
    thread = threading.Thread(target=lambda: found.update({name: numbers(run())}))
    thread.start()
    thread.join()
for name in TRIES:
    for a, b in zip(found[name], expected[name], strict=True):
        numpy.testing.assert_array_equal(a, b, name)
print("whole")
"""


def test_kernels_run_on_64_kib_of_stack():
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"ended with {ended.returncode} in: {ended.stdout} {ended.stderr}"
    assert ended.stdout.endswith("whole\n")
