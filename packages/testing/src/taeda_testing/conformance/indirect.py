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


_SIMPLE_BACKWARDS = (
    "conv2d",
    "elu",
    "embedding",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "huber_loss",
    "l1_loss",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "mish",
    "mse_loss",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softplus",
    "tanh",
)

INDIRECT: dict[str, Through] = {
    **{f"{name}_backward": _gradient(name) for name in _SIMPLE_BACKWARDS},
    "adaptive_avg_pool2d_backward": _gradient("adaptive_avg_pool2d"),
    "adaptive_max_pool2d": _behaviour("adaptive max pooling"),
    "adaptive_max_pool2d_backward": _behaviour("adaptive max pooling"),
    "arange_fill_": _behaviour("arange"),
    "avg_pool2d_backward": _gradient("avg_pool2d"),
    "batch_norm_backward": _gradient("batch_norm"),
    "bce_loss": _forward("binary_cross_entropy"),
    "bce_loss_backward": _gradient("binary_cross_entropy"),
    "bce_with_logits_loss": _forward("binary_cross_entropy_with_logits"),
    "bce_with_logits_loss_backward": _gradient("binary_cross_entropy_with_logits"),
    "bernoulli": _behaviour("bernoulli and geometric"),
    "bernoulli_": _behaviour("bernoulli and geometric"),
    "cast": _behaviour("casts"),
    "cauchy_": _behaviour("cauchy and exponential"),
    "complex": _behaviour("gradients through complex numbers"),
    "contiguous": _behaviour("layouts"),
    "copy_": _behaviour("copies", "gradients across devices and dtypes"),
    "copy_same_": _behaviour("copies"),
    "cross_entropy_backward": _gradient("cross_entropy_loss"),
    "cross_entropy_forward": _forward("cross_entropy_loss"),
    "detach": _behaviour("every view shares memory"),
    "empty": _behaviour("uninitialised", "created leaves"),
    "empty_like": _behaviour("uninitialised", "created leaves"),
    "empty_strided": _behaviour("uninitialised", "created leaves"),
    "dropout": _behaviour("dropout"),
    "exponential_": _behaviour("cauchy and exponential"),
    "fill_": _behaviour("fills"),
    "geometric_": _behaviour("bernoulli and geometric"),
    "group_norm_backward": _gradient("group_norm"),
    "gru_gates": _behaviour("gru cell"),
    "gru_gates_backward": _behaviour("gru cell"),
    "index": _behaviour("advanced indexing"),
    "index_put_": _behaviour("advanced assignment"),
    "layer_norm_backward": _gradient("layer_norm"),
    "log_normal_": _behaviour("uniform and normal"),
    "lstm_gates": _behaviour("lstm cell"),
    "lstm_gates_backward": _behaviour("lstm cell"),
    "lstm_sequence": _behaviour("lstm over a sequence"),
    "lstm_sequence_backward": _behaviour("lstm over a sequence"),
    "max_pool2d_backward": _gradient("max_pool2d"),
    "max_pool2d_pick": _behaviour("second gradient of max pooling"),
    "max_pool2d_with_indices": _behaviour("max pooling with indices"),
    "max_pool2d_with_indices_backward": _behaviour("max pooling with indices"),
    "max_pool2d_with_offsets": _gradient("max_pool2d"),
    "multinomial": _behaviour("multinomial"),
    "native_batch_norm": _forward("batch_norm"),
    "native_dropout": _behaviour("dropout"),
    "native_dropout_backward": _behaviour("dropout"),
    "native_group_norm": _forward("group_norm"),
    "native_layer_norm": _forward("layer_norm"),
    "new_empty": _behaviour("uninitialised", "created leaves"),
    "nll_loss_backward": _gradient("nll_loss"),
    "nll_loss_forward": _forward("nll_loss"),
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
    "shrink_backward": _gradient("hardshrink", "softshrink"),
    "threshold_backward": _gradient("relu"),
    "to_device": _behaviour("round trip", "gradients across devices and dtypes"),
    "uniform_": _behaviour("uniform and normal"),
    "unique_all": _behaviour("unique values"),
    "view": _behaviour("views need strides"),
    "view_as_complex": _behaviour("gradients through complex numbers"),
    "view_as_real": _behaviour("gradients through complex numbers"),
    "_fused_adam_": _behaviour("fused adam"),
    "_fused_sgd_": _behaviour("fused sgd"),
}
