"""The thread that launches: work reaches the driver in the order in which it was asked for, later."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_real_driver import library, run  # noqa: F401

import taeda_tensor_cuda as cuda

needs_code = pytest.mark.skipif(
    not cuda.has_device_code(), reason="built without nvcc, or with TAEDA_CUDA_ARCHITECTURES=none"
)
THREAD = {"TAEDA_CUDA_LAUNCH_THREAD": "1"}

STREAMS = """
kind = tc.get_device_module("cuda")
x = tc.ones(1000).to("cuda")
side, event = tc.Stream("cuda"), tc.Event("cuda")
for i in range(20):
    y = x * 2.0 + float(i)
    event.record()
    side.wait_event(event)
    with side:
        z = (y @ y) if i % 7 == 0 else y - x
    kind.current_stream().wait_stream(side)
    x = z + y
    if i % 5 == 0:
        x.cpu()
g = kind.CUDAGraph()
with kind.graph(g):
    w = x + x
for _ in range(3):
    g.replay()
    w.mul_(2.0)
kind.synchronize()
"""


@needs_code
def test_the_driver_sees_the_same_calls_in_the_same_order(library, tmp_path: Path) -> None:  # noqa: F811
    folder, calls = library(), []
    for name, environment in (("at once", {}), ("later", THREAD)):
        file = tmp_path / name
        run(folder, STREAMS, FAKE_CALLS=str(file), **environment)
        calls.append(file.read_text().splitlines())
    assert calls[0] == calls[1]
    assert len(calls[0]) > 100 and calls[0].count("wait ") >= 40


@needs_code
def test_a_call_comes_back_before_its_launch_and_a_wait_after_it(library, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "calls"
    shown = run(
        library(),
        """
import time
launched = lambda: open(os.environ["FAKE_CALLS"]).read().count("launch")
x = tc.ones(10).to("cuda")
for _ in range(50):
    y = x + x
    event = tc.Event("cuda")
    event.record()
print(launched() < 50, event.query())
event.synchronize()
print(launched())
for _ in range(20):
    y = x + x
y.cpu()
print(launched())
""",
        FAKE_SLOW="2000",
        FAKE_CALLS=str(file),
        **THREAD,
    )
    assert shown == ["True False", "50", "70"]


@needs_code
def test_what_the_driver_refuses_is_told_by_the_next_wait(library) -> None:  # noqa: F811
    shown = run(
        library(),
        """
kind = tc.get_device_module("cuda")
x = tc.ones(10).to("cuda")
def wait(how):
    y = x * x
    z = y + y
    try:
        how(z)
        print("nothing")
    except RuntimeError as error:
        print(error)
event = tc.Event("cuda")
wait(lambda z: kind.synchronize())
kind.synchronize()
wait(lambda z: z.cpu())
wait(lambda z: kind.current_stream().synchronize())
wait(lambda z: (event.record(), event.synchronize()))
""",
        FAKE_REFUSES="mul",
        **THREAD,
    )
    text = "launch of taeda_mul_f, queued before: a fake's error (CUDA_ERROR_FAKE)"
    assert len(shown) == 4 and all(line.endswith(text) for line in shown), shown


@needs_code
def test_the_end_of_a_process_waits_for_what_was_asked_for(library, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "calls"
    program = "x = tc.ones(10).to('cuda')\nfor _ in range(100): y = x + x\n"
    run(library(), program, FAKE_SLOW="1000", FAKE_CALLS=str(file), **THREAD)
    assert file.read_text().count("launch") == 100


@needs_code
def test_a_fork_finds_nothing_on_its_way(library, tmp_path: Path) -> None:  # noqa: F811
    shown = run(
        library(),
        """
x = tc.ones(2).to("cuda")
for _ in range(30):
    y = x + x
sys.stdout.flush()
if os.fork() == 0:
    for use in (x.cpu, lambda: x + x):
        try:
            use()
        except RuntimeError as error:
            print("forked" in str(error), flush=True)
    sys.exit()
os.wait()
y = x + x
print(x.cpu().tolist(), open(os.environ["FAKE_CALLS"]).read().count("launch"))
""",
        FAKE_SLOW="1000",
        FAKE_CALLS=str(tmp_path / "calls"),
        **THREAD,
    )
    assert shown == ["True", "True", "[1.0, 1.0] 31"]


SIMULATED = """
import os, sys, threading
import numpy as np
import taeda_tensor_core as tc
kind = tc.get_device_module("cuda")
"""


def simulated(program: str) -> list[str]:
    """What a program prints on the simulated driver behind the thread."""
    environment = {**os.environ, **THREAD, "TAEDA_CUDA_DRIVER": "simulated:2:256"}
    command = [sys.executable, "-c", SIMULATED + program]
    made = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)
    assert made.returncode == 0, made.stderr
    return made.stdout.splitlines()


def test_more_work_than_the_ring_holds() -> None:
    # A launch of an addition takes some hundred bytes there, of a megabyte.
    (shown,) = simulated("""
x = tc.zeros(8, device="cuda")
for i in range(12000):
    x += 1.0
print(x.cpu().tolist() == [12000.0] * 8)
""")
    assert shown == "True"


def test_threads_with_streams_of_their_own_share_the_ring() -> None:
    (shown,) = simulated("""
found = [None] * 4
def work(index):
    random = np.random.default_rng(index)
    device = f"cuda:{index % 2}"
    a = random.standard_normal((8, 8)).astype("float32")
    with tc.Stream(device):
        x = tc.tensor(a).to(device)
        expected = a.astype("float64")
        for step in range(60):
            x = (x @ x) / (x * x).sum().sqrt()
            expected = expected @ expected / np.sqrt((expected * expected).sum())
            if step % 20 == index:
                x = x.to(f"cuda:{(index + 1) % 2}").to(device)
        found[index] = np.allclose(x.cpu().numpy(), expected, rtol=1e-3, atol=1e-5)
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(found)
""")
    assert shown == "[True, True, True, True]"


def test_indices_out_of_range_are_told_as_ever() -> None:
    shown = simulated("""
x = tc.arange(5.0).to("cuda")
y = x.index_select(0, tc.tensor([7]).to("cuda"))
try:
    y.cpu()
except IndexError as error:
    print(error)
print(x.cpu().tolist())
""")
    assert shown[0].endswith("index_select: index 7 is out of range for size 5")
    assert shown[1] == "[0.0, 1.0, 2.0, 3.0, 4.0]"


# These look for a failure in the call that asked for the work, or print from the driver's own functions.
AT_ONCE = [
    "test_events_do_not_lead_out_of_a_recording_or_into_it",
    "test_a_run_that_fails_says_so",
    "test_a_failed_convolution_is_told",
    "test_a_product_that_is_refused_names_the_operator",
    "test_a_kernel_that_fails_leaves_the_device_unusable",
]
SUITE = ["allocator", "allocator_properties", "graphs", "images", "plugin", "products", "simulated"]
SUITE += ["training_kernels"]


def test_the_tests_of_the_simulated_driver_pass_behind_the_thread() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [*(f"test_{name}.py" for name in SUITE), "-k", f"not ({' or '.join(AT_ONCE)})"]
    made = subprocess.run(
        command,
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        env={**os.environ, **THREAD},
        check=False,
    )
    assert made.returncode == 0, made.stdout[-4000:]
