"""How a tensor lies over several processes, along one dimension of their mesh."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


def part_of(size: int, count: int, place: int) -> tuple[int, int]:
    """Where the part of one process begins and how long it is, as `chunk` cuts `size` into `count` parts."""
    each = -(-size // count)
    start = min(each * place, size)
    return start, min(each * (place + 1), size) - start


class Placement:
    """How a tensor lies over the processes of one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each process has a part, along `dim` where one is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each process has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each process has a summand, of the reduction `reduce_op` where one is given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part.

    Args:
        dim: The dimension along which it is cut.
    """

    dim: int
    split_factor: ClassVar[int] = 1

    def along(self, dim: int) -> Shard:
        """The same cut, along another dimension."""
        return replace(self, dim=dim)

    def pieces(self, size: int, count: int, place: int) -> list[tuple[int, int]]:
        """Where the pieces that one process of `count` has of `size` begin and how long they are."""
        found = []
        for group in range(self.split_factor):
            first, length = part_of(size, self.split_factor, group)
            start, own = part_of(length, count, place)
            found.append((first + start, own))
        return found

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """How long the part of one process of `num_chunks` is, and where it begins."""
        start, length = part_of(curr_local_size, num_chunks, rank)
        return length, start

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class _StridedShard(Shard):
    """Each process has its part of each of several groups, one behind the other.

    Args:
        dim: The dimension along which it is cut.
        split_factor: Into how many groups it is cut, before each of them is cut for the processes.
    """

    split_factor: int = 1  # type: ignore[misc]  # of each instance, where a plain cut has one group

    def local_shard_size_and_offset(  # type: ignore[override]  # depends on the groups
        self, curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        """How long the parts of one process of `num_chunks` are together, and where the first begins; -1 for none."""
        found = [piece for piece in self.pieces(curr_local_size, num_chunks, rank) if piece[1]]
        return sum(length for _, length in found), found[0][0] if found else -1

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has all of it."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """Each process has a summand.

    Args:
        reduce_op: How they are combined.
    """

    reduce_op: str = "sum"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"


def __getattr__(name: str) -> Any:
    if name in ("DTensorSpec", "TensorMeta"):  # older programs import them from here
        from taeda.distributed.tensor import _dtensor_spec

        return getattr(_dtensor_spec, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
