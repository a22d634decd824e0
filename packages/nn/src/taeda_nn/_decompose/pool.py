"""Pooling over one dimension in terms of that over two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from taeda_nn._bind import Tensor, op

__all__ = ["adaptive_max_pool1d", "max_pool1d_with_indices"]

Ints = int | Sequence[int]


def _wide(value: Ints, first: int) -> tuple[int, ...]:
    """The lists of one dimension for a height of one."""
    numbers = tuple(value) if isinstance(value, Iterable) else (value,)
    return (first, *numbers) if numbers else ()


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    values, places = op("max_pool2d_with_indices")(
        input.unsqueeze(-2),
        _wide(kernel_size, 1),
        _wide(stride, 1),
        _wide(padding, 0),
        _wide(dilation, 1),
        ceil_mode,
    )
    return values.squeeze(-2), places.squeeze(-2)


def adaptive_max_pool1d(input: Tensor, output_size: Ints) -> tuple[Tensor, Tensor]:
    values, places = op("adaptive_max_pool2d")(input.unsqueeze(-2), _wide(output_size, 1))
    return values.squeeze(-2), places.squeeze(-2)
