"""Tensors of a device in messages of the multiprocessing package: shared, not copied, as long as they are used."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("taeda_multiprocessing", reason="messages are the multiprocessing package's")

HEAD = """
import os, signal, sys, time
import taeda_tensor_core as tc, taeda_multiprocessing as mp
import taeda_tensor_cuda as cuda

def lent():
    "Bytes that others hold, when that has had a moment to change."
    for _ in range(100):
        if mp.devices.collect() == 0:
            break
        time.sleep(0.02)
    return mp.devices.collect()

context = mp.get_context("spawn")
"""


def run(folder: Path, program: str, **more: str) -> list[str]:
    place = folder / "program.py"
    place.write_text(HEAD + textwrap.dedent(program))
    environment = {**os.environ, "TAEDA_CUDA_DRIVER": "simulated:1:256", "OMP_NUM_THREADS": "1", **more}
    command = [sys.executable, "-W", "error", str(place)]
    made = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=240)
    assert made.returncode == 0, made.stderr
    assert made.stderr == ""
    return made.stdout.splitlines()


def test_both_see_what_either_writes_and_views_keep_their_storage(tmp_path: Path) -> None:
    shown = run(
        tmp_path,
        """
        def other(arrives, returns):
            x, view = arrives.get(timeout=60)
            x.add_(1)
            returns.put((view.sum().item(), view.data_ptr() - x.data_ptr(), x.is_shared()))
            mine = tc.arange(6.0).to("cuda")
            returns.put(mine)
            print(arrives.get(timeout=60), mine.cpu().tolist(), flush=True)

        if __name__ == "__main__":
            arrives, returns = context.Queue(), context.Queue()
            process = context.Process(target=other, args=(arrives, returns))
            process.start()
            x = tc.ones(100_000).to("cuda")
            arrives.put((x, x[2::2]))
            print(*returns.get(timeout=60), x.cpu().sum().item())
            theirs = returns.get(timeout=60)
            theirs.mul_(2)
            tc.get_device_module("cuda").synchronize()
            theirs = None
            arrives.put("end")
            process.join()
            print(process.exitcode)
        """,
    )
    assert shown == [
        "99998.0 8 True 200000.0",
        "end [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]",
        "0",
    ]


def test_parameters_arrive_as_leaves_with_their_gradients(tmp_path: Path) -> None:
    pytest.importorskip("taeda_autograd", reason="gradients are automatic differentiation's")
    shown = run(
        tmp_path,
        """
        import taeda_autograd

        def other(arrives, returns):
            weight = arrives.get(timeout=60)
            returns.put((weight.requires_grad, weight.is_leaf))
            weight.grad.add_(1)
            weight.detach().mul_(2)
            tc.get_device_module("cuda").synchronize()
            returns.put("changed")
            arrives.get(timeout=60)

        if __name__ == "__main__":
            arrives, returns = context.Queue(), context.Queue()
            process = context.Process(target=other, args=(arrives, returns))
            process.start()
            weight = tc.ones(3).to("cuda").requires_grad_()
            (weight * 4).sum().backward()
            arrives.put(weight)
            print(*returns.get(timeout=60), returns.get(timeout=60))
            print(weight.detach().cpu().tolist(), weight.grad.cpu().tolist())
            arrives.put("end")
            process.join()
        """,
    )
    assert shown == ["True True changed", "[2.0, 2.0, 2.0] [5.0, 5.0, 5.0]"]


def test_what_a_device_does_not_share_is_sent_as_bytes_with_one_warning(tmp_path: Path) -> None:
    shown = run(
        tmp_path,
        """
        import warnings

        def other(arrives, returns):
            x = arrives.get(timeout=60)
            returns.put((str(x.device), x.tolist()))

        if __name__ == "__main__":
            arrives, returns = context.Queue(), context.Queue()
            process = context.Process(target=other, args=(arrives, returns))
            process.start()
            x = tc.arange(3.0).to("cuda")
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                for _ in range(2):
                    pickled = mp.reductions.ForkingPickler.dumps(x)
            print(len(said), "segments that expand" in str(said[0].message), mp.devices.collect())
            arrives.put(mp.reductions.ForkingPickler.loads(pickled))
            print(*returns.get(timeout=60))
            process.join()
        """,
        TAEDA_CUDA_ALLOC_CONF="expandable_segments:True",
    )
    assert shown == ["1 True 0", "cuda:0 [0.0, 1.0, 2.0]"]


def test_memory_is_kept_while_a_message_with_it_is_written(tmp_path: Path) -> None:
    shown = run(
        tmp_path,
        """
        if __name__ == "__main__":
            x = tc.ones(3).to("cuda")
            memory = tc.sharing.reduced_over_memory(x)[1][1]
            message = mp.devices.lend(memory)
            x = memory = None
            print(mp.devices.collect(), cuda.memory_allocated() > 0, end=" ")
            message = None
            print(mp.devices.collect(), cuda.memory_allocated())
        """,
    )
    assert shown == ["12 True 0 0"]


def test_many_threads_send_and_nothing_ends_before_it_arrives(tmp_path: Path) -> None:
    shown = run(
        tmp_path,
        """
        import threading

        def other(arrives, returns):
            returns.put(sum(arrives.get(timeout=60).sum().item() for _ in range(400)))

        def send(arrives, start):
            for value in range(start, start + 100):
                arrives.put(tc.full((3,), float(value)).to("cuda"))

        if __name__ == "__main__":
            arrives, returns = context.Queue(), context.Queue()
            process = context.Process(target=other, args=(arrives, returns))
            process.start()
            threads = [threading.Thread(target=send, args=(arrives, 100 * k)) for k in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            print(returns.get(timeout=60))
            process.join()
            print(lent(), cuda.memory_allocated())
        """,
    )
    assert shown == [str(float(3 * sum(range(400)))), "0 0"]


def test_memory_lives_as_long_as_its_last_holder_however_that_ends(tmp_path: Path) -> None:
    shown = run(
        tmp_path,
        """
        def other(arrives, returns):
            kept = arrives.get(timeout=60)
            returns.put(kept.sum().item())
            if arrives.get(timeout=60) == "drop":
                kept = None
                returns.put("dropped")
            arrives.get(timeout=60)

        if __name__ == "__main__":
            for end in ("drop", "kill", "end"):
                arrives, returns = context.Queue(), context.Queue()
                process = context.Process(target=other, args=(arrives, returns))
                process.start()
                x = tc.ones(1000).to("cuda")
                arrives.put(x)
                told = returns.get(timeout=60)
                x = None  # the other one alone has it now
                print(end, told, mp.devices.collect(), cuda.memory_allocated() > 0, end=" ")
                if end == "kill":
                    os.kill(process.pid, signal.SIGKILL)
                else:
                    arrives.put(end)
                if end == "drop":
                    assert returns.get(timeout=60) == "dropped"
                if end == "end":
                    arrives.put("now")
                    process.join()
                print(lent(), cuda.memory_allocated())
                arrives.put("now")
                process.join()
        """,
    )
    assert shown == [f"{end} 1000.0 4000 True 0 0" for end in ("drop", "kill", "end")]


def test_what_was_received_goes_on_to_a_third_and_comes_back(tmp_path: Path) -> None:
    shown = run(
        tmp_path,
        """
        def through(arrives, leaves):
            leaves.put(arrives.get(timeout=60))
            arrives.get(timeout=60)

        def last(arrives, returns):
            x = arrives.get(timeout=60)
            x.add_(1)
            tc.get_device_module("cuda").synchronize()
            returns.put(x)
            arrives.get(timeout=60)

        if __name__ == "__main__":
            first, second, returns = (context.Queue() for _ in range(3))
            processes = [
                context.Process(target=through, args=(first, second)),
                context.Process(target=last, args=(second, returns)),
            ]
            for process in processes:
                process.start()
            x = tc.zeros(8).to("cuda")
            first.put(x)
            back = returns.get(timeout=60)
            print(back.data_ptr() == x.data_ptr(), x.cpu().sum().item())
            first.put("end"), second.put("end")
            for process in processes:
                process.join()
            back = None
            print([process.exitcode for process in processes], lent())
        """,
    )
    assert shown == ["True 8.0", "[0, 0] 0"]


def test_a_process_that_ends_before_its_receivers_says_so(tmp_path: Path) -> None:
    shown = run(
        tmp_path,
        """
        import subprocess, warnings

        def other(arrives):
            kept = arrives.get(timeout=60)
            print("has it", flush=True)
            time.sleep(3)

        if __name__ == "__main__":
            import multiprocessing.process
            import subprocess

            if sys.argv[1:] == ["maker"]:
                arrives = context.Queue()
                process = context.Process(target=other, args=(arrives,))
                process.start()
                x = tc.ones(1000).to("cuda")
                arrives.put(x)
                sys.stdin.readline()
                multiprocessing.process._children.clear()  # the end does not wait for it
            else:
                command = [sys.executable, __file__, "maker"]
                with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True) as maker:
                    print(maker.stdout.readline().strip())
                    print("end", file=maker.stdin, flush=True)
                    for line in maker.stderr:
                        if "ends while others hold" in line:
                            print(line.split("multiprocessing: ")[1].split(",")[0])
                            break
        """,
    )
    assert shown == ["has it", "this process ends while others hold 4000 bytes of its devices' memory"]
