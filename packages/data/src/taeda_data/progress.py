"""A bar that shows how an epoch comes along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from taeda_data.sampler import NoIndices


def shown(batches: Iterator[Any], loader: Any) -> Iterator[Any]:
    """The same batches, counted by a bar in samples; without a terminal or a notebook there is none.

    Raises:
        ImportError: tqdm is not installed.
    """
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("DataLoader: progress=True needs tqdm: pip install tqdm") from error
    size = loader.batch_size or 1
    try:
        total: int | None = _samples(loader)
    except TypeError:
        total = None
    return _counted(batches, size, tqdm(total=total, unit="sample", disable=None, dynamic_ncols=True))


def _samples(loader: Any) -> int:
    """Samples of an epoch, or its batches where these are lists of their own making."""
    if loader.batch_size is None:
        return len(loader)
    read = loader.dataset if isinstance(loader.sampler, NoIndices) else loader.sampler
    return min(len(read), len(loader) * loader.batch_size)


def _counted(batches: Iterator[Any], size: int, bar: Any) -> Iterator[Any]:
    with bar:
        for batch in batches:
            held = [batch]
            del batch
            yield held.pop()
            bar.update(size if bar.total is None else min(size, bar.total - bar.n))
