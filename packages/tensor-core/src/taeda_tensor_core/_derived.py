"""Views in place."""

from __future__ import annotations

from taeda_tensor_core._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


# --- views in place ---


def t_(self: Tensor) -> Tensor:
    """`t` in place: at most 2 dimensions, which change places."""
    if self.dim() > 2:
        raise RuntimeError(f"t_: expected at most 2 dimensions, found shape {tuple(self.shape)}")
    return self.transpose_(0, 1) if self.dim() == 2 else self


def swapaxes_(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """`swapaxes` in place."""
    return self.transpose_(axis0, axis1)


def swapdims_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """`swapdims` in place."""
    return self.transpose_(dim0, dim1)


def as_strided_(
    self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """`as_strided` in place: the tensor shows other elements of its storage.

    Raises:
        RuntimeError: It requires grad, or the elements lie outside of the storage.
    """
    if self.requires_grad:
        raise RuntimeError("as_strided_: a tensor that requires grad cannot be given another layout in place")
    return self.set_(self.as_strided(size, stride, storage_offset))


METHODS = [t_, swapaxes_, swapdims_, as_strided_]
