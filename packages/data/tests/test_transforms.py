"""Transforms against Pillow and NumPy."""

import math
import pickle

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

from taeda_data import transforms
from taeda_data.transforms import geometry, resample
from taeda_registry.slots import tensor as tt

SEED = 3
FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
    "lanczos": Image.Resampling.LANCZOS,
}


def pixels(*shape):
    return np.random.default_rng(SEED).integers(0, 256, shape, dtype=np.uint8)


@pytest.fixture
def picture():
    return Image.fromarray(pixels(37, 53, 3))


def array(image):
    """The (H, W, C) numbers of a tensor (C, H, W) or of a picture."""
    found = image.permute(1, 2, 0).numpy() if isinstance(image, tt.Tensor) else np.asarray(image)
    return found.astype(np.int64)


def apart(image, picture):
    found, expected = array(image), array(picture)
    assert found.shape == expected.shape
    return np.abs(found - expected)


def test_pictures_become_tensors(picture):
    image = transforms.ToImage()(picture)
    assert image.dtype == tt.uint8 and tuple(image.shape) == (3, 37, 53)
    assert apart(image, picture).max() == 0
    scaled = transforms.ToTensor()(picture)
    np.testing.assert_allclose(scaled.numpy(), np.asarray(picture).transpose(2, 0, 1) / 255, rtol=1e-6)
    assert tuple(transforms.ToTensor()(pixels(4, 5)).shape) == (1, 4, 5)
    assert transforms.PILToTensor()(picture.convert("1")).unique().tolist() == [0, 255]
    assert apart(transforms.ToImage()(transforms.ToPILImage()(image)), picture).max() == 0
    assert transforms.ToPILImage()(image[:1]).mode == "L"


@pytest.mark.parametrize("mode", list(FILTERS))
@pytest.mark.parametrize("size", [(20, 20), (50, 91), (37, 10), (1, 1)])
def test_resize_is_that_of_pillow(picture, mode, size):
    found = transforms.Resize(size, mode)(transforms.ToImage()(picture))
    # Pillow rounds weights to 22 bits before it rounds the sums of each axis.
    assert apart(found, picture.resize(size[::-1], FILTERS[mode])).max() <= (0 if mode == "nearest" else 1)


def test_resize_by_the_shorter_side():
    image = tt.zeros(2, 3, 40, 80)
    assert tuple(transforms.Resize(10)(image).shape) == (2, 3, 10, 20)
    assert tuple(transforms.Resize(10)(image.transpose(-1, -2)).shape) == (2, 3, 20, 10)
    assert tuple(transforms.Resize(10, max_size=15)(image).shape) == (2, 3, 7, 15)


@pytest.mark.parametrize("angle", [0, 30, 90, 180, -17, 123.4])
@pytest.mark.parametrize("expand", [False, True])
def test_rotation_is_that_of_pillow(picture, angle, expand):
    turn = transforms.RandomRotation((angle, angle), "nearest", expand)
    away = apart(turn(transforms.ToImage()(picture)), picture.rotate(angle, expand=expand)).max(-1)
    # A centre that falls on the border of two pixels may belong to either.
    assert (away > 0).mean() <= 0.01


def test_bilinear_rotation_inside(picture):
    found = transforms.RandomRotation((30, 30), "bilinear")(transforms.ToImage()(picture))
    away = apart(found, picture.rotate(30, Image.Resampling.BILINEAR))
    assert away[12:25, 20:33].max() <= 1


def test_affine_maps():
    image = tt.arange(12.0).reshape(1, 3, 4)
    inverse = resample.affine_inverse(0.0, (1.0, 0.0), 1.0, (0.0, 0.0), (2.0, 1.5))
    moved = resample.warped(image, inverse, 3, 4, "bilinear", -1.0)
    assert moved[0].tolist() == [[-1, 0, 1, 2], [-1, 4, 5, 6], [-1, 8, 9, 10]]
    larger = resample.affine_inverse(0.0, (0.0, 0.0), 2.0, (0.0, 0.0), (2.0, 2.0))
    twice = resample.warped(tt.arange(16.0).reshape(4, 4), larger, 4, 4, "nearest", 0.0)
    assert twice.tolist() == [[5, 5, 6, 6], [5, 5, 6, 6], [9, 9, 10, 10], [9, 9, 10, 10]]
    slanted = resample.affine_inverse(0.0, (0.0, 0.0), 1.0, (45.0, 0.0), (0.0, 0.0))
    np.testing.assert_allclose(slanted, [[1, math.tan(math.radians(45)), 0], [0, 1, 0]], atol=1e-12)


@pytest.mark.parametrize("factor", [0.0, 0.4, 1.0, 1.7])
@pytest.mark.parametrize(
    ("name", "pillow"),
    [
        ("brightness", ImageEnhance.Brightness),
        ("contrast", ImageEnhance.Contrast),
        ("saturation", ImageEnhance.Color),
    ],
)
def test_jitter_is_that_of_pillow(picture, name, pillow, factor):
    jitter = transforms.ColorJitter(**{name: (factor, factor)})
    # Pillow rounds the luma before it mixes, and a mean luma to an integer.
    assert apart(jitter(transforms.ToImage()(picture)), pillow(picture).enhance(factor)).max() <= 2


def test_hue():
    red = tt.tensor([1.0, 0.0, 0.0]).reshape(3, 1, 1)
    for turn, expected in ((1 / 3, [0, 1, 0]), (-1 / 3, [0, 0, 1]), (0.5, [0, 1, 1])):
        turned = transforms.ColorJitter(hue=(turn, turn))(red)
        np.testing.assert_allclose(turned.reshape(3).numpy(), expected, atol=1e-5)
    image = tt.from_numpy(pixels(3, 8, 9))
    assert np.abs(array(transforms.ColorJitter(hue=(0.0, 1e-9))(image)) - array(image)).max() <= 1


def test_one_channel_and_few_bits(picture):
    image = transforms.ToImage()(picture)
    assert apart(transforms.Grayscale()(image)[0:1], np.asarray(picture.convert("L"))[:, :, None]).max() <= 1
    assert tuple(transforms.Grayscale(3)(image).shape) == (3, 37, 53)
    assert tuple(transforms.RandomGrayscale(1.0)(image).shape) == (3, 37, 53)
    assert apart(transforms.RandomInvert(1.0)(image), ImageOps.invert(picture)).max() == 0
    assert apart(transforms.RandomSolarize(100, 1.0)(image), ImageOps.solarize(picture, 100)).max() == 0
    assert apart(transforms.RandomPosterize(3, 1.0)(image), ImageOps.posterize(picture, 3)).max() == 0


@pytest.mark.parametrize("mode", geometry.PADDINGS)
def test_padding_is_that_of_numpy(mode):
    image = pixels(2, 5, 6)
    found = transforms.Pad((1, 2, 3, 4), padding_mode=mode)(tt.from_numpy(image))
    np.testing.assert_array_equal(found.numpy(), np.pad(image, ((0, 0), (2, 4), (1, 3)), mode=mode))


def test_crops():
    image = tt.arange(60).reshape(1, 6, 10)
    assert transforms.CenterCrop((2, 4))(image).tolist() == image[:, 2:4, 3:7].tolist()
    larger = transforms.CenterCrop((8, 4))(image)
    assert tuple(larger.shape) == (1, 8, 4) and larger[0, 0].tolist() == [0] * 4
    tt.manual_seed(SEED)
    seen = {tuple(transforms.RandomCrop(3)(image)[0, 0, :1].tolist()) for _ in range(400)}
    assert {first % 10 for (first,) in seen} == set(range(8)) and {first // 10 for (first,) in seen} == set(
        range(4)
    )
    assert tuple(transforms.RandomCrop(12, pad_if_needed=True)(image).shape) == (1, 12, 12)
    with pytest.raises(ValueError, match=r"RandomCrop: found an image of \(6, 10\) pixels"):
        transforms.RandomCrop(12)(image)


def test_random_resized_crops_keep_their_bounds():
    tt.manual_seed(SEED)
    crop = transforms.RandomResizedCrop(8, scale=(0.2, 0.5), ratio=(0.5, 2.0))
    for _ in range(200):
        top, left, height, width = crop._place(60, 90)
        assert 0 <= top <= 60 - height and 0 <= left <= 90 - width
        assert 0.18 <= height * width / 5400 <= 0.52 and 0.45 <= width / height <= 2.2
    assert tuple(crop(tt.zeros(2, 3, 60, 90)).shape) == (2, 3, 8, 8)
    assert crop._place(1, 1000)[2:] == (1, 2)  # nothing fits: the middle


def test_flips_and_chance():
    image = tt.arange(6).reshape(1, 2, 3)
    assert transforms.RandomHorizontalFlip(1.0)(image).tolist() == [[[2, 1, 0], [5, 4, 3]]]
    assert transforms.RandomVerticalFlip(1.0)(image).tolist() == [[[3, 4, 5], [0, 1, 2]]]
    assert transforms.RandomHorizontalFlip(0.0)(image) is image
    tt.manual_seed(SEED)
    flip = transforms.RandomHorizontalFlip(0.3)
    count = sum(flip(image) is not image for _ in range(2000))
    assert 520 <= count <= 680  # 600 expected, four deviations


def test_values():
    image = tt.from_numpy(pixels(3, 4, 5))
    real = transforms.ToDtype(tt.float32, scale=True)(image)
    assert transforms.ConvertImageDtype(tt.uint8)(real).tolist() == image.tolist()
    assert transforms.ToDtype(tt.int32)(image).tolist() == image.tolist()
    assert transforms.ConvertImageDtype(tt.int16)(image).tolist() == (image.to(tt.int64) * 128).tolist()
    normal = transforms.Normalize([0.1, 0.2, 0.3], [0.5, 0.6, 0.7])(real)
    expected = (real.numpy() - np.float32([0.1, 0.2, 0.3])[:, None, None]) / np.float32([0.5, 0.6, 0.7])[
        :, None, None
    ]
    np.testing.assert_allclose(normal.numpy(), expected, rtol=1e-6, atol=1e-7)
    white = transforms.LinearTransformation(tt.eye(60) * 2, tt.ones(60))(real)
    np.testing.assert_allclose(white.numpy(), (real.numpy() - 1) * 2, rtol=1e-6)


def test_blur_is_a_product_of_normal_weights():
    image = np.random.default_rng(SEED).random((2, 9, 10))
    found = transforms.GaussianBlur((3, 5), 1.3)(tt.from_numpy(image))
    rows, columns = (np.exp(-0.5 * (np.arange(-n, n + 1) / 1.3) ** 2) for n in (1, 2))
    kernel = np.outer(rows / rows.sum(), columns / columns.sum())
    wide = np.pad(image, ((0, 0), (1, 1), (2, 2)), mode="reflect")
    expected = sum(kernel[i, j] * wide[:, i : i + 9, j : j + 10] for i in range(3) for j in range(5))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_erasing():
    tt.manual_seed(SEED)
    image = tt.ones(3, 20, 30)
    erased = transforms.RandomErasing(1.0, scale=(0.1, 0.2))(image)
    holes = (erased == 0).numpy()
    assert image.sum().item() == 1800 and 0.08 <= holes.mean() <= 0.22
    rows, columns = np.flatnonzero(holes[0].any(1)), np.flatnonzero(holes[0].any(0))
    assert holes.sum() == 3 * len(rows) * len(columns)
    assert transforms.RandomErasing(1.0, value="random")(image).unique().numel() > 10
    transforms.RandomErasing(1.0, value=(1.0, 2.0, 3.0), inplace=True)(image)
    assert image[2].max().item() == 3.0


@pytest.mark.parametrize("kind", [transforms.MixUp, transforms.CutMix])
def test_mixed_batches_have_mixed_labels(kind):
    tt.manual_seed(SEED)
    images = tt.arange(4.0).reshape(4, 1, 1, 1).expand(4, 1, 16, 16)
    mixed, labels = kind(alpha=0.7, num_classes=4)(images, tt.arange(4))
    np.testing.assert_allclose(labels.sum(1).numpy(), 1, rtol=1e-6)
    # An image that equals its class everywhere has the mean that its label says.
    np.testing.assert_allclose(
        mixed.mean((1, 2, 3)).numpy(), (labels @ tt.arange(4.0)).numpy(), rtol=1e-5, atol=1e-6
    )
    with pytest.raises(ValueError, match="num_classes"):
        kind()(images, tt.arange(4))


def test_shares_follow_the_beta_distribution():
    tt.manual_seed(SEED)
    shares = np.array([transforms.MixUp(alpha=0.4)._share() for _ in range(3000)])
    assert abs(shares.mean() - 0.5) < 0.03 and abs(shares.var() - 1 / (4 * 1.8)) < 0.012


def test_combinations():
    double, more = transforms.Lambda(abs), transforms.ToDtype(tt.float64)
    image = tt.full((1, 2, 2), -2.0)
    assert transforms.Compose([double, more])(image).dtype == tt.float64
    assert transforms.RandomApply([double], 0.0)(image) is image
    tt.manual_seed(SEED)
    picked = [
        transforms.RandomChoice([double, transforms.Identity()], [3, 1])(image).max().item()
        for _ in range(800)
    ]
    assert 540 <= picked.count(2.0) <= 660
    assert transforms.RandomOrder([double, more])(image).max().item() == 2.0


EVERYTHING = [
    transforms.CenterCrop(4), transforms.ColorJitter(0.2, 0.2, 0.2, 0.1), transforms.ConvertImageDtype(tt.float64),
    transforms.GaussianBlur(3), transforms.Grayscale(3), transforms.Identity(), transforms.Pad(2),
    transforms.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 10), transforms.RandomCrop(5), transforms.RandomErasing(1.0),
    transforms.RandomGrayscale(), transforms.RandomHorizontalFlip(), transforms.RandomInvert(),
    transforms.RandomResizedCrop(6), transforms.RandomRotation(20), transforms.RandomSolarize(0.5),
    transforms.RandomVerticalFlip(), transforms.Resize(6), transforms.Normalize([0.5], [0.5]),
]  # fmt: skip


@pytest.mark.parametrize("transform", EVERYTHING, ids=lambda t: type(t).__name__)
def test_batches_are_their_images(transform):
    """The same draws give the same change to a batch as to each of its images; a seed gives the same again."""
    batch = tt.rand(2, 3, 8, 9, generator=tt.Generator().manual_seed(SEED))
    copy = pickle.loads(pickle.dumps(transform))

    def applied(function, image):
        tt.manual_seed(SEED)
        return function(image).numpy()

    whole = applied(transform, batch)
    np.testing.assert_array_equal(whole, applied(copy, batch))
    for image, expected in zip(batch, whole, strict=True):
        np.testing.assert_allclose(applied(transform, image), expected, rtol=1e-6, atol=1e-6)
    assert repr(transform).startswith(type(transform).__name__)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: transforms.Resize(0), ValueError, "Resize: argument 'size' is 0"),
        (lambda: transforms.Resize((3, 4), max_size=9), ValueError, "argument 'max_size'"),
        (lambda: transforms.Resize(3, "cubic"), ValueError, "argument 'interpolation' is 'cubic'"),
        (lambda: transforms.Pad((1, 2, 3)), ValueError, "Pad: argument 'padding'"),
        (lambda: transforms.Pad(1, padding_mode="wrap"), ValueError, "argument 'padding_mode'"),
        (lambda: transforms.RandomHorizontalFlip(1.5), ValueError, "argument 'p' is 1.5"),
        (lambda: transforms.ColorJitter(hue=0.7), ValueError, "argument 'hue'"),
        (lambda: transforms.ColorJitter(brightness=-1), ValueError, "argument 'brightness'"),
        (lambda: transforms.GaussianBlur(4), ValueError, "argument 'kernel_size' is 4"),
        (lambda: transforms.RandomErasing(value="noise"), ValueError, "argument 'value'"),
        (lambda: transforms.RandomAffine(5, scale=(2, 1)), ValueError, "argument 'scale'"),
        (lambda: transforms.Normalize([0.5], [0.0]), ValueError, "argument 'std'"),
        (lambda: transforms.Normalize([0.5], [1.0])(tt.arange(4).reshape(1, 2, 2)), TypeError, "expected floating"),
        (lambda: transforms.RandomChoice([]), ValueError, "argument 'transforms' is empty"),
        (lambda: transforms.Compose([3]), TypeError, "argument 'transforms' holds 3"),
        (lambda: transforms.Resize(3)("x"), TypeError, "found an image of type str"),
        (lambda: transforms.Resize(3)(tt.zeros(4, 4)), ValueError, r"found an image of shape \(4, 4\)"),
        (lambda: transforms.Pad(4, padding_mode="reflect")(tt.zeros(1, 3, 3)), ValueError, "by reflection needs more"),
        (lambda: transforms.ToImage()(np.zeros((2, 2, 2, 2))), ValueError, "found shape"),
    ],
)  # fmt: skip
def test_wrong_arguments(make, error, text):
    with pytest.raises(error, match=text):
        make()
