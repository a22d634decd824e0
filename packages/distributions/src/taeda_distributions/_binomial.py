"""Binomial samples."""

from __future__ import annotations

from typing import Any

from taeda_distributions.utils import tiny
from taeda_registry.slots import tensor

_FEW = 10.0  # expected successes up to which waiting times are summed


def binomial(count: Any, probs: Any) -> Any:
    """Numbers of successes in `count` tries, for all elements at once.

    Where few are expected, waiting times between successes are summed until the tries are over. Elsewhere proposals are
    rejected: "The generation of binomial random variates" (Hörmann, 1993), BTRS.
    """
    dtype = probs.dtype
    n, p = count.to(tensor.float64), probs.to(tensor.float64)
    rare = tensor.where(p <= 0.5, p, 1 - p)
    few = n * rare < _FEW
    found = tensor.where(few, _by_waiting(n, rare, few), _by_rejection(n, rare, ~few))
    return tensor.where(p <= 0.5, found, n - found).to(dtype)


def _uniform(like: Any) -> Any:
    made = tensor.rand(tuple(like.shape), dtype=tensor.float64, device=like.device)
    return made.clamp(min=tiny(tensor.float64))


def _by_waiting(n: Any, p: Any, wanted: Any) -> Any:
    log_failure = (-p).log1p()
    found, tries = tensor.zeros_like(n), tensor.zeros_like(n)
    running = wanted & (p > 0)
    while bool(running.any()):
        waiting = (_uniform(n).log() / log_failure).floor() + 1
        tries = tensor.where(running, tries + waiting, tries)
        running = running & (tries <= n)
        found = tensor.where(running, found + 1, found)
    return found


def _by_rejection(n: Any, p: Any, wanted: Any) -> Any:
    # Elements that others serve take harmless parameters.
    n = tensor.where(wanted, n, tensor.full_like(n, 40.0))
    p = tensor.where(wanted, p, tensor.full_like(p, 0.5))
    spread = (n * p * (1 - p)).sqrt()
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    m = ((n + 1) * p).floor()
    odds = (p / (1 - p)).log()
    base = (m + 1).lgamma() + (n - m + 1).lgamma()
    found, missing = tensor.zeros_like(n), wanted
    while bool(missing.any()):
        u, v = _uniform(n) - 0.5, _uniform(n)
        us = 0.5 - u.abs()
        k = ((2 * a / us + b) * u + c).floor()
        inside = (k >= 0) & (k <= n)
        quick = (us >= 0.07) & (v <= v_r)
        kept = k.clamp(min=0).minimum(n)
        log_v = (v * alpha / (a / (us * us) + b)).log()
        bound = base - (kept + 1).lgamma() - (n - kept + 1).lgamma() + (kept - m) * odds
        accepted = missing & inside & (quick | (log_v <= bound))
        found = tensor.where(accepted, k, found)
        missing = missing & ~accepted
    return found
