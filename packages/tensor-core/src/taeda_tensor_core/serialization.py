"""Checkpoints as safetensors files: data and a JSON header, no code, loaded entirely or not at all.

The format is public (https://github.com/huggingface/safetensors): eight bytes of header length, a JSON header that maps
names to dtype, shape and byte range, then the bytes. A flat dict of tensors is stored as exactly that, so that other
readers understand it; nesting, numbers, strings and views of shared memory are described in the header's
``__metadata__``.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import IO, Any

import taeda_tensor_core as tc
from taeda_tensor_core.checkpoint import files
from taeda_tensor_core.checkpoint.common import CheckpointError
from taeda_tensor_core.checkpoint.read_safetensors import decode
from taeda_tensor_core.checkpoint.write_safetensors import encode

__all__ = ["CheckpointError", "load", "save"]


def save(obj: Any, f: str | os.PathLike[str] | IO[bytes]) -> None:
    """Stores tensors, numbers, strings and containers of them.

    A view costs only its visible elements. Tensors of one dtype that have elements in common share memory again after
    loading. A regular file is replaced as a whole: the new one is written beside it under another name, flushed to the
    disk and renamed, so that an interrupted or failed save leaves the old file; mode and (where allowed) owner are
    kept, other hard links keep the old content. A symbolic link stays and what it points to is written. Pipes, devices
    and file objects are written through; a failure there leaves what was written.

    Args:
        obj: a state dict or any nesting of dicts (str or int keys), lists and tuples.
        f: path or binary file.

    Raises:
        TypeError: something else inside ``obj``, or a text file; nothing was written.
        OSError: the file could not be written completely.

    Example:
        >>> save(model.state_dict(), "model.safetensors")
    """
    head, chunks = encode(obj)
    files.write(f, (head, *chunks))


def load(
    f: str | os.PathLike[str] | IO[bytes], map_location: Any = None, *, weights_only: bool = True
) -> Any:
    """Reads what `save` wrote, any safetensors file (as a dict of tensors), or a zip file of PyTorch's.

    No code of the file is run. Everything is checked first: on an error nothing was loaded.

    Args:
        f: path or binary file.
        map_location: device to put the tensors on; dicts and functions as in PyTorch are not taken.
        weights_only: accepted as in PyTorch; files that hold more than data are an error either way.

    Raises:
        CheckpointError: the file is malformed, or holds something other than tensors, containers, numbers and
            strings; the text says where.

    Example:
        >>> model.load_state_dict(load("model.safetensors"))
    """
    device = None if map_location is None else tc.device(map_location)
    if hasattr(f, "read"):
        data = f.read()  # type: ignore[union-attr]
        loaded = _read(io.BytesIO(data), len(data))
    else:
        with open(os.fspath(f), "rb") as file:  # type: ignore[arg-type]
            loaded = _read(file, os.fstat(file.fileno()).st_size)
    return loaded if device is None else _moved(loaded, device, {})


def _read(file: Any, size: int) -> Any:
    start = file.read(8)
    file.seek(0)
    if start[:4] == b"PK\x03\x04":
        from taeda_tensor_core.checkpoint.pickle_reader import read_pt

        return read_pt(file, size)
    if start[:2] == b"\x80\x02" and int.from_bytes(start, "little") > size:
        raise CheckpointError(
            "load: the file is a bare pickle, which may hold code; expected safetensors or a zip file of PyTorch 1.6 "
            "or later"
        )
    return decode(file, size)


def _moved(value: Any, device: Any, done: dict[int, Any]) -> Any:
    """A copy of a nested object with its tensors on a device; what was one object stays one."""
    if id(value) in done:
        return done[id(value)]
    out = value
    if isinstance(value, tc.Tensor):
        out = value.to(device)
    elif isinstance(value, Mapping):
        out = {key: _moved(item, device, done) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        out = type(value)(_moved(item, device, done) for item in value)
    done[id(value)] = out
    return out
