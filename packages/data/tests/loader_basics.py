"""What the tests of the loader read, and how they look at batches."""

import taeda_data as data
from taeda_registry.slots import tensor as tt


class Numbers(data.Dataset):
    def __init__(self, n=10):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i


class Stream(data.IterableDataset):
    def __iter__(self):
        return iter(range(7))


def seeded(seed=5):
    return tt.Generator().manual_seed(seed)


def lists(loader):
    return [batch.tolist() for batch in loader]
