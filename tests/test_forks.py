"""fork while other threads compute: the child computes, differentiates, draws numbers and ends; so does the parent."""

import subprocess
import sys

import pytest

WORK = """
import os, random, signal, sys, threading, time
import taeda as t
import taeda.nn.functional as F

seed = int(sys.argv[1])
chosen = random.Random(seed)
shared = t.rand(64, 64, requires_grad=True)
model = t.nn.Sequential(t.nn.Conv2d(3, 8, 3), t.nn.ReLU(), t.nn.Flatten(), t.nn.Linear(8 * 36, 4))
stop = threading.Event()

def ever_new_shapes(number):
    "Builds primitives, reserves random numbers, takes large blocks: what the library has locks for."
    mine = random.Random(seed * 10 + number)
    while not stop.is_set():
        n, size = mine.randint(1, 4), mine.randint(5, 24)
        F.conv2d(t.rand(n, 3, size, size), t.rand(4, 3, 3, 3, requires_grad=True)).sum().backward()
        F.linear(t.rand(mine.randint(8, 90), 64), t.rand(mine.randint(8, 90), 64))
        t.empty(mine.randint(1, 300_000)).normal_()
        t.autograd.grad((shared @ shared).sum(), shared)

def child():
    "What a program does in a child: every family that keeps something between calls."
    a = t.rand(200, 200, requires_grad=True)
    (a @ a).exp().sum().backward()
    assert a.grad is not None
    x = t.randn(2, 3, 8, 8)
    model(x).sum().backward()
    F.conv2d(t.rand(1, 3, 31, 31), t.rand(4, 3, 3, 3))
    t.rand(400_000).sort()
    t.optim.SGD(model.parameters(), lr=0.1).step()
    t.manual_seed(3)
    t.tensor([1.0, 2.0]).tolist()
    t.save({"a": a.detach()}, __import__("io").BytesIO())

model(t.rand(2, 3, 8, 8)).sum().backward()
threads = [threading.Thread(target=ever_new_shapes, args=(i,)) for i in range(3)]
for thread in threads:
    thread.start()
try:
    for number in range(int(sys.argv[2])):
        time.sleep(chosen.random() * 0.01)
        pid = os.fork()
        if pid == 0:
            signal.alarm(240)  # a child that waits for a lost lock ends by a signal
            code = 1
            try:
                child()
                code = 0
            finally:
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert status == 0, f"seed {seed}: child {number} ended with {status}"
finally:
    stop.set()
for thread in threads:
    thread.join()
child()
"""


SHARED = """
import os, random, signal, sys, threading, time
import taeda as t

seed = int(sys.argv[1])
chosen = random.Random(seed)
# Large: the sums into their gradients give the interpreter's lock up. Small: they do not.
leaves = [t.rand(600_000, requires_grad=True), t.rand(30, 30, requires_grad=True)]
big, small = leaves
stop = threading.Event()

def loss(number):
    y = (big * number).sum() + (small @ small).sum()
    return y + (big.cumsum(0)[-1] if number % 3 == 0 else 0)

def accumulate(number):
    while not stop.is_set():
        number += 1
        loss(number).backward()
        if number % 10 == 0:
            big.grad = None
            loss(number).backward(create_graph=True)
            loss(number).backward(create_graph=True)
            big.grad = small.grad = None

def child():
    for leaf in leaves:
        assert leaf.grad is None or leaf.grad.shape == leaf.shape
    loss(3).backward()
    t.autograd.grad(loss(6), leaves)
    assert all(bool(leaf.grad.isfinite().all()) for leaf in leaves)
    big.grad = None
    loss(1).backward()
    assert bool((big.grad == 1).all())
    t.rand(100_000).var()

for leaf in leaves:
    loss(1).backward()
threads = [threading.Thread(target=accumulate, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
longest = 0.0
try:
    for number in range(int(sys.argv[2])):
        time.sleep(chosen.random() * 0.01)
        begin = time.perf_counter()
        pid = os.fork()
        if pid == 0:
            signal.alarm(240)  # a child that waits for a lost lock ends by a signal
            stop.set()
            child()
            if number % 4:
                os._exit(0)
            sys.exit(0)  # through the interpreter's end, which waits for threads at work
        _, status, used = os.wait4(pid, 0)
        status = os.waitstatus_to_exitcode(status)
        if used.ru_nvcsw > 300:  # who waits for threads that are not there looks for them again and again
            longest = max(longest, time.perf_counter() - begin)
        assert status == 0, f"seed {seed}: child {number} ended with {status}"
finally:
    stop.set()
for thread in threads:
    thread.join()
child()
assert longest < 8, f"seed {seed}: a child waited for {longest:.1f} s"
"""


@pytest.mark.parametrize("work", [pytest.param(WORK, id="kernels"), pytest.param(SHARED, id="shared-leaves")])
def test_two_hundred_forks_while_threads_work(work):
    seed = 20
    done = subprocess.run(
        [sys.executable, "-c", work, str(seed), "200"],
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"


FIRST_STEPS = """
import os, signal, sys, threading
import taeda as t
from taeda.utils._python_dispatch import TorchDispatchMode

sys.setswitchinterval(1e-5)

class Passes(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))

def step():
    t.nn.LazyLinear(2)(t.ones(1, 3))
    t.fx.symbolic_trace(t.nn.ReLU())
    with Passes():
        t.ones(2) + 1

step()
stop = threading.Event()

def again():
    while not stop.is_set():
        step()

threads = [threading.Thread(target=again) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        step()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
"""


def test_a_child_waits_for_no_lock_of_threads_that_it_has_not():
    done = subprocess.run(
        [sys.executable, "-c", FIRST_STEPS], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


FIRST_USES = """
import os, signal, sys, threading, time
import taeda as t

begun = threading.Event()

def slowly(frame, event, argument):
    "Waits in the middle of the module."
    if frame.f_code.co_filename.endswith("quasirandom.py") and not begun.is_set():
        begun.set()
        time.sleep(0.3)

def first_use():
    sys.setprofile(slowly)
    t.quasirandom

t.ones(1)
thread = threading.Thread(target=first_use)
thread.start()
assert begun.wait(60)
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    assert t.quasirandom.SobolEngine(2).draw(1).shape == (1, 2)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
thread.join()
"""


def test_a_fork_waits_for_parts_that_other_threads_import():
    done = subprocess.run(
        [sys.executable, "-c", FIRST_USES], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


ALL_HELD = """
import os, signal, threading
import taeda as t
import taeda.amp, taeda.distributed.optim, taeda.distributed.rpc, taeda.fx, taeda.monitor
from taeda.utils._python_dispatch import TorchDispatchMode
from taeda_registry import forks

class Passes(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))

class Answers(t.Tensor):
    pass

with t.autocast("cpu"):  # what casts is loaded when it is first switched on
    pass

def child():
    t.nn.LazyLinear(2)(t.ones(1, 3))
    t.fx.symbolic_trace(t.nn.ReLU())
    with Passes():
        t.ones(2) + 1
    t.monitor.unregister_event_handler(t.monitor.register_event_handler(print))
    with t.autocast("cpu", t.bfloat16):
        assert (t.ones(2, 2) @ t.ones(2, 2)).dtype == t.bfloat16
    t.nn.functional.relu(t.ones(2).as_subclass(Answers))
    with t.distributed.autograd._contexts._lock, t.distributed.rpc.api._meeting:
        pass
    for each in list(forks._locks):
        with each():
            pass

locks = [each() for each in list(forks._locks)]
assert len(locks) >= 9, locks
held, end = threading.Event(), threading.Event()

def hold():
    for lock in locks:
        lock.acquire()
    held.set()
    end.wait()
    for lock in locks:
        lock.release()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    child()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
end.set()
thread.join()
child()
"""


def test_a_child_has_every_lock_free_that_another_thread_holds():
    done = subprocess.run(
        [sys.executable, "-c", ALL_HELD], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
