"""A group of processes whose devices work together by NCCL; what lies with the host goes over the sockets.

Work runs in a stream of the group's own, behind what was in the current one when it began. Waiting for it lets the
current stream wait, not the host. A thread watches what has not ended: when a member fails, or the time of the group
is over, the communicators are aborted, everything that is waited for ends with an error, and so does the next wait of
the host for the device.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import taeda as torch
from taeda.distributed._errors import DistBackendError
from taeda.distributed._group import ProcessGroup, _op, listed
from taeda.distributed._reductions import RedOpType, ReduceOp
from taeda.distributed._work import Work
from taeda.futures import Future

_LOOKS_EVERY = 0.05
_REDUCTIONS = {
    ReduceOp.SUM: "SUM", ReduceOp.AVG: "AVG", ReduceOp.PRODUCT: "PRODUCT", ReduceOp.MIN: "MIN", ReduceOp.MAX: "MAX",
}  # fmt: skip
# Of bool, whose numbers are bytes.
_OF_BOOL = {ReduceOp.SUM: "MAX", ReduceOp.PRODUCT: "MIN", ReduceOp.MIN: "MIN", ReduceOp.MAX: "MAX"}


def library() -> Any:
    """The device's part of NCCL; None where it is not there."""
    found: Any = getattr(torch.cuda, "nccl", None)
    return found if hasattr(found, "Communicator") and not found.unavailable_reason() else None


class DeviceFuture(Future):
    """A value that a stream has when it comes to an event; the host need not wait for it."""

    def __init__(self, work: NcclWork, value: Any, event: Any, stream: Any) -> None:
        super().__init__()
        self._work, self._event, self._stream = work, event, stream
        self.set_result(value)

    def value(self) -> Any:
        """The value; what the current stream does with it comes after the event."""
        if self._work._future._error is not None:
            raise self._work._future._error
        torch.cuda.current_stream(self._stream.device).wait_event(self._event)
        return super().value()

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A future of what `callback` returns, which is called at once, with the stream as the current one."""
        with torch.cuda.device(self._stream.device), self._stream:
            return DeviceFuture(self._work, callback(self), self._stream.record_event(), self._stream)


class NcclWork(Work):
    """Work of devices: an event of its stream, and how long it may take."""

    def __init__(self, group: NcclGroup, purpose: str, tensors: Any, source: int | None = None) -> None:
        super().__init__(source)
        self._group, self._purpose, self._tensors = group, purpose, tensors
        self._until = time.monotonic() + group._seconds
        self._event: Any = None
        self._stream: Any = None
        self._given: Any = None

    def get_future(self) -> Future:
        """The tensors that were given, as a stream has them."""
        return DeviceFuture(self, self._given, self._event, self._stream)

    def result(self) -> Any:
        """The tensors that were given; what the current stream does with them comes after."""
        return self.get_future().value()

    def _over(self) -> bool:
        """Whether the device has come to its end."""
        return self._event is not None and bool(self._event.query())

    def is_completed(self) -> bool:
        return self._future.done() or self._over()

    def is_success(self) -> bool:
        return self.is_completed() and self._future._error is None

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Lets the current stream wait; with `timeout` the host waits so long.

        Raises:
            DistBackendError: It failed, or did not end in time: then the group's communicators are aborted.
        """
        if timeout is not None:
            until = time.monotonic() + timeout.total_seconds()
            while not self.is_completed():
                if time.monotonic() >= until:
                    self._group._fail(f"{self._purpose}: not done after {timeout.total_seconds():g} seconds")
                time.sleep(0.001)
        if self._future._error is not None:
            raise self._future._error
        if self._event is not None:
            torch.cuda.current_stream(self._event.device).wait_event(self._event)
        return True


class NcclGroup(ProcessGroup):
    """A process group whose tensors of CUDA devices go by NCCL."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._nccl = library()
        self._members: dict[Any, Any] = {}  # communicators, by device and by the pair that they are for
        self._streams: dict[Any, Any] = {}
        self._failure: DistBackendError | None = None
        self._lock = threading.RLock()
        self._open: list[NcclWork] = []
        self._changed = threading.Condition()
        self._watcher: threading.Thread | None = None
        self._ended = False

    # Communicators

    def _member(self, device: Any, pair: tuple[int, int] | None = None) -> Any:
        """The communicator of all, or of two, processes for one of this process's devices."""
        key = (device.index, pair)
        found = self._members.get(key)
        if found is not None:
            return found
        ranks = list(range(self.size())) if pair is None else sorted(pair)
        # Members make communicators in the same order, on whichever of their devices.
        number = sum(1 for _, other in self._members if other == pair)
        where = f"nccl/{'all' if pair is None else f'{ranks[0]}-{ranks[1]}'}/{number}"
        with torch.cuda.device(device):
            try:
                if self._me == ranks[0]:
                    self._store.set(where, self._nccl.unique_id().hex())
                word = self._store.get(where).decode()
                made = self._nccl.Communicator(
                    device.index, bytes.fromhex(word), ranks.index(self._me), len(ranks), self._seconds
                )
            except self._nccl.NcclError as error:
                raise DistBackendError(f"rank {self._me}: joining {len(ranks)} processes: {error}") from error
        self._members[key] = made
        return made

    def _stream(self, device: Any) -> Any:
        if device.index not in self._streams:
            self._streams[device.index] = torch.cuda.Stream(device)
        return self._streams[device.index]

    # Work

    def _on_device(
        self,
        purpose: str,
        tensors: Sequence[Any],
        begin: Callable[[Callable[..., None]], Any],
        later: bool,
        pairs: Sequence[tuple[int, int] | None] = (None,),
        result: Any = None,
        source: int | None = None,
    ) -> Work:
        """Begin work on tensors of one device; `begin` is given what begins each part of it."""
        device = self._checked(purpose, tensors)
        self._calls += pairs[0] is None
        work = NcclWork(self, purpose, list(tensors), source)
        with self._lock, self._watched(work), torch.cuda.device(device):
            members = [self._member(device, pair) for pair in pairs]
            stream = self._stream(device)
            stream.wait_stream(torch.cuda.current_stream(device))

            def part(what: str, place: int = 0, **named: Any) -> None:
                members[place].begin(self._nccl.Together[what], stream.stream_id, **named)

            with self._nccl.group(members):
                begin(part)
            for tensor in tensors:
                tensor.record_stream(stream)
            work._given, work._stream = tensors if result is None else result, stream
            work._event = stream.record_event()
        if not later:
            work.wait()
        return work

    def _checked(self, purpose: str, tensors: Sequence[Any]) -> Any:
        """The device of all.

        Raises:
            DistBackendError: The group has failed. ValueError: Several devices, or elements that lie apart.
        """
        if self._failure is not None:
            raise DistBackendError(f"{purpose}: the group has failed before: {self._failure}")
        device = tensors[0].device
        if any(tensor.device != device for tensor in tensors):
            found = sorted({str(tensor.device) for tensor in tensors})
            raise ValueError(f"{purpose}: tensors lie on {found}, expected one device")
        if not all(tensor.is_contiguous() for tensor in tensors):
            raise ValueError(f"{purpose}: Tensors must be contiguous")
        return device

    @contextlib.contextmanager
    def _watched(self, work: NcclWork) -> Iterator[None]:
        """Work that is begun within; what goes wrong ends the group."""
        with self._changed:
            if self._watcher is None:
                name = f"taeda-nccl-{self.group_name}"
                self._watcher = threading.Thread(target=self._watch, name=name, daemon=True)
                self._watcher.start()
            self._open.append(work)
            self._changed.notify_all()
        try:
            yield
        except (self._nccl.NcclError, DistBackendError) as error:
            self._fail(str(error) if isinstance(error, DistBackendError) else f"{work._purpose}: {error}")
        except BaseException:
            with self._changed:
                self._open.remove(work)
            raise

    def _watch(self) -> None:
        """The thread."""
        while True:
            with self._changed:
                while not self._open and not self._ended:
                    self._changed.wait()
                if self._ended and not self._open:
                    return
                found = list(self._open)
            for work in found:
                if work._over():
                    with self._changed:
                        if work in self._open:
                            self._open.remove(work)
                    if not work._future.done():
                        work._future.set_result(work._given)
            late = [work for work in found if not work.is_completed() and time.monotonic() > work._until]
            said = [text for member in list(self._members.values()) if (text := member.failure())]
            with contextlib.suppress(DistBackendError):
                if late:
                    self._fail(f"{late[0]._purpose}: not done after {self._seconds:g} seconds")
                elif said and self._failure is None:
                    self._fail(said[0])
            time.sleep(_LOOKS_EVERY)

    def _fail(self, text: str) -> None:
        """Abort everything; whoever waits is told.

        Raises:
            DistBackendError: Always.
        """
        with self._changed:
            first = self._failure is None
            failure = self._failure or DistBackendError(
                f"rank {self._me} of group {self.group_name}: NCCL: {text}"
            )
            self._failure = failure
            opened, self._open = self._open, []
        if first:
            for (index, _), member in list(self._members.items()):
                member.abort()
                self._nccl.fail_later(index, str(failure))
        for work in opened:
            if not work._future.done():
                work._future.set_exception(failure)
        raise failure

    def abort(self) -> None:
        """Ends what the group's devices do together; nothing further can begin."""
        with contextlib.suppress(DistBackendError):
            self._fail("the program aborted it")

    def shutdown(self) -> None:
        """Waits for what has begun, and leaves the communicators."""
        super().shutdown()
        for stream in self._streams.values() if self._failure is None else ():
            stream.synchronize()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._watcher is not None:
            self._watcher.join()
            self._watcher = None
        for member in self._members.values() if self._failure is None else ():
            with contextlib.suppress(self._nccl.NcclError):  # others may have ended without leaving
                member.leave()
        self._members.clear()

    # Collective operations

    def _reduction(self, purpose: str, tensor: Any, op: RedOpType) -> int:
        known = _OF_BOOL if tensor.dtype is torch.bool else _REDUCTIONS
        if op not in known:
            raise ValueError(f"{purpose}: Cannot use {op} with NCCL on {tensor.dtype}")
        return int(self._nccl.Reduction[known[op]])

    def allreduce(self, tensors: Any, op: Any = ReduceOp.SUM, later: bool = True) -> Work:
        """See `ProcessGroup`."""
        tensors, op = listed(tensors), _op(op)
        if not _is_there(tensors):
            return super().allreduce(tensors, op, later)

        def begin(part: Callable[..., None]) -> None:
            for t in tensors:
                part("ALL_REDUCE", source=t, target=t, reduction=self._reduction("all_reduce", t, op))

        return self._on_device("all_reduce", tensors, begin, later)

    def broadcast(self, tensors: Any, root: int = 0, later: bool = True) -> Work:
        """See `ProcessGroup`."""
        tensors = listed(tensors)
        if not _is_there(tensors):
            return super().broadcast(tensors, root, later)

        def begin(part: Callable[..., None]) -> None:
            for t in tensors:
                part("BROADCAST", **_both(t), peer=root)

        return self._on_device("broadcast", tensors, begin, later)

    def reduce(self, tensors: Any, root: int = 0, op: Any = ReduceOp.SUM, later: bool = True) -> Work:
        """See `ProcessGroup`."""
        tensors, op = listed(tensors), _op(op)
        if not _is_there(tensors):
            return super().reduce(tensors, root, op, later)

        def begin(part: Callable[..., None]) -> None:
            for t in tensors:
                part("REDUCE", source=t, target=t, reduction=self._reduction("reduce", t, op), peer=root)

        return self._on_device("reduce", tensors, begin, later)

    def _exchange(self, purpose: str, sent: Any, outputs: Any, later: bool) -> Work:
        every = [tensor for given, taken in zip(sent, outputs, strict=True) for tensor in (*given, *taken)]
        if not _is_there(every):
            return super()._exchange(purpose, sent, outputs, later)
        gathers = purpose == "all_gather"

        def begin(part: Callable[..., None]) -> None:
            for given, taken in zip(sent, outputs, strict=True):
                if gathers and _in_a_row(taken) and given[0].numel() == taken[0].numel():
                    part("ALL_GATHER", source=_bytes(given[0]), target=_bytes(taken[0]))
                    continue
                for place, target in enumerate(taken):
                    if gathers:  # their sizes may differ
                        source = given[0] if place == self._me else target
                        part("BROADCAST", source=_bytes(source), target=_bytes(target), peer=place)
                    else:
                        part("SEND", source=_bytes(given[place]), peer=place)
                        part("RECEIVE", target=_bytes(target), peer=place)

        return self._on_device(purpose, every, begin, later, result=outputs)

    def gather(self, outputs: Any, inputs: Any, root: int = 0, later: bool = True) -> Work:
        """See `ProcessGroup`."""
        taken = outputs[0] if self._me == root else []
        if not _is_there([*taken, *inputs]):
            return super().gather(outputs, inputs, root, later)

        def begin(part: Callable[..., None]) -> None:
            part("SEND", source=_bytes(inputs[0]), peer=root)
            for place, target in enumerate(taken):
                part("RECEIVE", target=_bytes(target), peer=place)

        return self._on_device("gather", [*inputs, *taken], begin, later, result=outputs)

    def scatter(self, outputs: Any, inputs: Any, root: int = 0, later: bool = True) -> Work:
        """See `ProcessGroup`."""
        given = inputs[0] if self._me == root else []
        if not _is_there([*outputs, *given]):
            return super().scatter(outputs, inputs, root, later)

        def begin(part: Callable[..., None]) -> None:
            for place, source in enumerate(given):
                part("SEND", source=_bytes(source), peer=place)
            part("RECEIVE", target=_bytes(outputs[0]), peer=root)

        return self._on_device("scatter", [*outputs, *given], begin, later, result=outputs)

    def reduce_scatter(self, outputs: Any, inputs: Any, op: Any = ReduceOp.SUM, later: bool = True) -> Work:
        """See `ProcessGroup`."""
        op = _op(op)
        every = [*outputs, *(tensor for given in inputs for tensor in given)]
        if not _is_there(every):
            return super().reduce_scatter(outputs, inputs, op, later)

        def begin(part: Callable[..., None]) -> None:
            for target, given in zip(outputs, inputs, strict=True):
                how = self._reduction("reduce_scatter", target, op)
                if _in_a_row(given):
                    part("REDUCE_SCATTER", source=given[0], target=target, reduction=how)
                    continue
                for place, source in enumerate(given):
                    into = target if place == self._me else None
                    part("REDUCE", source=source, target=into, reduction=how, peer=place)

        return self._on_device("reduce_scatter", every, begin, later, result=outputs)

    def barrier(self, opts: Any = None, later: bool = True) -> Work:
        """See `ProcessGroup`; it waits for the devices that work in the group, too."""
        if self._failure is not None:
            raise DistBackendError(f"barrier: the group has failed before: {self._failure}")
        for index in self._streams:
            torch.cuda.synchronize(index)
        return super().barrier(opts, later)

    # From one process to another

    def send(self, tensors: Any, place: int, tag: int = 0) -> Work:
        """Send to one process; it runs when that one receives."""
        tensors = listed(tensors)
        if not _is_there(tensors):
            return super().send(tensors, place, tag)
        return self.batch([("send", tensors[0], place)])

    def recv(self, tensors: Any, place: int | None, tag: int = 0) -> Work:
        """Receive from one process.

        Raises:
            ValueError: From any: the library has no such thing.
        """
        tensors = listed(tensors)
        if not _is_there(tensors):
            return super().recv(tensors, place, tag)
        if place is None:
            raise ValueError("recv: NCCL receives from a process that is named, found none")
        return self.batch([("recv", tensors[0], place)])

    def batch(self, moves: Sequence[tuple[str, Any, int]]) -> Work:
        """Begin several sends and receives of device tensors together: ("send" or "recv", tensor, place)."""
        pairs = sorted({(min(self._me, place), max(self._me, place)) for _, _, place in moves})

        def begin(part: Callable[..., None]) -> None:
            for kind, tensor, place in moves:
                number = pairs.index((min(self._me, place), max(self._me, place)))
                other = int(place > self._me)
                if kind == "send":
                    part("SEND", number, source=_bytes(tensor), peer=other)
                else:
                    part("RECEIVE", number, target=_bytes(tensor), peer=other)

        tensors = [tensor for _, tensor, _ in moves]
        source = moves[0][2] if len(moves) == 1 else None
        return self._on_device(moves[0][0], tensors, begin, True, pairs, source=source)


def _is_there(tensors: Sequence[Any]) -> bool:
    return bool(tensors) and any(tensor.device.type == "cuda" for tensor in tensors)


def _bytes(tensor: Any) -> Any:
    """What is moved and not computed with: any element type."""
    return tensor.detach().reshape(-1).view(torch.uint8)


def _both(tensor: Any) -> dict[str, Any]:
    flat = _bytes(tensor)
    return {"source": flat, "target": flat}


def _in_a_row(tensors: Sequence[Any]) -> bool:
    """Whether tensors of one size lie one behind the other."""
    size = tensors[0].numel() * tensors[0].element_size()
    begin = tensors[0].data_ptr()
    return all(
        each.data_ptr() == begin + place * size and each.numel() == tensors[0].numel()
        for place, each in enumerate(tensors)
    )
