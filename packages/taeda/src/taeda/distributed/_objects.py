"""What the processes of a group do together with any objects, which travel as pickles.

Unpickling runs what the sender put there: use these functions among processes of one's own.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import taeda as torch
from taeda.distributed import _collectives as tensors
from taeda.distributed._world import chosen, warn_not_in_group


def _object_to_tensor(obj: Any, device: Any = None, group: Any = None) -> tuple[Any, Any]:
    """The pickle of an object as bytes, and their number."""
    file = io.BytesIO()
    pickle.Pickler(file).dump(obj)
    content = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)
    return content, torch.tensor([content.numel()], dtype=torch.int64)


def _tensor_to_object(tensor: Any, tensor_size: Any, group: Any = None) -> Any:
    """The object of which a tensor holds the pickle."""
    return pickle.loads(tensor.cpu().numpy().tobytes()[: int(tensor_size)])


def _joined(objects: Any) -> tuple[Any, Any]:
    """The pickles of several objects one after the other, and the length of each."""
    parts = [_object_to_tensor(obj) for obj in objects]
    if not parts:
        return torch.empty(0, dtype=torch.uint8), torch.empty(0, dtype=torch.int64)
    return torch.cat([content for content, _ in parts]), torch.cat([size for _, size in parts])


def _separate(content: Any, sizes: Any) -> list[Any]:
    return [_tensor_to_object(part, part.numel()) for part in content.split(sizes.tolist())]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Gives the objects of all processes to all: `object_list`, as long as the group, is written."""
    found = chosen(group)
    if found is None:
        warn_not_in_group("all_gather_object")
        return
    content, size = _object_to_tensor(obj)
    sizes = [torch.zeros_like(size) for _ in range(found.size())]
    tensors.all_gather(sizes, size, group)
    contents = [torch.empty(int(n), dtype=torch.uint8) for n in sizes]
    tensors.all_gather(contents, content, group)
    for place, part in enumerate(contents):
        object_list[place] = _tensor_to_object(part, part.numel())


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """Gives the objects of all processes to one, whose `object_gather_list` is written."""
    found = chosen(group)
    if found is None:
        warn_not_in_group("gather_object")
        return
    place = tensors._place(found, dst, group_dst, 0, "dst")
    mine = found.rank() == place
    if mine and not object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must be specified on destination rank.")
    if not mine and object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must NOT be specified on non-destination ranks.")
    content, size = _object_to_tensor(obj)
    sizes = [torch.zeros_like(size) for _ in range(found.size())]
    tensors.all_gather(sizes, size, group)
    contents = [torch.empty(int(n), dtype=torch.uint8) for n in sizes] if mine else None
    tensors.gather(content, contents, group=group, group_dst=place)
    if mine and contents is not None and object_gather_list is not None:
        object_gather_list[:] = [_tensor_to_object(part, part.numel()) for part in contents]


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
    group_src: int | None = None,
) -> None:  # fmt: skip
    """Gives the objects of one process to all others, whose lists, of the same length, are written."""
    found = chosen(group)
    if found is None:
        warn_not_in_group("broadcast_object_list")
        return
    place = tensors._place(found, src, group_src, 0, "src")
    mine = found.rank() == place
    content, sizes = _joined(object_list) if mine else _room(object_list)
    tensors.broadcast(sizes, group=group, group_src=place)
    if not mine:
        content = torch.empty(int(sizes.sum()), dtype=torch.uint8)
    tensors.broadcast(content, group=group, group_src=place)
    if not mine:
        object_list[:] = _separate(content, sizes)


def _room(objects: list[Any]) -> tuple[Any, Any]:
    return torch.empty(0, dtype=torch.uint8), torch.zeros(len(objects), dtype=torch.int64)


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None,
    src: int | None = None, group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Gives each process one of the objects of one; it becomes the first of `scatter_object_output_list`."""
    found = chosen(group)
    if found is None:
        warn_not_in_group("scatter_object_list")
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    place = tensors._place(found, src, group_src, 0, "src")
    mine = found.rank() == place
    if mine and (scatter_object_input_list is None or len(scatter_object_input_list) != found.size()):
        raise ValueError(
            "source rank must provide non-None scatter_object_input_list of one object for each process"
        )
    parts = [_object_to_tensor(obj) for obj in scatter_object_input_list or ()] if mine else []
    size = torch.zeros(1, dtype=torch.int64)
    tensors.scatter(size, [n for _, n in parts] or None, group=group, group_src=place)
    content = torch.empty(int(size), dtype=torch.uint8)
    tensors.scatter(content, [part for part, _ in parts] or None, group=group, group_src=place)
    scatter_object_output_list[0] = _tensor_to_object(content, size)


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None,
    group_dst: int | None = None, use_batch: bool = False,
) -> None:  # fmt: skip
    """Sends objects to one process."""
    content, sizes = _joined(object_list)
    tensors.send(sizes, dst, group, group_dst=group_dst)
    tensors.send(content, dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
    group_src: int | None = None, use_batch: bool = False,
) -> int:  # fmt: skip
    """Receives as many objects as the list has, from one process or from any; the sender's number in the job."""
    _, sizes = _room(object_list)
    sender = tensors.recv(sizes, src, group, group_src=group_src)
    content = torch.empty(int(sizes.sum()), dtype=torch.uint8)
    tensors.recv(content, sender, group)
    object_list[:] = _separate(content, sizes)
    return sender
