"""Which numbers of a tensor share a scale, and how numbers are mapped to codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

__all__ = [
    "Granularity", "MappingType", "PerAxis", "PerBlock", "PerGroup", "PerRow", "PerTensor", "PerToken",
    "TorchAODType", "ZeroPointDomain", "get_block_size",
]  # fmt: skip


class MappingType(Enum):
    """How numbers become codes: around zero, around zero without cutting off either end, or by a zero point."""

    SYMMETRIC = auto()
    SYMMETRIC_NO_CLIPPING_ERR = auto()
    ASYMMETRIC = auto()


class ZeroPointDomain(Enum):
    """What a zero point is: a code, a number, or not there."""

    INT = auto()
    FLOAT = auto()
    NONE = auto()


class TorchAODType(Enum):
    """Whole dtypes of less than a byte."""

    INT1 = auto()
    INT2 = auto()
    INT3 = auto()
    INT4 = auto()
    INT5 = auto()
    INT6 = auto()
    INT7 = auto()


@dataclass(frozen=True)
class Granularity:
    """Which numbers share a scale."""


@dataclass(frozen=True)
class PerBlock(Granularity):
    """Those of each block of these sizes."""

    block_size: tuple[int, ...]


@dataclass(frozen=True)
class PerTensor(Granularity):
    """All."""


@dataclass(frozen=True)
class PerAxis(Granularity):
    """Those with one index along a dimension."""

    axis: int


@dataclass(frozen=True)
class PerGroup(Granularity):
    """So many that follow each other in the last dimension."""

    group_size: int


class PerRow(Granularity):
    """Those of each row, along the last dimension."""


class PerToken(Granularity):
    """Those of each row, along the last dimension; of activations."""


def get_block_size(input_shape: Sequence[int], granularity: Granularity) -> tuple[int, ...]:
    """The sizes of the blocks that share a scale.

    Raises:
        ValueError: Another granularity; a group that the last size is no multiple of.

    Example:
        >>> get_block_size((4, 8), PerAxis(0))
        (1, 8)
    """
    shape = tuple(input_shape)
    if isinstance(granularity, PerTensor):
        return shape
    if isinstance(granularity, PerBlock):
        return tuple(granularity.block_size)
    if isinstance(granularity, PerAxis):
        sizes = list(shape)
        sizes[granularity.axis] = 1
        return tuple(sizes)
    if isinstance(granularity, (PerRow, PerToken)):
        return (1,) * (len(shape) - 1) + shape[-1:]
    if isinstance(granularity, PerGroup):
        if shape[-1] % granularity.group_size:
            raise ValueError(
                f"get_block_size: the last size {shape[-1]} is no multiple of the group size {granularity.group_size}"
            )
        return (1,) * (len(shape) - 1) + (granularity.group_size,)
    raise ValueError(f"Unsupported Granularity: {granularity}")
