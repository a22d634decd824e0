"""Data sets that fail, one way each; a module of its own, so that clean interpreters find it."""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time

import numpy as np

import taeda_data as data


class Failing(data.Dataset):
    """Does what the method of the name does at sample 5 of 16, and says so before if there is a semaphore for it."""

    def __init__(self, what, begun=None):
        self.what, self.begun = what, begun

    def __len__(self):
        return 16

    def __getitem__(self, i):
        if i != 5:
            return i
        if self.begun is not None:
            self.begun.release()
        return getattr(self, self.what)(i)

    def segfault(self, i):
        ctypes.string_at(0)

    def exit_as_if_well(self, i):
        os._exit(0)

    def close_everything(self, i):
        os.closerange(3, 1024)

    def stop_itself(self, i):
        os.kill(os.getpid(), signal.SIGSTOP)

    def stop_iteration(self, i):
        raise StopIteration

    def interrupt(self, i):
        raise KeyboardInterrupt

    def generator_exit(self, i):
        raise GeneratorExit

    def memory(self, i):
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        return np.ones(1 << 40, np.int8)

    def recursion(self, i):
        return self.recursion(i)

    def group(self, i):
        raise ExceptionGroup("several", [ValueError("one"), OSError(2, "two")])

    def chained(self, i):
        try:
            raise LookupError("the first")
        except LookupError as error:
            raise ValueError("the second") from error

    def long_text(self, i):
        raise ValueError("x" * 3_000_000)

    def different_shape(self, i):
        return [1, 2]

    def thread_that_stays(self, i):
        threading.Thread(target=time.sleep, args=(1e6,)).start()
        return i

    def lambda_sample(self, i):
        return lambda: i

    def child_that_stays(self, i):
        subprocess.Popen([sys.executable, "-c", "pass"])
        return i

    def huge(self, i):
        return np.full(5_000_000, i, np.float64)


class FailingStream(data.IterableDataset):
    """Fails when it is begun, or after three samples."""

    def __init__(self, at):
        self.at = at

    def __iter__(self):
        if self.at == 0:
            raise OSError("no stream")
        yield from range(self.at)
        raise OSError("the stream is broken")


class Unloadable(data.Dataset):
    """Can be pickled, but not read again."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return i

    def __reduce__(self):
        return _refuse, ()


def _refuse():
    raise ValueError("cannot be loaded")


class Slow(data.Dataset):
    """Worker 0 takes its time, worker 1 dies."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        if i == 0:
            time.sleep(1e6)
        os._exit(9)


class Large(data.Dataset):
    def __init__(self, size=1 << 20, made=None):
        self.size, self.made = size, made

    def __len__(self):
        return 6

    def __getitem__(self, i):
        if self.made is not None:
            self.made.release()
        return np.full(self.size, i, np.float32)


def failing_collate(samples):
    raise ZeroDivisionError("cannot be joined")


def unsendable_collate(samples):
    return threading.Lock()


def failing_sampler():
    yield from range(6)
    raise IndexError("no more indices")


def kill_parent_of_two(worker):
    if worker == 1:
        os.kill(os.getpid(), signal.SIGKILL)
