"""Checkpoints in several safetensors files with an index, in Hugging Face's layout.

The index is JSON: ``{"metadata": {"total_size": bytes}, "weight_map": {tensor name: file name}}``. The files lie beside
it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

import taeda_tensor_core as tc
from taeda_registry import files
from taeda_tensor_core.checkpoint import write_safetensors
from taeda_tensor_core.checkpoint.common import DTYPES, Budget, dtype_name, fail, shown
from taeda_tensor_core.checkpoint.read_safetensors import parse
from taeda_tensor_core.checkpoint.source import Source

SUFFIX = ".index.json"


def read(path: str, load: Callable[[str], Any]) -> dict[str, Any]:
    """All tensors that an index names, in its order.

    Args:
        path: of the index.
        load: gives the tensors of one file by name.
    """
    with open(path, "rb") as file:
        source = Source(file)
        index = parse(source.part(0, source.size), "the index", Budget(source.size))
    places = index.get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
        fail("the index has no weight_map from tensors to files")
    folder, shards = os.path.dirname(path), {}
    for name in dict.fromkeys(places.values()):
        if os.path.basename(name) != name or name in ("", ".", ".."):
            fail(f"the index names the file {shown(name)}, which is not beside it")
        shards[name] = load(os.path.join(folder, name))
    for key, name in places.items():
        if not isinstance(shards[name], dict) or key not in shards[name]:
            fail(f"the index says that tensor {shown(key)} is in {shown(name)}, which lacks it")
    return {key: shards[name][key] for key, name in places.items()}


def write(state: Mapping[str, Any], path: str, most: int) -> None:
    """Writes the files, then the index, so that an index never names what is not there."""
    for name, value in state.items():
        if not isinstance(name, str) or not isinstance(value, tc.Tensor):
            raise TypeError(
                f"save_sharded: expected tensors by name, found {type(value).__name__} at {name!r}"
            )
    groups = _groups(state, most)
    stem = path[: -len(SUFFIX)] if path.endswith(SUFFIX) else path
    stem, suffix = os.path.splitext(stem)
    places, total = {}, 0
    for number, group in enumerate(groups, 1):
        name = f"{stem}-{number:05}-of-{len(groups):05}{suffix or '.safetensors'}"
        head, chunks = write_safetensors.encode({key: state[key] for key in group})
        files.write(name, (head, *chunks))
        places.update(dict.fromkeys(group, os.path.basename(name)))
        total += sum(len(chunk) for chunk in chunks)
    index = {"metadata": {"total_size": total}, "weight_map": places}
    files.write(f"{stem}{suffix or '.safetensors'}{SUFFIX}", [json.dumps(index, indent=2).encode()])


def _groups(state: Mapping[str, Any], most: int) -> list[list[str]]:
    """Names by file, in their order; tensors that share memory stay together."""
    units: dict[Any, list[str]] = {}
    for name, tensor in state.items():
        units.setdefault(tensor._storage_facts()[5] if tensor.numel() else name, []).append(name)
    groups: list[list[str]] = [[]]
    size = 0
    for names in units.values():
        needed = sum(state[name].numel() * DTYPES[dtype_name(state[name])][1] for name in names)
        if groups[-1] and size + needed > most:
            groups.append([])
            size = 0
        groups[-1] += names
        size += needed
    return groups
