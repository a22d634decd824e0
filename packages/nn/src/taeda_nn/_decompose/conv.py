"""Convolutions whose padding has a name, in terms of those that take numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from taeda_nn._bind import Tensor, op

__all__ = ["_conv1d_padding", "_conv2d_padding", "_conv3d_padding"]

Ints = int | Sequence[int]


def same_padding(kernel: Sequence[int], dilation: Sequence[int]) -> list[tuple[int, int]]:
    """Places before and behind each dimension that keep its size; the odd one stands behind."""
    totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def _several(value: Ints, count: int) -> tuple[int, ...]:
    numbers = tuple(value) if isinstance(value, Iterable) else (value,)
    return numbers * count if len(numbers) == 1 else numbers


def _by_name(name: str, rank: int) -> Callable[..., Tensor]:
    """The convolution of so many dimensions, with padding 'valid' or 'same'."""

    def convolution(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Ints = 1,
        padding: str = "valid",
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        if padding not in ("same", "valid"):
            raise RuntimeError(
                f"{name}: argument 'padding' must be 'same', 'valid' or numbers, got {padding!r}"
            )
        ends = [(0, 0)] * rank
        if padding == "same":
            if any(step != 1 for step in _several(stride, rank)):
                raise RuntimeError(f"{name}: argument 'stride' is {stride}, expected 1 with padding='same'")
            ends = same_padding(weight.shape[2:], _several(dilation, rank))
        more = [places for before, behind in reversed(ends) for places in (0, behind - before)]
        padded = op("pad")(input, more) if any(more) else input
        ahead = tuple(before for before, _behind in ends)
        return op(name)(padded, weight, bias, stride, ahead, dilation, groups)

    convolution.__name__ = convolution.__qualname__ = f"_{name}_padding"
    return convolution


_conv1d_padding = _by_name("conv1d", 1)
_conv2d_padding = _by_name("conv2d", 2)
_conv3d_padding = _by_name("conv3d", 3)
