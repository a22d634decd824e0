"""Classes of errors that are RuntimeErrors as well as Python's closer ones.

Operators raise them where PyTorch raises either: a program catches `IndexError` or `RuntimeError`, as it likes.
`DataError`, for what cannot become a tensor, is a TypeError, a ValueError and a RuntimeError: PyTorch raises each of
them for some data. `CallError`, a TypeError and a RuntimeError, says that a call does not fit the schema of an operator
of `taeda.ops`.

Example:
    >>> try:
    ...     taeda.ones(2)[5]
    ... except RuntimeError as error:
    ...     print(isinstance(error, IndexError))
    True
"""

from __future__ import annotations

from taeda_tensor_core import _C

__all__ = [
    "CallError",
    "DataError",
    "IndexError",
    "MemoryError",
    "OutOfMemoryError",
    "OverflowError",
    "UnknownDeviceError",
    "UnusableDeviceError",
    "ZeroDivisionError",
]

CallError = _C._CallError
DataError = _C._DataError
IndexError = _C._IndexError
MemoryError = OutOfMemoryError = _C._MemoryError
OverflowError = _C._OverflowError
ZeroDivisionError = _C._ZeroDivisionError


class UnknownDeviceError(RuntimeError, AssertionError):
    """No backend, installed or not yet loaded, has the device that was named."""


class UnusableDeviceError(RuntimeError, AssertionError):
    """A plug-in has the device that was named, and failed when it was loaded: there is no driver, say."""
