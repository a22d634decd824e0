"""Reads and writes by index or mask, sorting."""

from __future__ import annotations

import taeda_tensor_core as taeda
from derivative_cases.case import MASK, TWO, Case

INDEX = taeda.tensor([[0, 2], [1, 0], [2, 2]])

ROWS = taeda.tensor([2, 0, 2])

INDEXING = [
    Case("gather", lambda a: a.gather(1, INDEX)),
    Case("index", lambda a: a[ROWS]),
    Case("index_two", lambda a: a[ROWS, INDEX[:, 0]]),
    Case("index_mask", lambda a: a[MASK]),
    Case("index_mixed", lambda a: a[:, ROWS]),
    Case("index_add", lambda a, b: a.index_add(0, ROWS, b, alpha=2), TWO),
    Case("index_copy", lambda a, b: a.index_copy(0, ROWS[:2], b), ((3, 4), (2, 4))),
    Case("index_fill", lambda a, b: a.index_fill(0, ROWS, b), ((3, 4), ())),
    Case("index_put", lambda a, b: a.index_put((ROWS[:2],), b), ((3, 4), (2, 4))),
    Case("index_put_add", lambda a, b: a.index_put((ROWS,), b, accumulate=True), TWO),
    Case("index_select", lambda a: a.index_select(1, ROWS)),
    Case("scatter", lambda a, b: a.scatter(1, INDEX[:2, :1], b), ((3, 4), (2, 1))),
    Case("scatter_add", lambda a, b: a.scatter_add(1, INDEX, b), ((3, 4), (3, 2))),
    Case("scatter_value", lambda a: a.scatter(1, INDEX, 2.0)),
    Case("scatter_reduce_mean", lambda a, b: a.scatter_reduce(1, INDEX, b, "mean"), ((3, 4), (3, 2))),
    Case("scatter_reduce_amax", lambda a, b: a.scatter_reduce(1, INDEX, b, "amax"), ((3, 4), (3, 2))),
    Case(
        "scatter_reduce_prod", lambda a, b: a.scatter_reduce(1, INDEX, b, "prod"), ((3, 4), (3, 2)), 0.5, 2.0
    ),
    Case(
        "scatter_reduce_prod_without",
        lambda a, b: a.scatter_reduce(1, INDEX, b, "prod", include_self=False),
        ((3, 4), (3, 3)),
        0.5,
        2.0,
    ),
    Case("scatter_reduce_amin_part", lambda a, b: a.scatter_reduce(1, INDEX, b, "amin"), ((3, 4), (3, 3))),
    Case(
        "scatter_reduce_prod_zeros",
        lambda a, b: (a * MASK).scatter_reduce(1, INDEX, b * MASK[:, :2], "prod"),
        ((3, 4), (3, 2)),
        second=False,
    ),
    Case("masked_select", lambda a: a.masked_select(MASK)),
    Case("masked_scatter", lambda a, b: a.masked_scatter(MASK, b), ((3, 4), (12,))),
    Case("take", lambda a: a.take(INDEX)),
    Case("take_along_dim", lambda a: a.take_along_dim(INDEX, 1)),
    Case("repeat_interleave", lambda a: a.repeat_interleave(2, 1)),
    Case("sort", lambda a: a.sort(1)[0]),
    Case("topk", lambda a: a.topk(2, 1)[0]),
    Case("kthvalue", lambda a: a.kthvalue(2, 1)[0]),
    Case("embedding", lambda a: taeda.embedding(a, INDEX)),
]
