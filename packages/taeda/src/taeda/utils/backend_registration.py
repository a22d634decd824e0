"""Names for a device kept free by PyTorch; taeda's devices come with plug-ins under names of their own."""

from __future__ import annotations

from taeda import _absent

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"]

_INSTEAD = "a plug-in brings its device's name with it; see taeda.library.Backend"
generate_methods_for_privateuse1_backend = _absent.function(
    "taeda.utils.generate_methods_for_privateuse1_backend", _INSTEAD
)
rename_privateuse1_backend = _absent.function("taeda.utils.rename_privateuse1_backend", _INSTEAD)
