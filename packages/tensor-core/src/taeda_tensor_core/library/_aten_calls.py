"""Calls of built-in operators as PyTorch's tracers and dispatch modes tell them: other names, more arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: The traces that are being made, the innermost last: whoever makes one enters it.
traces: list[Any] = []

#: Arguments that PyTorch's operators have behind those of ours.
_MORE: dict[str, tuple[Any, ...]] = {
    "batch_norm": (True,),
    "group_norm": (True,),
    "instance_norm": (True,),
    "layer_norm": (True,),
}


def convolution(name: str, arguments: Sequence[Any]) -> tuple[Any, ...] | None:
    """The arguments of PyTorch's one operator of all convolutions; None for other operators.

    They are input, weight, bias, stride, padding, dilation, transposed, output_padding and groups.
    """
    if name in ("conv1d", "conv2d", "conv3d"):
        rank = int(name[4])
        *front, stride, padding, dilation, groups = arguments
        each = (list(given) * (rank if len(given) == 1 else 1) for given in (stride, padding, dilation))
        return (*front, *each, False, [0] * rank, groups)
    if name in ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
        *front, output_padding, groups, dilation = arguments
        return (*front, dilation, True, output_padding, groups)
    return None


def aten_call(name: str, arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """The name and arguments under which PyTorch's tracer keeps a call of a built-in operator.

    Example:
        >>> aten_call("max.dim", (x, 0, False))[0]
        'max'
    """
    if (found := convolution(name, arguments)) is not None:
        return "_convolution", (*found, False, False, True, True)
    if name.endswith(".padding"):
        return "_convolution_mode", tuple(arguments)
    short = name.partition(".")[0]
    return short, (*arguments, *_MORE.get(short, ()))
