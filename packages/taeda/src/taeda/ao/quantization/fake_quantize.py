"""Modules that quantize and dequantize what goes by: for training that foresees quantization."""

from __future__ import annotations

from typing import Any

import taeda
from taeda.ao.quantization.observer import (
    _PER_CHANNEL,
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    _with_args,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)
from taeda_registry.slots import nn


class FakeQuantizeBase(nn.Module):
    """What they share: two switches, kept as buffers so that they are saved."""

    fake_quant_enabled: Any
    observer_enabled: Any

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", taeda.tensor([1], dtype=taeda.uint8))
        self.register_buffer("observer_enabled", taeda.tensor([1], dtype=taeda.uint8))

    def forward(self, x: Any) -> Any:
        """What `x` becomes when it is quantized."""
        raise NotImplementedError(f"{type(self).__name__}.forward")

    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scale and the zero point."""
        raise NotImplementedError(f"{type(self).__name__}.calculate_qparams")

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Whether numbers are quantized."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        """Numbers pass as they are."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Whether the scale follows what goes by."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        """The scale stays."""
        self.enable_observer(False)

    with_args = classmethod(_with_args)


class FakeQuantize(FakeQuantizeBase):
    """Observes tensors, and gives what they become when they are quantized.

    Args:
        observer: The class of its observer.
        quant_min, quant_max: The least and the largest code, by default those of the dtype.
        observer_kwargs: Further arguments of the observer.

    Example:
        >>> fake = taeda.ao.quantization.FakeQuantize()
        >>> fake(taeda.tensor([0.0, 2.55, 0.013]))
        tensor([0.0000, 2.5500, 0.0100])
    """

    scale: Any
    zero_point: Any

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None and quant_min > quant_max:
            raise AssertionError("quant_min must be less than or equal to quant_max")
        if quant_min is not None and quant_max is not None:
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        observer_kwargs["is_dynamic"] = is_dynamic
        self.activation_post_process = observer(**observer_kwargs)
        watch = self.activation_post_process
        self.quant_min, self.quant_max = watch.quant_min, watch.quant_max
        self.is_dynamic = is_dynamic
        self.register_buffer("scale", taeda.tensor([1.0], dtype=taeda.float))
        self.register_buffer("zero_point", taeda.tensor([0], dtype=taeda.int))
        self.dtype, self.qscheme = watch.dtype, watch.qscheme
        self.ch_axis = getattr(watch, "ch_axis", -1)
        self.is_per_channel = self.qscheme.name in _PER_CHANNEL

    def calculate_qparams(self) -> Any:
        return self.activation_post_process.calculate_qparams()

    def _observe(self, X: Any) -> None:
        self.activation_post_process(X.detach())
        for kept, new in zip((self.scale, self.zero_point), self.calculate_qparams(), strict=True):
            if kept.shape != new.shape:
                kept.resize_(new.shape)
            kept.copy_(new)

    def forward(self, X: Any) -> Any:
        if self.observer_enabled[0] == 1:
            self._observe(X)
        if self.fake_quant_enabled[0] != 1:
            return X
        limits = (self.quant_min, self.quant_max)
        if self.is_per_channel:
            return taeda.fake_quantize_per_channel_affine(
                X, self.scale, self.zero_point, self.ch_axis, *limits
            )
        return taeda.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, *limits)

    def extra_repr(self) -> str:
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={self.quant_min}, quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any) -> None:
        for name in ("scale", "zero_point"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Quantizes by a scale that is given."""

    def __init__(self, observer: Any) -> None:
        super().__init__(observer=observer)
        watch = self.activation_post_process
        if not isinstance(watch, FixedQParamsObserver):
            raise AssertionError(
                f"{type(self).__name__}'s observer must be a FixedQParamsObserver, found {type(watch).__name__}"
            )
        self.scale.copy_(watch.scale)
        self.zero_point.copy_(watch.zero_point)

    def _observe(self, X: Any) -> None:
        pass


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """`FakeQuantize` by moving averages, with the scales that kernels choose.

    These differ from an observer's where codes lie symmetrically about 0: they reach one step further down than up.
    `calculate_qparams` gives the observer's, by which converted models are quantized.
    """

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int = 0,
        quant_max: int = 255,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__(observer, quant_min, quant_max, is_dynamic, **observer_kwargs)
        # Files of PyTorch's have the switches of this class so.
        self.register_buffer("fake_quant_enabled", taeda.tensor([1], dtype=taeda.long))
        self.register_buffer("observer_enabled", taeda.tensor([1], dtype=taeda.long))

    def extra_repr(self) -> str:
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}, "
            f"quant_min={self.activation_post_process.quant_min}, quant_max={self.activation_post_process.quant_max}, "
            f"qscheme={self.qscheme}, reduce_range={self.activation_post_process.reduce_range}"
        )

    def forward(self, X: Any) -> Any:
        """Numbers that can be quantized; the observer's limits follow them."""
        watch = self.activation_post_process
        return taeda.fused_moving_avg_obs_fake_quant(
            X, self.observer_enabled, self.fake_quant_enabled, watch.min_val, watch.max_val, self.scale,
            self.zero_point, watch.averaging_constant, watch.quant_min, watch.quant_max, self.ch_axis,
            self.is_per_channel, watch.qscheme in (taeda.per_tensor_symmetric, taeda.per_channel_symmetric),
        )  # fmt: skip


default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=taeda.quint8,
    qscheme=taeda.per_tensor_affine, reduce_range=True,
)  # fmt: skip
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=taeda.qint8,
    qscheme=taeda.per_tensor_symmetric, reduce_range=False,
)  # fmt: skip
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, is_dynamic=True, dtype=taeda.quint8,
    averaging_constant=1,
)  # fmt: skip
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127, dtype=taeda.qint8,
    qscheme=taeda.per_channel_symmetric, reduce_range=False, ch_axis=0,
)  # fmt: skip
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=taeda.quint8
)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=taeda.qint8,
    qscheme=taeda.per_tensor_symmetric,
)  # fmt: skip
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127, dtype=taeda.qint8,
    qscheme=taeda.per_channel_symmetric,
)  # fmt: skip
fused_wt_fake_quant_range_neg_127_to_127 = default_fused_wt_fake_quant.with_args(
    quant_min=-127, quant_max=127, eps=2**-12
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = default_fused_per_channel_wt_fake_quant.with_args(
    quant_min=-127, quant_max=127, eps=2**-12
)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=0, quant_max=255, dtype=taeda.quint8,
    qscheme=taeda.per_channel_affine_float_qparams, ch_axis=0, averaging_constant=1,
)  # fmt: skip
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=0, quant_max=15, dtype=taeda.quint4x2,
    qscheme=taeda.per_channel_affine_float_qparams, ch_axis=0, averaging_constant=1,
)  # fmt: skip
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver, quant_min=0, quant_max=255, dtype=taeda.quint8, qscheme=taeda.per_tensor_affine,
    reduce_range=True,
)  # fmt: skip


def disable_fake_quant(mod: Any) -> None:
    """For `Module.apply`: numbers pass as they are."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_fake_quant()


def enable_fake_quant(mod: Any) -> None:
    """For `Module.apply`: numbers are quantized."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_fake_quant()


def disable_observer(mod: Any) -> None:
    """For `Module.apply`: scales stay."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_observer()


def enable_observer(mod: Any) -> None:
    """For `Module.apply`: scales follow what goes by."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_observer()
