"""The operators of torchvision, which its compiled library has for PyTorch alone.

`ops.load_library` defines them where that library cannot be loaded. Sampling is a weighted sum of rows of the picture
as a table, one row for each place: the operator `embedding_bag`.

Sources: non-maximum suppression, region pooling and alignment and position-sensitive pooling as in Girshick 2015
(https://arxiv.org/abs/1504.08083), He et al. 2017 (https://arxiv.org/abs/1703.06870), Dai et al. 2016
(https://arxiv.org/abs/1605.06409); deformable convolution as in Zhu et al. 2018 (https://arxiv.org/abs/1811.11168).
"""

from __future__ import annotations

import math
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._info import iinfo
from taeda_tensor_core.library import Library, register_autograd

Tensor = _C.Tensor
_BLOCK = 1024
_CHUNK = 1 << 22
_REGIONS = "Tensor rois, float spatial_scale, int pooled_height, int pooled_width"
_MAPPED = _REGIONS.replace(", ", ", Tensor channel_mapping, ", 1)
_SHAPE = "int batch_size, int channels, int height, int width"
_STEPS = (
    "int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, int groups, "
    "int offset_groups, bool use_mask"
)
_DEFORMED = "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias"


# --- boxes ---


def _overlap(a: Tensor, b: Tensor) -> Tensor:
    """Intersection over union of every box of `a` with every one of `b`."""
    inside: Any = 1.0
    for low, high in ((0, 2), (1, 3)):
        end = _C.ops.minimum(a[:, high, None], b[:, high])
        inside = inside * end.sub_(_C.ops.maximum(a[:, low, None], b[:, low])).clamp_(min=0)
    areas = [(x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1]) for x in (a, b)]
    return inside / (areas[0][:, None] + areas[1] - inside)


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices of the boxes that no kept box with a higher score overlaps, by falling score.

    Within a block of boxes the answer is the fixed point of "kept unless a kept one before overlaps it", which is
    reached after as many steps as the longest chain of boxes that decide over each other.
    """
    if dets.dim() != 2 or dets.shape[1] != 4:
        raise RuntimeError(f"boxes should be a 2d tensor with 4 columns, got shape {tuple(dets.shape)}")
    if scores.dim() != 1 or scores.shape[0] != dets.shape[0]:
        raise RuntimeError(
            "boxes and scores should have same number of elements in dimension 0, got "
            f"{dets.shape[0]} and {tuple(scores.shape)}"
        )
    wide = dets.float() if dets.dtype in (_C.float16, _C.bfloat16) else dets
    order = scores.sort(descending=True, stable=True)[1]
    boxes = wide[order]
    kept = order[:0]
    for start in range(0, len(order), _BLOCK):
        block = boxes[start : start + _BLOCK]
        alive = ~(_overlap(boxes[kept], block) > iou_threshold).any(0)
        over = (_overlap(block, block) > iou_threshold).tril(-1).to(_C.float32)  # row i: who overlaps box i
        now = alive
        while not (then := alive & (over @ now.to(_C.float32) == 0)).equal(now):
            now = then
        kept = _C.ops.cat([kept, now.nonzero()[:, 0] + start])
    return order[kept]


# --- samples ---


def _table(input: Tensor) -> Tensor:
    """A picture (N, C, H, W) as rows of C numbers, one for each place."""
    return input.permute(0, 2, 3, 1).reshape(-1, input.shape[1])


def _corner(at: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """The two places along an axis around each coordinate inside, and how far it is from the first."""
    at = at.clamp(min=0)
    low = at.floor().clamp(max=size - 1)
    high = (low + 1).clamp(max=size - 1)
    return low.long(), high.long(), (at - low).clamp(max=1) * (low < size - 1)


class _Bags:
    """Places and weights: sample i is the sum over j of weights[i, j] times row places[i, j]."""

    def __init__(self, places: Tensor, weights: Tensor) -> None:
        self.places, self.weights = places, weights

    def of(self, table: Tensor) -> Tensor:
        """The samples of a table."""
        weights = self.weights.to(table.dtype)
        return _C.ops.embedding_bag(
            table, self.places.flatten(), _C.ops.arange(len(self.places) + 1) * self.places.shape[1],
            mode=0, per_sample_weights=weights.flatten(), include_last_offset=True,
        )[0] if len(self.places) else table[:0]  # fmt: skip

    def back(self, grad: Tensor, rows: int) -> Tensor:
        """The gradient of the table."""
        table = grad.new_zeros(rows, grad.shape[1])
        step = max(1, _CHUNK // max(1, self.places.shape[1] * grad.shape[1]))
        for start in range(0, len(grad), step):
            part = slice(start, start + step)
            spread = self.weights[part].to(grad.dtype)[:, :, None] * grad[part][:, None]
            table.index_add_(0, self.places[part].flatten(), spread.flatten(0, 1))
        return table


def _grid(start: Tensor, size: Tensor, bins: int, ratio: int) -> tuple[Tensor, Tensor]:
    """Coordinates (K, bins, samples) along an axis, and the share of each sample in its bin."""
    step = size / bins
    count = step.ceil().clamp(min=0) if ratio <= 0 else _C.ops.full_like(step, float(ratio))
    most = int(count.max()) if len(count) else 0
    index = _C.ops.arange(most, dtype=step.dtype, device=step.device)
    inner = (index + 0.5) * (step / count.clamp(min=1))[:, None]
    places = _C.ops.arange(bins, dtype=step.dtype, device=step.device)
    at = start[:, None, None] + places[None, :, None] * step[:, None, None] + inner[:, None, :]
    share = (index < count[:, None]) / count.clamp(min=1)[:, None]
    return at, share[:, None, :].expand_as(at)


def _aligned_bags(first: Tensor, y: Any, x: Any, shape: tuple[int, int]) -> _Bags:
    """Bags of samples on a grid: `first` is the row of the table at which each bin's picture begins, (K, PH, PW)."""
    sides = []
    for (at, share), size in zip((y, x), shape, strict=True):
        inside = (at >= -1) & (at <= size)
        low, high, part = _corner(at, size)
        share = share * inside
        places, weights = [low, high], [share * (1 - part), share * part]
        sides.append((_C.ops.stack(places, -1).flatten(2), _C.ops.stack(weights, -1).flatten(2)))
    (rows, down), (columns, across) = sides
    places = rows[:, :, None, :, None] * shape[1] + columns[:, None, :, None, :] + first[..., None, None]
    weights = down[:, :, None, :, None] * across[:, None, :, None, :]
    count = first.numel()
    return (
        _Bags(places.reshape(count, -1), weights.reshape(count, -1))
        if count
        else _Bags(first.reshape(0, 1), down.reshape(0, 1))
    )


def _regions(rois: Tensor, scale: float, offset: float) -> list[Tensor]:
    """Index of the picture, and left, top, right and bottom of regions."""
    if rois.dim() != 2 or rois.shape[1] != 5:
        raise RuntimeError(f"rois must have shape as Tensor[K, 5], got {tuple(rois.shape)}")
    wide = rois.float() if rois.dtype in (_C.float16, _C.bfloat16) else rois
    return [wide[:, 0].long(), *(wide[:, 1:] * scale - offset).unbind(1)]


def _align(rois: Tensor, scale: float, bins: Any, shape: Any, ratio: int, aligned: bool) -> _Bags:
    index, left, top, right, bottom = _regions(rois, scale, 0.5 if aligned else 0.0)
    height, width = bottom - top, right - left
    if not aligned:
        height, width = height.clamp(min=1), width.clamp(min=1)
    first = (index * (shape[0] * shape[1]))[:, None, None].expand(-1, *bins)
    return _aligned_bags(first, _grid(top, height, bins[0], ratio), _grid(left, width, bins[1], ratio), shape)


def _same_dtype(input: Tensor, rois: Tensor) -> None:
    if input.dtype != rois.dtype:
        raise RuntimeError(
            "Expected tensor for input to have the same type as tensor for rois; but type "
            f"{input.dtype} does not equal {rois.dtype}"
        )


def roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    sampling_ratio: int, aligned: bool,
) -> Tensor:  # fmt: skip
    """Means of samples on a grid in every bin of every region: (K, C, pooled_height, pooled_width)."""
    _same_dtype(input, rois)
    bins = (pooled_height, pooled_width)
    bags = _align(rois, spatial_scale, bins, tuple(input.shape[2:]), sampling_ratio, aligned)
    return bags.of(_table(input)).view(len(rois), *bins, input.shape[1]).permute(0, 3, 1, 2).contiguous()


def _roi_align_backward(
    grad: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, batch_size: int,
    channels: int, height: int, width: int, sampling_ratio: int, aligned: bool,
) -> Tensor:  # fmt: skip
    bags = _align(
        rois, spatial_scale, (pooled_height, pooled_width), (height, width), sampling_ratio, aligned
    )
    rows = bags.back(grad.permute(0, 2, 3, 1).reshape(-1, channels), batch_size * height * width)
    return rows.view(batch_size, height, width, channels).permute(0, 3, 1, 2).contiguous()


# --- position-sensitive regions: every bin has channels of its own ---


def _by_bin(input: Tensor, bins: tuple[int, int]) -> Tensor:
    """(N, C * PH * PW, H, W) as rows of C numbers, ordered by picture, bin and place."""
    n, channels, height, width = input.shape
    each, rest = divmod(channels, bins[0] * bins[1])
    if rest:
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width")
    return input.reshape(n, each, *bins, height, width).permute(0, 2, 3, 4, 5, 1).reshape(-1, each)


def _first_by_bin(index: Tensor, bins: tuple[int, int], places: int) -> Tensor:
    number = _C.ops.arange(bins[0] * bins[1], device=index.device).view(bins)
    return (index[:, None, None] * (bins[0] * bins[1]) + number) * places


def _mapping(count: int, channels: int, bins: tuple[int, int], like: Tensor) -> Tensor:
    numbers = _C.ops.arange(channels * bins[0] * bins[1], dtype=_C.int32, device=like.device)
    return numbers.view(1, channels, *bins).repeat(count, 1, 1, 1)


def _ps_align(rois: Tensor, scale: float, bins: Any, shape: Any, ratio: int) -> _Bags:
    index, left, top, right, bottom = _regions(rois, scale, 0.5)
    first = _first_by_bin(index, bins, shape[0] * shape[1])
    return _aligned_bags(
        first, _grid(top, bottom - top, bins[0], ratio), _grid(left, right - left, bins[1], ratio), shape
    )


def _ps_forward(input: Tensor, bags: _Bags, count: int, bins: tuple[int, int]) -> tuple[Tensor, Tensor]:
    table = _by_bin(input, bins)
    found = bags.of(table).view(count, *bins, table.shape[1]).permute(0, 3, 1, 2).contiguous()
    return found, _mapping(count, table.shape[1], bins, input)


def _ps_backward(
    grad: Tensor, bags: _Bags, bins: tuple[int, int], shape: tuple[int, int, int, int]
) -> Tensor:
    n, channels, height, width = shape
    each = channels // (bins[0] * bins[1])
    rows = bags.back(grad.permute(0, 2, 3, 1).reshape(-1, each), n * bins[0] * bins[1] * height * width)
    return rows.view(n, *bins, height, width, each).permute(0, 5, 1, 2, 3, 4).reshape(shape)


def ps_roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Tensor, Tensor]:
    """`roi_align` in which every bin has channels of its own, and the channel of every result."""
    _same_dtype(input, rois)
    bins = (pooled_height, pooled_width)
    bags = _ps_align(rois, spatial_scale, bins, tuple(input.shape[2:]), sampling_ratio)
    return _ps_forward(input, bags, len(rois), bins)


def _ps_roi_align_backward(
    grad: Tensor, rois: Tensor, channel_mapping: Tensor, spatial_scale: float, pooled_height: int,
    pooled_width: int, sampling_ratio: int, batch_size: int, channels: int, height: int, width: int,
) -> Tensor:  # fmt: skip
    bins = (pooled_height, pooled_width)
    bags = _ps_align(rois, spatial_scale, bins, (height, width), sampling_ratio)
    return _ps_backward(grad, bags, bins, (batch_size, channels, height, width))


def _bounds(start: Tensor, size: Tensor, bins: int, limit: int) -> tuple[Tensor, Tensor]:
    """The first place of every bin along an axis and the one after its last, (K, bins)."""
    number = _C.ops.arange(bins, dtype=size.dtype, device=size.device)
    step = (size / bins)[:, None]
    low = (number * step).floor() + start[:, None]
    high = ((number + 1) * step).ceil() + start[:, None]
    return low.clamp(0, limit).long(), high.clamp(0, limit).long()


def _span(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Places (K, bins, most) from `low` on, and which of them lie before `high`."""
    most = max(1, int((high - low).max())) if low.numel() else 1
    places = low[..., None] + _C.ops.arange(most, device=low.device)
    return places, places < high[..., None]


def _ps_pool(rois: Tensor, scale: float, bins: Any, shape: Any) -> _Bags:
    index, *sides = _regions(rois, 1.0, 0.0)
    left, top, right, bottom = ((side * scale).round() for side in sides)
    first = _first_by_bin(index, bins, shape[0] * shape[1])
    parts = []
    for start, end, count, size in ((top, bottom, bins[0], shape[0]), (left, right, bins[1], shape[1])):
        places, inside = _span(*_bounds(start, (end - start).clamp(min=1), count, size - 1))
        share = inside / inside.sum(-1, keepdim=True).clamp(min=1)
        parts.append((places.clamp(max=size - 1), share))
    (rows, down), (columns, across) = parts
    places = rows[:, :, None, :, None] * shape[1] + columns[:, None, :, None, :] + first[..., None, None]
    weights = (down[:, :, None, :, None] * across[:, None, :, None, :]).to(rois.dtype)
    return _Bags(places.flatten(0, 2).flatten(1), weights.flatten(0, 2).flatten(1))


def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """Means over bins of regions in which every bin has channels of its own, and the channel of every result."""
    _same_dtype(input, rois)
    bins = (pooled_height, pooled_width)
    bags = _ps_pool(rois, spatial_scale, bins, tuple(input.shape[2:]))
    return _ps_forward(input, bags, len(rois), bins)


def _ps_roi_pool_backward(
    grad: Tensor, rois: Tensor, channel_mapping: Tensor, spatial_scale: float, pooled_height: int,
    pooled_width: int, batch_size: int, channels: int, height: int, width: int,
) -> Tensor:  # fmt: skip
    bins = (pooled_height, pooled_width)
    bags = _ps_pool(rois, spatial_scale, bins, (height, width))
    return _ps_backward(grad, bags, bins, (batch_size, channels, height, width))


# --- largest numbers of regions ---


def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The largest number of every bin of every region, 0 where a bin is empty, and its place, then -1."""
    _same_dtype(input, rois)
    _, channels, height, width = input.shape
    index, *sides = _regions(rois, 1.0, 0.0)
    left, top, right, bottom = ((side * spatial_scale).round() for side in sides)
    rows, down = _span(*_bounds(top, (bottom - top + 1).clamp(min=1), pooled_height, height))
    columns, across = _span(*_bounds(left, (right - left + 1).clamp(min=1), pooled_width, width))
    rows, columns = rows.clamp(max=height - 1), columns.clamp(max=width - 1)
    places = (rows[:, :, None, :, None] * width + columns[:, None, :, None, :]).flatten(3)
    inside = (down[:, :, None, :, None] & across[:, None, :, None, :]).flatten(3)
    table, found, best = input.flatten(2), [], []
    step = max(1, _CHUNK // max(1, channels * places[:1].numel()))
    for start in range(0, len(rois), step):
        part = slice(start, start + step)
        at = places[part].flatten(1)[:, None].expand(-1, channels, -1)
        values = table[index[part]].gather(2, at).view(-1, channels, *places.shape[1:])
        values = values.masked_fill(~inside[part][:, None], float("-inf"))
        largest, which = values.max(-1)
        empty = ~inside[part].any(-1)[:, None]
        where = places[part][:, None].expand_as(values).gather(-1, which[..., None])[..., 0]
        found.append(largest.masked_fill(empty, 0.0))
        best.append(where.masked_fill(empty, -1).int())
    if not found:
        shape = (0, channels, pooled_height, pooled_width)
        return input.new_zeros(shape), input.new_zeros(shape, dtype=_C.int32)
    return _C.ops.cat(found), _C.ops.cat(best)


def _roi_pool_backward(
    grad: Tensor, rois: Tensor, argmax: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    batch_size: int, channels: int, height: int, width: int,
) -> Tensor:  # fmt: skip
    index = rois[:, 0].long()[:, None, None, None]
    channel = _C.ops.arange(channels, device=grad.device)[:, None, None]
    inside = argmax >= 0
    places = (index * channels + channel) * (height * width) + argmax.clamp(min=0)
    made = grad.new_zeros(batch_size * channels * height * width)
    made.index_add_(0, places.flatten(), (grad * inside).flatten())
    return made.view(batch_size, channels, height, width)


# --- deformable convolution ---


class _Deformed:
    """The samples of a deformable convolution: rows (N, G, K, P), of C / G numbers each.

    K runs over the kernel, P over places of the result, G over groups of channels with offsets of their own.
    """

    def __init__(
        self, input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, steps: tuple[int, ...]
    ) -> None:
        stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, self.groups, self.shares, use_mask = steps
        self.input, self.weight = input, weight
        n, _, self.height, self.width = input.shape
        kernel_h, kernel_w = weight.shape[2:]
        self.kernel = kernel_h * kernel_w
        self.out = tuple(offset.shape[2:])
        self.count = math.prod(self.out)
        y, x = offset.reshape(n, self.shares, self.kernel, 2, self.count).unbind(3)
        number = _C.ops.arange(self.kernel, device=input.device)
        rows, columns = (_C.ops.arange(size, device=input.device) for size in self.out)
        down = (rows * stride_h - pad_h)[:, None].expand(self.out).flatten()
        across = (columns * stride_w - pad_w)[None].expand(self.out).flatten()
        self.y = y + (number // kernel_w * dilation_h)[:, None] + down
        self.x = x + (number % kernel_w * dilation_w)[:, None] + across
        self.mask = mask.reshape(n, self.shares, self.kernel, self.count) if use_mask else None
        self._find()

    def _find(self) -> None:
        n, height, width = len(self.input), self.height, self.width
        inside = (self.y > -1) & (self.y < height) & (self.x > -1) & (self.x < width)
        top, left = self.y.floor(), self.x.floor()
        self.ly, self.lx = self.y - top, self.x - left
        first = _C.ops.arange(n * self.shares, device=self.y.device).view(n, self.shares, 1, 1) * (
            height * width
        )
        places, known = [], []
        for dy, dx in ((0, 0), (0, 1), (1, 0), (1, 1)):
            row, column = top + dy, left + dx
            there = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
            flat = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
            places.append(flat.long() + first)
            known.append(there)
        self.known = _C.ops.stack(known, -1).to(self.y.dtype)
        self.places = _C.ops.stack(places, -1)
        hy, hx = 1 - self.ly, 1 - self.lx
        corners = _C.ops.stack([hy * hx, hy * self.lx, self.ly * hx, self.ly * self.lx], -1)
        self.bags = _Bags(self.places.flatten(0, 3), (corners * self.known).flatten(0, 3))
        channels = self.input.shape[1] // self.shares
        self.table = (
            self.input.reshape(n, self.shares, channels, height * width).transpose(2, 3).reshape(-1, channels)
        )
        self.samples = self.bags.of(self.table).view(*self.y.shape, channels)

    def columns(self) -> Tensor:
        """(N, groups, C / groups * K, P): what the weights are multiplied with."""
        taken = self.samples if self.mask is None else self.samples * self.mask[..., None]
        n, shares, kernel, places, channels = taken.shape
        rows = shares * channels // self.groups * kernel
        return taken.permute(0, 1, 4, 2, 3).reshape(n, self.groups, rows, places)

    def grads(self, grad: Tensor) -> tuple[Tensor, ...]:
        """Gradients of input, weight, offset, mask and bias."""
        n, channels = self.input.shape[:2]
        weight = self.weight.reshape(self.groups, -1, self.weight[0].numel())
        wide = grad.reshape(n, self.groups, weight.shape[1], self.count)
        by_weight = (wide @ self.columns().transpose(2, 3)).sum(0).view(self.weight.shape)
        each = channels // self.shares
        by_column = (
            (weight.transpose(1, 2) @ wide)
            .view(n, self.shares, each, self.kernel, self.count)
            .permute(0, 1, 3, 4, 2)
        )
        by_mask = (by_column * self.samples).sum(-1)
        if self.mask is not None:
            by_column = by_column * self.mask[..., None]
        flat = by_column.reshape(-1, each)
        rows = self.bags.back(flat, len(self.table))
        by_input = (
            rows.view(n, self.shares, self.height * self.width, each)
            .transpose(2, 3)
            .reshape(self.input.shape)
        )
        by_offset = self._by_offset(flat)
        shape = (n, self.shares * self.kernel, *self.out)
        masked = by_mask.reshape(shape) if self.mask is not None else by_mask.new_zeros(n, 1)
        return by_input, by_weight, by_offset, masked, grad.sum((0, 2, 3))

    def _by_offset(self, flat: Tensor) -> Tensor:
        corners = []
        step = max(1, _CHUNK // max(1, 4 * flat.shape[1]))
        places = self.bags.places
        for start in range(0, max(1, len(flat)), step):
            part = slice(start, start + step)
            corners.append((self.table[places[part]] * flat[part][:, None]).sum(-1))
        a, b, c, d = (_C.ops.cat(corners).view(self.places.shape) * self.known).unbind(-1)
        hy, hx = 1 - self.ly, 1 - self.lx
        by_y = (c - a) * hx + (d - b) * self.lx
        by_x = (b - a) * hy + (d - c) * self.ly
        n = len(self.input)
        return _C.ops.stack([by_y, by_x], 3).reshape(n, 2 * self.shares * self.kernel, *self.out)


def deform_conv2d(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *steps: Any
) -> Tensor:
    """A convolution whose samples are moved by `offset` and multiplied by `mask`."""
    found = _Deformed(input, weight, offset, mask, steps)
    groups = found.groups
    made = weight.reshape(groups, -1, weight[0].numel()) @ found.columns()
    return made.reshape(len(input), len(weight), *found.out) + bias[:, None, None]


def _deform_conv2d_backward(
    grad: Tensor, input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *steps: Any
) -> tuple[Tensor, ...]:
    return _Deformed(input, weight, offset, mask, steps).grads(grad)


# --- quantized numbers ---


def qnms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """`nms` of the whole numbers behind quantized boxes: neither scale nor zero point changes what overlaps."""
    return nms(dets.float(), scores.float(), iou_threshold)


def qroi_align(
    input: Tensor, rois: Tensor, input_scale: float, input_zero_point: int, rois_scale: float, rois_zero_point: int,
    spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int, aligned: bool,
) -> Tensor:  # fmt: skip
    """`roi_align` of the whole numbers behind quantized tensors, rounded into the input's dtype and scale."""
    if len(input) != 1:
        raise RuntimeError(
            "Only one image per batch is allowed in roi_align when quantized tensors are passed, got "
            f"{len(input)} images"
        )
    picture = (input.float() - input_zero_point) * input_scale
    regions = (rois.float() - rois_zero_point) * rois_scale
    made = roi_align(
        picture, regions, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned
    )  # fmt: skip
    limits = iinfo(input.dtype)
    return (made / input_scale).round_().add_(input_zero_point).clamp_(limits.min, limits.max).to(input.dtype)


# --- their names ---

_OPERATORS = {
    nms: "Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    roi_align: f"Tensor input, {_REGIONS}, int sampling_ratio, bool aligned) -> Tensor",
    _roi_align_backward: f"Tensor grad, {_REGIONS}, {_SHAPE}, int sampling_ratio, bool aligned) -> Tensor",
    roi_pool: f"Tensor input, {_REGIONS}) -> (Tensor, Tensor)",
    _roi_pool_backward: f"Tensor grad, {_REGIONS.replace(', ', ', Tensor argmax, ', 1)}, {_SHAPE}) -> Tensor",
    ps_roi_align: f"Tensor input, {_REGIONS}, int sampling_ratio) -> (Tensor, Tensor)",
    _ps_roi_align_backward: f"Tensor grad, {_MAPPED}, int sampling_ratio, {_SHAPE}) -> Tensor",
    ps_roi_pool: f"Tensor input, {_REGIONS}) -> (Tensor, Tensor)",
    _ps_roi_pool_backward: f"Tensor grad, {_MAPPED}, {_SHAPE}) -> Tensor",
    deform_conv2d: f"{_DEFORMED}, {_STEPS}) -> Tensor",
    _deform_conv2d_backward: f"Tensor grad, {_DEFORMED}, {_STEPS}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    qnms: "Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    qroi_align: (
        "Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, int rois_zero_point, "
        "float spatial_scale, int pooled_height, int pooled_width, int sampling_ratio, bool aligned) -> Tensor"
    ),
}
_library: Library | None = None


def _keep(ctx: Any, inputs: tuple, output: Any) -> None:
    results = output if isinstance(output, (tuple, list)) else ()
    ctx.save_for_backward(inputs[1], *results[1:])
    ctx.shape, ctx.numbers = tuple(inputs[0].shape), inputs[2:]


def _gradients(space: Any) -> dict[str, tuple[Any, Any]]:
    """How arguments are kept, and the gradient, of operators by name."""

    def nothing(grad: Tensor, ctx: Any) -> tuple:
        return grad, *[None] * (1 + len(ctx.numbers))

    def align(ctx: Any, grad: Tensor) -> tuple:
        (rois,) = ctx.saved_tensors
        scale, high, wide, ratio, aligned = ctx.numbers
        return nothing(
            space._roi_align_backward(grad, rois, scale, high, wide, *ctx.shape, ratio, aligned), ctx
        )

    def pool(ctx: Any, grad: Tensor, _: Any) -> tuple:
        return nothing(space._roi_pool_backward(grad, *ctx.saved_tensors, *ctx.numbers, *ctx.shape), ctx)

    def ps_align(ctx: Any, grad: Tensor, _: Any) -> tuple:
        return nothing(space._ps_roi_align_backward(grad, *ctx.saved_tensors, *ctx.numbers, *ctx.shape), ctx)

    def ps_pool(ctx: Any, grad: Tensor, _: Any) -> tuple:
        return nothing(space._ps_roi_pool_backward(grad, *ctx.saved_tensors, *ctx.numbers, *ctx.shape), ctx)

    def keep_all(ctx: Any, inputs: tuple, output: Any) -> None:
        ctx.save_for_backward(*inputs[:5])
        ctx.numbers = inputs[5:]

    def deform(ctx: Any, grad: Tensor) -> tuple:
        made = space._deform_conv2d_backward(grad, *ctx.saved_tensors, *ctx.numbers)
        return *made, *[None] * len(ctx.numbers)

    return {
        "roi_align": (_keep, align),
        "roi_pool": (_keep, pool),
        "ps_roi_align": (_keep, ps_align),
        "ps_roi_pool": (_keep, ps_pool),
        "deform_conv2d": (keep_all, deform),
    }


def _version(name: str) -> Any:
    """Functions that give the version of a device's toolkit that the operators were built with: none was."""
    if not name.endswith("_version"):
        raise AttributeError(f"torchvision has no operator {name!r} here")
    return lambda: -1


def install() -> None:
    """Define them, once."""
    global _library
    if _library is not None:
        return
    _library = Library("torchvision", "DEF")
    for function, signature in _OPERATORS.items():
        _library.define(f"{function.__name__}({signature}")
        _library.impl(function.__name__, function, "CompositeExplicitAutograd")
    space = vars(_C.ops)["torchvision"]
    for name, (keep, gradient) in _gradients(space).items():
        register_autograd(f"torchvision::{name}", gradient, setup_context=keep)
    space.__getattr__ = _version
