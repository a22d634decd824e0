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


def _behaviour(*names: str) -> Through:
    return Through(behaviour=names)


INDIRECT: dict[str, Through] = {
    "arange_fill_": _behaviour("arange"),
    "bernoulli": _behaviour("bernoulli and geometric"),
    "bernoulli_": _behaviour("bernoulli and geometric"),
    "cast": _behaviour("casts"),
    "cauchy_": _behaviour("cauchy and exponential"),
    "complex": _behaviour("gradients through complex numbers"),
    "contiguous": _behaviour("layouts"),
    "copy_": _behaviour("copies", "gradients across devices and dtypes"),
    "copy_same_": _behaviour("copies"),
    "detach": _behaviour("every view shares memory"),
    "empty": _behaviour("uninitialised", "created leaves"),
    "empty_like": _behaviour("uninitialised", "created leaves"),
    "empty_strided": _behaviour("uninitialised", "created leaves"),
    "dropout": _behaviour("dropout"),
    "exponential_": _behaviour("cauchy and exponential"),
    "fill_": _behaviour("fills"),
    "geometric_": _behaviour("bernoulli and geometric"),
    "index": _behaviour("advanced indexing"),
    "index_put_": _behaviour("advanced assignment"),
    "log_normal_": _behaviour("uniform and normal"),
    "multinomial": _behaviour("multinomial"),
    "native_dropout": _behaviour("dropout"),
    "new_empty": _behaviour("uninitialised", "created leaves"),
    "normal": _behaviour("random tensors"),
    "normal_": _behaviour("uniform and normal"),
    "poisson": _behaviour("poisson"),
    "polar": _behaviour("gradients through complex numbers"),
    "rand": _behaviour("random tensors"),
    "rand_like": _behaviour("random tensors"),
    "randint": _behaviour("random tensors"),
    "randint_like": _behaviour("random tensors"),
    "randn": _behaviour("random tensors"),
    "randn_like": _behaviour("random tensors"),
    "random_": _behaviour("random integers"),
    "randperm": _behaviour("permutations"),
    "rrelu": _behaviour("random slopes"),
    "set_": _behaviour("memory of another tensor"),
    "to_device": _behaviour("round trip", "gradients across devices and dtypes"),
    "uniform_": _behaviour("uniform and normal"),
    "unique_all": _behaviour("unique values"),
    "view": _behaviour("views need strides"),
    "view_as_complex": _behaviour("gradients through complex numbers"),
    "view_as_real": _behaviour("gradients through complex numbers"),
    "_fused_adam_": _behaviour("fused adam"),
    "_fused_sgd_": _behaviour("fused sgd"),
}
