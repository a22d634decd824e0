"""Names of fake tensors: none exists, so that questions about them have an answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from taeda import _absent

__all__ = [
    "DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorConverter",
    "FakeTensorMode", "UnsupportedFakeTensorException", "is_fake", "maybe_get_fake_mode", "unset_fake_temporarily",
]  # fmt: skip

_REASON = "programs are not followed with fake tensors; use device='meta'"
FakeTensor = _absent.cls("taeda._subclasses.FakeTensor", _REASON)
FakeTensorMode = _absent.cls("taeda._subclasses.FakeTensorMode", _REASON)
FakeTensorConverter = _absent.cls("taeda._subclasses.FakeTensorConverter", _REASON)


class UnsupportedFakeTensorException(RuntimeError):
    """Never raised: nothing is followed."""


class DynamicOutputShapeException(RuntimeError):
    """Never raised: nothing is followed."""


class DataDependentOutputException(RuntimeError):
    """Never raised: nothing is followed."""


def maybe_get_fake_mode(t: Any) -> None:
    """The mode of a fake tensor: None, as none is one."""


@contextmanager
def unset_fake_temporarily() -> Iterator[None]:
    """A block without fake tensors, as all code is; yields the mode that was left, None."""
    yield


def is_fake(x: Any) -> bool:
    """Whether a tensor is a fake one: False."""
    return False
