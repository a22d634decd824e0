"""Comparisons and random tensors for tests of programs."""

from taeda_tensor_core.testing._comparison import assert_allclose, assert_close, default_tolerances
from taeda_tensor_core.testing._creation import make_tensor
from taeda_tensor_core.testing._file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "default_tolerances", "make_tensor"]
