"""Whole tensors from the parts that files of several processes hold."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import taeda as torch
import taeda.distributed as dist
from taeda.distributed.checkpoint._hf_utils import file_name, parts_in, write_file, write_index

__all__ = ["consolidate_safetensors_files", "consolidate_safetensors_files_on_every_rank"]


def consolidate_safetensors_files(
    input_dir: str, output_dir: str, fqn_to_index_mapping: dict[str, int], num_threads: int = 1
) -> None:
    """Puts tensors together whose parts several files hold.

    Args:
        input_dir: Where those are.
        output_dir: Where whole tensors are written, with an index.
        fqn_to_index_mapping: The number of the file, from 1, for each tensor.
        num_threads: Accepted.

    Raises:
        ValueError: A tensor has no number.
    """
    _consolidate(Path(input_dir), Path(output_dir), fqn_to_index_mapping, 0, 1)


def consolidate_safetensors_files_on_every_rank(
    input_dir: str,
    output_dir: str,
    fqn_to_index_mapping: dict[str, int],
    num_threads: int = 1,
    process_group: Any = None,
) -> None:
    """`consolidate_safetensors_files` by several processes, each of which writes some of the files."""
    together = dist.is_initialized()
    rank, count = (dist.get_rank(process_group), dist.get_world_size(process_group)) if together else (0, 1)
    _consolidate(Path(input_dir), Path(output_dir), fqn_to_index_mapping, rank, count)
    if together:
        dist.barrier(process_group)


def _consolidate(source: Path, target: Path, numbers: dict[str, int], rank: int, count: int) -> None:
    parts: dict[str, list[Any]] = {}
    for part in parts_in(source):
        if part[1] not in numbers:
            raise ValueError(
                f"consolidate_safetensors_files: argument 'fqn_to_index_mapping' lacks {part[1]!r}, which is in "
                f"{part[0]}"
            )
        parts.setdefault(part[1], []).append(part)
    target.mkdir(parents=True, exist_ok=True)
    names = {number: file_name(number, max(numbers.values()), None) for number in set(numbers.values())}
    for number in sorted(names)[rank::count]:
        whole = {key: _joined(source, found) for key, found in parts.items() if numbers[key] == number}
        if whole:
            write_file(target / names[number], whole, {"format": "pt"})
    if rank == 0:
        total = sum(math.prod(_shape(found)) * found[0][4].itemsize for found in parts.values())
        write_index(target, {key: names[numbers[key]] for key in parts}, total)


def _shape(parts: list[Any]) -> list[int]:
    ends = ([at + size for at, size in zip(offsets, sizes, strict=True)] for _, _, offsets, sizes, _ in parts)
    return [max(each) for each in zip(*ends, strict=True)]


def _joined(folder: Path, parts: list[Any]) -> Any:
    whole = torch.empty(_shape(parts), dtype=parts[0][4])
    for name, key, offsets, sizes, _ in parts:
        place = tuple(slice(at, at + size) for at, size in zip(offsets, sizes, strict=True))
        whole[place] = torch.load(folder / name, map_location="cpu", weights_only=True)[key]
    return whole
