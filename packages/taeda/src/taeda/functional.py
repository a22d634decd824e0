"""Where PyTorch keeps functions that it writes in Python; they are those of the top level."""

from __future__ import annotations

from taeda import _names

_LISTED = (
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors",
    "cartesian_prod", "cdist", "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "pca_lowrank", "split",
    "stft", "svd_lowrank", "tensordot", "unique", "unique_consecutive", "unravel_index",
)  # fmt: skip
__all__ = list(_LISTED)
#: Older programs find the last one here, though no list names it.
_NAMES = frozenset({*_LISTED, "align_tensors"})


#: What editors import from here, since PyTorch's module uses it.
_USED = {"F": "nn.functional", "Tensor": "Tensor"}


def __getattr__(name: str) -> object:
    if name in _USED:
        first, _, rest = _USED[name].partition(".")
        found = _names.lookup(first)
        return getattr(found, rest) if rest else found
    if name not in _NAMES:
        raise AttributeError(f"module 'taeda.functional' has no attribute {name!r}")
    return _names.lookup(name)
