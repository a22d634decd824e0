"""Memory kept for reuse: bounded by what was lately used, given back on request, on need and when idle; forks.

Each program runs in a process of its own, because what other tests have left would count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from taeda_tensor_core import _C

pytestmark = pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="under the address sanitizer nothing is kept"
)

HEADER = """
import gc, os, resource, sys, threading, time
import taeda as t
from taeda_tensor_core import _C

MIB = 1 << 20

def resident():
    "Counted now; the sums that the system keeps are rough where there are many cores."
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("Rss:"))

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
"""


def run(program: str) -> str:
    """What the program printed; it must end well."""
    command = [sys.executable, "-c", HEADER + textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_stale_sizes_are_not_kept():
    """One tensor at a time, each of another size: not their sum is kept, but about one and a half of the largest."""
    run("""
        for size in range(20, 90):
            t.empty(size * MIB, dtype=t.uint8)
        assert _C._cached_bytes() <= 135 * MIB, _C._cached_bytes() / MIB
    """)


def test_what_is_kept_follows_what_was_used_at_once():
    run("""
        held = [t.empty(10 * MIB, dtype=t.uint8) for _ in range(20)]
        del held
        kept = _C._cached_bytes()
        assert 150 * MIB <= kept <= 220 * MIB, kept / MIB
        for size in range(11, 60):
            t.empty(size * MIB + 5, dtype=t.uint8)
        assert _C._cached_bytes() <= 310 * MIB, _C._cached_bytes() / MIB
        held = [t.empty(15 * MIB + 5, dtype=t.uint8) for _ in range(13)]
        assert _C._cached_bytes() <= 115 * MIB, _C._cached_bytes() / MIB  # less beside what is in use
        del held
        _C.set_cache_limit(30 * MIB)
        assert _C._cached_bytes() <= 30 * MIB
        held = [t.empty(10 * MIB, dtype=t.uint8) for _ in range(20)]
        del held
        assert _C._cached_bytes() <= 30 * MIB
    """)


@pytest.mark.parametrize("size", [50_000, 300_000, 5_000_000])
def test_a_step_does_not_fault_its_pages_in_again(size):
    run(f"""
        def step():
            x = t.ones({size})
            y = [(x * i).relu() for i in range(8)]
            return sum(v[0] for v in y)
        def faulted():
            before = faults()
            for _ in range(20):
                step()
            return faults() - before
        for _ in range(3):
            step()
        least = min(faulted() for _ in range(5))  # the system itself moves pages now and then
        assert least < 200, least
    """)


def test_a_step_of_many_sizes_does_not_fault_its_pages_in_again():
    """As the layers of a network: sizes that fall by half and rise again, of which many live at once."""
    run("""
        def step():
            held = [t.ones(n) for size in (8, 4, 2, 1) for n in [size * 500_000] * 4]
            for size in (1, 2, 4, 8):
                for _ in range(4):
                    held.pop()
                    t.ones(size * 600_000)
        def faulted():
            before = faults()
            for _ in range(5):
                step()
            return faults() - before
        for _ in range(3):
            step()
        least = min(faulted() for _ in range(5))  # the system itself moves pages now and then
        assert least < 200, least
    """)


def test_small_blocks_go_back_on_request():
    """Among them those that other threads keep, and those that the heap keeps between living ones."""
    run("""
        ready, done = threading.Barrier(4), threading.Barrier(4)

        def work():
            held = [t.ones(16000) for _ in range(1000)]   # 64 KB each
            lives.append(held[::100])
            del held
            ready.wait()
            done.wait()

        lives = []
        t.ones(16000)
        _C.empty_cache()
        before = resident()
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        ready.wait()
        _C.empty_cache()
        after = resident()
        done.wait()
        for thread in threads:
            thread.join()
        assert after - before < 12 * MIB, (after - before) / MIB
        assert all((x == 1).all() for held in lives for x in held)
    """)


def test_threads_allocate_while_others_empty_the_cache():
    run("""
        stop = threading.Event()

        def work(number):
            while not stop.is_set():
                held = [t.full((50 + 97 * i,), float(number)) for i in range(100)]
                assert all((x == number).all() for x in held)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(300):
            _C.empty_cache()
        stop.set()
        for thread in threads:
            thread.join()
    """)


def test_what_is_kept_serves_an_allocation_that_fails():
    run("""
        held = [t.empty(5 * MIB, dtype=t.uint8) for _ in range(60)]
        used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + 100 * MIB, resource.RLIM_INFINITY))
        del held
        assert _C._cached_bytes() > 250 * MIB
        x = t.ones(350 * MIB, dtype=t.uint8)
        assert x[-1].item() == 1 and _C._cached_bytes() == 0
        try:
            t.empty(900 * MIB, dtype=t.uint8)
        except MemoryError as error:
            assert "DefaultCPUAllocator: can't allocate memory" in str(error)
        else:
            raise AssertionError("there cannot be so much")
        small = t.ones(10) + 1
        assert small.tolist() == [2] * 10
    """)


def test_memory_goes_back_when_idle():
    run("""
        held = [t.ones(10 * MIB, dtype=t.uint8) for _ in range(30)]
        del held
        assert _C._cached_bytes() > 250 * MIB
        high = resident()
        for _ in range(60):
            time.sleep(1)
            if high - resident() > 250 * MIB:
                break
        assert _C._cached_bytes() == 0 and high - resident() > 250 * MIB
        assert t.ones(10 * MIB, dtype=t.uint8).sum().item() == 10 * MIB
    """)


def test_children_compute_whatever_other_threads_did_at_the_fork():
    """Allocation, random numbers and convolution in children of a process whose threads do the same all the time."""
    run("""
        import signal
        stop = threading.Event()

        def work():
            g = t.Generator()
            while not stop.is_set():
                for size in (100, 5000, 50_000, 300_000):
                    t.rand(size, generator=g) + t.rand(size)
                t.nn.functional.conv2d(t.rand(1, 3, 16, 16), t.rand(8, 3, 3, 3))
                t.ones(300).numpy()

        t.nn.functional.conv2d(t.rand(1, 3, 16, 16), t.rand(8, 3, 3, 3))  # Python's imports have locks of their own
        t.ones(300).numpy()
        threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for n in range(60):
            child = os.fork()
            if child == 0:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(240)
                for size in (100, 5000, 50_000, 300_000):
                    x = t.rand(size)
                t.nn.functional.conv2d(t.rand(1, 3, 16, 16 + n % 5), t.rand(8, 3, 3, 3))
                x.numpy()
                _C.empty_cache()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for thread in threads:
            thread.join()
    """)


def tree(root, files: dict[str, str]) -> str:
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return str(root)


V1 = "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1048576\n"}, 1 << 20),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "3000000\n"}, 3_000_000),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/memory.max": "3000000",
                "sys/fs/cgroup/a/b/memory.max": "2000000",
            },
            2_000_000,
        ),
        ({"proc/self/cgroup": "0::/of/host\n", "sys/fs/cgroup/memory.max": "5000000"}, 5_000_000),
        (
            {"proc/self/cgroup": "4:cpu,memory:/x\n0::/\n", f"{V1}/x/memory.limit_in_bytes": "4000000"},
            4_000_000,
        ),
        ({"proc/self/cgroup": "4:memory:/x\n", f"{V1}/memory.limit_in_bytes": "9223372036854771712"}, None),
        ({"proc/self/cgroup": "4:cpuset:/x\n", f"{V1}/x/memory.limit_in_bytes": "4000000"}, None),
        ({"proc/self/cgroup": "nonsense\n::\n0::\n", "sys/fs/cgroup/memory.max": "1"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "many"}, None),
    ],
    ids=str,
)
def test_limits_of_control_groups(tmp_path, files, expected):
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert _C._container_memory(tree(tmp_path, files)) == (expected or physical)


def test_large_blocks_begin_at_huge_pages_and_go_back_whole():
    run("""
        before = len(open("/proc/self/maps").readlines())
        sizes = [2 << 20, (2 << 20) + 4096, (5 << 20) + 100, 64 << 20]
        for size in sizes * 3:
            x = t.empty(size, dtype=t.uint8)
            assert x.data_ptr() % (2 << 20) == 0, (size, x.data_ptr())
            x[-1] = x[0] = 1
            del x
            _C.empty_cache()
        assert len(open("/proc/self/maps").readlines()) < before + 8
    """)


def test_layers_that_come_and_go_leave_nothing():
    """Each time that a layer is entered, the lists of layers at its operators are made anew."""
    run("""
        layer, x = t.library.Layer("passing", operators=["neg"]), t.ones(2)

        def enter(times):
            for _ in range(times):
                with layer:
                    x.neg()

        enter(2_000)
        before = resident()
        enter(40_000)
        assert resident() - before < MIB, (resident() - before) / MIB
    """)
