"""The recorder behind `profile`: what is connected when a recording starts, and what it leaves behind."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from taeda_profiler import _C, module_names
from taeda_profiler.trace import Trace
from taeda_registry import spans
from taeda_registry.slots import nn, tensor

# Kinds of spans, as the C ABI numbers them.
USER, BACKWARD, MODULE, STEP, WAIT, FUNCTION, SYNCHRONIZE = range(7)

DEFAULT_MB = 1024
_ABI = (1, 3)

_connected: Any = None
os.register_at_fork(after_in_child=_C.abandon)


def connect() -> None:
    """Take the C ABI of the active tensor provider.

    Raises:
        RuntimeError: It has none, or one that is too old.
    """
    global _connected
    if _connected is not None:
        return
    capsule = getattr(tensor, "abi_capsule", None)
    if capsule is None:
        raise RuntimeError(
            f"profile: the provider of slot 'tensor' ({tensor.Tensor.__module__}) has no C ABI to observe operators by"
        )
    found = capsule(*_ABI, "taeda-profiler")
    _C.connect(found)
    _connected = found


class Recording:
    """One recording, from `start` to `stop`; the interpreter has at most one at a time.

    Args:
        shapes: Keep the shapes and dtypes of arguments.
        memory: Record what tensors take and give back.
        stacks: Keep where in the program each event comes from.
        devices: Record what devices do.
        modules: Record the forward of each module.
        whole: Names of operators whose arguments are kept as a whole.
        max_mb: Room for all events; what does not fit is counted and dropped.

    Raises:
        ValueError: `max_mb` is not positive.
    """

    def __init__(
        self,
        *,
        shapes: bool = False,
        memory: bool = False,
        stacks: bool = False,
        devices: bool = False,
        modules: bool = False,
        whole: Iterable[str] = (),
        max_mb: float = DEFAULT_MB,
    ) -> None:
        if not max_mb > 0:
            raise ValueError(f"profile: argument 'max_mb' must be positive, found {max_mb}")
        self._options = (shapes, memory, stacks, devices, frozenset(whole), int(max_mb * 2**20))
        self._modules = modules
        self._undo: list[Callable[[], object]] = []
        #: Whether it has begun and not ended.
        self.running = False

    def start(self) -> None:
        """Begin.

        Raises:
            RuntimeError: Another one is recording, here or on the devices; or a device cannot start.
        """
        connect()
        try:
            _C.start(*self._options)
        except Exception:  # it did not begin
            raise
        except BaseException:  # Ctrl-C
            _C.stop()
            raise
        self.running = True
        try:
            self._invite_new_threads()
            self._watch_waits()
            self._watch_optimizers()
            if self._modules:
                self._watch_modules()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> Trace:
        """End, and give what was recorded."""
        self.running = False
        try:
            raw = _C.stop()
        finally:
            try:
                self._take_back()
            except BaseException:  # Ctrl-C in the midst of it
                self._take_back()
                raise
        names = {thread.native_id: thread.name for thread in threading.enumerate()}
        return Trace(raw, names)

    def _take_back(self) -> None:
        while self._undo:
            self._undo[-1]()  # may be done twice
            del self._undo[-1]

    def _invite_new_threads(self) -> None:
        before = threading.getprofile()
        if before is None:
            threading.setprofile(_C.join_thread)
        else:

            def join(*event: Any) -> None:
                _C.join_thread()
                sys.setprofile(before)
                before(*event)

            threading.setprofile(join)
        self._undo.append(lambda: threading.setprofile(before))  # type: ignore[arg-type]

    def _watch_waits(self) -> None:
        before, spans.watcher = spans.watcher, _Watcher
        self._undo.append(lambda: setattr(spans, "watcher", before))

    def _watch_optimizers(self) -> None:
        module = getattr(_loaded("optim"), "optimizer", None)
        if not hasattr(module, "register_optimizer_step_pre_hook"):
            return
        self._undo.append(module.register_optimizer_step_pre_hook(_C.step_begins).remove)
        self._undo.append(module.register_optimizer_step_post_hook(_C.step_ends).remove)

    def _watch_modules(self) -> None:
        paths = module_names.Paths()

        def before(module: Any, args: Any) -> None:
            _C.span_begin(f"nn.Module: {paths.enter(module)}", MODULE)

        def after(module: Any, args: Any, result: Any) -> None:
            _C.span_end(f"nn.Module: {paths.leave(module)}", MODULE)

        hooks = nn.modules.module
        self._undo.append(hooks.register_module_forward_pre_hook(before).remove)
        self._undo.append(hooks.register_module_forward_hook(after, always_call=True).remove)


class _Watcher:
    """Takes the spans that parts mark."""

    begin = staticmethod(_C.span_begin)
    end = staticmethod(_C.span_end)


def _loaded(slot: str) -> Any:
    """The provider of a slot, if a program uses it."""
    import taeda_registry

    found = taeda_registry.active(slot)
    return None if found is None else found.module
