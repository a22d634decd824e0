"""Where compiled packages find what they need of tensor-core."""

from __future__ import annotations

import os

_HERE = os.path.dirname(os.path.abspath(__file__))


def get_include() -> str:
    """Folder with the C++ headers (``taeda/tensor.h`` and so on)."""
    return os.path.join(_HERE, "include")


def get_library_dir() -> str:
    """Folder with ``libtaeda.so``."""
    return os.path.join(_HERE, "lib")


def get_ops_dir() -> str:
    """Folder with the operator declarations (``<family>.yaml``)."""
    return os.path.join(_HERE, "ops")
