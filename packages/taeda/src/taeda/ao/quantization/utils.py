"""What quantisation asks about schemes, dtypes and ranges."""

from __future__ import annotations

import warnings
from typing import Any

import taeda as tk

__all__ = [
    "MatchAllNode",
    "activation_dtype",
    "activation_is_int8_quantized",
    "activation_is_int32_quantized",
    "activation_is_statically_quantized",
    "calculate_qmin_qmax",
    "check_min_max_valid",
    "determine_qparams",
    "get_combined_dict",
    "get_qconfig_dtypes",
    "get_qparam_dict",
    "get_quant_type",
    "get_swapped_custom_module_class",
    "getattr_from_fqn",
    "has_no_children_ignoring_parametrizations",
    "is_per_channel",
    "is_per_tensor",
    "op_is_int8_dynamically_quantized",
    "to_underlying_dtype",
    "validate_qmin_qmax",
    "weight_dtype",
    "weight_is_quantized",
    "weight_is_statically_quantized",
]  # fmt: skip

_STATIC = (tk.quint8, tk.qint8, tk.qint32, tk.uint8, tk.int8, tk.int16, tk.int32, tk.float16)
_UNDERLYING = {tk.quint8: tk.uint8, tk.qint8: tk.int8, tk.qint32: tk.int32}
#: The smallest and the largest number of a whole dtype, by its dtype.
_WHOLE = {
    tk.qint8: (-128, 127), tk.int8: (-128, 127), tk.quint8: (0, 255), tk.uint8: (0, 255),
    tk.qint32: (-(2**31), 2**31 - 1), tk.int32: (-(2**31), 2**31 - 1), tk.int16: (-(2**15), 2**15 - 1),
    tk.uint16: (0, 2**16 - 1),
}  # fmt: skip


class MatchAllNode:
    """A node of a pattern that any node fits."""


def get_combined_dict(default_dict: dict[Any, Any], additional_dict: dict[Any, Any]) -> dict[Any, Any]:
    """Both dicts in one; where both have a key, the second one's value stands."""
    return {**default_dict, **additional_dict}


def is_per_tensor(qscheme: Any) -> bool:
    """Whether one scale serves a whole tensor."""
    return qscheme in (tk.per_tensor_affine, tk.per_tensor_symmetric)


def is_per_channel(qscheme: Any) -> bool:
    """Whether each channel has its scale."""
    return qscheme in (
        tk.per_channel_affine, tk.per_channel_affine_float_qparams, tk.per_channel_symmetric,
    )  # fmt: skip


def getattr_from_fqn(obj: Any, fqn: str) -> Any:
    """What a dotted name leads to.

    Raises:
        AttributeError: A part of the name is not there.
    """
    for part in fqn.split("."):
        obj = getattr(obj, part)
    return obj


def to_underlying_dtype(qdtype: Any) -> Any:
    """The plain dtype of a quantized one's numbers; a plain one itself.

    Raises:
        KeyError: It is neither.
    """
    return _UNDERLYING[qdtype] if qdtype in _UNDERLYING else {kind: kind for kind in _STATIC}[qdtype]


def get_qparam_dict(observer_or_fake_quant: Any) -> dict[str, Any]:
    """Scheme, dtype, scale and zero point of an observer, with the axis of channels where it has one."""
    found = observer_or_fake_quant
    scheme = getattr(found, "qscheme", None)
    parameters: dict[str, Any] = {"qscheme": scheme, "dtype": found.dtype}
    if scheme is None or isinstance(found, tk.ao.quantization.PlaceholderObserver):
        return {"qscheme": None, "dtype": found.dtype}
    if is_per_tensor(scheme):
        parameters["qscheme"] = tk.per_tensor_affine
    elif is_per_channel(scheme):
        if scheme == tk.per_channel_symmetric:
            parameters["qscheme"] = tk.per_channel_affine
        parameters["axis"] = found.ch_axis
    else:
        raise RuntimeError(f"get_qparam_dict: unknown scheme {scheme}")
    parameters["scale"], parameters["zero_point"] = found.calculate_qparams()
    if hasattr(found, "quant_min"):
        parameters["quant_min"] = found.quant_min
    if hasattr(found, "quant_max"):
        parameters["quant_max"] = found.quant_max
    return parameters


def get_swapped_custom_module_class(
    custom_module: Any, custom_module_class_mapping: dict[Any, Any], qconfig: Any
) -> Any:
    """The class that stands for a module's class, by the kind of quantisation its settings ask for.

    Raises:
        AssertionError: None does.
    """
    kind = get_quant_type(qconfig)
    by_class = custom_module_class_mapping.get(kind, {})
    if type(custom_module) not in by_class:
        raise AssertionError(
            f"did not find corresponding observed module class for {type(custom_module)} in {by_class}"
        )
    return by_class[type(custom_module)]


def activation_dtype(qconfig: Any) -> Any:
    """The dtype of a setting's activations."""
    return qconfig.activation().dtype


def weight_dtype(qconfig: Any) -> Any:
    """The dtype of a setting's weights."""
    return qconfig.weight().dtype


def activation_is_statically_quantized(qconfig: Any) -> bool:
    """Whether activations are quantized with scales that are known before."""
    made = qconfig.activation()
    return made.dtype in _STATIC and not getattr(made, "is_dynamic", False)


def activation_is_int8_quantized(qconfig: Any) -> bool:
    """Whether activations are bytes."""
    return activation_dtype(qconfig) in (tk.quint8, tk.qint8, tk.uint8, tk.int8)


def activation_is_int32_quantized(qconfig: Any) -> bool:
    """Whether activations are whole numbers of 32 bits."""
    return activation_dtype(qconfig) in (tk.qint32, tk.int32)


def weight_is_quantized(qconfig: Any) -> bool:
    """Whether weights are quantized."""
    return weight_dtype(qconfig) in (
        tk.quint8,
        tk.qint8,
        tk.float16,
        tk.quint4x2,
        tk.uint8,
        tk.int8,
        tk.int32,
    )


def weight_is_statically_quantized(qconfig: Any) -> bool:
    """Whether weights are bytes."""
    return weight_dtype(qconfig) in (tk.quint8, tk.qint8, tk.uint8, tk.int8)


def op_is_int8_dynamically_quantized(qconfig: Any) -> bool:
    """Whether activations are bytes whose scales are found at each call, and weights bytes."""
    made = qconfig.activation()
    return (
        made.dtype in (tk.quint8, tk.uint8)
        and getattr(made, "is_dynamic", False)
        and weight_dtype(qconfig) in (tk.qint8, tk.int8)
    )


def get_qconfig_dtypes(qconfig: Any) -> tuple[Any, Any, Any]:
    """Of a setting: the dtypes of activations and weights, and whether activations' scales are found at each call."""
    made = qconfig.activation()
    return made.dtype, weight_dtype(qconfig), getattr(made, "is_dynamic", False)


def get_quant_type(qconfig: Any) -> Any:
    """The kind of quantisation that a setting asks for.

    Raises:
        Exception: The dtypes go together in no kind.
    """
    from taeda.ao.quantization.quant_type import QuantType

    made, weight = qconfig.activation(), qconfig.weight()
    if weight.dtype in _STATIC:
        if getattr(made, "is_dynamic", False):
            return QuantType.DYNAMIC
        return QuantType.STATIC if made.dtype in _STATIC else QuantType.WEIGHT_ONLY
    if weight.dtype == tk.float16:
        return QuantType.DYNAMIC if getattr(made, "is_dynamic", False) else QuantType.WEIGHT_ONLY
    raise Exception(
        f"Unrecognized dtype combination in get_quant_type: activation({made.dtype}),weight({weight.dtype})"
    )


def check_min_max_valid(min_val: Any, max_val: Any) -> bool:
    """Whether smallest and largest numbers were seen, with a warning where none were.

    Raises:
        AssertionError: A smallest number is larger than the largest.
    """
    if min_val.numel() == 0 or max_val.numel() == 0:
        warnings.warn(
            "must run observer before calling calculate_qparams. Returning default values.", stacklevel=2
        )
        return False
    if min_val.dim() == 0:
        if min_val == float("inf") and max_val == float("-inf"):
            warnings.warn(
                "must run observer before calling calculate_qparams. Returning default values.", stacklevel=2
            )
            return False
        if not min_val <= max_val:
            raise AssertionError(f"min {min_val} should be less than max {max_val}")
    elif not tk.all(min_val <= max_val):
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


def calculate_qmin_qmax(
    quant_min: int | None, quant_max: int | None, has_customized_qrange: bool, dtype: Any, reduce_range: bool
) -> tuple[int, int]:
    """The smallest and the largest quantized number, of half the range where `reduce_range` is set.

    Raises:
        AssertionError: A range of one's own is no range of up to 256 numbers (2**31 for int32).
    """
    if has_customized_qrange and quant_min is not None and quant_max is not None:
        size = quant_max - quant_min + 1
        limit = 2**31 if dtype in (tk.qint32, tk.int32) else 256
        if not 0 < size <= limit:
            raise AssertionError(
                f"quantization range should be positive and not exceed the maximum bit range (={limit})"
            )
        return (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)
    if dtype not in _WHOLE:
        return 0, 15
    low, high = _WHOLE[dtype]
    halves = reduce_range and dtype in (tk.qint8, tk.int8, tk.quint8, tk.uint8)
    return (low // 2, high // 2) if halves else (low, high)


def validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
    """Refuse a range without zero or without width.

    Raises:
        AssertionError: It is one.
    """
    if not quant_min <= 0 <= quant_max:
        raise AssertionError("used-specified quantization range must include 0")
    if not quant_min < quant_max:
        raise AssertionError("qmin must be strictly less than qmax for user-specified quantization range")


def determine_qparams(
    min_val: Any,
    max_val: Any,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    eps: Any,
    has_customized_qrange: bool,
    qscheme: Any = tk.per_tensor_affine,
) -> tuple[Any, Any]:
    """Scale and zero point that show the numbers between two bounds."""
    if not check_min_max_valid(min_val, max_val):
        return tk.tensor([1.0]), tk.tensor([0])
    low, high = tk.clamp(min_val, max=0), tk.clamp(max_val, min=0)
    zero = tk.zeros(low.shape, dtype=tk.int64, device=low.device)
    if qscheme in (tk.per_tensor_symmetric, tk.per_channel_symmetric):
        scale = tk.maximum(-low, high) / (float(quant_max - quant_min) / 2)
        scale = tk.maximum(scale, eps)
        if dtype in (tk.uint8, tk.quint8):
            zero = zero + ((quant_min + quant_max) // 2 if has_customized_qrange else 128)
    elif qscheme == tk.per_channel_affine_float_qparams:
        width = (max_val - min_val) / float(quant_max - quant_min)
        scale = tk.where(width > eps, width, tk.ones_like(width))
        zero = -1 * min_val / scale
    else:
        scale = tk.maximum((high - low) / float(quant_max - quant_min), eps)
        zero = tk.clamp(quant_min - tk.round(low / scale).to(tk.int64), quant_min, quant_max)
    scale, zero = scale.to(tk.float64), zero.to(tk.int64)
    return scale.reshape(scale.shape or 1), zero.reshape(zero.shape or 1)


def has_no_children_ignoring_parametrizations(module: Any) -> bool:
    """Whether a module has no modules in it but its parametrizations."""
    children = module._modules
    return len(children) == 0 or (len(children) == 1 and tk.nn.utils.parametrize.is_parametrized(module))
