"""Memory of a device in several processes, on the simulated driver."""

from __future__ import annotations

import device_programs as programs
import pytest

HEAD = "import pickle, sys, taeda_tensor_core as tc, taeda_tensor_cuda as cuda\n"
# Opens what it is sent, writes its sum, adds one to all of it, and waits until it is told to end.
OTHER = """
handles = pickle.loads(bytes.fromhex(sys.stdin.readline()))
opened = [tc.backends.import_memory(handle) for handle in handles]
print(*(t.sum().item() for t in opened), cuda.memory_allocated(), flush=True)
for t in opened:
    t.add_(1)
tc.get_device_module("cuda").synchronize(opened[0].device)
print("added", flush=True)
sys.stdin.readline()
"""
START = f"""
import os, subprocess, textwrap
other = subprocess.Popen([sys.executable, "-c", {HEAD + OTHER!r}], stdin=-1, stdout=-1, text=True)
def send(*tensors):
    handles = [tc.backends.export_memory(t) for t in tensors]
    print(pickle.dumps(handles).hex(), file=other.stdin, flush=True)
def hear():
    return other.stdout.readline().strip()
def end():
    other.communicate("end\\n")
"""


def run(program: str) -> list[str]:
    return programs.run(program, HEAD, "simulated:2:64", OMP_NUM_THREADS="1").splitlines()


@pytest.mark.parametrize("device", ["cuda:0", "cuda:1"])
def test_two_processes_see_the_same_elements(device: str) -> None:
    shown = run(
        START
        + f"""
x = tc.arange(12.0).reshape(3, 4).to("{device}")
large = tc.ones(1 << 20).to("{device}")
beside = tc.full((5,), 7.0).to("{device}")
send(x, x[1:, ::2], x, large)
print(hear())
print(hear(), x.cpu().tolist(), large.cpu().sum().item(), beside.cpu().tolist())
end()
print(x.mul_(2).cpu().sum().item())
"""
    )
    sums, added, after = shown
    # The view holds 4, 6, 8 and 10, which are added to three times.
    assert sums.startswith("66.0 28.0 66.0 1048576.0 ")
    seen = [[2.0, 3.0, 4.0, 5.0], [7.0, 7.0, 9.0, 9.0], [11.0, 11.0, 13.0, 13.0]]
    assert added == f"added {seen} 2097152.0 {[7.0] * 5}"
    assert float(after) == 2 * (66 + 24 + 4)


def test_memory_that_was_shared_is_used_again() -> None:
    shown = run(
        START
        + """
x = tc.ones(4 << 20).to("cuda")
send(x)
hear(), hear()
print(x.cpu().sum().item())
end()
before = len(os.listdir("/proc/self/fd"))
del x
tc.get_device_module("cuda").empty_cache()
y = tc.ones(4 << 20).to("cuda")
print(y.cpu().sum().item(), before - len(os.listdir("/proc/self/fd")), cuda.memory_allocated() == y.nbytes)
"""
    )
    assert shown[0] == str(float(2 * (4 << 20))) and shown[1].split()[:2] == [str(float(4 << 20)), "1"]


def test_handles_of_processes_that_ended_and_other_bytes_are_refused() -> None:
    shown = run(
        """
        import subprocess
        code = "import taeda_tensor_core as tc; x = tc.ones(3).to('cuda'); print(tc.backends.export_memory(x).hex())"
        made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        gone = bytes.fromhex(made.stdout)
        other = gone.replace(b"taeda cuda ipc1", b"taeda cuda ipc0")
        for handle in (gone, gone[:-40], gone[:-1] + b"\\x01\\x02", other):
            try:
                tc.backends.import_memory(handle)
            except ValueError as error:
                print(str(error)[:110])
        """
    )
    assert len(shown) == 4
    assert "cannot be opened; the process that shared it has ended" in shown[0]
    assert all("this is no description" in text for text in shown[1:])
