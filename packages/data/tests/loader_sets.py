"""Data sets of the tests with workers; a module of its own, so that clean interpreters find it."""

import os
import random
import signal
import time

import numpy as np

import taeda_data as data
from taeda_registry.slots import tensor as tt

GLOBAL = np.random.default_rng(7)


class Draws(data.Dataset):
    """Samples of numbers from everything that a data set may draw from."""

    def __init__(self, n=13):
        self.n, self.own, self.nested = n, np.random.default_rng(3), {"python": random.Random(5)}

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {
            "index": i,
            "python": random.random(),
            "numpy": np.random.rand(),
            "tensor": tt.rand(2),
            "global": GLOBAL.random(),
            "own": self.own.random(),
            "nested": self.nested["python"].random(),
            "rng": tt.rand(1, generator=data.worker_rng()),
        }


class Images(data.Dataset):
    def __init__(self, n=12, size=5000):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return np.full(self.size, i, np.float32), i


class Stream(data.IterableDataset):
    def __init__(self, n=11):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        yield from range(self.n) if info is None else range(info.id, self.n, info.num_workers)


class Who(data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        info = data.get_worker_info()
        return i, info.id, info.num_workers, os.getpid(), tt.get_num_threads()


class Picky(Exception):
    """Cannot be made again from its arguments."""

    def __init__(self, what, code):
        super().__init__(f"{what}!")
        self.code = code


class Faulty(data.Dataset):
    """Does something at sample 5 of 16."""

    def __init__(self, what):
        self.what = what

    def __len__(self):
        return 16

    def __getitem__(self, i):
        if i == 5:
            getattr(self, self.what)()
        return i

    def raises(self):
        raise KeyError("five")

    def raises_picky(self):
        raise Picky("p", 7)

    def raises_local(self):
        class Local(ValueError):
            pass

        raise Local("nobody knows me")

    def killed(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def exits(self):
        os._exit(3)

    def leaves(self):
        raise SystemExit(4)

    def aborts(self):
        os.abort()

    def hangs(self):
        time.sleep(1e6)

    def hangs_while_the_parent_is_interrupted(self):
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(1e6)

    def hangs_deaf(self):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1e6)

    def unsendable(self):
        raise ValueError("open file", open("/dev/null", encoding="utf-8"))  # noqa: SIM115


class Unsendable(data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return (lambda: i) if i == 2 else i


class Nested(data.Dataset):
    """Each sample is a sum over a loader with workers of its own."""

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return sum(int(batch.sum()) for batch in data.DataLoader(range(5), batch_size=2, num_workers=1))


def first(samples):
    return samples[0]


def fail_at_start(worker):
    raise OSError(f"worker {worker} has no disk")


def seed_note(worker):
    os.environ["TAEDA_TEST_WORKER"] = str(worker)


class Noted(data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return int(os.environ["TAEDA_TEST_WORKER"])


class Lists(data.Dataset):
    """Long lists of several types, and how they appear to whoever reads them."""

    def __init__(self, count):
        self.names = [f"name {i}" for i in range(count)]
        self.rows = [(f"row {i}", i * 1000) for i in range(count)]
        self.values = [i / 3 for i in range(count)]
        self.boxes = [[i, i + 1] for i in range(count)]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        lists = (self.names, self.rows, self.values, self.boxes)
        return (
            *(one[i] for one in lists),
            self.names[i : i + 3],
            " ".join(type(one).__name__ for one in lists),
        )


def keep(samples):
    """A function of collation that leaves samples as they are."""
    return samples


class Growing(data.Dataset):
    """Changes its list when it has been read once."""

    def __init__(self, count):
        self.names = [f"{i} first" for i in range(count)]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        found = self.names[i]
        for j in range(len(self.names)):
            self.names[j] = f"{j} changed"
        return found


class Text(str):
    """No plain str."""


class OwnMemory(data.Dataset):
    """Reads its strings from the first to the last, ten at a time; a sample tells the worker and its own KiB."""

    def __init__(self, count, shared):
        self.names = [f"folder/number/{i:09}.jpeg" for i in range(count)]
        if shared:
            self.names = data.SharedList(self.names)

    def __len__(self):
        return len(self.names) // 10

    def __getitem__(self, i):
        for j in range(10 * i, 10 * i + 10):
            self.names[j].count("/")
        told = i % 1000 < 2 or i >= len(self) - 2
        return data.get_worker_info().id, own_memory() if told else 0


def own_memory():
    """KiB that this process shares with none."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_"))


class AllSources(data.Dataset):
    """A number from each of the process-wide generators."""

    def __getitem__(self, index):
        return [random.getrandbits(40), int(np.random.randint(1 << 40)), int(tt.randint(0, 1 << 40, (1,)))]

    def __len__(self):
        return 6


def seed_from_worker(number):
    """Seeds Python and NumPy from the tensors' seed, as programs do."""
    random.seed(tt.initial_seed() % 2**32)
    np.random.seed(tt.initial_seed() % 2**32)


def seed_all_with_seven(number):
    random.seed(7)
    np.random.seed(7)
    tt.manual_seed(7)


class Claimed(data.IterableDataset):
    """Says that it has four samples, of which each worker gives all."""

    def __iter__(self):
        return iter(range(4))

    def __len__(self):
        return 4
