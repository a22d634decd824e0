"""Questions about tensors of a vmap, and its level by hand, as libraries ask PyTorch's compiled part for them."""

from __future__ import annotations

from enum import Enum
from typing import Any

from taeda.func import _vmap
from taeda.func._levels import Batching, is_transforming, levels

__all__ = [
    "RandomnessType",
    "TransformType",
    "_add_batch_dim",
    "_remove_batch_dim",
    "_unwrap_batched",
    "_vmap_decrement_nesting",
    "_vmap_increment_nesting",
    "current_level",
    "get_unwrapped",
    "is_batchedtensor",
    "is_functionaltensor",
    "is_functorch_wrapped_tensor",
    "is_gradtrackingtensor",
    "is_legacy_batchedtensor",
    "maybe_current_level",
    "maybe_get_bdim",
    "maybe_get_level",
    "unwrap_if_dead",
]  # fmt: skip

_add_batch_dim, _remove_batch_dim = _vmap._add_batch_dim, _vmap._remove_batch_dim
_vmap_increment_nesting = _vmap._vmap_increment_nesting
_vmap_decrement_nesting = _vmap._vmap_decrement_nesting


class TransformType(Enum):
    """Kinds of transforms."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4


class RandomnessType(Enum):
    """What random operators do inside a vmap."""

    Error = 0
    Same = 1
    Different = 2


def _innermost(tensor: Any) -> tuple[int, Batching | None]:
    """Number and level of the innermost vmap that a tensor depends on; 0 and None where it depends on none."""
    for number, level in reversed(list(enumerate(levels(), 1))):
        if level.whole(tensor) is not None:
            return number, level
    return 0, None


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a tensor is that of one example of a vmap in force."""
    return _innermost(tensor)[0] > 0


is_functorch_wrapped_tensor = is_batchedtensor


def is_gradtrackingtensor(tensor: Any) -> bool:
    """False: derivatives are taken on the graph of plain tensors."""
    return False


def is_functionaltensor(tensor: Any) -> bool:
    """False: writing in place stays as it is."""
    return False


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """False: there is one kind of vmap."""
    return False


def get_unwrapped(tensor: Any) -> Any:
    """The tensor of all the batch of the innermost vmap that a tensor depends on, the batch first; else itself."""
    level = _innermost(tensor)[1]
    return tensor if level is None else level.whole(tensor)


def maybe_get_bdim(tensor: Any) -> int:
    """Where the batch stands in `get_unwrapped`: 0; -1 where the tensor depends on none."""
    return 0 if is_batchedtensor(tensor) else -1


def maybe_get_level(tensor: Any) -> int:
    """The number of the innermost vmap that a tensor depends on, 1 for the outermost; -1 for none."""
    return _innermost(tensor)[0] or -1


def maybe_current_level() -> int | None:
    """How many vmaps are in force; None for none."""
    return len(levels()) or None


def current_level() -> int:
    """How many vmaps are in force.

    Raises:
        RuntimeError: None is.
    """
    if not levels():
        raise RuntimeError("current_level: no transform is in force")
    return len(levels())


def unwrap_if_dead(tensor: Any) -> Any:
    """The tensor."""
    return tensor


def _are_functorch_transforms_active() -> bool:
    """Whether a vmap is in force or a program is being differentiated."""
    return bool(levels()) or is_transforming()


def _unwrap_batched(tensor: Any, level: int) -> tuple[Any, int | None]:
    """The tensor of all the batch of one vmap and where the batch stands; itself and None where it depends on none."""
    found = levels()[level - 1].whole(tensor) if 1 <= level <= len(levels()) else None
    return (tensor, None) if found is None else (found, 0)
