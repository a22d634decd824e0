"""Functions under the name of PyTorch's reference implementations, which programs call to compare with or to copy from.

They are the public functions themselves; `_refs.linalg`, `_refs.special`, `_refs.fft` and `_refs.nn` are the modules.
"""

from __future__ import annotations

from typing import Any

# Modules of PyTorch's of this kind; other names of the package are no references.
_MODULES = frozenset({"fft", "linalg", "nn", "special"})


def __getattr__(name: str) -> Any:
    import taeda

    if name in _MODULES:
        return getattr(taeda, name)
    for home in (taeda, taeda.Tensor, taeda.nn.functional):
        found = getattr(home, name, None) if not name.startswith("__") else None
        if callable(found) and not isinstance(found, type):
            return found
    raise AttributeError(f"module 'taeda._refs' has no attribute {name!r}")
