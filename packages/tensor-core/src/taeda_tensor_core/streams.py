"""Streams and events of devices: work of one stream is in order, streams run beside each other."""

from __future__ import annotations

import threading
from typing import Any, TypeVar

from taeda_tensor_core import _C

__all__ = ["Event", "Stream", "current_stream", "set_stream"]

_T = TypeVar("_T")


def checked(value: Any, kind: type[_T], function: str, argument: str) -> _T:
    """The argument of a function, or TypeError when it is of another kind."""
    if not isinstance(value, kind):
        raise TypeError(
            f"{function}: argument {argument!r} must be of type {kind.__name__}, found {type(value).__name__}"
        )
    return value


def of_kind(module: Any, base: type) -> type:
    """`Stream` or `Event` of one kind of device, the class that `module.Stream` is.

    Its instances are plain streams and events; whether one belongs to the kind is asked of its device.
    """
    kind = module._device

    class Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, base) and instance.device.type == kind  # type: ignore[attr-defined]

    def new_stream(cls: type, device: Any = None, priority: int = 0) -> Stream:
        return Stream(module._one(device), priority)

    def new_event(
        cls: type,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> Event:
        return Event(kind, enable_timing, blocking, interprocess)

    made = new_stream if base is Stream else new_event
    doc = f"{base.__doc__.splitlines()[0][:-1]}, of a device of the kind {kind!r}." if base.__doc__ else None
    return Meta(base.__name__, (), {"__new__": made, "__module__": module.__name__, "__doc__": doc})


class _Entered(threading.local):
    """Streams that this thread is in by `with`, each with the one to go back to."""

    def __init__(self) -> None:
        self.stack: list[tuple[Stream, Stream]] = []


_entered = _Entered()


def _accelerator(function: str) -> Any:
    """The device that is meant where none is given."""
    from taeda_tensor_core import accelerator

    found = accelerator.current_accelerator()
    if found is None:
        raise RuntimeError(f"{function}: argument 'device' is None, and there is no accelerator")
    return found


class Stream:
    """A queue of work on a device; as a context it is this thread's current stream of that device.

    Args:
        device: Device or its name; by default the accelerator.
        priority: A lower number may go first.

    Raises:
        NotImplementedError: The device has no streams. RuntimeError: No device was given, and there is no accelerator.

    Example:
        >>> side = taeda.Stream("mydev")  # doctest: +SKIP
        >>> with side:
        ...     y = x @ x
        >>> taeda.current_stream("mydev").wait_stream(side)
    """

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self._handle = _C._stream_make(_accelerator("Stream") if device is None else device, priority)

    @classmethod
    def _of(cls, handle: Any) -> Stream:
        made = cls.__new__(cls)
        made._handle = handle
        return made

    @property
    def device(self) -> Any:
        """Where the work is done."""
        return _C._stream_facts(self._handle)[0]

    @property
    def priority(self) -> int:
        """As given when it was made."""
        return _C._stream_facts(self._handle)[2]

    @property
    def stream_id(self) -> int:
        """The backend's handle of it; 0 is the device's default stream."""
        return _C._stream_facts(self._handle)[1]

    def __getattr__(self, name: str) -> int:
        """The handle, as programs for one kind of device call it: ``<device>_stream``."""
        if name.endswith("_stream") and name == f"{self.device.type}_stream":
            return self.stream_id
        raise AttributeError(f"a Stream has no attribute {name!r}")

    def synchronize(self) -> None:
        """Wait until all its work is done; errors of that work come out here."""
        _C._stream_synchronize(self._handle)

    def query(self) -> bool:
        """Whether all its work is done."""
        return _C._stream_query(self._handle)

    def record_event(self, event: Event | None = None) -> Event:
        """Put an event, given or new, behind the work so far."""
        event = Event(self.device) if event is None else checked(event, Event, "Stream.record_event", "event")
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let further work wait for an event; one that was never recorded is not waited for."""
        checked(event, Event, "Stream.wait_event", "event")
        _C._event_wait(event._handle, self._handle)

    def wait_stream(self, stream: Stream) -> None:
        """Let further work wait for what is now in another stream."""
        self.wait_event(checked(stream, Stream, "Stream.wait_stream", "stream").record_event())

    def __enter__(self) -> Stream:
        before = current_stream(self.device)
        set_stream(self)
        _entered.stack.append((self, before))
        return self

    def __exit__(self, *exception: object) -> None:
        if not _entered.stack or _entered.stack[-1][0] is not self:
            raise RuntimeError(
                f"Stream.__exit__: {self!r} is not the stream that this thread entered last"
                f" and has not left; found {_entered.stack[-1][0] if _entered.stack else 'none'}"
            )
        set_stream(_entered.stack.pop()[1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, int]:
        return _C._stream_facts(self._handle)[:2]

    def __repr__(self) -> str:
        device, address, priority = _C._stream_facts(self._handle)
        return f"Stream(device={str(device)!r}, priority={priority}, id={address:#x})"


class Event:
    """A mark in a stream.

    Args:
        device: Device or its name; by default the accelerator.
        enable_timing: Whether `elapsed_time` is wanted.
        blocking: Accepted for PyTorch's sake: how a thread waits in `synchronize` is its device's affair.
        interprocess: Whether other processes shall see the mark, which none can.

    Raises:
        NotImplementedError: The device has no events, or they do not measure time; `interprocess`.

    Example:
        >>> done = taeda.current_stream("mydev").record_event()  # doctest: +SKIP
        >>> done.synchronize()
    """

    def __init__(
        self,
        device: Any = None,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        if interprocess:
            raise NotImplementedError(
                "Event: argument 'interprocess' is True, but marks belong to one process"
            )
        self.device = _C.device(_accelerator("Event") if device is None else device)
        self._handle = _C._event_make(self.device, enable_timing)

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark behind the work that is in the stream, by default the current one."""
        stream = self._stream(stream, "Event.record")
        _C._event_record(self._handle, stream._handle)

    def wait(self, stream: Stream | None = None) -> None:
        """Let further work of the stream, by default the current one, wait for the mark."""
        self._stream(stream, "Event.wait").wait_event(self)

    def _stream(self, stream: Stream | None, function: str) -> Stream:
        return current_stream(self.device) if stream is None else checked(stream, Stream, function, "stream")

    def query(self) -> bool:
        """Whether the work before the mark is done; true also when it was never recorded."""
        return _C._event_query(self._handle)

    def synchronize(self) -> None:
        """Wait until the work before the mark is done; no wait when it was never recorded."""
        _C._event_synchronize(self._handle)

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this mark to another.

        Raises:
            ValueError: One was not made with `enable_timing`, or was never recorded.
            RuntimeError: The work before one is not done yet.
        """
        checked(end, Event, "Event.elapsed_time", "end")
        return _C._event_elapsed(self._handle, end._handle)


def current_stream(device: Any) -> Stream:
    """This thread's current stream of a device."""
    return Stream._of(_C._stream_current(device))


def set_stream(stream: Stream) -> None:
    """Make a stream this thread's current one of its device."""
    _C._stream_set(checked(stream, Stream, "set_stream", "stream")._handle)
