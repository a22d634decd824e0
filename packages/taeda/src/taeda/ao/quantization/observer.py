"""Modules that watch tensors go by, and say by which scale these would be quantized.

Sources: B. Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
Inference", 2018, for limits and their moving averages; the search of `HistogramObserver` for the limits that lose least
is that of Caffe2's norm minimization.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from bisect import bisect_left, bisect_right
from functools import partial
from itertools import accumulate
from typing import Any

import taeda
from taeda._prims_common import canonicalize_dim
from taeda.ao.quantization.granularity import *  # noqa: F403  (programs import them from here as well)
from taeda.ao.quantization.granularity import Granularity, MappingType, ZeroPointDomain
from taeda_registry.slots import nn, tensor


class _PartialWrapper:
    """A class with some of its arguments given; see `with_args`."""

    def __init__(self, p: partial[Any]) -> None:
        self.p = p
        self.callable_args: dict[str, Any] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        made = {name: make() for name, make in self.callable_args.items() if name not in keywords}
        return self.p(*args, **{**keywords, **made})

    def __repr__(self) -> str:
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs: Any) -> _PartialWrapper:
        """With more arguments given."""
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs: Any) -> _PartialWrapper:
        """With arguments that are made anew for each object."""
        made = _with_args(self)
        made.callable_args = {**self.callable_args, **kwargs}
        return made


def _with_args(cls_or_self: Any, **kwargs: Any) -> _PartialWrapper:
    """A maker of objects of the class with these arguments."""
    made = _PartialWrapper(partial(cls_or_self, **kwargs))
    if isinstance(cls_or_self, _PartialWrapper):
        made.callable_args = dict(cls_or_self.callable_args)
    return made


def _with_callable_args(cls_or_self: Any, **kwargs: Any) -> _PartialWrapper:
    return _PartialWrapper(partial(cls_or_self)).with_callable_args(**kwargs)


class ObserverBase(nn.Module, metaclass=ABCMeta):
    """What observers share.

    Args:
        dtype: The dtype that the observed tensors would be quantized to.
        is_dynamic: Whether that happens anew for every tensor.
    """

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    def forward(self, x: Any) -> Any:
        """Looks at a tensor, and gives it back."""
        raise NotImplementedError(f"{type(self).__name__}.forward")

    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scale and the zero point that what was seen asks for."""
        raise NotImplementedError(f"{type(self).__name__}.calculate_qparams")

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)


_PER_CHANNEL = ("per_channel_affine", "per_channel_symmetric", "per_channel_affine_float_qparams")
_SYMMETRIC = ("per_tensor_symmetric", "per_channel_symmetric")
_RANGES = {
    "qint8": (-128, 127),
    "int8": (-128, 127),
    "quint8": (0, 255),
    "uint8": (0, 255),
    "qint32": (-(2**31), 2**31 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "quint4x2": (0, 15),
}


def code_range(dtype: Any, reduce_range: bool) -> tuple[int, int]:
    """The least and the largest code of a dtype; of half the range where `reduce_range` says so."""
    name = repr(dtype).rpartition(".")[2]
    if name not in _RANGES:
        raise AssertionError(f"observer: argument 'dtype' is {dtype}, expected an integer or a quantized one")
    least, largest = _RANGES[name]
    parts = 2 if reduce_range and name.endswith("int8") else 1
    return least // parts, largest // parts


class UniformQuantizationObserverBase(ObserverBase):
    """Observers whose codes are equally far from each other.

    Args:
        dtype: Of the codes. qscheme: How codes are mapped to numbers.
        reduce_range: Whether one bit is left unused.
        quant_min, quant_max: The least and the largest code, by default those of the dtype.
        eps: The least scale.

    Raises:
        AssertionError: Limits that do not hold 0 between them.
    """

    _version = 3
    eps: Any

    def __init__(
        self,
        dtype: Any = taeda.quint8,
        qscheme: Any = taeda.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float | None = None,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.qscheme = qscheme
        self.reduce_range = reduce_range
        least = taeda.finfo(taeda.float32).eps if eps is None else eps
        self.register_buffer("eps", taeda.tensor([least], **(factory_kwargs or {})))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            if not quant_min <= 0 <= quant_max:  # type: ignore[operator]
                raise AssertionError(
                    f"observer: 'quant_min' and 'quant_max' are {quant_min} and {quant_max}, expected 0 between them"
                )
            parts = 2 if reduce_range else 1
            self.quant_min, self.quant_max = quant_min // parts, quant_max // parts  # type: ignore[operator]
        else:
            self.quant_min, self.quant_max = code_range(dtype, reduce_range)

    def _calculate_qparams(self, min_val: Any, max_val: Any) -> Any:
        if not min_val.numel() or not max_val.numel() or (min_val.isinf().any() and max_val.isinf().any()):
            import warnings

            warnings.warn(
                "must run observer before calling calculate_qparams. Returning default values.", stacklevel=3
            )
            return taeda.tensor([1.0]), taeda.tensor([0], dtype=taeda.int32)
        if self.qscheme.name == "per_channel_affine_float_qparams":
            scale = (max_val - min_val) / float(self.quant_max - self.quant_min)
            scale = taeda.where(scale > self.eps, scale, taeda.ones_like(scale))
            return scale, -1 * min_val / scale
        middle = 0
        if repr(self.dtype).rpartition(".")[2] in ("quint8", "uint8"):
            middle = (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
        symmetric = self.qscheme.name in _SYMMETRIC
        scale, zero = tensor.quantized.limits_to_scale(
            min_val, max_val, self.quant_min, self.quant_max, symmetric, self.eps.item(), middle
        )
        return (scale.reshape(1), zero.reshape(1)) if not scale.dim() else (scale, zero)

    def reset_min_max_vals(self) -> None:
        """Forgets what was seen."""
        raise NotImplementedError(f"{type(self).__name__}.reset_min_max_vals")


class MinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the least and the largest element of all tensors.

    Example:
        >>> watch = taeda.ao.quantization.MinMaxObserver()
        >>> _ = watch(taeda.tensor([0.0, 2.55]))
        >>> watch.calculate_qparams()
        (tensor([0.0100]), tensor([0], dtype=taeda.int32))
    """

    min_val: Any
    max_val: Any

    def __init__(
        self,
        dtype: Any = taeda.quint8,
        qscheme: Any = taeda.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float | None = None,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if qscheme.name in _PER_CHANNEL:
            raise NotImplementedError(
                "MinMaxObserver's qscheme only support per_tensor_symmetric and per_tensor_affine."
            )
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs
        )
        self._keep_limits(factory_kwargs)

    def _keep_limits(self, factory_kwargs: dict[str, Any] | None) -> None:
        self.register_buffer("min_val", taeda.tensor(float("inf"), **(factory_kwargs or {})))
        self.register_buffer("max_val", taeda.tensor(float("-inf"), **(factory_kwargs or {})))

    def forward(self, x_orig: Any) -> Any:
        if x_orig.numel():
            low, high = taeda.aminmax(x_orig.detach().to(self.min_val.dtype))
            self.min_val.copy_(taeda.minimum(low, self.min_val))
            self.max_val.copy_(taeda.maximum(high, self.max_val))
        return x_orig

    def calculate_qparams(self) -> Any:
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        self.min_val.copy_(taeda.tensor(float("inf")))
        self.max_val.copy_(taeda.tensor(float("-inf")))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Keeps moving averages of the least and the largest elements.

    Args:
        averaging_constant: How much of the new ones is taken.
    """

    def __init__(
        self,
        averaging_constant: float = 0.01,
        dtype: Any = taeda.quint8,
        qscheme: Any = taeda.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float | None = None,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs
        )
        self.averaging_constant = averaging_constant

    def forward(self, x_orig: Any) -> Any:
        if x_orig.numel():
            low, high = taeda.aminmax(x_orig.detach().to(self.min_val.dtype))
            for kept, new in ((self.min_val, low), (self.max_val, high)):
                kept.copy_(new if kept.isinf() else kept + self.averaging_constant * (new - kept))
        return x_orig


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the least and the largest element of each slice along a dimension.

    Args:
        ch_axis: The dimension.
    """

    min_val: Any
    max_val: Any

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: Any = taeda.quint8,
        qscheme: Any = taeda.per_channel_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float | None = None,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if qscheme.name not in _PER_CHANNEL:
            raise NotImplementedError("PerChannelMinMaxObserver's qscheme only support a scheme of channels")
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs
        )
        self.ch_axis = ch_axis
        self.register_buffer("min_val", taeda.tensor([], **(factory_kwargs or {})))
        self.register_buffer("max_val", taeda.tensor([], **(factory_kwargs or {})))

    def _limits(self, x: Any) -> tuple[Any, Any]:
        x = x.detach().to(self.min_val.dtype)
        axis = canonicalize_dim(x.dim(), self.ch_axis)
        dims = [d for d in range(x.dim()) if d != axis]
        return (x.amin(dims), x.amax(dims)) if dims else (x, x)

    def _blend(self, kept: Any, new: Any, larger: bool) -> Any:
        return (taeda.maximum if larger else taeda.minimum)(kept, new)

    def forward(self, x_orig: Any) -> Any:
        if not x_orig.numel():
            return x_orig
        for kept, new, larger in zip(
            (self.min_val, self.max_val), self._limits(x_orig), (False, True), strict=True
        ):
            first = kept.numel() == 0
            kept.resize_(new.shape)
            kept.copy_(new if first else self._blend(kept, new, larger))
        return x_orig

    def calculate_qparams(self) -> Any:
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any) -> None:
        for name in ("min_val", "max_val"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def reset_min_max_vals(self) -> None:
        self.min_val, self.max_val = taeda.tensor([]), taeda.tensor([])


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Keeps moving averages of the limits of each slice.

    Args:
        averaging_constant: How much of the new ones is taken.
    """

    def __init__(
        self,
        averaging_constant: float = 0.01,
        ch_axis: int = 0,
        dtype: Any = taeda.quint8,
        qscheme: Any = taeda.per_channel_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float | None = None,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            ch_axis,
            dtype,
            qscheme,
            reduce_range,
            quant_min,
            quant_max,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        self.averaging_constant = averaging_constant

    def _blend(self, kept: Any, new: Any, larger: bool) -> Any:
        return kept + self.averaging_constant * (new - kept)


class HistogramObserver(UniformQuantizationObserverBase):
    """Keeps a histogram, and looks for the limits by which quantization loses least in squares.

    Args:
        bins: How many bins the histogram has.
    """

    histogram: Any
    min_val: Any
    max_val: Any

    def __init__(
        self,
        bins: int = 2048,
        dtype: Any = taeda.quint8,
        qscheme: Any = taeda.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float | None = None,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if qscheme.name in _PER_CHANNEL:
            raise NotImplementedError(
                "HistogramObserver's qscheme only support per_tensor_symmetric and per_tensor_affine."
            )
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs
        )
        self.bins = bins
        self.register_buffer("histogram", taeda.zeros(bins, **(factory_kwargs or {})))
        self.register_buffer("min_val", taeda.tensor(float("inf"), **(factory_kwargs or {})))
        self.register_buffer("max_val", taeda.tensor(float("-inf"), **(factory_kwargs or {})))
        self.dst_nbins = 2 ** (16 if "16" in repr(dtype) else 32 if "32" in repr(dtype) else 8)

    def forward(self, x_orig: Any) -> Any:
        """Counts the elements; what was counted before is spread over the bins of the joint range."""
        x = x_orig.detach().to(self.min_val.dtype)
        x = x[x.isfinite()]
        if not x.numel():
            return x_orig
        low, high = (v.item() for v in taeda.aminmax(x))
        old_low, old_high = self.min_val.item(), self.max_val.item()
        if old_low <= old_high:
            low, high = min(low, old_low), max(high, old_high)
        counted = taeda.histc(x, self.bins, min=low, max=high) if low < high else self._one_value(x, low)
        if old_low <= old_high:
            counted = counted + self._spread(old_low, old_high, low, high)
        self.histogram.copy_(counted)
        self.min_val.copy_(taeda.tensor(low))
        self.max_val.copy_(taeda.tensor(high))
        return x_orig

    def _one_value(self, x: Any, value: float) -> Any:
        counted = taeda.zeros_like(self.histogram)
        counted[self.bins // 2] = float(x.numel())
        return counted

    def _spread(self, old_low: float, old_high: float, low: float, high: float) -> Any:
        """The histogram over a wider range: each bin's count goes to where its middle lies."""
        if (old_low, old_high) == (low, high):
            return self.histogram
        width = (old_high - old_low) / self.bins
        middles = old_low + (taeda.arange(self.bins, dtype=taeda.float64) + 0.5) * width
        places = ((middles - low) / (high - low) * self.bins).long().clamp(0, self.bins - 1)
        return taeda.zeros_like(self.histogram).index_add(0, places, self.histogram)

    def _quantization_error(self, first: int, last: int, width: float) -> float:
        """The squares lost when the bins from `first` to `last` share the codes, and others become the nearest."""
        codes = self.dst_nbins
        step = width * (last - first + 1) / codes
        if step == 0.0:
            return 0.0
        begin = (taeda.arange(self.bins) - first) * width
        end = begin + width
        code_begin = (begin / step).floor().clamp(0, codes - 1)
        code_end = (end / step).floor().clamp(0, codes - 1)
        density = self.histogram / width

        def between(a: Any, b: Any) -> Any:
            return density * (b * b * b - a * a * a) / 3

        half = taeda.full_like(begin, step / 2)
        lost = between(begin - (code_begin + 0.5) * step, half)
        lost = lost + (code_end - code_begin - 1) * between(-half, half)
        lost = lost + between(-half, end - (code_end * step + step / 2))
        return float(lost.sum())

    def _non_linear_param_search(self) -> tuple[Any, Any]:
        """Narrows the range from the side that holds fewer elements, as long as less is lost."""
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        sums = list(accumulate(self.histogram.tolist()))
        total = sums[-1]
        step = 1e-5
        below, above = 0.0, 1.0
        first, last = 0, self.bins - 1
        least = float("inf")
        while below < above:
            next_below, next_above = below + step, above - step
            left = min(max(bisect_left(sums, next_below * total), first), last)
            right = min(max(bisect_right(sums, next_above * total) - 1, first), last)
            if left - first > last - right:
                candidate, below = (left, last), next_below
            else:
                candidate, above = (first, right), next_above
            if candidate == (first, last):
                continue
            lost = self._quantization_error(*candidate, width)
            if lost > least:
                break
            least = lost
            first, last = candidate
        return self.min_val + width * first, self.min_val + width * (last + 1)

    def calculate_qparams(self) -> Any:
        if self.min_val.isinf() or self.max_val.isinf():
            return self._calculate_qparams(taeda.tensor([]), taeda.tensor([]))
        return self._calculate_qparams(*self._non_linear_param_search())

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


class FixedQParamsObserver(ObserverBase):
    """Says the scale and the zero point that it was made with.

    Args:
        scale, zero_point: What it says.
    """

    scale: Any
    zero_point: Any

    def __init__(
        self,
        scale: float,
        zero_point: int,
        dtype: Any = taeda.quint8,
        qscheme: Any = taeda.per_tensor_affine,
        quant_min: int = 0,
        quant_max: int = 255,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        self.quant_min, self.quant_max = quant_min, quant_max
        self.register_buffer("scale", taeda.tensor([scale], dtype=taeda.float))
        self.register_buffer("zero_point", taeda.tensor([zero_point], dtype=taeda.int))
        self.qscheme = qscheme

    def forward(self, X: Any) -> Any:
        return X

    def calculate_qparams(self) -> Any:
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Observes nothing; says to what dtype something goes, as for what is quantized anew each time."""

    def __init__(
        self,
        dtype: Any = taeda.float32,
        custom_op_name: str = "",
        compute_dtype: Any = None,
        quant_min: int | None = None,
        quant_max: int | None = None,
        qscheme: Any = None,
        eps: float | None = None,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic or bool(compute_dtype))
        self.qscheme = taeda.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, eps
        self.custom_op = custom_op_name

    def forward(self, x: Any) -> Any:
        return x

    def calculate_qparams(self) -> Any:
        raise RuntimeError("calculate_qparams: a PlaceholderObserver has seen nothing")


class NoopObserver(ObserverBase):
    """Observes nothing."""

    def __init__(self, dtype: Any = taeda.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.custom_op = custom_op_name

    def forward(self, x: Any) -> Any:
        return x

    def calculate_qparams(self) -> Any:
        raise RuntimeError("calculate_qparams: a NoopObserver has seen nothing")


class ReuseInputObserver(NoopObserver):
    """For what keeps the scale of its input."""

    def __init__(self) -> None:
        super().__init__(taeda.quint8)


class RecordingObserver(ObserverBase):
    """Keeps every tensor."""

    def __init__(self, dtype: Any = taeda.quint8) -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.tensor_val: list[Any] = []

    def forward(self, x: Any) -> Any:
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self) -> Any:
        raise RuntimeError("calculate_qparams: a RecordingObserver keeps tensors and no scale")

    def get_tensor_value(self) -> list[Any]:
        """All tensors seen."""
        return self.tensor_val


class AffineQuantizedObserverBase(nn.Module, metaclass=ABCMeta):
    """What observers of a granularity of their own derive from.

    Args:
        mapping_type: How numbers become codes.
        target_dtype: Of the codes.
        granularity: Which numbers share a scale.
        quant_min, quant_max: The smallest and largest code; those of the dtype by default.
        eps: The smallest scale.
        scale_dtype, zero_point_dtype: Of the scale and the zero point.
        preserve_zero: Whether zero has a code of its own.
        zero_point_domain: What a zero point is.
    """

    with_args = classmethod(_with_args)

    def __init__(
        self,
        mapping_type: MappingType,
        target_dtype: Any,
        granularity: Granularity,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float | None = None,
        scale_dtype: Any = None,
        zero_point_dtype: Any = None,
        preserve_zero: bool = True,
        zero_point_domain: ZeroPointDomain | None = ZeroPointDomain.INT,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if granularity is None:
            raise ValueError("AffineQuantizedObserverBase: argument 'granularity' is None")
        if zero_point_domain is None:
            raise ValueError("AffineQuantizedObserverBase: argument 'zero_point_domain' is None")
        self.mapping_type, self.target_dtype, self.granularity = mapping_type, target_dtype, granularity
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, eps
        self.scale_dtype, self.zero_point_dtype = scale_dtype, zero_point_dtype
        self.preserve_zero, self.zero_point_domain = preserve_zero, zero_point_domain

    @abstractmethod
    def forward(self, input: Any) -> Any:
        """Watch a tensor; give it on."""

    @abstractmethod
    def calculate_qparams(self) -> tuple[Any, Any]:
        """Scale and zero point."""


def get_observer_state_dict(mod: Any) -> dict[str, Any]:
    """What the observers of a model keep, by name."""
    return {name: value for name, value in mod.state_dict().items() if "activation_post_process" in name}


def load_observer_state_dict(mod: Any, obs_dict: dict[str, Any]) -> None:
    """Gives the observers of a model what `get_observer_state_dict` gave."""
    missing = set(obs_dict) - set(mod.state_dict())
    if missing:
        raise RuntimeError(f"load_observer_state_dict: the model has no {sorted(missing)}")
    mod.load_state_dict(obs_dict, strict=False)


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(dtype=taeda.qint8, qscheme=taeda.per_tensor_symmetric)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    dtype=taeda.qint8, qscheme=taeda.per_tensor_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=taeda.qint8, qscheme=taeda.per_channel_symmetric
)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    dtype=taeda.qint8, qscheme=taeda.per_channel_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=taeda.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=taeda.quint8, qscheme=taeda.per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=taeda.quint4x2, qscheme=taeda.per_channel_affine_float_qparams, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=taeda.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=taeda.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver
