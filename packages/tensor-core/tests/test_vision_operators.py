"""The operators of torchvision, beside loops over boxes, bins and samples."""

import itertools
import math

import numpy as np
import pytest

import taeda_tensor_core as tc

pytest.importorskip("taeda_autograd", reason="gradients are another package's")


@pytest.fixture
def ops(tmp_path):
    library = tmp_path / "torchvision" / "_C.so"
    library.parent.mkdir()
    library.write_bytes(b"")
    tc.ops.load_library(library)
    return tc.ops.torchvision


def numbers(*shape, seed=0):
    return tc.from_numpy(np.random.default_rng(seed).standard_normal(shape))


REGIONS = np.array([[0, 1, 1, 6, 5], [1, 0, 0, 12.5, 10.2], [1, -2, -3, 4, 20], [0, 3, 3, 3.2, 3.1]])


def boxes(count, seed=0):
    random = np.random.default_rng(seed)
    low = random.random((count, 2)) * 50
    return np.concatenate([low, low + random.random((count, 2)) * 20], 1), random.random(count)


def one_by_one(at, scores, threshold):
    area, kept, dead = (at[:, 2] - at[:, 0]) * (at[:, 3] - at[:, 1]), [], np.zeros(len(at), bool)
    for i in np.argsort(-scores, kind="stable"):
        if not dead[i]:
            kept.append(i)
            sides = np.minimum(at[i, 2:], at[:, 2:]) - np.maximum(at[i, :2], at[:, :2])
            inside = np.clip(sides, 0, None).prod(1)
            dead |= inside / (area[i] + area - inside) > threshold
    return kept


@pytest.mark.parametrize("count", [0, 1, 40, 1500])
def test_boxes_that_overlap_better_ones_go(ops, count):
    at, scores = boxes(count)
    found = ops.nms(tc.from_numpy(at), tc.from_numpy(scores), 0.4)
    assert found.dtype is tc.int64 and found.tolist() == one_by_one(at, scores, 0.4)


def test_chains_and_equal_scores(ops):
    at = tc.tensor([[i * 4.0, 0.0, i * 4.0 + 10.0, 10.0] for i in range(9)])
    assert ops.nms(at, tc.arange(9, 0, -1).float(), 0.3).tolist() == [0, 2, 4, 6, 8]
    assert ops.nms(at[:1].expand(3, 4), tc.ones(3), 0.5).tolist() == [0]
    with pytest.raises(RuntimeError, match="4 columns"):
        ops.nms(at[:, :3], tc.ones(9), 0.5)
    with pytest.raises(RuntimeError, match="same number of elements"):
        ops.nms(at, tc.ones(8), 0.5)


def between(picture, y, x):
    height, width = picture.shape
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    y, x = max(y, 0.0), max(x, 0.0)
    top, left = min(int(y), height - 1), min(int(x), width - 1)
    down, across = (0.0 if top == height - 1 else y - top), (0.0 if left == width - 1 else x - left)
    low, right = min(top + 1, height - 1), min(left + 1, width - 1)
    return (1 - down) * ((1 - across) * picture[top, left] + across * picture[top, right]) + down * (
        (1 - across) * picture[low, left] + across * picture[low, right]
    )


def mean_of_samples(pictures, regions, bins, scale, ratio, aligned, channel_of):
    channels = channel_of.shape[0]
    found = np.zeros((len(regions), channels, *bins))
    for k, (number, *sides) in enumerate(regions):
        left, top, right, bottom = (side * scale - (0.5 if aligned else 0.0) for side in sides)
        high, wide = bottom - top, right - left
        if not aligned:
            high, wide = max(high, 1.0), max(wide, 1.0)
        high, wide = high / bins[0], wide / bins[1]
        rows, columns = (ratio, ratio) if ratio > 0 else (math.ceil(high), math.ceil(wide))
        for c, i, j in itertools.product(range(channels), range(bins[0]), range(bins[1])):
            picture = pictures[int(number), channel_of[c, i, j]]
            total = sum(
                between(picture, top + (i + (a + 0.5) / rows) * high, left + (j + (b + 0.5) / columns) * wide)
                for a, b in itertools.product(range(rows), range(columns))
            )
            found[k, c, i, j] = total / max(rows * columns, 1)
    return found


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("ratio", [2, -1])
def test_aligned_regions(ops, ratio, aligned):
    x, regions = numbers(2, 3, 11, 13), tc.from_numpy(REGIONS)
    expected = mean_of_samples(
        x.numpy(), REGIONS, (3, 4), 0.7, ratio, aligned, np.arange(3)[:, None, None].repeat(3, 1).repeat(4, 2)
    )
    found = ops.roi_align(x, regions, 0.7, 3, 4, ratio, aligned)
    assert np.allclose(found.numpy(), expected, atol=1e-12)
    assert ops.roi_align(x, regions[:0], 0.7, 3, 4, ratio, aligned).shape == (0, 3, 3, 4)
    with pytest.raises(RuntimeError, match="same type"):
        ops.roi_align(x, regions.float(), 0.7, 3, 4, ratio, aligned)


@pytest.mark.parametrize("ratio", [2, -1])
def test_aligned_regions_with_channels_by_bin(ops, ratio):
    x = numbers(2, 12, 11, 13)
    expected = mean_of_samples(x.numpy(), REGIONS, (2, 3), 0.7, ratio, True, np.arange(12).reshape(2, 2, 3))
    found, channels = ops.ps_roi_align(x, tc.from_numpy(REGIONS), 0.7, 2, 3, ratio)
    assert np.allclose(found.numpy(), expected, atol=1e-12)
    assert channels[1].tolist() == np.arange(12).reshape(2, 2, 3).tolist() and channels.dtype is tc.int32


def bins_of(start, size, count, limit):
    return [
        (
            min(max(math.floor(i * size / count) + start, 0), limit),
            min(max(math.ceil((i + 1) * size / count) + start, 0), limit),
        )
        for i in range(count)
    ]


def rounded(region, scale):
    return [round(side * scale) for side in region[1:]]


def test_largest_of_regions(ops):
    x = numbers(2, 3, 11, 13)
    found, places = ops.roi_pool(x, tc.from_numpy(REGIONS), 0.7, 3, 4)
    for k, region in enumerate(REGIONS):
        left, top, right, bottom = rounded(region, 0.7)
        rows = bins_of(top, max(bottom - top + 1, 1), 3, 11)
        columns = bins_of(left, max(right - left + 1, 1), 4, 13)
        for (i, (a, b)), (j, (c, d)) in itertools.product(enumerate(rows), enumerate(columns)):
            part = x.numpy()[int(region[0]), :, a:b, c:d]
            if part.size:
                assert np.array_equal(found[k, :, i, j].numpy(), part.max((1, 2)))
                flat = x[int(region[0])].flatten(1)
                assert found[k, :, i, j].equal(flat.gather(1, places[k, :, i, j].long()[:, None])[:, 0])
            else:
                assert not found[k, :, i, j].any() and (places[k, :, i, j] == -1).all()


def test_means_of_regions_with_channels_by_bin(ops):
    x = numbers(2, 12, 11, 13)
    found, _ = ops.ps_roi_pool(x, tc.from_numpy(REGIONS), 0.7, 2, 3)
    for k, region in enumerate(REGIONS):
        left, top, right, bottom = rounded(region, 0.7)
        rows, columns = bins_of(top, max(bottom - top, 1), 2, 10), bins_of(left, max(right - left, 1), 3, 12)
        for (i, (a, b)), (j, (c, d)) in itertools.product(enumerate(rows), enumerate(columns)):
            part = x.numpy()[int(region[0]), [i * 3 + j, 6 + i * 3 + j], a:b, c:d]
            expected = part.mean((1, 2)) if part.size else np.zeros(2)
            assert np.allclose(found[k, :, i, j].numpy(), expected)


STEPS = (2, 2, 1, 1, 1, 2)


@pytest.mark.parametrize(("groups", "shares"), [(1, 1), (2, 1), (1, 2), (2, 4)])
def test_deformed_convolutions(ops, groups, shares):
    x, weight, bias = numbers(2, 4, 6, 7), numbers(6, 4 // groups, 3, 2, seed=1), numbers(6, seed=2)
    out = (3, 4)
    straight = tc.zeros(2, 2 * shares * 6, *out, dtype=tc.float64)
    none = tc.zeros(2, 1, dtype=tc.float64)
    found = ops.deform_conv2d(x, weight, straight, none, bias, *STEPS, groups, shares, False)
    assert tc.allclose(found, tc.conv2d(x, weight, bias, 2, 1, (1, 2), groups))
    shifted = straight.clone()
    shifted[:, 1::2] = 1.0  # every sample one column to the right
    moved = tc.cat([x[..., 1:], tc.zeros(2, 4, 6, 1, dtype=tc.float64)], -1)
    found = ops.deform_conv2d(x, weight, shifted, none, bias, *STEPS, groups, shares, False)
    inner = tc.conv2d(moved, weight, bias, 2, 1, (1, 2), groups)
    assert tc.allclose(found[..., 1:], inner[..., 1:])
    turned = shifted.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2)  # in another order of memory
    assert tc.equal(ops.deform_conv2d(x, weight, turned, none, bias, *STEPS, groups, shares, False), found)


@pytest.mark.parametrize("use_mask", [False, True])
def test_deformed_convolutions_of_nothing(ops, use_mask):
    shapes = [(0, 4, 6, 7), (6, 2, 3, 2), (0, 24, 3, 4), (0, 12, 3, 4) if use_mask else (0, 1), (6,)]
    inputs = [numbers(*shape).requires_grad_() for shape in shapes]
    found = ops.deform_conv2d(*inputs, *STEPS, 2, 2, use_mask)
    assert found.shape == (0, 6, 3, 4)
    found.sum().backward()
    assert [x.grad.shape for x in inputs if x.grad is not None][:3] == shapes[:3]
    assert not inputs[1].grad.any()


def test_whole_numbers_of_quantized_tensors(ops):
    at, scores = (np.round(x * scale).astype(np.uint8) for x, scale in zip(boxes(60), (2, 200), strict=True))
    kept = ops.qnms(tc.from_numpy(at), tc.from_numpy(scores), 0.3)
    assert kept.tolist() == ops.nms(tc.from_numpy(at * 1.0), tc.from_numpy(scores * 1.0), 0.3).tolist()
    picture = np.random.default_rng(1).integers(-60, 100, (1, 2, 9, 8))
    regions = np.array([[0, 1, 1, 6, 5], [0, 2, 0, 7, 8]])
    scale, zero = 0.5, 3
    inputs = [tc.from_numpy(x + z).to(tc.int8) for x, z in ((picture, zero), (regions * 4, 1))]
    found = ops.qroi_align(*inputs, scale, zero, 0.25, 1, 1.0, 2, 3, 2, True)
    exact = ops.roi_align(tc.from_numpy(picture * scale), tc.from_numpy(regions * 1.0), 1.0, 2, 3, 2, True)
    assert found.dtype is tc.int8
    assert (found.double() - zero - exact / scale).abs().max() <= 0.5 + 1e-4
    with pytest.raises(RuntimeError, match="Only one image per batch is allowed"):
        ops.qroi_align(inputs[0].expand(2, 2, 9, 8), *inputs[1:], scale, zero, 0.25, 1, 1.0, 2, 3, 2, True)


def test_gradients(ops):
    from taeda_autograd.gradcheck import gradcheck

    regions, x = tc.from_numpy(REGIONS), numbers(2, 2, 7, 8).requires_grad_()
    by_bin = numbers(2, 12, 7, 8).requires_grad_()
    for ratio in (2, -1):
        assert gradcheck(lambda a, r=ratio: ops.roi_align(a, regions, 0.7, 2, 3, r, False), (x,))
        assert gradcheck(lambda a, r=ratio: ops.ps_roi_align(a, regions, 0.7, 2, 3, r)[0], (by_bin,))
    assert gradcheck(lambda a: ops.roi_pool(a, regions, 0.7, 2, 3)[0], (x,))
    assert gradcheck(lambda a: ops.ps_roi_pool(a, regions, 0.7, 2, 3)[0], (by_bin,))
    inputs = [
        numbers(*shape, seed=i)
        for i, shape in enumerate([(1, 4, 4, 4), (2, 2, 2, 2), (1, 16, 3, 3), (1, 8, 3, 3), (2,)])
    ]
    for tensor in inputs:
        tensor.requires_grad_()
    assert gradcheck(lambda *a: ops.deform_conv2d(*a, 1, 1, 0, 0, 1, 1, 2, 2, True), inputs)


def test_lower_precision(ops):
    x, regions = numbers(2, 3, 11, 13).bfloat16(), tc.from_numpy(REGIONS).bfloat16()
    assert ops.roi_align(x, regions, 0.5, 2, 2, 2, True).dtype is tc.bfloat16
    at, scores = boxes(20)
    assert ops.nms(tc.from_numpy(at).half(), tc.from_numpy(scores).half(), 0.4).dtype is tc.int64


def test_other_files_are_refused(tmp_path):
    with pytest.raises(OSError, match=r"load_library: .*_C\.so"):
        tc.ops.load_library(tmp_path / "torchvision" / "_C.so")
