"""Import hook: ``taeda.nn.functional`` is the very module object of the slot's provider."""

from __future__ import annotations

import sys

from taeda import _names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

# Import path under taeda, and the slot whose provider stands there.
SLOTS = {
    "taeda.nn": "nn",
    "taeda.optim": "optim",
    "taeda.autograd": "autograd",
    "taeda.utils.data": "data",
    "taeda.data": "data",
    "taeda.multiprocessing": "multiprocessing",
}
# Import path under taeda, and the submodule of the tensor slot that stands there.
PARTS = {"taeda.utils._python_dispatch": "python_dispatch"}
OWN = frozenset({"taeda.utils", "taeda._names", "taeda._aliases"})


class _Alias:
    """Loader that hands out a module which exists under another name."""

    def __init__(self, name: str, module: ModuleType) -> None:
        self._name = name
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just overwritten it; reload and pickling need the module's own.
        module.__spec__ = self._spec
        if self._name in SLOTS and not hasattr(module, "__path__"):
            _announce(self._name, module)


def _announce(name: str, module: ModuleType) -> None:
    """Enter the submodules of a provider that is no package: below such a module Python asks no import hook."""
    from taeda_registry.interface import interface
    from taeda_registry.submodules import submodule

    for child in interface(SLOTS[name]).submodules:
        found = submodule(module, child)
        if found is not None:
            sys.modules.setdefault(f"{name}.{child}", found)


class _Finder:
    """Answers imports below ``taeda.`` that belong to a slot."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not name.startswith("taeda.") or name in OWN:
            return None
        module = _module_for(name)
        if module is None:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, _Alias(name, module), is_package=hasattr(module, "__path__"))


def _module_for(name: str) -> ModuleType | None:
    from taeda_registry.resolution import resolve

    if name in PARTS:
        return _below(resolve("tensor"), PARTS[name])
    for prefix, slot in SLOTS.items():
        if name == prefix:
            return resolve(slot)
        if name.startswith(prefix + "."):
            return _below(resolve(slot), name[len(prefix) + 1 :])
    tensor, rest = resolve("tensor"), name[len("taeda.") :]
    found = _below(tensor, rest)
    return _names.device_module(tensor, rest) if found is None and "." not in rest else found


def _below(module: ModuleType | None, dotted: str) -> ModuleType | None:
    from taeda_registry.submodules import submodule

    for part in dotted.split("."):
        module = submodule(module, part) if module is not None else None
    return module


def install() -> None:
    """Put the hook before the path search, which would load a second copy of the provider's submodules."""
    if not any(finder is _Finder for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder)
