"""Padding, and channels that become finer places, in terms of joined and chosen parts."""

from __future__ import annotations

from collections.abc import Sequence

from taeda_nn._bind import Tensor, op, tensor

__all__ = ["constant_pad_nd", "pad", "pixel_shuffle", "pixel_unshuffle"]


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotImplementedError(
            f"pad: argument 'mode' must be 'constant', 'reflect', 'replicate' or 'circular', got {mode!r}"
        )
    if len(pad) % 2 or len(pad) // 2 > input.dim():
        raise RuntimeError(
            f"pad: argument 'pad' {tuple(pad)} needs an even number of amounts, at most {2 * input.dim()} for shape "
            f"{tuple(input.shape)}"
        )
    if mode == "constant":
        return op("constant_pad_nd")(input, pad, 0 if value is None else value)
    if value:
        raise RuntimeError(f"pad: argument 'value' is for mode 'constant', got mode {mode!r}")
    for i in range(len(pad) // 2):
        input = _pad_by_index(input, input.dim() - 1 - i, int(pad[2 * i]), int(pad[2 * i + 1]), mode)
    return input


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    for i in range(len(pad) // 2):
        dim, (begin, end) = input.dim() - 1 - i, pad[2 * i : 2 * i + 2]
        size = input.shape[dim]
        start, stop = max(-begin, 0), size - max(-end, 0)
        if stop < start:
            raise RuntimeError(
                f"pad: cutting ({begin}, {end}) from size {size} of dimension {dim} leaves less than 0"
            )
        if (start, stop) != (0, size):
            input = input.narrow(dim, start, stop - start)
        parts = [input]
        for at_end, amount in ((False, begin), (True, end)):
            if amount > 0:
                shape = [amount if d == dim else n for d, n in enumerate(input.shape)]
                block = tensor.full(shape, value, dtype=input.dtype, device=input.device)
                parts.insert(len(parts) if at_end else 0, block)
        if len(parts) > 1:
            input = tensor.cat(parts, dim)
    return input if any(pad) else input.clone()


def _pad_by_index(input: Tensor, dim: int, begin: int, end: int, mode: str) -> Tensor:
    size = input.shape[dim]
    # What negative amounts leave; the circle is made of that.
    first, stop = max(-begin, 0), size - max(-end, 0)
    limit = {"reflect": size - 1, "replicate": None, "circular": stop - first}[mode]
    if size == 0 or stop < first or (limit is not None and max(begin, end) > limit):
        raise RuntimeError(f"pad: amounts ({begin}, {end}) are too large for mode {mode!r} and size {size}")
    places = range(-begin, size + end)
    if mode == "replicate":
        picked = [min(max(p, 0), size - 1) for p in places]
    elif mode == "circular":
        picked = [first + (p - first) % (stop - first) for p in places]
    else:
        picked = [-p if p < 0 else 2 * (size - 1) - p if p >= size else p for p in places]
    return input.index_select(dim, tensor.tensor(picked, dtype=tensor.int64, device=input.device))


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    *lead, channels, height, width = input.shape
    r = upscale_factor
    split = input.reshape(*lead, channels // (r * r), r, r, height, width)
    n = len(lead)
    moved = split.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return moved.clone().contiguous().reshape(*lead, channels // (r * r), height * r, width * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    *lead, channels, height, width = input.shape
    r = downscale_factor
    split = input.reshape(*lead, channels, height // r, r, width // r, r)
    n = len(lead)
    moved = split.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return moved.clone().contiguous().reshape(*lead, channels * r * r, height // r, width // r)
