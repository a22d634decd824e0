"""Transforms of images: of one (C, H, W) or of a batch (..., C, H, W), on any device.

Every transform is a callable without state of its own but its arguments. Chance comes from taeda's generator, which a
`DataLoader` seeds for each sample: a sample is transformed alike whatever the number of workers. Transforms of a batch
draw once for the whole batch, but `MixUp` and `CutMix`, which mix its samples.
"""

from taeda_data.transforms.batches import CutMix, MixUp
from taeda_data.transforms.color import (
    ColorJitter,
    GaussianBlur,
    Grayscale,
    RandomErasing,
    RandomGrayscale,
    RandomInvert,
    RandomPosterize,
    RandomSolarize,
)
from taeda_data.transforms.combine import Compose, Identity, Lambda, RandomApply, RandomChoice, RandomOrder
from taeda_data.transforms.geometry import (
    CenterCrop,
    Pad,
    RandomAffine,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
)
from taeda_data.transforms.values import (
    ConvertImageDtype,
    LinearTransformation,
    Normalize,
    PILToTensor,
    ToDtype,
    ToImage,
    ToPILImage,
    ToTensor,
)

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "CutMix",
    "GaussianBlur",
    "Grayscale",
    "Identity",
    "Lambda",
    "LinearTransformation",
    "MixUp",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomAffine",
    "RandomApply",
    "RandomChoice",
    "RandomCrop",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomOrder",
    "RandomPosterize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSolarize",
    "RandomVerticalFlip",
    "Resize",
    "ToDtype",
    "ToImage",
    "ToPILImage",
    "ToTensor",
]
