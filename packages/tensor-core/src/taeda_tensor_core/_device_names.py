"""Further names of a kind of device, found when they are asked for: older types, memory statistics, modules."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from taeda_tensor_core import (
    _C,
    _device_modules,
    _older_names,
    _plugins,
    backends,
    legacy_types,
    sharing,
    streams,
)

#: Questions that have one answer without such devices, and without a backend that says more.
_ANSWERS: dict[str, Any] = {
    "is_bf16_supported": False, "is_tf32_supported": False, "get_arch_list": [], "get_gencode_flags": "",
    "is_current_stream_capturing": False, "get_sync_debug_mode": 0,
    "has_half": False, "has_magma": False, "_initialized": False, "get_allocator_backend": "native",
    "get_per_process_memory_fraction": 1.0, "graph_pool_handle": (0, 0), "host_memory_stats": {},
    "host_memory_stats_as_nested_dict": {}, "memory_snapshot": [], "_snapshot": {"segments": [], "device_traces": []},
}  # fmt: skip
#: Bytes of a device: those that tensors hold now, and the most that they held. What a backend keeps beyond is its own
#: affair, so that what PyTorch calls reserved is the same.
_NOW = frozenset({"memory_allocated", "memory_reserved", "memory_cached"})
#: Such bytes by their names on Apple's devices; without one they raise, by which programs tell whether there is one.
_NOW_IF_THERE = frozenset({"current_allocated_memory", "driver_allocated_memory"})
_PEAK = frozenset({"max_memory_allocated", "max_memory_reserved", "max_memory_cached"})
_RESET_PEAK = frozenset({"reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached"})
#: What changes settings that nothing reads.
_NOTHING = frozenset({
    "reset_accumulated_memory_stats", "set_sync_debug_mode", "empty_host_cache",
    "reset_accumulated_host_memory_stats", "reset_peak_host_memory_stats", "set_per_process_memory_fraction",
    "caching_allocator_enable", "_record_memory_history",
})  # fmt: skip
#: What a vendor's libraries tell or do, which no backend hands on.
_REFUSED = frozenset({
    "caching_allocator_alloc", "caching_allocator_delete", "change_current_allocator", "clock_rate", "check_error",
    "current_blas_handle", "current_solver_handle", "device_memory_used", "get_stream_from_external",
    "list_gpu_processes", "make_graphed_callables", "memory_usage", "power_draw", "temperature", "use_mem_pool",
    "utilization", "_dump_snapshot",
})  # fmt: skip
_REFUSED_CLASSES = ("ExternalStream", "GreenContext", "MemPool", "PluggableAllocator")
_CONSTANTS = frozenset({"has_half", "has_magma", "_initialized"})


class _DeviceBlock:
    """Context in which a device of the kind is the current one; a negative index, or None, changes nothing."""

    def __init__(self, kind: ModuleType, device: Any) -> None:
        index = -1 if device is None else device if isinstance(device, int) else _C.device(device).index
        self.idx = -1 if index is None else index
        self._kind: Any = kind

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = self._kind.current_device()
            self._kind.set_device(self.idx)

    def __exit__(self, *_: object) -> None:
        if self.idx >= 0:
            self._kind.set_device(self.prev_idx)


class _Graph:
    """Work of a device, recorded to be run again: none is recorded here, and making one says so."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("graphs of a device's work are not recorded; call the functions themselves")


def _error_class(name: str, kind: str) -> type:
    """The error of a number that a vendor's runtime answered."""

    def __init__(self: Any, code: int) -> None:
        RuntimeError.__init__(self, f"{kind} error {code}")
        self.code = code

    return type(
        name, (RuntimeError,), {"__init__": __init__, "__doc__": "A number that the runtime answered."}
    )


def _refused(module: Any, name: str) -> Any:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{module.__name__}.{name}: backends do not hand on what a vendor's libraries do"
        )

    return refused


def _refused_class(module: Any, name: str) -> type:
    refused = _refused(module, name)
    body = {"__init__": refused, "__module__": module.__name__, "__doc__": "Cannot be made."}
    return type(name, (), body)


@contextmanager
def _caching_allocator_disabled() -> Iterator[None]:
    """A context in which nothing changes: what is kept for reuse is a backend's own affair."""
    yield


def _nested(module: Any, device: Any = None) -> dict[str, Any]:
    """The numbers of `memory_stats` by the parts of their names."""
    tree: dict[str, Any] = {}
    for name, count in _memory_stats(module, device).items():
        *path, last = name.split(".")
        place = tree
        for part in path:
            place = place.setdefault(part, {})
        place[last] = count
    return tree


def find(module: Any, name: str) -> Any:
    """The value of a name of a kind of device.

    Raises:
        AttributeError: There is no such name.
    """
    if name == "__all__":  # what a program imports by a star
        return _listing(module)
    value = _value(module, name)
    if value is _MISSING:
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
    module.__dict__[name] = value
    return value


_MISSING = object()


def _listing(module: Any) -> list[str]:
    """The public names of a kind of device."""
    found = {
        *vars(type(module)), *_older_names.TENSORS.values(), *_ANSWERS, *_NOW, *_NOW_IF_THERE, *_PEAK,
        *_RESET_PEAK, *_NOTHING, *_REFUSED, *_makers(module, module._device), *_device_modules.MODULES,
        *_REFUSED_CLASSES, "AcceleratorError",
        "graph", *getattr(_plugins.names_of(module._device), "__all__", ()),
    }  # fmt: skip
    return sorted(name for name in found if not name.startswith("_"))


def _value(module: Any, name: str) -> Any:
    kind = module._device
    own = _plugins.names_of(kind)
    if own is not None and name in own.__all__:
        return getattr(own, name)
    if name in _older_names.TENSORS.values():
        return legacy_types.legacy_type(name, kind)
    if name == f"{kind.capitalize()}Error":
        return _error_class(name, kind)
    if name.endswith("Storage") or name == "AcceleratorError":
        return getattr(_package(), name, _MISSING)
    if name in _CONSTANTS:
        return _ANSWERS[name]
    if name in _ANSWERS:
        return _named(
            name, lambda *args, **kwargs: _ANSWERS[name], "What is true without a backend that says more."
        )
    if name in _NOW:
        return _named(
            name, lambda device=None: _memory(module, device)[0], "Bytes that tensors of a device hold."
        )
    if name in _NOW_IF_THERE:
        return _named(
            name,
            lambda: (module.init(), _memory(module, None)[0])[1],
            "Bytes that tensors of the device hold.",
        )
    if name in _PEAK:
        return _named(
            name, lambda device=None: _memory(module, device)[1], "The most bytes that tensors held."
        )
    if name in _RESET_PEAK:
        return _named(
            name,
            lambda device=None: (
                _C._forget_memory_peak(module._one(device)) if module.is_available() else None
            ),
            "Begin anew to look for the most bytes that tensors hold.",
        )
    if name in _NOTHING:
        return _named(name, lambda *args, **kwargs: None, "Nothing is counted or set.")
    if name in _REFUSED or name == f"{kind}rt":  # the runtime itself
        return _named(name, _refused(module, name), "Raises NotImplementedError.")
    if name.endswith(_REFUSED_CLASSES):
        return _refused_class(module, name)
    return _more(module, kind, name)


def _memory(module: Any, device: Any) -> tuple[int, ...]:
    """Bytes now and at most, bytes ever taken, how often they were taken and given back; zeros where nobody counts."""
    counts = _C._device_memory(module._one(device)) if module.is_available() else None
    return counts or (0,) * 5


def _memory_stats(module: Any, device: Any = None) -> dict[str, int]:
    now, peak, taken, takings, givings = _memory(module, device)
    if not takings:
        return {}
    return {
        "allocated_bytes.all.current": now,
        "allocated_bytes.all.peak": peak,
        "allocated_bytes.all.allocated": taken,
        "allocated_bytes.all.freed": taken - now,
        "allocation.all.current": takings - givings,
        "allocation.all.allocated": takings,
        "allocation.all.freed": givings,
    }


def _memory_summary(module: Any, device: Any = None, abbreviated: bool = False) -> str:
    stats = _memory_stats(module, device)
    return "\n".join(f"{name:32}{count:>20}" for name, count in stats.items())


def _can_access_peer(module: Any, device: Any, peer_device: Any) -> bool:
    """Whether copies between two devices go without the host.

    Raises:
        RuntimeError: There is no such device.
    """
    places = [_C.device(module._one(each)) for each in (device, peer_device)]
    return places[0] != places[1] and backends.capabilities(module._device)["peer-copies"]


def _collect_lent() -> None:
    """Let go of memory that was sent to other processes and that none of them holds any more."""
    for collect in sharing.collectors:
        collect()


def _capability(module: Any, device: Any = None) -> tuple[int, ...] | None:
    """Major and minor number of what a device can do; None where its backend tells none."""
    found = module.get_device_properties(device).get("capability")
    return None if found is None else tuple(found)


def _makers(module: Any, kind: str) -> dict[str, Callable[[], Any]]:
    """What makes names that depend on the kind."""
    return {
        "device": lambda: functools.partial(_DeviceBlock, module),
        "device_of": lambda: (
            lambda obj: _DeviceBlock(module, obj.get_device() if obj.device.type == kind else None)
        ),
        "StreamContext": lambda: module.stream,
        "default_stream": lambda: module.current_stream,
        "default_generators": lambda: tuple(
            _C._default_generator(f"{kind}:{index}") for index in range(module.device_count())
        ),
        "OutOfMemoryError": lambda: _package().OutOfMemoryError,
        "amp": lambda: _amp(module),
        "nvtx": lambda: _marks(module),
        "memory_stats": lambda: functools.partial(_memory_stats, module),
        "memory_stats_as_nested_dict": lambda: functools.partial(_nested, module),
        "caching_allocator_disabled": lambda: _caching_allocator_disabled,
        "ipc_collect": lambda: _collect_lent,
        "memory_summary": lambda: functools.partial(_memory_summary, module),
        "can_device_access_peer": lambda: functools.partial(_can_access_peer, module),
        "mem_get_info": lambda: lambda device=None: _free_and_total(module, device),
        "recommended_max_memory": lambda: lambda: _free_and_total(module, None)[1],
        "get_device_capability": lambda: functools.partial(_capability, module),
        "Stream": lambda: streams.of_kind(module, streams.Stream),
        "Event": lambda: streams.of_kind(module, streams.Event),
        "_lazy_init": lambda: module.init,
        "_get_device_index": lambda: module._utils._get_device_index,
        "_lazy_call": lambda: functools.partial(_when_there, module),
        "random": lambda: module,
        "memory": lambda: module,
        "streams": lambda: module,
    }


def _more(module: Any, kind: str, name: str) -> Any:
    if name == "graph" or name.endswith("Graph"):
        return _Graph
    if kind == "cpu":
        from taeda_tensor_core import _processor

        if name in _processor.FUNCTIONS:
            return _processor.FUNCTIONS[name]
    if name in _device_modules.MODULES:
        return _device_modules.MODULES[name](module)
    made = _makers(module, kind)
    return made[name]() if name in made else _MISSING


def _when_there(module: Any, callable: Callable[[], Any], **kwargs: Any) -> None:
    """Call a function that needs the device, where there is one."""
    if module.is_available():
        module.init()
        callable()


def _marks(module: Any) -> ModuleType:
    """The module `nvtx` of a kind: marks for a vendor's profiler.

    Where there is a device they count their depth as PyTorch's do, for programs that leave them in; no profiler hears
    of them. Without one they raise RuntimeError.
    """
    made = ModuleType(
        f"{module.__name__}.nvtx", "Marks for a vendor's profiler, which hears nothing of them."
    )
    state = threading.local()
    numbers = itertools.count(1)

    def asked() -> None:
        if not module.is_available():
            raise RuntimeError(
                f"{made.__name__}: there is no such profiler; taeda.profiler.record_function marks ranges"
            )

    def mark(msg: str) -> None:
        """Accept a mark."""
        asked()

    def range_push(msg: str) -> int:
        """Begin a range; how many others it is in."""
        asked()
        state.depth = getattr(state, "depth", 0) + 1
        return int(state.depth) - 1

    def range_pop() -> int:
        """End the range that was begun last; how many others it is in."""
        asked()
        state.depth = max(getattr(state, "depth", 0) - 1, 0)
        return int(state.depth)

    def range_start(msg: str) -> int:
        """Begin a range that may end anywhere; its number."""
        asked()
        return next(numbers)

    def range_end(range_id: int) -> None:
        """End such a range."""
        asked()

    @contextmanager
    def marked(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
        """A range as a context or decorator."""
        range_push(msg)
        try:
            yield
        finally:
            range_pop()

    for function in (mark, range_push, range_pop, range_start, range_end):
        setattr(made, function.__name__, function)
    vars(made)["range"] = marked
    return made


def _named(name: str, function: Any, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _package() -> Any:
    import sys

    return sys.modules[__package__]


def _free_and_total(module: Any, device: Any) -> tuple[int, int]:
    facts = module.get_device_properties(device)
    return facts["free_memory"], facts["total_memory"]


def _amp(module: Any) -> ModuleType:
    """The module `amp` of a kind: `autocast` and `GradScaler` for it."""
    from taeda_tensor_core import amp

    made = ModuleType(f"{module.__name__}.amp", f"Mixed precision on devices of the kind {module._device!r}.")
    vars(made).update(amp.for_device(module._device))
    made.__dict__["__path__"] = []
    return made
