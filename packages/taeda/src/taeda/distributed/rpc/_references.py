"""References to objects that live in other processes.

The process that has an object, its owner, keeps it as long as somebody holds a reference: it counts references of its
own, and knows each one elsewhere by a number, its fork. Who hands a reference on tells the owner of the new fork before
the reference leaves; letters of one process arrive in order, so the owner never counts none while one is on its way.
A fork may end before the owner has heard of it, from another process: it is noted, and both cancel out.
"""

from __future__ import annotations

import itertools
import queue
import threading
from types import GenericAlias
from typing import TYPE_CHECKING, Any, NoReturn

from taeda.distributed.rpc import _agent, _messages
from taeda.distributed.rpc.constants import UNSET_RPC_TIMEOUT
from taeda.distributed.rpc.rref_proxy import RRefProxy
from taeda.futures import Future

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda.distributed.rpc._agent import Agent
    from taeda.distributed.rpc.options import WorkerInfo

__all__ = ["RRef"]

Number = tuple[int, int]  # the process that made it, and a count


class _Entry:
    """An object and who refers to it."""

    def __init__(self) -> None:
        self.value: Future = Future()
        self.here = 0
        self.forks: set[Number] = set()
        self.ended: set[Number] = set()  # before they were known


class _Table:
    """The objects of this process that references stand for."""

    def __init__(self) -> None:
        self._entries: dict[Number, _Entry] = {}
        self._lock = threading.RLock()  # taken again by a reference that ends meanwhile
        self._counts = itertools.count(1)

    def number(self, place: int) -> Number:
        """One that was not given yet."""
        return place, next(self._counts)

    def hold(self, number: Number) -> _Entry:
        """The entry, for one more reference of this process."""
        with self._lock:
            found = self._entries.setdefault(number, _Entry())
            found.here += 1
            return found

    def let_go(self, number: Number) -> None:
        """One reference of this process less."""
        with self._lock:
            found = self._entries.get(number)
            if found is not None:
                found.here -= 1
                self._drop_if_unused(number, found)

    def add_fork(self, number: Number, fork: Number) -> _Entry:
        """One more reference elsewhere."""
        with self._lock:
            found = self._entries.setdefault(number, _Entry())
            if fork in found.ended:
                found.ended.remove(fork)
            else:
                found.forks.add(fork)
            return found

    def end_fork(self, number: Number, fork: Number) -> None:
        """One reference elsewhere less."""
        with self._lock:
            found = self._entries.get(number)
            if found is None:
                return
            if fork in found.forks:
                found.forks.remove(fork)
                self._drop_if_unused(number, found)
            else:
                found.ended.add(fork)

    def value(self, number: Number) -> Future:
        """The object, when it is there. The process that asks holds a reference, of which it may not be known yet."""
        with self._lock:
            return self._entries.setdefault(number, _Entry()).value

    def _drop_if_unused(self, number: Number, entry: _Entry) -> None:
        if entry.here <= 0 and not entry.forks and not entry.ended:
            self._entries.pop(number, None)

    def __len__(self) -> int:
        return len(self._entries)


table = _Table()
# References that have ended: told by a thread of its own, since they may end in the midst of anything.
_ended: queue.SimpleQueue[tuple[Agent, int, Number, Number] | None] = queue.SimpleQueue()
_teller: threading.Thread | None = None


def _tell_of_ends() -> None:
    while (item := _ended.get()) is not None:
        agent, owner, number, fork = item
        del item
        if agent is _agent.current:
            agent.tell(owner, b"end fork", (number, fork))


def begin() -> None:
    """Starts the thread that tells owners of references that have ended."""
    global _teller
    _teller = threading.Thread(target=_tell_of_ends, name="taeda-rpc-references", daemon=True)
    _teller.start()


def end() -> None:
    """Ends it, and forgets all objects."""
    global table, _teller
    _ended.put(None)
    if _teller is not None:
        _teller.join(5)
    table, _teller = _Table(), None


class RRef:
    """A reference to an object, of this process or of another one.

    ``RRef(value)`` stands for an object of this process; `remote` gives those of others. Sent as an argument of a call,
    it refers to the same object; the owner keeps the object as long as there are references to it.

    Args:
        value: The object.
        type_hint: Kept: the class for readers.

    Raises:
        RuntimeError: `init_rpc` was not called.

    Example:
        >>> rref = rpc.remote("worker1", torch.add, args=(torch.ones(2), 3))   # doctest: +SKIP
        >>> rref.to_here()                                                      # doctest: +SKIP
        tensor([4., 4.])
    """

    __slots__ = ("__weakref__", "_agent", "_entry", "_fork", "_made", "_number", "_owner")

    def __class_getitem__(cls, kind: Any) -> Any:
        """The class, with the type of the object noted."""
        return GenericAlias(cls, kind)

    def __init__(self, value: Any, type_hint: Any = None) -> None:
        agent = _agent.agent()
        number = table.number(agent.me.id)
        self._set(agent, agent.me.id, number, None, table.hold(number), None)
        self._entry.value.set_result(value)

    def _set(
        self, agent: Agent, owner: int, number: Number, fork: Number | None, entry: Any, made: Future | None
    ) -> None:
        self._agent, self._owner, self._number, self._fork = agent, owner, number, fork
        self._entry, self._made = entry, made

    def __del__(self) -> None:
        agent = getattr(self, "_agent", None)
        if agent is None or agent is not _agent.current:
            return
        if self._fork is None:
            table.let_go(self._number)
        else:
            _ended.put((agent, self._owner, self._number, self._fork))

    def owner(self) -> WorkerInfo:
        """The process that has the object."""
        return self._agent.workers[self._owner]

    def owner_name(self) -> str:
        """Its name."""
        return self.owner().name

    def is_owner(self) -> bool:
        """Whether this process has the object."""
        return self._fork is None

    def confirmed_by_owner(self) -> bool:
        """Whether the owner has said that it knows this reference."""
        return self._made is None or self._made.done()

    def local_value(self) -> Any:
        """The object, in the process that has it.

        Raises:
            RuntimeError: Another one has it.
        """
        if self._fork is not None:
            raise RuntimeError(
                f"Cannot call localValue() on a non-local reference: {self}; call it on {self.owner()}, or to_here()"
            )
        return self._entry.value.wait()

    def to_here(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """A copy of the object from the process that has it, when it is there; the object itself in that process.

        Args:
            timeout: Seconds to wait; 0 as long as it takes.

        Raises:
            RuntimeError: It takes longer. What the function raised that was to make the object.
        """
        if self._fork is None:
            return self._entry.value.wait()
        return self._agent.ask(self._owner, b"fetch", self._number, seconds_of(timeout)).wait()

    def rpc_sync(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """The object's methods, called where it is: ``rref.rpc_sync().method(...)`` gives what they return."""
        from taeda.distributed.rpc.api import rpc_sync

        return RRefProxy(self, rpc_sync, timeout)

    def rpc_async(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """The object's methods, called where it is: ``rref.rpc_async().method(...)`` gives a future."""
        from taeda.distributed.rpc.api import rpc_async

        return RRefProxy(self, rpc_async, timeout)

    def remote(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """The object's methods, called where it is: ``rref.remote().method(...)`` gives a reference."""
        from taeda.distributed.rpc.api import remote

        return RRefProxy(self, remote, timeout)

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """Gradients of the scalar that the reference stands for, where it is.

        Args:
            dist_autograd_ctx_id: A context of `distributed.autograd`; -1 runs the owner's own autograd, in the owner
                only.
            retain_graph: Whether the graph may be used again.
        """
        from taeda.distributed.rpc.api import rpc_sync

        if self.is_owner():
            _backward(self, dist_autograd_ctx_id, retain_graph)
        elif dist_autograd_ctx_id == -1:
            raise RuntimeError("User RRefs require 'dist_autograd_ctx_id' to be specified")
        else:
            rpc_sync(self.owner(), _backward, (self, dist_autograd_ctx_id, retain_graph), timeout=0)

    def _get_type(self, timeout: float = UNSET_RPC_TIMEOUT, blocking: bool = True) -> Any:
        """The class of the object, or a future of it."""
        from taeda.distributed.rpc.api import rpc_async

        if self.is_owner():
            return type(self.local_value())
        found = rpc_async(self.owner(), _class_of, (self,), timeout=timeout)
        return found.wait() if blocking else found

    def _get_future(self) -> Future | None:
        """What is done when the owner has said that it knows the reference; None in the owner."""
        return self._made

    def __reduce__(self) -> tuple[Callable[..., RRef], tuple[Any, ...]]:
        to = _messages.destination()
        if to is None:
            _refuse()
        fork = table.number(self._agent.me.id)
        if self._fork is None:
            table.add_fork(self._number, fork)
        else:
            self._agent.tell(self._owner, b"add fork", (self._number, fork))
        return _arrived, (self._owner, self._number, fork)

    def __copy__(self) -> NoReturn:
        _refuse()

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        _refuse()

    def __repr__(self) -> str:
        made = f"GloballyUniqueId(created_on={self._number[0]}, local_id={self._number[1]})"
        if self._fork is None:
            return f"OwnerRRef({made})"
        fork = f"GloballyUniqueId(created_on={self._fork[0]}, local_id={self._fork[1]})"
        return f"UserRRef(RRefId = {made}, ForkId = {fork}, owner = {self.owner()})"


def _refuse() -> NoReturn:
    raise RuntimeError("Can not pickle rref in python pickler, rref can only be pickled when using RPC")


def seconds_of(timeout: float) -> float | None:
    """A timeout as the agent takes it.

    Raises:
        RuntimeError: It is negative.
    """
    if timeout != UNSET_RPC_TIMEOUT and timeout < 0:
        raise RuntimeError(f"rpc: argument 'timeout' must not be negative, found {timeout}")
    return None if timeout == UNSET_RPC_TIMEOUT else timeout


def _made(
    agent: Agent, owner: int, number: Number, fork: Number | None, entry: Any, made: Future | None
) -> RRef:
    found = RRef.__new__(RRef)
    found._set(agent, owner, number, fork, entry, made)
    return found


def _arrived(owner: int, number: Number, fork: Number) -> RRef:
    """A reference out of a message."""
    agent = _agent.agent()
    if owner != agent.me.id:
        return _made(agent, owner, number, fork, None, None)
    entry = table.hold(number)
    table.end_fork(number, fork)
    return _made(agent, owner, number, None, entry, None)


def ask_for(agent: Agent, to: int, call: tuple[Any, ...], seconds: float | None) -> RRef:
    """Have a function run elsewhere; the reference to what it returns."""
    number = table.number(agent.me.id)
    if to == agent.me.id:
        entry = table.hold(number)
        made = agent.ask(to, b"make", (number, call), seconds)
        return _made(agent, to, number, None, entry, made)
    fork = table.number(agent.me.id)
    agent.tell(to, b"add fork", (number, fork))
    return _made(agent, to, number, fork, None, agent.ask(to, b"make", (number, call), seconds))


def _backward(rref: RRef, context: int, retain_graph: bool) -> None:
    root = rref.local_value()
    if context == -1:
        root.backward(retain_graph=retain_graph)
        return
    from taeda.distributed import autograd

    autograd.backward(context, [root], retain_graph)


def _class_of(rref: RRef) -> type:
    return type(rref.local_value())


def _serve_adding(agent: Agent, source: int, number: int, body: bytes) -> None:
    (which, fork), _ = _messages.unpack(agent, source, body)
    table.add_fork(which, fork)


def _serve_ending(agent: Agent, source: int, number: int, body: bytes) -> None:
    (which, fork), _ = _messages.unpack(agent, source, body)
    table.end_fork(which, fork)


def _serve_fetching(agent: Agent, source: int, number: int, body: bytes) -> None:
    which, context = _messages.unpack(agent, source, body)
    agent.answer_later(source, number, table.value(which), context)


#: What the agent does with letters of references.
HANDLERS = {b"fetch": _serve_fetching}
AT_ONCE = {b"add fork": _serve_adding, b"end fork": _serve_ending}
