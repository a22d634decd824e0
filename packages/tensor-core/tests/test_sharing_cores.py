"""The threads that share work: how many, in children of fork, under several Python threads, and with the same bits."""

import hashlib
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import taeda_tensor_core as t
from taeda_tensor_core import _C


def run(program, **environment):
    """What a program prints in a clean interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


UNIFIED, DIVIDED = "0::{}\n", "12:memory:/x\n4:cpu,cpuacct:{}\n0::/\n"


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        (UNIFIED.format("/a/b"), {"a/b/cpu.max": "150000 100000"}, 1.5),
        (UNIFIED.format("/a/b"), {"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000"}, 3),
        (UNIFIED.format("/a/b"), {"a/b/cpu.max": "400000 100000", "cpu.max": "200000 100000"}, 2),
        (UNIFIED.format("/"), {"cpu.max": "50000 100000"}, 0.5),
        (UNIFIED.format("/"), {"cpu.max": "max 100000"}, 0),
        (UNIFIED.format("/gone"), {}, 0),
        (
            DIVIDED.format("/job"),
            {"cpu,cpuacct/job/cpu.cfs_quota_us": "250000", "cpu,cpuacct/job/cpu.cfs_period_us": "100000"},
            2.5,
        ),
        (
            DIVIDED.format("/job"),
            {"cpu,cpuacct/job/cpu.cfs_quota_us": "-1", "cpu,cpuacct/job/cpu.cfs_period_us": "100000"},
            0,
        ),
        (UNIFIED.format("/"), {"cpu.max": "100000 0"}, 0),
        ("nonsense\n::\n0:\n0::relative\n", {"cpu.max": "100000 100000"}, 0),
        ("", {}, 0),
    ],
)
def test_quotas_of_control_groups(tmp_path, groups, files, cores):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    assert _C._quota_cores(groups, str(tmp_path)) == cores


def test_the_number_follows_affinity_and_the_environment():
    program = """
        import os, taeda_tensor_core as t
        if os.environ.get("ONE"):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(t.get_num_threads())
    """
    cores = len(os.sched_getaffinity(0))
    unset = {"OMP_NUM_THREADS": ""}
    assert int(run(program, **unset)[0]) <= cores
    assert run(program, ONE="1", **unset) == ["1"]
    assert run(program, OMP_NUM_THREADS="1") == ["1"]
    assert run(program, OMP_NUM_THREADS="1,2") == ["1"]


def digest(tensor):
    return hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()


def work(seed):
    """Loops of our own and, where it is there, oneDNN's."""
    rng = np.random.default_rng(seed)
    x, w = (t.from_numpy(rng.standard_normal(s, dtype=np.float32)) for s in ((4, 16, 40, 40), (32, 16, 3, 3)))
    y = t.conv2d(x, w, padding=1)
    return [digest(v) for v in (y, y.exp().sum(0), y.flatten().cumsum(0), y[0, 0] @ y[1, 1])]


@pytest.fixture
def four_threads():
    before = t.get_num_threads()
    t.set_num_threads(4)
    yield
    t.set_num_threads(before)


@pytest.mark.usefixtures("four_threads")
def test_many_python_threads_share_the_pool():
    """Parts of one kernel may wait for each other while those of others wait for a thread."""
    expected = [work(seed) for seed in range(4)]
    found = [[] for _ in expected]

    def repeat(seed):
        for _ in range(15):
            found[seed].append(work(seed))

    threads = [threading.Thread(target=repeat, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one == expected[seed] for seed, each in enumerate(found) for one in each)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core has no other to wake on")
def test_helpers_that_slept_may_run_everywhere_again():
    """They sleep with a mark not to wake on their caller's core; at work they have none."""
    program = """
        import os, time, taeda_tensor_core as t
        t.set_num_threads(2)
        x = t.ones(1_000_000)
        def masks():
            return {frozenset(os.sched_getaffinity(int(task))) for task in os.listdir("/proc/self/task")}
        allowed = masks()
        for _ in range(200):
            (x + x).sum()
            time.sleep(0.01)
            (x + x).sum()
            if masks() == allowed:
                break
        print(masks() <= {*allowed, *(frozenset(all - {core}) for all in allowed for core in all)})
        until = time.monotonic() + 60
        while masks() != allowed and time.monotonic() < until:
            (x + x).sum()
        print("at work" if time.monotonic() < until else "asleep")
    """
    assert run(program) == ["True", "at", "work"]


def test_no_more_threads_than_asked_for():
    """The vendors' kernels run on ours: no pool of theirs beside it."""
    program = """
        import os, taeda_tensor_core as t
        t.set_num_threads(1)
        x, w = t.ones(4, 16, 64, 64), t.ones(32, 16, 3, 3)
        def tasks():
            y = t.conv2d(x, w, padding=1)
            y.exp().sum(), y.flatten().cumsum(0), y[0, 0] @ y[1, 1]
            return len(os.listdir("/proc/self/task"))
        for count in (1, 3, 3, 4, 2):
            t.set_num_threads(count)
            print(tasks())
    """
    one, *more = map(int, run(program))
    assert [tasks - one for tasks in more] == [2, 2, 3, 3]  # those that there are stay


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_of_fork_begins_with_one_thread_and_may_have_more():
    program = """
        import os, taeda_tensor_core as t
        t.set_num_threads(2)
        def work():
            y = t.conv2d(t.ones(4, 16, 64, 64), t.ones(32, 16, 3, 3))
            return float(y.exp().log().sum()), len(os.listdir("/proc/self/task"))
        here, _ = work()
        if os.fork() == 0:
            print(t.get_num_threads())
            one = work()
            t.set_num_threads(3)
            three = work()
            print(one[0] == three[0] == here, one[1], three[1], flush=True)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.wait()[1]), t.get_num_threads())
    """
    assert run(program) == ["1", "True", "1", "3", "0", "2"]


@pytest.mark.usefixtures("four_threads")
def test_thousands_of_short_regions():
    """Threads come when the caller has done everything itself: what they were called for may be gone."""
    x = t.ones(150_000)
    assert {float((x + x).sum()) for _ in range(3000)} == {300_000.0}
