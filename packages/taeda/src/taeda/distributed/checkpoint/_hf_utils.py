"""Files of safetensors as checkpoints have them: their names, their index, and which parts of tensors they hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import taeda as torch
from taeda_registry import files

SHARDING, OFFSETS, INDEX = "DCP_SHARDING_INFO", "saved_offsets", "model.safetensors.index.json"


@dataclass
class _HFStorageInfo:
    """Where a part of a tensor stands."""

    relative_path: str
    shape: Any
    dtype: Any


def file_name(number: int, count: int, shard: int | None) -> str:
    """The name of a file: of a checkpoint's `count`, of one process where `shard` is given."""
    name = f"model-{number:05}-of-{count:05}.safetensors"
    return name if shard is None else f"shard-{shard:05}-{name}"


def write_file(path: Path, tensors: dict[str, Any], facts: dict[str, str]) -> None:
    """Writes tensors by name, with texts about them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(tensors, path, format="safetensors", metadata=facts)


def write_index(folder: Path, places: dict[str, str], total: int) -> None:
    """Writes in which file each tensor is, and the bytes of all."""
    with files.replacing(folder / INDEX) as file:
        file.write(json.dumps({"metadata": {"total_size": total}, "weight_map": places}, indent=2).encode())


def parts_in(folder: Path) -> Iterator[tuple[str, str, list[int], list[int], Any]]:
    """The file, name, begin, shape and dtype of everything that the files of a folder hold."""
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            facts = json.loads(file.read(int.from_bytes(file.read(8), "little"))).get("__metadata__", {})
        offsets = json.loads(facts[SHARDING]) if facts.get(SHARDING) else {}
        for key, value in torch.load(path, map_location="cpu", weights_only=True, mmap=True).items():
            begin = offsets[key][OFFSETS] if key in offsets else [0] * value.dim()
            yield path.name, key, begin, list(value.shape), value.dtype
