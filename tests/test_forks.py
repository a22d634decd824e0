"""fork while other threads compute: the child computes, differentiates, draws numbers and ends; so does the parent."""

import subprocess
import sys

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
            signal.alarm(60)  # a child that waits for a lost lock ends by a signal
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


def test_two_hundred_forks_while_three_threads_work():
    seed = 20
    done = subprocess.run(
        [sys.executable, "-c", WORK, str(seed), "200"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
