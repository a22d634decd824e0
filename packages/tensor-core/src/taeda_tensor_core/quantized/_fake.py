"""Numbers as they come back from being quantized, with gradients: for training that foresees it.

Note [A value with the gradient of another]: ``x - x.detach()`` is 0 and has the gradient of ``x``. Added to a value
that is detached it gives the value, to the last bit, and that gradient. Where ``x`` is infinite it is not a number, for
which `nan_to_num` gives 0 and no gradient.
"""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C, _info
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.quantized._schemes import kernel_scale
from taeda_tensor_core.quantized._tensor import along


def _range(name: str, least: int, largest: int) -> None:
    if least > largest:
        raise RuntimeError(
            f"{name}: argument 'quant_min' is {least}, expected at most 'quant_max', {largest}"
        )


def _zero(x: Any) -> Any:
    """0 with the gradient of `x`; see Note [A value with the gradient of another]."""
    return (x - x.detach()).nan_to_num(0.0, 0.0, 0.0)


def _codes(x: Tensor, scale: Any, zero_point: Any) -> Tensor:
    return (x.detach() * (1.0 / scale)).round() + zero_point


def _faked(x: Tensor, scale: Any, zero_point: Any, least: int, largest: int) -> Tensor:
    codes = _codes(x, scale, zero_point)
    made = (_C.clamp(codes, least, largest) - zero_point) * scale
    if not x.requires_grad:
        return made.to(x.dtype)
    inside = (codes >= least) & (codes <= largest)
    return made.to(x.dtype) + _zero(x) * inside


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """Quantizes and dequantizes with one scale; gradients pass where codes are in range.

    Args:
        input: Floating-point numbers of any shape.
        scale: A number, or a tensor of one element.
        zero_point: The code of 0, a number or a tensor of one element.
        quant_min, quant_max: The least and the largest code.

    Returns:
        ``(clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale``, of the dtype of
        `input`.

    Raises:
        RuntimeError: `quant_min` is above `quant_max`.

    Example:
        >>> taeda.fake_quantize_per_tensor_affine(taeda.tensor([0.26, 9.0]), 0.5, 0, -8, 7)
        tensor([0.5000, 3.5000])
    """
    _range("fake_quantize_per_tensor_affine", quant_min, quant_max)
    scale = scale.detach() if isinstance(scale, Tensor) else scale
    zero = zero_point.detach().to(_C.float32) if isinstance(zero_point, Tensor) else zero_point
    return _faked(input, scale, zero, quant_min, quant_max)


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """Quantizes and dequantizes with a scale for each slice along `axis`; gradients pass where codes are in range.

    Args:
        input: Floating-point numbers.
        scale, zero_point: Of one dimension, as long as dimension `axis`.

    Raises:
        RuntimeError: A length that does not fit. IndexError: There is no such dimension.

    Example:
        >>> x = taeda.tensor([[0.26], [0.26]])
        >>> taeda.fake_quantize_per_channel_affine(x, taeda.tensor([0.5, 0.1]), taeda.zeros(2), 0, -8, 7)
        tensor([[0.5000],
                [0.3000]])
    """
    name = "fake_quantize_per_channel_affine"
    _range(name, quant_min, quant_max)
    at = _axis(name, input, axis, scale, zero_point)
    scales, zeros = along(input, scale.detach(), at), along(input, zero_point.detach().to(_C.float32), at)
    return _faked(input, scales, zeros, quant_min, quant_max)


def _axis(name: str, x: Tensor, axis: int, scale: Tensor, zero_point: Tensor) -> int:
    if not -x.dim() <= axis < x.dim():
        raise IndexError(f"{name}: argument 'axis' is {axis}, the tensor has {x.dim()} dimensions")
    size = x.shape[axis]
    for given, argument in ((scale, "scale"), (zero_point, "zero_point")):
        if tuple(given.shape) != (size,):
            raise RuntimeError(
                f"{name}: argument '{argument}' has shape {tuple(given.shape)}, expected ({size},)"
            )
    return axis % x.dim()


def _learnt(x: Tensor, scale: Tensor, zero_point: Tensor, least: int, largest: int, factor: float) -> Tensor:
    """With gradients of the scale and the zero point too (S. Esser et al., "Learned step size quantization", 2020)."""
    size = scale.detach()
    zero = _C.clamp(zero_point.detach().round(), least, largest)
    codes = _codes(x, size, zero)
    held = _C.clamp(codes, least, largest)
    made = (held - zero) * size
    inside = codes == held
    by_scale = _C.where(inside, (made - x.detach()) / size, held - zero)
    by_zero = _C.where(inside, _C.zeros_like(made), -size.expand_as(made))
    return made + _zero(x) * inside + factor * (_zero(scale) * by_scale + _zero(zero_point) * by_zero)


def _fake_quantize_learnable_per_tensor_affine(
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with gradients of the scale and the zero point, times `grad_factor`."""
    _range("_fake_quantize_learnable_per_tensor_affine", quant_min, quant_max)
    return _learnt(input, scale, zero_point, quant_min, quant_max, grad_factor)


def _fake_quantize_learnable_per_channel_affine(
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:
    """`fake_quantize_per_channel_affine` with gradients of scales and zero points, times `grad_factor`."""
    name = "_fake_quantize_learnable_per_channel_affine"
    _range(name, quant_min, quant_max)
    at = _axis(name, input, axis, scale, zero_point)
    return _learnt(
        input, along(input, scale, at), along(input, zero_point, at), quant_min, quant_max, grad_factor
    )


def fused_moving_avg_obs_fake_quant(
    input: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Tensor:
    """Follows the least and largest elements by moving averages, and quantizes and dequantizes by what they ask for.

    Args:
        observer_on, fake_quant_on: Tensors of one element: whether each of the two is done.
        running_min, running_max, scale, zero_point: Are changed in place; infinite limits have seen nothing yet.
        averaging_const: How much of the new limits is taken.
        per_row_fake_quant: Whether slices along `ch_axis` have a scale each.
        symmetric_quant: Whether code ranges lie symmetrically about 0.
    """
    if bool(observer_on):
        _follow(
            input.detach(), running_min, running_max, averaging_const, ch_axis if per_row_fake_quant else None
        )
        found = kernel_scale(running_min, running_max, quant_min, quant_max, symmetric_quant)
        for kept, new in zip((scale, zero_point), found, strict=True):
            if kept.numel() != new.numel():
                kept.resize_(new.shape)
            kept.copy_(new.reshape(kept.shape))
    if not bool(fake_quant_on):
        return input
    if per_row_fake_quant:
        return fake_quantize_per_channel_affine(input, scale, zero_point, ch_axis, quant_min, quant_max)
    return fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)


def _follow(x: Tensor, low: Tensor, high: Tensor, rate: float, axis: int | None) -> None:
    dims = [d for d in range(x.dim()) if axis is None or d != axis % x.dim()]
    for kept, new in ((low, x.amin(dims)), (high, x.amax(dims))):
        before = kept if kept.shape == new.shape else new
        kept.resize_(new.shape).copy_(_C.where(before.isinf(), new, before + rate * (new - before)))


def limits_to_scale(
    low: Tensor,
    high: Tensor,
    least: int,
    largest: int,
    symmetric: bool,
    eps: float | None = None,
    middle: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The scales, float32, and zero points, integers, by which codes from `least` to `largest` cover limits and 0.

    Args:
        symmetric: Whether what codes stand for lies symmetrically about 0.
        eps: The least scale, that of float32 by default.
        middle: The zero point of symmetric codes; in the middle of them by default.
    """
    eps = _info.finfo(_C.float32).eps if eps is None else eps
    low, high = low.clamp(max=0.0), high.clamp(min=0.0)
    if symmetric:
        scale = (_C.maximum(-low, high) / (float(largest - least) / 2)).clamp(min=eps)
        if middle is None:
            middle = 0 if least < 0 else (least + largest + 1) // 2
        return scale.to(_C.float32), _C.full_like(scale, middle).to(_C.int64)
    scale = ((high - low) / float(largest - least)).clamp(min=eps)
    zero = (least - (low / scale).round()).clamp(least, largest)
    return scale.to(_C.float32), zero.to(_C.int32)
