"""Calling functions in other processes."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from taeda.distributed._stores import PrefixStore
from taeda.distributed.autograd import _contexts
from taeda.distributed.rpc import _agent, _references
from taeda.distributed.rpc._messages import unpack
from taeda.distributed.rpc._references import RRef, seconds_of
from taeda.distributed.rpc.backend_registry import BackendType
from taeda.distributed.rpc.constants import DEFAULT_SHUTDOWN_TIMEOUT, UNSET_RPC_TIMEOUT
from taeda.distributed.rpc.options import RpcBackendOptions, TensorPipeRpcBackendOptions, WorkerInfo
from taeda.futures import Future, wait_all
from taeda_registry.forks import held_at_fork

__all__ = [
    "RRef", "get_rpc_timeout", "get_worker_info", "init_rpc", "new_method", "remote", "rpc_async", "rpc_sync",
    "shutdown",
]  # fmt: skip

T = TypeVar("T")
_rounds = itertools.count()
# The calls that a thread waits for together.
_thread = threading.local()


class Method:
    """A method of an object that a reference stands for, by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, rref: RRef, *args: Any, **kwargs: Any) -> Any:
        return self.of(rref)(*args, **kwargs)

    def of(self, rref: RRef) -> Callable[..., Any]:
        """That of the object."""
        return getattr(rref.local_value(), self.name)


def init_rpc(
    name: str,
    backend: BackendType | None = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: RpcBackendOptions | None = None,
) -> None:
    """Let this process call others, and be called by them. It waits until all are there.

    Args:
        name: What the others call it: letters, digits, "_", "-" and ":", up to 128.
        backend: Kept: there is one way.
        rank: Its number, from 0 on; -1 where the environment says.
        world_size: How many processes there are; None where the environment says.
        rpc_backend_options: How they find each other, and how long a call may take.

    Raises:
        RuntimeError: It was called already, or two processes have the same name.
        TypeError: A backend or options of another kind.
        ValueError: A name that is not one, or what says where the others are is missing.

    Example:
        >>> rpc.init_rpc("worker0", rank=0, world_size=2)                            # doctest: +SKIP
        >>> rpc.rpc_sync("worker1", torch.add, args=(torch.ones(2), 3))              # doctest: +SKIP
        tensor([4., 4.])
        >>> rpc.shutdown()                                                           # doctest: +SKIP
    """
    from taeda.distributed.rendezvous import rendezvous

    if backend is not None and not isinstance(backend, BackendType):
        raise TypeError(f"Argument backend must be a member of BackendType, found {backend!r}")
    if rpc_backend_options is not None and not isinstance(rpc_backend_options, RpcBackendOptions):
        raise TypeError(
            f"Argument rpc_backend_options must be an instance of RpcBackendOptions, found {rpc_backend_options!r}"
        )
    if not isinstance(name, str) or not 0 < len(name) <= 128 or not set(name) <= _letters():
        raise ValueError(
            f"init_rpc: argument 'name' is {name!r}, expected 1 to 128 letters, digits, '_', '-' and ':'"
        )
    if _agent.current is not None:
        raise RuntimeError("RPC is already initialized: call shutdown() first")
    options = rpc_backend_options or TensorPipeRpcBackendOptions()
    found = rendezvous(options.init_method, rank, -1 if world_size is None else world_size)
    store, rank, size = next(found)
    home = PrefixStore(f"rpc/{next(_rounds)}", store)
    home.local_host = getattr(store, "local_host", "127.0.0.1")  # type: ignore[attr-defined]
    _references.begin()
    _agent.current = _agent.Agent(name, rank, size, home, options)
    _agent.current.start()


def _letters() -> set[str]:
    import string

    return set(string.ascii_letters + string.digits + "_-:")


def shutdown(graceful: bool = True, timeout: float = DEFAULT_SHUTDOWN_TIMEOUT) -> None:
    """End it: nothing can be called any more, from here or from others.

    Args:
        graceful: Wait until all processes have come here and all calls are done.
        timeout: Kept: a process that has gone is noticed.

    Raises:
        RuntimeError: `init_rpc` was not called.
    """
    agent = _agent.agent()
    try:
        if graceful:
            agent.wait_for_all()
    finally:
        _references.end()
        _agent.current = None
        agent.close()


def get_worker_info(worker_name: str | None = None) -> WorkerInfo:
    """The name and number of a process; of this one when none is named.

    Raises:
        RuntimeError: Nobody has that name.
    """
    agent = _agent.agent()
    return agent.me if worker_name is None else agent.worker(worker_name)


def get_rpc_timeout() -> float:
    """Seconds that a call may take that says nothing."""
    return _agent.agent().seconds


def _set_rpc_timeout(seconds: float) -> None:
    _agent.agent().seconds = float(seconds)


def _is_current_rpc_agent_set() -> bool:
    return _agent.current is not None


def _get_current_rpc_agent() -> Any:
    return _agent.agent()


def _require_initialized(func: Callable[..., T]) -> Callable[..., T]:
    """The function, whose calls fail as long as `init_rpc` was not called."""

    @functools.wraps(func)
    def checked(*args: Any, **kwargs: Any) -> T:
        _agent.agent()
        return func(*args, **kwargs)

    return checked


def _call_of(
    func: Callable[..., Any], args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    if not callable(func):
        raise TypeError(f"function should be callable. Found {type(func).__name__}")
    return func, tuple(args or ()), dict(kwargs or {})


def rpc_async(
    to: str | int | WorkerInfo,
    func: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> Future:
    """Call a function in another process; a future of what it returns.

    Args:
        to: The process: its name, its number or its `WorkerInfo`.
        func: What can be pickled: a function of a module that both can import, a built-in one, a script.
        args, kwargs: What it gets: copies, references stay references.
        timeout: Seconds that it may take; 0 for as long as it takes.

    Raises:
        TypeError: `func` cannot be called. RuntimeError: There is no such process.
        What the function raises is raised where somebody waits, with the traceback from there in its text.
    """
    agent = _agent.agent()
    future = agent.ask(agent.worker(to).id, b"call", _call_of(func, args, kwargs), seconds_of(timeout))
    noted = getattr(_thread, "noted", None)
    if noted is not None:
        noted.append(future)
    return future


def rpc_sync(
    to: str | int | WorkerInfo,
    func: Callable[..., T],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> T:
    """Call a function in another process and wait for what it returns. Arguments and errors as those of `rpc_async`."""
    return rpc_async(to, func, args, kwargs, timeout).wait()


def remote(
    to: str | int | WorkerInfo,
    func: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> RRef:
    """Call a function in another process, where what it returns stays; a reference to it, at once.

    Arguments as those of `rpc_async`; what the function raises is raised by `RRef.to_here`.
    """
    agent = _agent.agent()
    return _references.ask_for(agent, agent.worker(to).id, _call_of(func, args, kwargs), seconds_of(timeout))


def _waits_itself(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether a function gives a future by which the answer comes."""
    if isinstance(func, Method):
        func = func.of(args[0])
    if isinstance(func, functools.partial):
        func = func.func
    return hasattr(func, "_wrapped_async_rpc_function")


def _run(call: tuple[Any, tuple[Any, ...], dict[str, Any]]) -> Any:
    """What a function returns; a future of it for one that gives one itself."""
    func, args, kwargs = call
    later = _waits_itself(func, args)
    value = func(*args, **kwargs)
    if later and not isinstance(value, Future):
        raise RuntimeError(
            "Functions decorated with @rpc.async_function must return a torch.futures.Future object, but got "
            f"{type(value).__name__}"
        )
    return _Later(value) if later else value


class _Later:
    """A future in the place of a value."""

    def __init__(self, future: Future) -> None:
        self.future = future


def _serve_call(agent: _agent.Agent, source: int, number: int, body: bytes) -> None:
    call, context = unpack(agent, source, body)
    with _contexts.entered(context):
        value = _run(call)
        if not isinstance(value, _Later):
            agent.answer(source, number, value)
            return
    agent.answer_later(source, number, value.future, context)


def _serve_making(agent: _agent.Agent, source: int, number: int, body: bytes) -> None:
    (which, call), context = unpack(agent, source, body)
    future = _references.table.value(which)
    agent.answer(source, number, None)

    def keep(done: Future) -> None:
        try:
            future.set_result(done.value())
        except Exception as error:
            future.set_exception(error)

    with _contexts.entered(context):
        try:
            value = _run(call)
        except Exception as error:
            future.set_exception(_told(agent, error))
            return
    if isinstance(value, _Later):
        value.future.add_done_callback(keep)
    else:
        future.set_result(value)


def _told(agent: _agent.Agent, error: Exception) -> Exception:
    """The error, logged where it happened: nobody may ask for the object."""
    import logging

    logging.getLogger(__name__).error("on %s: a function of remote() failed: %r", agent.me, error)
    return error


_agent.handlers.update(
    {b"call": _serve_call, b"make": _serve_making, **_references.HANDLERS, **_contexts.HANDLERS}
)
_agent.at_once.update(_references.AT_ONCE)


# What all processes do together.

_meeting = held_at_fork(threading.Condition())
_rooms: dict[tuple[str, int], dict[str, Any]] = {}
_visits: dict[str, int] = {}


def _enter_room(key: tuple[str, int], name: str, value: Any) -> None:
    with _meeting:
        _rooms.setdefault(key, {})[name] = value
        _meeting.notify_all()


def _all_gather(
    obj: Any, worker_names: set[str] | None = None, timeout: float = UNSET_RPC_TIMEOUT
) -> dict[str, Any]:
    """An object of each process, by name, in all of them.

    Args:
        obj: That of this process.
        worker_names: Who takes part; None for all.
        timeout: Seconds that it may take.

    Raises:
        RuntimeError: Some do not come in time.
    """
    agent = _agent.agent()
    names = sorted(worker_names or (worker.name for worker in agent.workers))
    about = ",".join(names)
    with _meeting:
        key = about, _visits.get(about, 0)
        _visits[about] = key[1] + 1
    wait_all([rpc_async(name, _enter_room, (key, agent.me.name, obj), timeout=timeout) for name in names])
    limit = (agent.seconds if timeout == UNSET_RPC_TIMEOUT else timeout) or None
    with _meeting:
        if not _meeting.wait_for(lambda: len(_rooms.get(key, ())) == len(names), limit):
            missing = sorted(set(names) - set(_rooms.get(key, ())))
            raise RuntimeError(f"_all_gather: {missing} did not come within {limit} seconds")
        found = _rooms.pop(key)
    return {name: found[name] for name in names}


def _barrier(worker_names: set[str]) -> None:
    """Wait until these processes have come here."""
    _all_gather(None, set(worker_names))


@contextmanager
def _wait_all() -> Iterator[None]:
    """Wait for all calls that this thread makes in the block; errors come out of it."""
    before, _thread.noted = getattr(_thread, "noted", None), []
    try:
        yield
    finally:
        noted, _thread.noted = _thread.noted, before
        wait_all(noted)


def new_method(func: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return func
