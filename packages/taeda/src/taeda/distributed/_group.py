"""A group of processes and what they do together: every process sends its part to those that need it.

Sums are formed in the order of the processes, by one of them for each part, so that all have the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import taeda as torch
from taeda.distributed._mesh import Letter, Mesh
from taeda.distributed._reductions import RedOpType, ReduceOp, combine
from taeda.distributed._stores import Store
from taeda.distributed._work import Receiving, Work, Worker, done

# Below so many elements each process reduces everything itself: one round instead of two.
_SMALL = 8192


def _content(tensor: Any) -> Any:
    """The bytes of a tensor, in order."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()


def _read(letter: Letter, like: Any, purpose: bytes) -> Any:
    """The tensor that came: of the dtype and shape of another one.

    Raises:
        RuntimeError: The other process sent something else.
    """
    expected = like.numel() * like.element_size()
    if letter.purpose != purpose:
        raise RuntimeError(
            f"{purpose.decode()}: process {letter.source} calls {letter.purpose.decode()} instead"
        )
    if len(letter.content) != expected:
        raise RuntimeError(
            f"{purpose.decode()}: process {letter.source} sent {len(letter.content)} bytes, expected {expected} for "
            f"shape {tuple(like.shape)} of {like.dtype}; shapes and dtypes must be the same in all processes"
        )
    if expected == 0:
        return torch.empty(tuple(like.shape), dtype=like.dtype)
    return torch.frombuffer(letter.content, dtype=like.dtype).view(tuple(like.shape))


def put(target: Any, value: Any) -> None:
    """Write into a tensor, whether or not gradients reach it."""
    with torch.no_grad():
        target.detach().copy_(value)


class ProcessGroup:
    """Some of the processes of a job, in an order.

    What its methods take and give are numbers of processes within the group. Programs call the functions of
    ``taeda.distributed``, which count in the whole job.
    """

    def __init__(
        self, mesh: Mesh, ranks: Sequence[int], name: str, seconds: float, backend: str, store: Store
    ) -> None:
        self._mesh, self._ranks, self._seconds = mesh, tuple(ranks), seconds
        self._me = self._ranks.index(mesh.rank)
        self._places = {rank: place for place, rank in enumerate(self._ranks)}
        self._key = hashlib.blake2b(name.encode(), digest_size=16).digest()
        self._calls = 0
        self._worker = Worker(f"taeda-group-{name}")
        self._backend, self._store = backend, store
        self.group_name, self.group_desc = name, "default_pg" if name == "0" else "undefined"
        self.bound_device_id = None

    def rank(self) -> int:
        """The number of this process in the group."""
        return self._me

    def size(self) -> int:
        """How many processes are in the group."""
        return len(self._ranks)

    def name(self) -> str:
        """The way of communication."""
        return self._backend

    _get_backend_name = name

    def get_group_store(self) -> Store:
        """The store by which the processes have found each other."""
        return self._store

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets how long this process waits for others."""
        self._seconds = timeout.total_seconds()

    def _get_sequence_number_for_group(self) -> int:
        """How many collective operations have begun."""
        return self._calls

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name}: process {self._me} of {len(self._ranks)}>"

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle 'ProcessGroup' object: its connections belong to this process")

    def shutdown(self) -> None:
        """Waits for what has begun."""
        self._worker.close()

    def join(self, joinables: Any, enable: bool, throw_on_early_termination: bool, **kwargs: Any) -> Any:
        """Context in which processes may have different numbers of steps: see `algorithms.join.Join`."""
        from taeda.distributed.algorithms.join import Join

        return Join(joinables, enable, throw_on_early_termination, **kwargs)

    def notify(self, joinable: Any) -> None:
        """Tells the processes that are done that a step begins."""
        from taeda.distributed.algorithms.join import Join

        Join.notify_join_context(joinable)

    # Letters

    def _send(self, place: int, tag: int, purpose: bytes, tensor: Any) -> None:
        self._mesh.send(self._ranks[place], self._key, tag, purpose, _content(tensor))

    def _take(self, place: int, tag: int, purpose: bytes, like: Any) -> Any:
        letter = self._mesh.receive(self._ranks[place], self._key, tag, self._seconds)
        return _read(letter, like, purpose)

    def _others(self) -> list[int]:
        """The other places, each process beginning at another one."""
        size = len(self._ranks)
        return [(self._me + step) % size for step in range(1, size)]

    def _begin(self, purpose: str, job: Callable[[int, bytes], Any], result: Any, later: bool) -> Work:
        """Do a collective operation, now or beside the program."""
        self._calls += 1
        tag = -self._calls

        def run() -> Any:
            job(tag, purpose.encode())
            return result

        return self._worker.submit(run) if later else done(run())

    # Collective operations

    def allreduce(self, tensors: Any, op: Any = ReduceOp.SUM, later: bool = True) -> Work:
        """Combine the tensors of all processes, elementwise, into each of them."""
        tensors, op = listed(tensors), _op(op)

        def job(tag: int, purpose: bytes) -> None:
            for tensor in tensors:
                self._all_reduce(tensor, op, tag, purpose)

        return self._begin("all_reduce", job, tensors, later)

    def allreduce_coalesced(self, tensors: Any, op: Any = ReduceOp.SUM) -> Work:
        """`allreduce`."""
        return self.allreduce(tensors, op)

    def _all_reduce(self, tensor: Any, op: Any, tag: int, purpose: bytes) -> None:
        size = len(self._ranks)
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        if flat.numel() <= _SMALL or size == 1:
            for place in self._others():
                self._send(place, tag, purpose, flat)
            found = {place: self._take(place, tag, purpose, flat) for place in self._others()}
            found[self._me] = flat
            put(tensor, combine(op, [found[p] for p in range(size)]).view(tuple(tensor.shape)))
            return
        cut = -(-flat.numel() // size)
        parts = [flat[place * cut : (place + 1) * cut] for place in range(size)]
        for place in self._others():
            self._send(place, tag, purpose, parts[place])
        mine = parts[self._me]
        found = {place: self._take(place, tag, purpose, mine) for place in self._others()}
        found[self._me] = mine
        total = combine(op, [found[p] for p in range(size)])
        for place in self._others():
            self._send(place, tag, purpose, total)
        results = {place: self._take(place, tag, purpose, parts[place]) for place in self._others()}
        results[self._me] = total
        put(tensor, torch.cat([results[p] for p in range(size)]).view(tuple(tensor.shape)))

    def broadcast(self, tensors: Any, root: int = 0, later: bool = True) -> Work:
        """Give the tensors of one process to all."""
        tensors = listed(tensors)

        def job(tag: int, purpose: bytes) -> None:
            for tensor in tensors:
                if self._me == root:
                    for place in self._others():
                        self._send(place, tag, purpose, tensor)
                else:
                    put(tensor, self._take(root, tag, purpose, tensor))

        return self._begin("broadcast", job, tensors, later)

    def reduce(self, tensors: Any, root: int = 0, op: Any = ReduceOp.SUM, later: bool = True) -> Work:
        """Combine the tensors of all processes into one's."""
        tensors, op = listed(tensors), _op(op)

        def job(tag: int, purpose: bytes) -> None:
            for tensor in tensors:
                if self._me != root:
                    self._send(root, tag, purpose, tensor)
                    continue
                found = [
                    tensor.detach().cpu() if place == root else self._take(place, tag, purpose, tensor)
                    for place in range(len(self._ranks))
                ]
                put(tensor, combine(op, found))

        return self._begin("reduce", job, tensors, later)

    def allgather(self, outputs: Any, inputs: Any, later: bool = True) -> Work:
        """Give every process the tensors of all: lists of one tensor for each process."""
        return self._exchange(
            "all_gather", [[tensor] * len(self._ranks) for tensor in inputs], outputs, later
        )

    def alltoall(self, outputs: Any, inputs: Any, later: bool = True) -> Work:
        """Give every process one tensor of each: the tensor at its place."""
        return self._exchange("all_to_all", [inputs], [outputs], later)

    def _exchange(self, purpose: str, sent: Any, outputs: Any, later: bool) -> Work:
        """Send to each process the tensor at its place, and write what each one sent to its place."""

        def job(tag: int, purpose: bytes) -> None:
            for given, taken in zip(sent, outputs, strict=True):
                for place in self._others():
                    self._send(place, tag, purpose, given[place])
                # Before anything is written: given and taken tensors may overlap.
                found = {place: self._take(place, tag, purpose, taken[place]) for place in self._others()}
                found[self._me] = given[self._me].detach()
                for place, value in found.items():
                    put(taken[place], value.view(tuple(taken[place].shape)))

        return self._begin(purpose, job, outputs, later)

    def gather(self, outputs: Any, inputs: Any, root: int = 0, later: bool = True) -> Work:
        """Give one process the tensors of all."""

        def job(tag: int, purpose: bytes) -> None:
            if self._me != root:
                self._send(root, tag, purpose, inputs[0])
                return
            for place, target in enumerate(outputs[0]):
                value = inputs[0] if place == root else self._take(place, tag, purpose, target)
                put(target, value.detach())

        return self._begin("gather", job, outputs, later)

    def scatter(self, outputs: Any, inputs: Any, root: int = 0, later: bool = True) -> Work:
        """Give each process one of the tensors of one."""

        def job(tag: int, purpose: bytes) -> None:
            if self._me != root:
                put(outputs[0], self._take(root, tag, purpose, outputs[0]))
                return
            for place in self._others():
                self._send(place, tag, purpose, inputs[0][place])
            put(outputs[0], inputs[0][root].detach())

        return self._begin("scatter", job, outputs, later)

    def reduce_scatter(self, outputs: Any, inputs: Any, op: Any = ReduceOp.SUM, later: bool = True) -> Work:
        """Combine the lists of all processes; each gets the tensor at its place."""
        op = _op(op)

        def job(tag: int, purpose: bytes) -> None:
            for target, given in zip(outputs, inputs, strict=True):
                for place in self._others():
                    self._send(place, tag, purpose, given[place])
                mine = given[self._me].detach().cpu()
                found = {place: self._take(place, tag, purpose, mine) for place in self._others()}
                found[self._me] = mine
                put(target, combine(op, [found[p] for p in range(len(self._ranks))]))

        return self._begin("reduce_scatter", job, outputs, later)

    def barrier(self, opts: Any = None, later: bool = True) -> Work:
        """Wait until all processes have come here."""

        def job(tag: int, purpose: bytes) -> None:
            empty = torch.empty(0)
            for place in self._others():
                self._send(place, tag, purpose, empty)
            for place in self._others():
                self._take(place, tag, purpose, empty)

        return self._begin("barrier", job, None, later)

    # From one process to another

    def send(self, tensors: Any, place: int, tag: int = 0) -> Work:
        """Send to one process, which need not have asked for it yet."""
        tensors = listed(tensors)
        for tensor in tensors:
            self._send(place, tag, b"send", tensor)
        return done(tensors)

    def recv(self, tensors: Any, place: int | None, tag: int = 0) -> Work:
        """Receive from one process, or from any."""
        tensors = listed(tensors)
        source = None if place is None else self._ranks[place]

        def take(wait: bool) -> tuple[int, Any] | None:
            if wait:
                letter = self._mesh.receive(source, self._key, tag, self._seconds)
            else:
                found = self._mesh.poll(source, self._key, tag)
                if found is None:
                    return None
                letter = found
            put(tensors[0], _read(letter, tensors[0], b"send"))
            return self._places[letter.source], tensors

        return Receiving(take)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        """Receive from any process."""
        return self.recv(tensors, None, tag)


def listed(tensors: Any) -> list[Any]:
    """One tensor as a list, several as another."""
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _op(op: Any) -> RedOpType:
    """The reduction, which options may carry."""
    return getattr(op, "reduceOp", op)
