"""Values that one stage sends to another: a head that says what they are, then each tensor.

The receiver need not know shapes beforehand, so microbatches may differ in size and a value may be a number or None.
"""

from __future__ import annotations

import json
from typing import Any

import taeda as torch
import taeda.distributed as dist

# Bytes of a head; a longer description follows it.
_HEAD = 256
_COUNT = 8


def _described(value: Any, what: str) -> Any:
    if isinstance(value, torch.Tensor):
        from taeda.distributed.tensor import DTensor

        if isinstance(value, DTensor):
            raise TypeError(f"{what}: expected plain tensors between stages, found a DTensor")
        return [str(value.dtype).rpartition(".")[2], list(map(int, value.shape)), bool(value.requires_grad)]
    if value is None or isinstance(value, (bool, float, str)):
        return {"value": value}
    if isinstance(value, int):
        return {"value": int(value)}  # sizes are ints of a class of their own
    raise TypeError(
        f"{what}: expected tensors, numbers, strings or None between stages, found {type(value).__name__}"
    )


def _bytes(content: bytes) -> Any:
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def send(values: list[Any], group: Any, place: int, tag: int, what: str) -> list[Any]:
    """Begin to send values to a process.

    Args:
        values: Tensors, numbers, strings, None.
        group: The processes; None for all.
        place: The number of the receiver in the group.
        tag: Tells messages apart; those of one tag arrive in their order.
        what: Begins the texts of errors.

    Returns:
        What is to be waited for, with the tensors that are on their way.
    """
    text = json.dumps([_described(value, what) for value in values]).encode()
    start = len(text).to_bytes(_COUNT, "little") + text[: _HEAD - _COUNT]
    pieces = [_bytes(start.ljust(_HEAD, b"\0"))]
    if len(text) > _HEAD - _COUNT:
        pieces.append(_bytes(text[_HEAD - _COUNT :]))
    pieces += [value.detach().contiguous() for value in values if isinstance(value, torch.Tensor)]
    return [(dist.isend(piece, group=group, group_dst=place, tag=tag), piece) for piece in pieces]


def receive(group: Any, place: int, tag: int, device: Any) -> list[Any]:
    """Wait for the values of a process; a tensor that wanted a gradient there wants one here.

    Args:
        group, place, tag: As in `send`.
        device: Where tensors are put.
    """

    def take(like: Any) -> Any:
        dist.irecv(like, group=group, group_src=place, tag=tag).wait()
        return like

    head = take(torch.empty(_HEAD, dtype=torch.uint8)).numpy().tobytes()
    length = int.from_bytes(head[:_COUNT], "little")
    text = head[_COUNT : _COUNT + length]
    if length > len(text):
        text += take(torch.empty(length - len(text), dtype=torch.uint8)).numpy().tobytes()
    found = []
    for row in json.loads(text):
        if isinstance(row, dict):
            found.append(row["value"])
            continue
        dtype, shape, wants = row
        value = take(torch.empty(shape, dtype=getattr(torch, dtype), device=device))
        found.append(value.requires_grad_(wants))
    return found
