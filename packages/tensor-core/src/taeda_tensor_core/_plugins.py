"""Finding and loading the plug-ins that offer devices: one thread loads a device, all of it or nothing of it."""

from __future__ import annotations

import os
import sys
import threading
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, NamedTuple

from taeda_tensor_core import _C
from taeda_tensor_core.errors import UnknownDeviceError, UnusableDeviceError

GROUP = "taeda.backends"
#: Where plug-ins name the module of further names of `taeda.<device>`.
NAMES_GROUP = "taeda.device_names"
#: Where a module that is named by an entry point keeps its plug-in: the path of a library, or a capsule.
ATTRIBUTE = "__taeda_plugin__"


class Failure(NamedTuple):
    """Why a device cannot be used, what may help, and what was installed and imported when that was found."""

    error: BaseException
    remedy: str
    installed: frozenset[tuple[str, int]]
    modules: tuple[str, ...]


_failures: dict[str, Failure] = {}


class _Turns:
    """Which thread loads which device. Others wait for it, unless that would never end."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._loading: dict[str, int] = {}
        self._waiting: dict[int, str] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """This thread's turn to load a device."""
        me = threading.get_ident()
        with self._changed:
            while name in self._loading:
                self._check_way_out(name, me)
                self._waiting[me] = name
                try:
                    self._changed.wait()
                finally:
                    del self._waiting[me]
            self._loading[name] = me
        try:
            yield
        finally:
            with self._changed:
                del self._loading[name]
                self._changed.notify_all()

    def _check_way_out(self, name: str, me: int) -> None:
        wanted: str | None = name
        while wanted is not None:
            thread = self._loading.get(wanted, 0)
            if thread == me:
                raise RuntimeError(
                    f"device {name!r} is asked for while it is being loaded: its plug-in uses it before registering "
                    "it, or plug-ins need each other's devices"
                )
            wanted = self._waiting.get(thread)


_turns = _Turns()
# The thread that loads something does not exist in a child.
os.register_at_fork(after_in_child=_turns.__init__)


@contextmanager
def _registering(joins: bool) -> Iterator[None]:
    """What this thread registers inside is seen by other threads at the end, or taken back when the block raises.

    Args:
        joins: Leave both to the block around this one.
    """
    from taeda_tensor_core.library import _registration

    # Within a block around this one, what is registered from Python is collected there already.
    _C._begin_loading()
    try:
        with nullcontext() if joins else _registration.collecting() as made:
            try:
                yield
            except BaseException:
                if made is not None:
                    made.undo()
                raise
    except BaseException:
        _C._end_loading("undo")
        raise
    _C._end_loading("join" if joins else "show")


def load(plugin: Any) -> None:
    """What `backends.load` does."""
    with _registering(joins=_C._is_loading()):
        if callable(plugin):
            plugin = plugin()
        if isinstance(plugin, types.ModuleType):
            plugin = getattr(plugin, ATTRIBUTE, None)
        if plugin is None:
            return
        if isinstance(plugin, (str, os.PathLike)):
            _C._load_plugin(_library_path(os.fspath(plugin)))
        elif type(plugin).__name__ == "PyCapsule":
            _C._start_plugin(plugin)
        else:
            raise TypeError(
                f"load: expected a path, a capsule, a module or a function, found {type(plugin).__name__}"
            )


def _library_path(path: str) -> str:
    # The system's loader takes a bare name for one of its own search path; a file that is here is meant.
    return os.path.abspath(path) if os.path.exists(path) else path


def discover(name: str) -> None:
    """Called by the core with the name of a device that this thread cannot see."""
    with _turns.of(name):
        if name not in _C._backend_names():  # another thread may have loaded it
            _find(name)


def _find(name: str) -> None:
    if is_known_to_fail(name):
        raise _unusable(name, _failures[name]) from _failures[name].error
    forget(name)
    points = offered()
    offering = [point for point in points if point.name == name]
    if not offering:
        raise _unknown(name, points)
    before = set(sys.modules)
    try:
        with _registering(joins=False):
            _load_from(offering, name)
    except (Exception, SystemExit) as error:  # a plug-in may not end the program
        remedy = "" if "try: " in str(error) else _remedy(offering[0])
        package = offering[0].module.partition(".")[0]
        brought = (m for m in list(sys.modules) if m not in before and m.partition(".")[0] == package)
        failure = _failures[name] = Failure(error, remedy, _installed(), tuple(brought))
        raise _unusable(name, failure) from error


def _load_from(offering: list[Any], name: str) -> None:
    if len(offering) > 1:
        owners = ", ".join(sorted(_distribution(point) for point in offering))
        raise RuntimeError(
            f"several distributions offer it: {owners}; try: pip uninstall, for all but one of them"
        )
    load(offering[0].load())
    if name not in _C._backend_names():
        raise RuntimeError(f"{_distribution(offering[0])} was loaded and registered no device of that name")


def failed() -> dict[str, BaseException]:
    """What `backends.failures` gives."""
    there = _C._backend_names()
    return {name: failure.error for name, failure in _failures.items() if name not in there}


def is_known_to_fail(name: str) -> bool:
    """Whether the device's plug-in failed, and nothing was installed since."""
    failure = _failures.get(name)
    return failure is not None and failure.installed == _installed()


def forget(name: str) -> None:
    """Lets a device that failed be tried again, with its modules as they are then."""
    failure = _failures.pop(name, None)
    for module in failure.modules if failure else ():
        sys.modules.pop(module, None)
    if failure:
        import importlib

        importlib.invalidate_caches()


_offered: dict[str, tuple[object, list[Any]]] = {}


def offered(group: str = GROUP) -> list[Any]:
    """The entry points of all devices: programs ask for absent ones at every turn, and reading takes long.

    They are read again when an installer has changed a folder of the path.
    """
    folders = _folders()
    if group not in _offered or _offered[group][0] != folders:
        from taeda_registry.discovery import installed

        _offered[group] = (folders, installed(group))
    return list(_offered[group][1])


class _Folders:
    """The folders of the path with their times, which change when something is installed into them.

    They are looked at again after a twentieth of a second: loops ask whether there is a device at every turn.
    """

    _PERIOD = 0.05

    def __init__(self) -> None:
        self._path: list[str] = []
        self._until = 0.0
        self._found: list[tuple[str, int]] = []

    def __call__(self) -> list[tuple[str, int]]:
        now = time.monotonic()
        if now >= self._until or self._path != sys.path:
            self._path, self._found = list(sys.path), list(self._look())
            self._until = now + self._PERIOD
        return self._found

    @staticmethod
    def _look() -> Iterator[tuple[str, int]]:
        for folder in sys.path:
            with suppress(OSError):
                yield folder, os.stat(folder or ".").st_mtime_ns


_folders = _Folders()


def names_of(name: str) -> types.ModuleType | None:
    """The Python module whose public names `taeda.<device>` has too; None without one.

    It is imported before the device is loaded, so its functions say what is true without one.
    """
    point = next((point for point in offered(NAMES_GROUP) if point.name == name), None)
    return None if point is None else point.load()


_described: tuple[list[tuple[str, int]], frozenset[tuple[str, int]]] | None = None


def _installed() -> frozenset[tuple[str, int]]:
    """The folders where installers describe distributions, with their times: any pip command changes them."""
    global _described
    folders = _folders()
    if _described is None or _described[0] != folders:
        _described = folders, _look_up_installed()
    return _described[1]


def _look_up_installed() -> frozenset[tuple[str, int]]:
    found = set()
    for folder in sys.path:
        with suppress(OSError), os.scandir(folder or ".") as entries:
            described = [entry for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
            found.update((entry.path, entry.stat().st_mtime_ns) for entry in described)
    return frozenset(found)


def _pip_name(point: Any) -> str | None:
    """Name of the distribution; None for one whose metadata has none."""
    # `dist.name` warns, and one day raises, where there is none.
    return point.dist.metadata.get("Name") or None if point.dist else None


def _distribution(point: Any) -> str:
    name = _pip_name(point)
    return f"{name} {point.dist.version}" if name else point.value


def _remedy(point: Any) -> str:
    name = _pip_name(point)
    return f"; try: pip install --upgrade --force-reinstall {name}" if name else ""


def _unknown(name: str, points: list[Any]) -> UnknownDeviceError:
    known = ", ".join(_C._backend_names())
    offers = ", ".join(sorted(f"{point.name} ({_distribution(point)})" for point in points))
    offered = f"; installed plug-ins offer: {offers}" if offers else ""
    names = ", ".join(dict.fromkeys([*_C._backend_names(), *sorted(point.name for point in points)]))
    # The last sentence is PyTorch's: array-api-compat reads the names of all devices out of it.
    return UnknownDeviceError(
        f"device: unknown device {name!r}; known devices: {known}{offered}. "
        f"Expected one of {names} device type at start of device string: {name}"
    )


def _unusable(name: str, failure: Failure) -> UnusableDeviceError:
    cause = failure.error
    return UnusableDeviceError(
        f"device {name!r} cannot be used, its plug-in failed: {type(cause).__name__}: {cause}{failure.remedy}"
    )
