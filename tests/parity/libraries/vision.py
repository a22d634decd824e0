"""Programs over libraries of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, numbers


def kornia(torch: Any, folder: Path) -> Found:
    """Colours, filters, geometry, features, losses and augmentations with given parameters."""
    import kornia as k

    x = numbers(torch, 2, 3, 24, 24).sigmoid().requires_grad_()
    points = numbers(torch, 1, 8, 2)
    turn = k.geometry.get_rotation_matrix2d(
        torch.full((2, 2), 12.0).double(), torch.tensor([30.0, -10.0]).double(), torch.ones(2, 2).double()
    )
    homography = k.geometry.find_homography_dlt(points, points * 2 + 1)
    found = {
        "gray": k.color.rgb_to_grayscale(x),
        "hsv": k.color.rgb_to_hsv(x),
        "lab": k.color.rgb_to_lab(x),
        "back": k.color.lab_to_rgb(k.color.rgb_to_lab(x)),
        "blur": k.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
        "sobel": k.filters.sobel(x),
        "canny": k.filters.canny(x)[0],
        "median": k.filters.median_blur(x, (3, 3)),
        "bilateral": k.filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)),
        "laplacian": k.filters.laplacian(x, 3),
        "unsharp": k.filters.unsharp_mask(x, (3, 3), (1.5, 1.5)),
        "warped": k.geometry.warp_affine(x, turn, (20, 20)),
        "perspective": k.geometry.warp_perspective(x, torch.eye(3).double().expand(2, 3, 3), (24, 24)),
        "homography": homography,
        "resized": k.geometry.resize(x, (12, 18), antialias=True),
        "pyramid": k.geometry.transform.build_pyramid(x, 3)[2],
        "dilated": k.morphology.dilation(x, torch.ones(3, 3).double()),
        "opened": k.morphology.opening(x, torch.ones(3, 3).double()),
        "harris": k.feature.harris_response(x),
        "sift": k.feature.SIFTDescriptor(16).double()(k.color.rgb_to_grayscale(x)[:, :, :16, :16]),
        "ssim": k.losses.ssim_loss(x, x * 0.9, 5),
        "focal": k.losses.focal_loss(numbers(torch, 4, 3), torch.tensor([0, 1, 2, 0]), 0.5, reduction="mean"),
        "dice": k.losses.dice_loss(numbers(torch, 2, 3, 4, 4), torch.arange(32).reshape(2, 4, 4) % 3),
        "equal": k.enhance.equalize(x),
        "clahe": k.enhance.equalize_clahe(x, grid_size=(2, 2)),
        "contrast": k.enhance.adjust_contrast(x, 1.3),
        "quaternion": k.geometry.axis_angle_to_rotation_matrix(numbers(torch, 3, 3)),
        "fundamental": k.geometry.epipolar.find_fundamental(points, points**2 + 1, torch.ones(1, 8).double()),
    }
    sum(
        value.sum() for key, value in found.items() if key in ("hsv", "blur", "warped", "ssim", "dilated")
    ).backward()
    turned = k.augmentation.RandomHorizontalFlip(p=1.0)(x)
    both = k.augmentation.AugmentationSequential(
        k.augmentation.RandomVerticalFlip(p=1.0), k.augmentation.CenterCrop(16), data_keys=["input", "mask"]
    )(x, x)
    torch.manual_seed(0)
    shapes = [
        list(k.augmentation.RandomResizedCrop((8, 8))(x.float()).shape),
        list(k.augmentation.ColorJiggle(0.1, 0.1, 0.1, 0.1)(x.float()).shape),
        list(k.augmentation.RandomAffine(20.0)(x.float()).shape),
        list(k.augmentation.RandomErasing(p=1.0)(x.float()).shape),
    ]
    return {**found, "gradient": x.grad, "flip": turned, "both": list(both), "shapes": shapes}


def torchio(torch: Any, folder: Path) -> Found:
    """Volumes and their labels: transformed, cut into patches and put together again, and their files."""
    import torchio as tio

    x = numbers(torch, 1, 20, 20, 20, dtype=torch.float32)
    subject = tio.Subject(volume=tio.ScalarImage(tensor=x), labels=tio.LabelMap(tensor=(x > 0).long()))
    change = tio.Compose([
        tio.ToCanonical(), tio.Resample(1.5), tio.Affine(1.1, (5, 0, 10), (1, 0, 2)), tio.Blur(0.8), tio.Flip(0),
        tio.Gamma(0.2), tio.ZNormalization(), tio.CropOrPad(12), tio.OneHot(),
    ])  # fmt: skip
    changed = change(subject)
    sampler = tio.GridSampler(subject, 8, 2)
    whole = tio.GridAggregator(sampler, overlap_mode="average")
    for batch in tio.SubjectsLoader(sampler, batch_size=4):
        whole.add_batch(batch["volume"][tio.DATA] * 2, batch[tio.LOCATION])
    subject.volume.save(folder / "volume.nii.gz")
    return {
        "volume": changed.volume.data, "labels": changed.labels.data, "whole": whole.get_output_tensor(),
        "again": tio.ScalarImage(folder / "volume.nii.gz").data,
    }  # fmt: skip
