"""Operators without a record of their own, and the records or behaviours that reach them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Through:
    """What exercises an operator: records run forward, records differentiated, checks of the device suite."""

    forward: tuple[str, ...] = ()
    gradient: tuple[str, ...] = ()
    behaviour: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.forward or self.gradient or self.behaviour)


def _gradient(*names: str) -> Through:
    return Through(gradient=names)


def _forward(*names: str) -> Through:
    return Through(forward=names)


def _behaviour(*names: str) -> Through:
    return Through(behaviour=names)


INDIRECT: dict[str, Through] = {
    "arange_fill_": _behaviour("arange"),
    "bernoulli_": _behaviour("bernoulli and geometric"),
    "cast": _behaviour("casts"),
    "cauchy_": _behaviour("cauchy and exponential"),
    "copy_same_": _behaviour("copies"),
    "exponential_": _behaviour("cauchy and exponential"),
    "fill_": _behaviour("fills"),
    "geometric_": _behaviour("bernoulli and geometric"),
    "index": _behaviour("advanced indexing"),
    "index_put_": _behaviour("advanced assignment"),
    "multinomial": _behaviour("multinomial"),
    "native_dropout": _behaviour("dropout"),
    "normal_": _behaviour("uniform and normal"),
    "poisson": _behaviour("poisson"),
    "random_": _behaviour("random integers"),
    "uniform_": _behaviour("uniform and normal"),
    "unique_all": _behaviour("unique values"),
    "_fused_adam_": _behaviour("fused adam"),
    "_fused_sgd_": _behaviour("fused sgd"),
}
