"""Sums, extrema, norms and scans."""

from __future__ import annotations

import taeda_tensor_core as taeda
from derivative_cases.case import MASK, TWO, Case
from taeda_tensor_core import ops

REDUCE = [
    Case("sum", lambda a: a.sum()),
    Case("sum_dim", lambda a: a.sum(1)),
    Case("sum_keepdim", lambda a: a.sum((0, 1), keepdim=True)),
    Case("mean", lambda a: a.mean()),
    Case("mean_dim", lambda a: a.mean(0)),
    Case("amax", lambda a: a.amax(1)),
    Case("amin", lambda a: a.amin(0, True)),
    Case("max", lambda a: a.max()),
    Case("min", lambda a: a.min()),
    Case("max_dim", lambda a: a.max(1)[0]),
    Case("min_dim", lambda a: a.min(0, True)[0]),
    Case("prod", lambda a: a.prod()),
    Case("prod_dim", lambda a: a.prod(1)),
    Case("prod_zero", lambda a: (a * MASK).prod(1)),
    Case("var", lambda a: a.var()),
    Case("var_dim", lambda a: a.var(1, keepdim=True)),
    Case("std", lambda a: a.std(0)),
    Case("cumsum", lambda a: a.cumsum(1)),
    Case("cumprod", lambda a: a.cumprod(1)),
    Case("cumprod_zero", lambda a: (a * MASK).cumprod(0)),
    Case("cummax", lambda a: a.cummax(1)[0]),
    Case("cummin", lambda a: a.cummin(0)[0]),
    Case("logsumexp", lambda a: a.logsumexp((1,))),
    Case("logcumsumexp", lambda a: a.logcumsumexp(1)),
    Case("softmax", lambda a: a.softmax(1)),
    Case("log_softmax", lambda a: a.log_softmax(0)),
    Case("norm", lambda a: ops.vector_norm(a)),
    Case("norm_1", lambda a: ops.vector_norm(a, 1, (1,))),
    Case("norm_3", lambda a: ops.vector_norm(a, 3, (0,))),
    Case("norm_inf", lambda a: ops.vector_norm(a, float("inf"), (1,))),
    Case("median", lambda a: a.median(1)[0]),
    Case("nansum", lambda a: a.nansum()),
    Case("dist", taeda.dist, TWO),
]
