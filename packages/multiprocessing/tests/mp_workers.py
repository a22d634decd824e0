"""What the processes of the tests do; a module of its own, so that clean interpreters find it."""

import os
import signal
import time

from taeda_registry.slots import tensor as tt

LONG = 300  # seconds for which a process sleeps that others are to end


def fill(queue, done):
    received = queue.get()
    received[0].fill_(4)
    done.set()


def put_and_exit(queue):
    queue.put(tt.arange(10))


def put_and_die(queue):
    queue.put(tt.arange(10))
    queue.close()
    queue.join_thread()
    os.kill(os.getpid(), signal.SIGKILL)


def pass_on(source, target):
    while (item := source.get()) is not None:
        target.put(item)
        del item


def keep_all(connection, count):
    """Keeps tensors, under a limit of descriptors; answers with their sum and how many descriptors more are in use."""
    import resource

    from taeda_testing.settling import descriptors

    before = len(descriptors())
    limit = max(descriptors()) + 200
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    kept = []
    while len(kept) < count:
        kept += connection.recv()
    connection.send((sum(int(item[0]) for item in kept), len(descriptors()) - before))
    connection.recv()


def hold(connection):
    """Holds what comes until told otherwise."""
    held = [connection.recv()]
    connection.send("held")
    if connection.recv() == "drop":
        held.clear()
        connection.send("dropped")
        connection.recv()
    time.sleep(LONG)


def write_through(rank, shared, plain):
    shared[rank] = rank + 1
    plain[rank] = rank + 1


def raise_second(rank, event):
    if rank == 1:
        raise ValueError(f"process {rank} has had enough")
    time.sleep(LONG)


def end_second(rank, how):
    if rank == 1:
        os._exit(7) if how == "exit" else os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(LONG)


def look(x, report):
    report.put((x.requires_grad, x.is_shared(), x.grad is not None, type(x).__name__, x.sum().item()))
    if x.grad is not None:
        x.grad.fill_(5)


def double(x):
    return x * 2


def write_seven(x):
    """Writes to a tensor and gives another one."""
    x.fill_(7)
    return x + 1
