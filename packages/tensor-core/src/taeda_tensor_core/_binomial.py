"""Binomial samples."""

from __future__ import annotations

import math
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._info import finfo
from taeda_tensor_core._overridable import overridable
from taeda_tensor_core.library import any_example

_FEW = 10.0  # expected successes up to which waiting times are summed


def binomial(count: Any, prob: Any, generator: Any = None) -> Any:
    """Numbers of successes in `count` tries, for all elements at once.

    Where few are expected, waiting times between successes are summed until the tries are over. Elsewhere proposals are
    rejected: "The generation of binomial random variates" (Hörmann, 1993), BTRS.

    Args:
        count: Numbers of tries, floating-point. prob: Chances of success, of a shape that broadcasts with `count`.
        generator: What draws; by default the default generator.

    Returns: Of the wider dtype; NaN where a number of tries or a chance is not finite.

    Raises:
        RuntimeError: A number of tries is negative, or a dtype is not a floating-point one.

    Example:
        >>> taeda.binomial(taeda.full((3,), 10.0), taeda.tensor([0.0, 1.0, 0.0]))
        tensor([ 0., 10.,  0.])
    """
    for name, value in (("count", count), ("prob", prob)):
        if not value.is_floating_point():
            raise RuntimeError(
                f"binomial: argument '{name}' has dtype {value.dtype}, expected a floating-point dtype"
            )
    if any_example(count < 0):
        raise RuntimeError("binomial: argument 'count' has a negative number, expected numbers of tries")
    dtype = _C.promote_types(count.dtype, prob.dtype)
    count, prob = _C.broadcast_tensors(count.detach(), prob.detach())
    n, p = count.to(_C.float64), prob.to(_C.float64)
    known = n.isfinite() & p.isfinite()
    n, p = (
        n.where(known, _C.zeros_like(n)),
        p.where(known, _C.zeros_like(p)),
    )  # no draw would ever be accepted
    rare = _C.where(p <= 0.5, p, 1 - p)
    source = _C._default_generator("cpu") if generator is None else generator
    if (
        n.device.type == "cpu" and source.engine == "mt19937"
    ):  # from whose stream each takes its own, as in PyTorch
        pairs = zip(n.flatten().split(1), rare.flatten().split(1), strict=True)
        found = _C.cat([_drawn(*pair, generator) for pair in pairs]).reshape(n.shape) if n.numel() else n
    else:
        found = _drawn(n, rare, generator)
    return _C.where(p <= 0.5, found, n - found).where(known, _C.full_like(n, math.nan)).to(dtype)


def _drawn(n: Any, p: Any, generator: Any) -> Any:
    few = n * p < _FEW
    return _C.where(few, _by_waiting(n, p, few, generator), _by_rejection(n, p, ~few, generator))


def _uniform(like: Any, generator: Any) -> Any:
    made = _C.rand(tuple(like.shape), dtype=_C.float64, device=like.device, generator=generator)
    return made.clamp(min=finfo(_C.float64).tiny)


def _by_waiting(n: Any, p: Any, wanted: Any, generator: Any) -> Any:
    log_failure = (-p).log1p()
    found, tries = _C.zeros_like(n), _C.zeros_like(n)
    running = wanted & (p > 0) & (n > 0)
    while any_example(running):
        waiting = (_uniform(n, generator).log() / log_failure).floor() + 1
        tries = _C.where(running, tries + waiting, tries)
        running = running & (tries <= n)
        found = _C.where(running, found + 1, found)
    return found


def _by_rejection(n: Any, p: Any, wanted: Any, generator: Any) -> Any:
    # Elements that others serve take harmless parameters.
    n = _C.where(wanted, n, _C.full_like(n, 40.0))
    p = _C.where(wanted, p, _C.full_like(p, 0.5))
    spread = (n * p * (1 - p)).sqrt()
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    m = ((n + 1) * p).floor()
    odds = (p / (1 - p)).log()
    base = (m + 1).lgamma() + (n - m + 1).lgamma()
    found, missing = _C.zeros_like(n), wanted
    while any_example(missing):
        u, v = _uniform(n, generator) - 0.5, _uniform(n, generator)
        us = 0.5 - u.abs()
        k = ((2 * a / us + b) * u + c).floor()
        inside = (k >= 0) & (k <= n)
        quick = (us >= 0.07) & (v <= v_r)
        kept = k.clamp(min=0).minimum(n)
        log_v = (v * alpha / (a / (us * us) + b)).log()
        bound = base - (kept + 1).lgamma() - (n - kept + 1).lgamma() + (kept - m) * odds
        accepted = missing & inside & (quick | (log_v <= bound))
        found = _C.where(accepted, k, found)
        missing = missing & ~accepted
    return found


overridable((binomial,), composed=True)
