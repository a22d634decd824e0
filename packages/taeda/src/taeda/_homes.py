"""What classes and functions say of their home while the library is torch: the module that PyTorch has them in.

Programs read it: `type(layer).__module__.startswith("torch.nn")`, registries, pickles. The rule: a file's names have
the place where its package stands, so `taeda_nn.modules.linear` is `torch.nn.modules.linear`. A file of the library's
own, whose name begins with an underscore or which `_home_names` lists, keeps its names but for those that a package
above shows. What PyTorch has elsewhere stands in `_home_names`. Providers of other makers are left alone.
"""

from __future__ import annotations

import functools
import sys
from collections import defaultdict
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import taeda_registry
from taeda import _aliases, _children, _reachable
from taeda._home_names import ALSO, FOLDED, INNER, MOVED, NAMED
from taeda_registry.selection import choose
from taeda_registry.table import FIRST_PARTY, get_slot

_KINDS = (type, FunctionType, BuiltinFunctionType, functools._lru_cache_wrapper)
_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE

# What has been told, with the home that it said before, and the modules that were entered under torch's name.
_told: list[tuple[Any, str]] = []
_entered: dict[str, ModuleType] = {}
# Paths of homes that may be no module here yet.
_wanted: set[str] = set()


@functools.cache
def _packages() -> dict[str, tuple[str, str | None]]:
    """By the name of a package or module of the library: its path below torch, and its slot."""
    found: dict[str, tuple[str, str | None]] = {"taeda": ("", None), "taeda_tensor_core": ("", "tensor")}
    for path, slot in _aliases.SLOTS.items():
        found.setdefault(get_slot(slot).module, (path.partition(".")[2], slot))
    for path, (slot, part) in _aliases.PARTS.items():
        found.setdefault(f"{get_slot(slot).module}.{part}", (path.partition(".")[2], slot))
    for path, package in _aliases.PACKAGES.items():
        found[package] = path.partition(".")[2], None
    return found


@functools.cache
def _path(name: str) -> str | None:
    """Where the library's module of that name stands below torch; None where it stands nowhere."""
    rest, found = "", _packages().get(name)
    head = name
    while found is None:
        head, dot, last = head.rpartition(".")
        if not dot:
            return None
        rest = f".{last}{rest}"
        found = _packages().get(head)
    path, slot = found
    if slot is not None and not _is_first_party(slot):
        return None
    return MOVED.get(name, f"{path}{rest}".removeprefix("."))


@functools.cache
def _is_first_party(slot: str) -> bool:
    """Whether the library's own package has the slot: the homes in another's are that one's."""
    active = taeda_registry.active(slot)
    return (choose(slot).label if active is None else active.name) in (FIRST_PARTY, get_slot(slot).module)


@functools.cache
def _is_inner(name: str) -> bool:
    """Whether a module is the library's own, and PyTorch has none in its place."""
    parent, _, last = name.rpartition(".")
    return last.startswith("_") or name in INNER or parent in FOLDED or (bool(parent) and _is_inner(parent))


def _torch(path: str) -> str:
    return f"torch.{path}" if path else "torch"


def _lazily(name: str) -> list[str]:
    """What taeda_tensor_core shows of a module of its own when it is asked for it."""
    core, _, rest = name.partition(".")
    if core != "taeda_tensor_core":
        return []
    names = getattr(sys.modules.get("taeda_tensor_core._lazy"), "NAMES", {})
    return str(names.get(rest, "")).split()


def settle(module: ModuleType) -> None:
    """Let the names of a module of the library, whose file has been run, say their homes."""
    name = module.__name__
    path = _path(name)
    if path is None:
        return
    own = _homes_in(name, path)
    shown = own.copy()
    shown.update(dict.fromkeys(_lazily(name), ""))
    around = (f"{name}.", *ALSO.get(name, ()))
    homes = set()
    for item, value in vars(module).copy().items():
        if isinstance(value, ModuleType):
            if (
                value.__spec__ is None and value.__name__ == f"{name}.{item}"
            ):  # of the extension, without a file
                settle(value)
            continue
        said = value.__module__ if isinstance(value, _KINDS) and item[:2] != "__" else None
        if said == name:
            home = own[value.__name__] if name not in MOVED or value.__name__[0] != "_" else None
        elif isinstance(said, str) and said.startswith(around) and value.__name__ == item and _is_inner(said):
            home = shown[item]
        else:
            continue
        if home is not None:
            homes.add(home)
            _tell(value, _torch(home))
    if path in homes and name not in MOVED:
        _enter(path, module)
    _wanted.update(homes)


def _homes_in(name: str, path: str) -> dict[str, str | None]:
    """By its name: the home of what stands in a module; None for what keeps its own."""
    inner = _is_inner(name)
    found = defaultdict[str, str | None](lambda: None if inner else path)
    if inner:
        found.update(dict.fromkeys(_lazily(name), ""))
    for home, items in NAMED.get(name, {}).items():
        found.update(dict.fromkeys(items.split(), home))
    return found


def _tell(value: Any, home: str) -> None:
    if isinstance(value, type) and value.__flags__ & _IMMUTABLE:
        return
    said = value.__module__
    methods = vars(value).values() if isinstance(value, type) else ()
    inside = f"{value.__qualname__}."
    functions = (item.__func__ if isinstance(item, (staticmethod, classmethod)) else item for item in methods)
    own = (
        item for item in functions if isinstance(item, FunctionType) and item.__qualname__.startswith(inside)
    )
    for item in (value, *own):
        if item.__module__ == said:
            _told.append((item, said))
            item.__module__ = home


def _enter(path: str, module: ModuleType) -> None:
    """Enter a module where its names say that they are: programs look there without importing it."""
    name = _torch(path)
    if not path or name in sys.modules:
        return
    _reachable.reach(module, path)
    _entered[name] = module
    sys.modules[name] = module
    _aliases.complete(name, module)


def _bring(package: str) -> None:
    """Enter the homes in a package that are other modules of it: thin files, and other names for one."""
    for path in sorted(_wanted):
        if path.rpartition(".")[0] == package:
            _wanted.discard(path)
            if (
                _torch(path) not in sys.modules
                and (found := _aliases.module_for(f"taeda.{path}")) is not None
            ):
                _enter(path, found)


def _settle_loaded(module: ModuleType) -> None:
    settle(module)
    # Within a package alone: an import of another one from here, where this one's lock is held, could make a ring.
    if hasattr(module, "__path__") and (path := _path(module.__name__)):
        _bring(path)


def spec(name: str, path: Any, target: Any, found: Any, own: Any) -> Any:
    """How a module is loaded that is to tell the homes of its names; None where the library has none of that name.

    Args:
        name, path, target: As the import system gives them to a finder.
        found: What is known already.
        own: The finder that asks.
    """
    if name.rpartition(".")[2] in _children.STARTERS:
        _children.pass_on(name)
    if name.partition(".")[0].partition("_")[0] != "taeda":
        return None
    for finder in () if found is not None else sys.meta_path:
        if finder is not own and (found := finder.find_spec(name, path, target)) is not None:
            break
    if found is not None and hasattr(found.loader, "exec_module"):
        found.loader = _reachable.LoadedThen(found.loader, _settle_loaded)
    return found


def show() -> None:
    """Let everything that is loaded say its home."""
    for name, module in sys.modules.copy().items():
        if name.partition(".")[0].partition("_")[0] == "taeda" and getattr(module, "__name__", None) == name:
            settle(module)
        if name.rpartition(".")[2] in _children.STARTERS:
            _children.pass_on(name)


def hide() -> None:
    """Let everything say again what it said before."""
    while _told:
        value, said = _told.pop()
        value.__module__ = said
    while _entered:
        name, module = _entered.popitem()
        if sys.modules.get(name) is module:
            del sys.modules[name]
