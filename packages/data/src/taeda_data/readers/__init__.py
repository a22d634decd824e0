"""Data sets that read files as they lie on the disk; nothing is downloaded."""

from taeda_data.readers.cifar import CIFAR10, CIFAR100
from taeda_data.readers.folder import ImageFolder, read_image
from taeda_data.readers.idx import MNIST, FashionMNIST, read_idx
from taeda_data.readers.samples import Digits
from taeda_data.readers.tables import ArrayDataset, CSVDataset
from taeda_data.readers.text import TextLines

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "MNIST",
    "ArrayDataset",
    "CSVDataset",
    "Digits",
    "FashionMNIST",
    "ImageFolder",
    "TextLines",
    "read_idx",
    "read_image",
]
