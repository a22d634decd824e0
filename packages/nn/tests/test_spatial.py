"""Layers and functions on images and volumes: what records of operators do not show."""

import math
import warnings

import numpy as np
import pytest

import taeda_nn as nn
from taeda_registry.slots import autograd
from taeda_registry.slots import tensor as tt

F = nn.functional


def wave(*shape):
    """Numbers that are all different."""
    return tt.tensor(np.sin(np.arange(1.0, math.prod(shape) + 1)).reshape(shape).tolist(), dtype=tt.float64)


def same(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(np.array(found.tolist()), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.interpolate(wave(1, 1, 4)), ValueError, "either size or scale_factor"),
        (lambda: F.interpolate(wave(1, 1, 4), 3, 2.0), ValueError, "only one of size or scale_factor"),
        (lambda: F.interpolate(wave(1, 1, 4), (3, 3)), ValueError, "has 2 numbers, expected 1"),
        (lambda: F.interpolate(wave(1, 1, 4), (3.5,)), TypeError, "found \\['float'\\]"),
        (lambda: F.interpolate(wave(1, 1, 4), 3, align_corners=True), ValueError, "align_corners"),
        (
            lambda: F.interpolate(wave(1, 1, 4), 3, mode="bilinear"),
            NotImplementedError,
            "3D input, but mode 'bilinear'",
        ),
        (lambda: F.interpolate(wave(1, 1, 4), 3, mode="cube"), NotImplementedError, "cube"),
        (lambda: F.interpolate(wave(1, 1, 4), 3, antialias=True), ValueError, "Anti-alias"),
        (lambda: F.interpolate(wave(1, 1, 2, 2), 3, mode="lanczos"), ValueError, "Lanczos"),
        (
            lambda: F.interpolate(wave(1, 1, 4), 3, recompute_scale_factor=True),
            ValueError,
            "recompute_scale_factor",
        ),
        (lambda: F.interpolate(wave(1, 1, 4), 0), RuntimeError, "greater than 0"),
        (lambda: F.interpolate([1.0], 2), TypeError, "input"),
        (lambda: F.grid_sample(wave(1, 1, 2, 2), wave(1, 1, 1, 2), "square"), ValueError, "square"),
        (lambda: F.grid_sample(wave(1, 1, 2, 2), wave(1, 1, 1, 2), padding_mode="wrap"), ValueError, "wrap"),
        (lambda: F.affine_grid(wave(1, 2, 2), (1, 1, 2, 2), False), ValueError, "Nx2x3"),
        (lambda: F.affine_grid(wave(1, 2, 3), (1, 1, 2), False), NotImplementedError, "4D and 5D"),
        (lambda: F.affine_grid(wave(1, 2, 3), (1, 1, 0, 2), False), ValueError, "positive output size"),
        (lambda: F.max_unpool2d(wave(1, 2, 2), wave(1, 2, 2), 2, output_size=(9, 4)), ValueError, "dim 0"),
        (
            lambda: F.max_unpool2d(wave(1, 2, 2), wave(1, 2, 2), 2, output_size=(4,)),
            ValueError,
            "2 or 4 elements",
        ),
        (lambda: F.fractional_max_pool2d(wave(1, 4, 4), 2), ValueError, "output_size or an output_ratio"),
        (
            lambda: F.fractional_max_pool3d(wave(4), 2, output_ratio=0.5),
            RuntimeError,
            r"fractional_max_pool3d: argument 'input' has shape \(4,\), expected 4 or 5 dimensions",
        ),
        (
            lambda: F.max_unpool1d(wave(4), wave(4).long(), 2),
            RuntimeError,
            r"max_unpool1d: argument 'input' has shape \(4,\), expected 2 or 3 dimensions",
        ),
        (lambda: nn.FractionalMaxPool2d(2, output_ratio=1.5), ValueError, "between 0 and 1"),
        (lambda: nn.FractionalMaxPool3d(2, output_size=1, output_ratio=0.5), ValueError, "one of them"),
        (lambda: F.embedding_bag(tt.tensor([1]), wave(3, 2)), ValueError, "offsets"),
        (
            lambda: F.embedding_bag(tt.tensor([[1]]), wave(3, 2), tt.tensor([0])),
            ValueError,
            "offsets has to be None",
        ),
        (lambda: F.embedding_bag(tt.tensor([[1]]), wave(3, 2), mode="min"), ValueError, "min"),
        (
            lambda: F.embedding_bag(tt.tensor([[1]]), wave(3, 2), per_sample_weights=wave(1, 1)),
            NotImplementedError,
            "mode='mean'",
        ),
        (lambda: nn.EmbeddingBag(3, 2, padding_idx=5), AssertionError, "out of range"),
        (
            lambda: F.linear_cross_entropy(wave(2, 3), wave(4, 2), tt.tensor([0, 1])),
            RuntimeError,
            "in_features",
        ),
        (lambda: F.triplet_margin_with_distance_loss(*[wave(2, 2)] * 3, margin=-1), ValueError, "margin"),
        (lambda: F.ctc_loss(wave(2, 1, 3), tt.tensor([[1]]), [2], [1], reduction="most"), ValueError, "most"),
    ],
)
def test_wrong_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_scale_factors_are_kept_unless_recomputed():
    x = wave(1, 1, 10)
    kept = F.interpolate(x, scale_factor=1.25, mode="linear")
    again = F.interpolate(x, scale_factor=1.25, mode="linear", recompute_scale_factor=True)
    assert kept.shape == again.shape == (1, 1, 12)
    places = (np.arange(12) + 0.5) / 1.25 - 0.5
    same(kept[0, 0], np.interp(places, np.arange(10), np.array(x[0, 0].tolist())))
    assert not np.allclose(kept.tolist(), again.tolist())
    same(again, np.array(F.interpolate(x, 12, mode="linear").tolist()))


@pytest.mark.parametrize("size", [45, 60, 77, 200])
@pytest.mark.parametrize("aligned", [False, True])
def test_long_lines(size, aligned):
    x = (tt.arange(40) * 0.37).sin().reshape(1, 1, 40)
    steps = np.arange(size, dtype=np.float64)
    places = steps * 39 / (size - 1) if aligned else (steps + 0.5) * 40 / size - 0.5
    found = F.interpolate(x, size, mode="linear", align_corners=aligned)
    np.testing.assert_allclose(
        found[0, 0].tolist(), np.interp(places, np.arange(40), x[0, 0].tolist()), atol=1e-5
    )
    planes = F.interpolate(x[..., None].expand(1, 1, 40, 3), (size, 3), mode="bicubic", align_corners=aligned)
    lines = F.interpolate(x[:, :, None].expand(1, 1, 3, 40), (3, size), mode="bicubic", align_corners=aligned)
    np.testing.assert_allclose(lines[0, 0, 1].tolist(), planes[0, 0, :, 1].tolist(), atol=1e-6)


def test_upsampling_layers_and_their_names():
    x = wave(1, 2, 3, 3)
    same(nn.Upsample(scale_factor=2)(x), np.repeat(np.repeat(np.array(x.tolist()), 2, 2), 2, 3))
    same(nn.UpsamplingNearest2d(scale_factor=2)(x), np.array(nn.Upsample(scale_factor=2)(x).tolist()))
    found = nn.UpsamplingBilinear2d(size=(5, 5))(x)
    same(found[..., ::2, ::2], np.array(x.tolist()))
    assert repr(nn.Upsample(scale_factor=2)) == "Upsample(scale_factor=2.0, mode='nearest')"
    assert repr(nn.UpsamplingBilinear2d(size=(5, 5))) == "UpsamplingBilinear2d(size=(5, 5), mode='bilinear')"
    with pytest.warns(UserWarning, match="deprecated"):
        same(F.upsample(x, scale_factor=2), np.array(nn.Upsample(scale_factor=2)(x).tolist()))


def test_area_is_the_mean_of_parts():
    x = wave(1, 2, 4, 6)
    same(F.interpolate(x, (2, 3), mode="area"), np.array(F.adaptive_avg_pool2d(x, (2, 3)).tolist()))


def test_grids_of_the_identity_give_the_image_back():
    x = wave(2, 3, 4, 5)
    theta = tt.tensor([[[1.0, 0, 0], [0, 1, 0]]] * 2, dtype=tt.float64)
    for aligned in (False, True):
        grid = F.affine_grid(theta, x.shape, align_corners=aligned)
        for mode in ("bilinear", "nearest", "bicubic"):
            same(F.grid_sample(x, grid, mode, align_corners=aligned), np.array(x.tolist()))
    with pytest.warns(UserWarning, match="align_corners"):
        F.affine_grid(theta, x.shape)


def test_folding_counts_how_often_an_element_was_in_a_window():
    x = wave(1, 2, 4, 4)
    ones = F.fold(F.unfold(tt.ones(1, 1, 4, 4, dtype=tt.float64), 3, padding=1), 4, 3, padding=1)
    summed = nn.Fold(4, 3, padding=1)(nn.Unfold(3, padding=1)(x))
    same(summed, np.array((x * ones).tolist()))
    assert repr(nn.Fold(4, 3)) == "Fold(output_size=4, kernel_size=3, dilation=1, padding=0, stride=1)"
    assert repr(nn.Unfold(3)) == "Unfold(kernel_size=3, dilation=1, padding=0, stride=1)"


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_unpooling_puts_maxima_back(rank):
    x = wave(2, 2, *(4,) * rank)
    pool, unpool = getattr(nn, f"MaxPool{rank}d"), getattr(nn, f"MaxUnpool{rank}d")
    values, places = pool(2, return_indices=True)(x)
    back = unpool(2)(values, places)
    assert back.shape == x.shape
    again, where = pool(2, return_indices=True)(back.abs())
    same(back.abs().sum(), values.abs().sum().item())
    assert (again.reshape(-1).tolist(), where.tolist()) == (
        values.abs().reshape(-1).tolist(),
        places.tolist(),
    )


def test_embedding_bags_agree_with_their_rows():
    table = nn.EmbeddingBag(6, 3, mode="sum", dtype=tt.float64)
    indices, offsets = tt.tensor([1, 2, 4, 5, 4, 3]), tt.tensor([0, 2, 2])
    rows = np.array(table.weight.tolist())[indices.tolist()]
    same(table(indices, offsets), [rows[:2].sum(0), np.zeros(3), rows[2:].sum(0)])
    same(table(indices.reshape(3, 2)), rows.reshape(3, 2, 3).sum(1))
    mean = nn.EmbeddingBag.from_pretrained(table.weight.detach(), mode="mean")
    same(mean(indices, offsets)[2], rows[2:].mean(0))
    assert not mean.weight.requires_grad
    assert repr(mean) == "EmbeddingBag(6, 3, mode='mean')"


def test_the_gradient_of_ctc_is_that_of_a_log_softmax():
    scores = wave(6, 2, 4).requires_grad_()
    targets = tt.tensor([[1, 2, 2], [3, 1, 0]])

    def loss(x):
        return nn.CTCLoss(reduction="sum")(x.log_softmax(2), targets, (6, 5), (3, 2))

    loss(scores).backward()
    step, base = 1e-6, np.array(scores.tolist())
    for place in np.ndindex(*base.shape):
        moved = base.copy()
        moved[place] += step
        above = loss(tt.tensor(moved.tolist(), dtype=tt.float64)).item()
        moved[place] -= 2 * step
        below = loss(tt.tensor(moved.tolist(), dtype=tt.float64)).item()
        assert abs((above - below) / (2 * step) - scores.grad[place].item()) < 1e-7


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("dtype", [tt.int16, tt.uint8, tt.float32, tt.bfloat16, tt.float64])
def test_targets_of_ctc_come_in_any_real_dtype(dtype, joined):
    scores = wave(6, 2, 4).log_softmax(2)
    targets = tt.tensor([1, 2, 2, 3, 1]) if joined else tt.tensor([[1, 2, 2], [3, 1, 0]])
    expected = F.ctc_loss(scores, targets, (6, 5), (3, 2), reduction="none")
    assert expected.min().item() > 0
    for inputs, lengths in (((6, 5), (3, 2)), (tt.tensor([6, 5]), tt.tensor([3, 2]))):
        found = F.ctc_loss(scores, targets.to(dtype), inputs, lengths, reduction="none")
        assert found.tolist() == expected.tolist()
    with pytest.raises(RuntimeError, match="'targets' has dtype complex64"):
        F.ctc_loss(scores, targets.to(tt.complex64), (6, 5), (3, 2))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_linear_cross_entropy_in_pieces(reduction, weighted):
    class Options:
        batch_chunk_size = 3

    target = tt.tensor([0, 4, 2, 1, -100, 3, 3, 0])
    classes = wave(5).abs() if weighted else None
    found = []
    for options in (None, Options()):
        leaves = [t.detach().requires_grad_() for t in (wave(8, 4), wave(5, 4), wave(5))]
        x, w, b = leaves
        loss = F.linear_cross_entropy(
            x, w, target, linear_bias=b, weight=classes, reduction=reduction, options=options
        )
        gradients = autograd.grad((loss * wave(*loss.shape)).sum() if loss.dim() else loss, leaves)
        found.append([loss.detach(), *gradients])
    for whole, pieces in zip(*found, strict=True):
        same(pieces, np.array(whole.tolist()))


def test_linear_cross_entropy_of_several_places():
    x, w, target = wave(3, 2), wave(4, 5, 2), tt.tensor([[0, 1, 2, 3, 0]] * 3)
    scores = np.einsum("nf,cdf->ncd", np.array(x.tolist()), np.array(w.tolist()))
    expected = F.cross_entropy(tt.tensor(scores.tolist(), dtype=tt.float64), target)
    same(F.linear_cross_entropy(x, w, target), expected.item())


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_classes_of_convolutions_stand_next_to_their_base(rank):
    from taeda_nn.modules import conv

    plain, back = getattr(nn, f"Conv{rank}d"), getattr(nn, f"ConvTranspose{rank}d")
    assert plain.__bases__ == (conv._ConvNd,) and back.__bases__ == (conv._ConvTransposeNd,)
    assert plain(1, 2, 3).kernel_size == (3,) * rank == back(1, 2, 3).kernel_size


def test_a_layer_of_volumes():
    layer = nn.Conv3d(2, 3, 2, padding="same", dtype=tt.float64)
    assert layer(wave(1, 2, 3, 4, 5)).shape == (1, 3, 3, 4, 5)
    assert set(layer.state_dict()) == {"weight", "bias"}
    assert repr(nn.Conv3d(2, 3, 2)) == "Conv3d(2, 3, kernel_size=(2, 2, 2), stride=(1, 1, 1))"
    back = nn.ConvTranspose3d(3, 2, 2, stride=2, dtype=tt.float64)
    assert back(wave(1, 3, 2, 2, 2), output_size=(5, 4, 4)).shape == (1, 2, 5, 4, 4)
    planes = wave(1, 3, 2, 2, 2), (5, 4)  # as layers ask that are given other settings than their own
    settings = {
        "stride": (3, 2),
        "padding": (0, 1),
        "kernel_size": (2, 3),
        "dilation": (1, 1),
        "num_spatial_dims": 2,
    }
    assert tuple(back._output_padding(*planes, **settings)) == (0, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert nn.LPPool3d(2, 2)(wave(1, 1, 2, 2, 2)).shape == (1, 1, 1, 1, 1)
    same(nn.LPPool3d(2, 2)(wave(1, 1, 2, 2, 2)).reshape(()), (wave(8) ** 2).sum().sqrt().item())
    same(nn.LPPool2d(math.inf, 2)(wave(1, 1, 2, 2)).reshape(()), wave(4).abs().max().item())


@pytest.mark.parametrize("layout", ["contiguous_format", "channels_last"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_many_channels_are_sampled_as_each_by_itself(mode, padding, layout):
    tt.manual_seed(4)
    x, grid = tt.randn(2, 37, 9, 11), tt.rand(2, 17, 20, 2) * 2.6 - 1.3
    grid[0, 0, 0, 0], grid[1, 2, 3, 1] = float("nan"), float("inf")
    given = x.contiguous(memory_format=getattr(tt, layout))
    found = F.grid_sample(given, grid, mode, padding, align_corners=False)
    each = [F.grid_sample(x[:, c : c + 1], grid, mode, padding, align_corners=False) for c in range(37)]
    assert found.is_contiguous()
    assert np.array_equal(found.numpy(), tt.cat(each, 1).numpy(), equal_nan=True)


PARTS = {"cut": np.s_[..., 2:-2, 2:-2], "strided": np.s_[..., ::2, ::2], "rows": np.s_[..., 2:-2, :]}
OF_IMAGES = {
    "bilinear": lambda x: F.interpolate(x, size=(7, 9), mode="bilinear"),
    "nearest": lambda x: F.interpolate(x, size=(7, 9)),
    "antialias": lambda x: F.interpolate(x, size=(4, 5), mode="bicubic", antialias=True),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 3),
    "pad": lambda x: F.pad(x, (1, 2, 0, 1)),
    "reflect": lambda x: F.pad(x, (1, 2, 0, 1), mode="reflect"),
    "replicate": lambda x: F.pad(x, (1, 2, 0, 1), mode="replicate"),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 3),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "group_norm": lambda x: F.group_norm(x, 2),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", OF_IMAGES)
def test_of_parts_of_images_with_channels_last_results_are_so_too(name, part):
    whole = tt.rand(2, 6, 20, 20).contiguous(memory_format=tt.channels_last)
    x = whole[PARTS[part]]
    result, expected = OF_IMAGES[name](x), OF_IMAGES[name](x.contiguous())
    assert result.is_contiguous(memory_format=tt.channels_last) and not result.is_contiguous()
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [6, 80])
def test_images_that_go_round_are_row_by_row(size):
    whole = tt.rand(2, 3, size, size)
    result = F.pad(whole.contiguous(memory_format=tt.channels_last), (1, 2, 0, 1), mode="circular")
    assert result.is_contiguous()
    same(result, F.pad(whole, (1, 2, 0, 1), mode="circular").numpy())


@pytest.mark.parametrize("mode", ["nearest", "trilinear"])
def test_resized_volumes_keep_their_channels_last(mode):
    x = tt.rand(1, 3, 4, 6, 6).contiguous(memory_format=tt.channels_last_3d)
    for part in (x, x[..., ::2, :]):
        result = F.interpolate(part, size=(3, 4, 5), mode=mode)
        assert result.is_contiguous(memory_format=tt.channels_last_3d)
        expected = F.interpolate(part.contiguous(), size=(3, 4, 5), mode=mode)
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-4, atol=1e-6)


OF_VOLUMES = {
    "max_pool3d": lambda x: F.max_pool3d(x, 3, 2),
    "max_pool3d_with_indices": lambda x: F.max_pool3d(x, 3, 2, return_indices=True),
    "avg_pool3d": lambda x: F.avg_pool3d(x, 2),
    "lp_pool3d": lambda x: F.lp_pool3d(x, 2, 2),
    "adaptive_avg_pool3d": lambda x: F.adaptive_avg_pool3d(x, 2),
    "adaptive_max_pool3d": lambda x: F.adaptive_max_pool3d(x, 2, return_indices=True),
}


@pytest.mark.parametrize("name", OF_VOLUMES)
def test_pooled_volumes_can_be_viewed(name):
    """Row by row, as `x.view(x.size(0), -1)` needs behind pooling; maxima keep channels that lie last."""
    x = tt.rand(2, 3, 6, 7, 8)
    for part in (x, x[0], x[:, ::2], x.clone().requires_grad_()):
        results = OF_VOLUMES[name](part)
        for result in results if isinstance(results, tuple) else (results,):
            assert result.is_contiguous()
            assert result.view(result.size(0), -1).tolist() == result.flatten(1).tolist()
    last = OF_VOLUMES[name](x.contiguous(memory_format=tt.channels_last_3d))
    for result, expected in zip(
        *((r if isinstance(r, tuple) else (r,)) for r in (last, OF_VOLUMES[name](x))), strict=True
    ):
        assert result.is_contiguous(memory_format=tt.channels_last_3d) == name.startswith("max")
        assert result.tolist() == expected.tolist()


def test_adaptive_pools_of_no_volumes_or_channels_are_empty():
    for pool in (F.adaptive_avg_pool3d, F.adaptive_max_pool3d):
        assert pool(tt.ones(0, 3, 4, 4), 2).shape == (0, 2, 2, 2)
        assert pool(tt.ones(0, 5, 3, 4, 4), 2).shape == (0, 5, 2, 2, 2)
        with pytest.raises(RuntimeError, match=r"has shape \(2, 0, 3, 4, 4\), expected no empty dimension"):
            pool(tt.ones(2, 0, 3, 4, 4), 2)


def test_a_divisor_of_zero_is_refused():
    for pool, x in ((F.avg_pool2d, tt.ones(1, 4, 4)), (F.avg_pool3d, tt.ones(1, 4, 4, 4))):
        with pytest.raises(RuntimeError, match="'divisor_override' must not be 0"):
            pool(x, 2, divisor_override=0)
