"""Layouts of results that programs written for PyTorch rely on, where they call `view` or look at strides."""

import numpy
import pytest

import taeda
from taeda import nn
from taeda.nn import functional as F


def numbers(*shape):
    return taeda.arange(float(taeda.Size(shape).numel())).reshape(shape)


SEQUENCE = numbers(2, 5, 8)
SEQUENCE_LAYERS = {
    "Conv1d": lambda x: nn.Conv1d(8, 6, 1)(x),
    "Conv1d of long sequences": lambda x: nn.Conv1d(8, 32, 3, padding=1)(x.repeat(1, 1, 100)),
    "ConvTranspose1d": lambda x: nn.ConvTranspose1d(8, 4, 2)(x),
    "BatchNorm1d": lambda x: nn.BatchNorm1d(8)(x),
    "MaxPool1d": lambda x: nn.MaxPool1d(2)(x),
    "RReLU": lambda x: nn.RReLU()(x),
    "relu of Conv1d": lambda x: nn.Conv1d(8, 6, 1)(x).relu(),
}


@pytest.mark.parametrize("graph", [True, False])
@pytest.mark.parametrize("name", SEQUENCE_LAYERS)
def test_results_for_turned_sequences_are_viewed_by_rows(name, graph):
    with taeda.set_grad_enabled(graph):
        found = SEQUENCE_LAYERS[name](SEQUENCE.transpose(1, 2))
    expected = found.detach().numpy().reshape(2, -1).copy()
    assert found.view(2, -1).detach().numpy().tolist() == expected.tolist()
    assert found.view(-1).view(found.shape).detach().numpy().reshape(2, -1).tolist() == expected.tolist()


def test_gradients_go_through_the_view_of_a_convolution():
    x, layer = SEQUENCE.transpose(1, 2), nn.Conv1d(8, 6, 3, padding=1)
    weights = numbers(2, 30)
    (layer(x).view(2, -1) * weights).sum().backward()
    seen, layer.weight.grad = layer.weight.grad.clone(), None
    (layer(x).reshape(2, -1) * weights).sum().backward()
    taeda.testing.assert_close(seen, layer.weight.grad)


@pytest.mark.parametrize("part", [slice(0, 4), slice(4, 8), slice(2, 3)])
def test_parts_of_the_channels_of_images_are_viewed_by_rows(part):
    images = nn.Conv2d(3, 8, 3)(numbers(2, 3, 20, 20) / 100)
    chunk = images[:, part]
    assert chunk.view(2, -1).tolist() == chunk.reshape(2, -1).tolist()
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        images[:, :, part].view(2, -1)  # rows of every channel: no view in any layout


@pytest.mark.parametrize("graph", [True, False])
def test_channels_that_became_several_dimensions_are_viewed_by_rows(graph):
    with taeda.set_grad_enabled(graph):
        x = taeda.randn(2, 8, 30)
        features, masks = nn.Conv1d(8, 16, 1)(x), nn.Conv1d(8, 32, 1)(x).sigmoid().view(2, 2, 16, 30)
        masked = masks * features.unsqueeze(1)
        for found in (masks, masked, masked[:, :1], masks[:, 1:]):
            expected = found.clone(memory_format=taeda.contiguous_format)
            sizes = (2 * found.shape[1], 16, 30)
            assert found.view(sizes).tolist() == expected.view(sizes).tolist()
        for part in ((masks * 2)[:, :, :3], (masks * 2).transpose(1, 2), (masks * 2)[..., 1:]):
            with pytest.raises(RuntimeError, match="view size is not compatible"):
                part.view(2, -1)


def test_turned_tensors_of_programs_are_no_views_by_rows():
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        SEQUENCE.transpose(1, 2).view(2, -1)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        numbers(3, 4).t().view(-1)


def test_masked_and_drawn_results_lie_by_rows():
    heads = numbers(2, 3, 4, 5).transpose(1, 2)
    filled = heads.masked_fill(heads > 50, 0)
    assert (
        filled.stride() == (60, 15, 5, 1)
        and filled.tolist()
        == heads.contiguous().clamp(max=1e9).masked_fill(heads.contiguous() > 50, 0).tolist()
    )
    assert filled.view(8, 15).shape == (8, 15)
    assert taeda.bernoulli(heads / 200).stride() == (60, 15, 5, 1)
    whole = heads.clone()
    assert whole.masked_fill_(whole > 50, 0).stride() == heads.stride()


@pytest.mark.parametrize(
    ("equation", "shapes", "strides"),
    [
        ("bhl,ch->bchl", [(2, 3, 4), (5, 3)], (60, 12, 4, 1)),
        ("bhl,chl->bchl", [(2, 3, 4), (5, 3, 4)], (60, 12, 4, 1)),
        ("i,j->ji", [(3,), (4,)], (3, 1)),
        ("ij,jk->ik", [(3, 4), (4, 5)], (5, 1)),
        ("bij,bkj->bki", [(2, 3, 4), (2, 5, 4)], (15, 3, 1)),
        ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)], (72, 24, 6, 1)),
        ("bhid,bhjd->hbij", [(2, 3, 4, 5), (2, 3, 6, 5)], (48, 24, 6, 1)),
        ("nctv,vw->nctw", [(2, 3, 4, 5), (5, 6)], (72, 24, 6, 1)),
        ("bi,bj,bk->bijk", [(2, 3), (2, 4), (2, 5)], (60, 20, 5, 1)),
    ],
)
def test_products_lie_in_the_order_of_the_output(equation, shapes, strides):
    operands = [numbers(*shape) for shape in shapes]
    found = taeda.einsum(equation, *operands)
    assert found.stride() == strides
    expected = numpy.einsum(equation, *[operand.numpy().astype("float64") for operand in operands])
    assert numpy.allclose(found.numpy(), expected)


def test_a_size_of_one_is_spread_by_a_later_operand():
    found = taeda.einsum("i,j,i->ij", numbers(1) + 2, numbers(3), numbers(5))
    assert found.tolist() == [[2.0 * i * j for j in range(3)] for i in range(5)]


def test_features_are_dropped_as_elements_are():
    taeda.manual_seed(3)
    rows = F.dropout(taeda.ones(4, 6), 0.25)
    taeda.manual_seed(3)
    features = F.dropout1d(taeda.ones(4, 6, 3), 0.25)
    assert features.tolist() == rows[:, :, None].expand(4, 6, 3).tolist()


@pytest.mark.parametrize("amounts", [(1, 1, 1, 1), (0, 2, 1, 0), (-1, 1, 0, 0), (1, 0, 0, 0, 1, 1)])
def test_padded_images_keep_their_layout(amounts):
    images = numbers(2, 3, 5, 6)
    last = images.to(memory_format=taeda.channels_last).requires_grad_()
    found = F.pad(last, amounts, value=7.0)
    rows = found.permute(0, 2, 3, 1).view(-1, found.shape[1])
    expected = F.pad(images, amounts, value=7.0)
    assert rows.tolist() == expected.permute(0, 2, 3, 1).reshape(-1, found.shape[1]).tolist()
    assert expected.is_contiguous() and found.tolist() == expected.tolist()
    (found * numbers(*found.shape)).sum().backward()
    assert last.grad.tolist() == F.pad(numbers(*found.shape), [-amount for amount in amounts]).tolist()


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_the_layout_of_images_with_borders_of_their_own(mode):
    images = numbers(2, 16, 40, 40)
    found = F.pad(images.to(memory_format=taeda.channels_last), (1, 2, 3, 4), mode=mode)
    # Not where they go round, as in PyTorch.
    kept = taeda.contiguous_format if mode == "circular" else taeda.channels_last
    assert found.is_contiguous(memory_format=kept)
    assert taeda.equal(found, F.pad(images, (1, 2, 3, 4), mode=mode))


MOVED = {
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 4),
    "group_norm": lambda x: F.group_norm(x, 2, weight=numbers(x.shape[1])),
    "roll of channels": lambda x: x.roll(3, 1),
    "roll of places": lambda x: x.roll((-1, 2), (2, 3)),
    "cat of parts": lambda x: taeda.cat([x[:, :3], x[:, 5:], x], 1),
    "cat of rows": lambda x: taeda.cat([x[:, :, 1:], x[:, :, :1]], 2),
}


@pytest.mark.parametrize("name", MOVED)
def test_images_whose_channels_come_last_keep_them_last(name):
    images = numbers(2, 8, 4, 6)
    last = images.to(memory_format=taeda.channels_last).requires_grad_()
    found, expected = MOVED[name](last), MOVED[name](images)
    assert expected.is_contiguous() and found.is_contiguous(memory_format=taeda.channels_last)
    taeda.testing.assert_close(found, expected)
    weights = numbers(*found.shape)
    images.requires_grad_()
    (MOVED[name](images) * weights).sum().backward()
    (found * weights).sum().backward()
    taeda.testing.assert_close(last.grad, images.grad)
    assert found.view(2, -1).tolist() == expected.view(2, -1).tolist()


def test_volumes_whose_channels_come_last_keep_them_last():
    volumes = numbers(2, 4, 3, 2, 5)
    last = volumes.to(memory_format=taeda.channels_last_3d)
    for move in (
        lambda x: taeda.cat([x, x], 1),
        lambda x: x.roll(1, 1),
        lambda x: F.group_norm(x, 2),
        lambda x: F.channel_shuffle(x, 2),
    ):
        assert move(last).is_contiguous(memory_format=taeda.channels_last_3d)
        taeda.testing.assert_close(move(last), move(volumes))
    assert taeda.cat([last, volumes]).is_contiguous() and F.instance_norm(last).is_contiguous()
    assert F.group_norm(SEQUENCE.transpose(1, 2), 2).is_contiguous()


def test_padding_of_convolutions_is_viewed_by_rows():
    found = F.pad(nn.Conv2d(3, 4, 3)(numbers(2, 3, 8, 8)), (1, 0))
    assert found.view(2, -1).tolist() == found.reshape(2, -1).tolist()


def test_where_nothing_is_padded_no_value_is_needed():
    whole = taeda.arange(4)
    assert F.pad(whole, (0, 0), value=float("nan")).tolist() == [0, 1, 2, 3]
    assert F.pad(whole, (-1, -1), value=float("nan")).tolist() == [1, 2]
    with pytest.raises(ValueError, match="nan"):
        F.pad(whole, (0, 1), value=float("nan"))


@pytest.mark.parametrize("repeats", [(1, 1), (3, 1), (2, 1, 1), (1, 2)], ids=str)
def test_repeated_tensors_lie_row_by_row(repeats):
    columns = numbers(4, 3).t()
    for found in (columns.repeat(*repeats), taeda.tile(columns, repeats)):
        assert found.is_contiguous() and found.tolist() == numpy.tile(columns.numpy(), repeats).tolist()
        assert found.view(-1).tolist() == numpy.tile(columns.numpy(), repeats).reshape(-1).tolist()
    images = numbers(2, 8, 4, 6).to(memory_format=taeda.channels_last)
    assert images.repeat(2, 1, 1, 1).is_contiguous()


def test_positions_of_what_is_not_zero_stand_in_columns():
    x = taeda.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 4.0]])
    found = taeda.nonzero(x)
    assert found.tolist() == [[0, 1], [0, 2], [1, 0], [1, 2]]
    assert found.stride() == taeda.argwhere(x).stride() == (1, 4)
    assert all(part.stride() == (1,) for part in taeda.where(x))
    large = taeda.arange(300_000).reshape(100, 30, 100) % 7
    assert large.nonzero().tolist() == numpy.argwhere(large.numpy()).tolist()


def test_tensors_of_arrays_lie_as_these_do():
    array = numpy.arange(24.0).reshape(2, 3, 4)
    for laid in (array.T, array.transpose(2, 0, 1), numpy.asfortranarray(array)):
        for made in (taeda.tensor(laid), taeda.ones(1).double().new_tensor(laid)):
            assert made.stride() == tuple(step // 8 for step in laid.strides)
            assert made.tolist() == laid.tolist()
    assert taeda.tensor(array[:, ::2]).is_contiguous()
    array[0, 0, 0] = 9
    assert made[0, 0, 0] == 0


def test_second_derivatives_lie_by_directions():
    found = taeda.func.hessian(lambda x: (x**3).sum())(taeda.arange(6.0).reshape(3, 2))
    assert found.stride() == (2, 1, 12, 6)
    assert found.reshape(6, 6).diagonal().tolist() == [0, 6, 12, 18, 24, 30]


def test_normalised_weights_lie_row_by_row():
    v = numbers(2, 3, 4, 5).to(memory_format=taeda.channels_last)
    assert nn.utils.parametrizations.weight_norm(nn.Conv2d(2, 2, 1)).weight.is_contiguous()
    layer = nn.Conv2d(3, 2, (4, 5))
    layer.weight = nn.Parameter(v)
    assert nn.utils.parametrizations.weight_norm(layer, dim=1).weight.is_contiguous()


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.bfloat16])
@pytest.mark.parametrize(("images", "weights"), [(True, False), (False, True), (True, True)])
def test_channels_come_last_where_those_of_images_or_weights_do(images, weights, dtype):
    x, w = numbers(2, 4, 8, 8) % 5, numbers(6, 4, 3, 3) % 3
    expected = F.conv2d(x, w, padding=1)
    laid = {True: taeda.channels_last, False: taeda.contiguous_format}
    found = F.conv2d(
        x.to(dtype).to(memory_format=laid[images]), w.to(dtype).to(memory_format=laid[weights]), padding=1
    )
    assert found.is_contiguous(memory_format=taeda.channels_last)
    assert taeda.allclose(found.float(), expected, rtol=1e-2)


@pytest.mark.parametrize(("volumes", "weights"), [(True, False), (False, True), (True, True)])
def test_channels_of_volumes_do_as_well(volumes, weights):
    x, w = numbers(2, 4, 5, 6, 7) % 5, numbers(6, 4, 3, 3, 3) % 3
    expected = F.conv3d(x, w)
    laid = {True: taeda.channels_last_3d, False: taeda.contiguous_format}
    found = F.conv3d(x.to(memory_format=laid[volumes]), w.to(memory_format=laid[weights]))
    assert found.is_contiguous(memory_format=taeda.channels_last_3d)
    assert taeda.allclose(found, expected)
    assert expected.is_contiguous()
