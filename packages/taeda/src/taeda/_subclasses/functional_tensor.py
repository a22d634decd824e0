"""Names of tensors that stand for writing in place while a program is followed: there are none."""

from __future__ import annotations

from typing import Any

from taeda import _absent

__all__ = ["FunctionalTensor", "FunctionalTensorMode", "mb_unwrap_functional_tensor"]

_REASON = "programs are not followed, and writing in place stays as it is"
FunctionalTensor = _absent.cls("taeda._subclasses.functional_tensor.FunctionalTensor", _REASON)
FunctionalTensorMode = _absent.cls("taeda._subclasses.functional_tensor.FunctionalTensorMode", _REASON)


def mb_unwrap_functional_tensor(tensor: Any) -> Any:
    """The tensor."""
    return tensor
