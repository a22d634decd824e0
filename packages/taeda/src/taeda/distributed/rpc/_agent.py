"""This process among those that call one another: letters that ask, letters that answer, and who waits for them.

A call is a letter with a number; the process that it goes to runs it in a thread of its own and answers with the same
number. Letters of one process to another arrive in the order in which they were sent, on which the counting of
references relies (`_references`).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import pickle
import queue
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from taeda.distributed._errors import DistBackendError
from taeda.distributed._mesh import Letter, Mesh
from taeda.distributed._stores import Store
from taeda.distributed.autograd import _contexts
from taeda.distributed.rpc._messages import RemoteException, pack, unpack
from taeda.distributed.rpc.options import RpcBackendOptions, WorkerInfo
from taeda.futures import Future

_GROUP = b"rpc".ljust(16, b"\0")
# Tags: letters of calls; how many letters a process has sent and done; whether all are done.
_CALLS, _COUNTS, _VERDICT = 0, 1, 2
# Between two looks at what is late, and between two counts of what is on its way.
_LOOK, _ROUND = 0.1, 0.005
_FOREVER = threading.TIMEOUT_MAX

Handler = Callable[["Agent", int, int, bytes], None]
#: What is done with a letter, by its purpose, in a thread of its own; and what only changes a table, in order.
handlers: dict[bytes, Handler] = {}
at_once: dict[bytes, Handler] = {}


@dataclass
class _Waiting:
    """Who waits for an answer."""

    future: Future
    to: int
    limit: float
    seconds: float


class _Crew:
    """Threads that wait for work; as many as there is work at once, since work waits for other work."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock, self._idle, self._all = threading.Lock(), 0, 0

    def run(self, job: Callable[[], None]) -> None:
        """Does it in a thread that has nothing to do, or in a new one."""
        with self._lock:
            fresh = self._idle == 0
            self._idle -= not fresh
            self._all += fresh
        self._jobs.put(job)
        if fresh:
            threading.Thread(target=self._work, name="taeda-rpc-call", daemon=True).start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # what it holds is not kept until the next one
            with self._lock:
                self._idle += 1

    def end(self) -> None:
        """Lets threads end when they have nothing to do."""
        for _ in range(self._all):
            self._jobs.put(None)


class Agent:
    """The connections of this process to those that it calls, and the threads that serve theirs.

    Args:
        name: What the others call this process.
        rank: Its number.
        size: How many there are.
        store: Where they find each other.
        options: How long a call may take.

    Raises:
        RuntimeError: Two processes have the same name.
    """

    def __init__(self, name: str, rank: int, size: int, store: Store, options: RpcBackendOptions) -> None:
        self.options, self.seconds = options, float(options.rpc_timeout)
        store.set(f"name/{rank}", name)
        names = [store.get(f"name/{other}").decode() for other in range(size)]
        if len(set(names)) != size:
            twice = next(one for one in names if names.count(one) > 1)
            raise RuntimeError(f"init_rpc: argument 'name' is {twice!r} in several processes, found {names}")
        self.workers = [WorkerInfo(one, place) for place, one in enumerate(names)]
        self.me = self.workers[rank]
        self._by_name = {worker.name: worker for worker in self.workers}
        self._numbers = itertools.count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._changed = threading.Condition()
        self._sent = self._done = 0
        self._closed = False
        self._crew = _Crew()
        host = getattr(store, "local_host", "127.0.0.1")
        self._mesh = Mesh(rank, size, store, host, store.timeout.total_seconds())
        self._threads = [
            threading.Thread(target=target, name=f"taeda-rpc-{target.__name__.strip('_')}", daemon=True)
            for target in (self._listen, self._watch)
        ]

    def start(self) -> None:
        """Serves the others: they may call at once."""
        for thread in self._threads:
            thread.start()

    def worker(self, which: Any) -> WorkerInfo:
        """Who has that name or number.

        Raises:
            RuntimeError: Nobody.
        """
        if isinstance(which, WorkerInfo):
            which = which.id
        if isinstance(which, str):
            if which not in self._by_name:
                raise RuntimeError(
                    f"Unknown destination worker {which}: expected one of {list(self._by_name)}"
                )
            return self._by_name[which]
        if isinstance(which, bool) or not isinstance(which, int):
            raise ValueError(
                f"Cannot get WorkerInfo from name {which!r}: expected a name, a number or a WorkerInfo"
            )
        if not 0 <= which < len(self.workers):
            raise RuntimeError(f"Unknown destination worker {which}: there are {len(self.workers)}")
        return self.workers[which]

    def ask(self, to: int, purpose: bytes, content: Any, seconds: float | None = None) -> Future:
        """Send a letter that is answered; what comes back.

        Args:
            to: Number of the process.
            purpose: A name in `handlers`.
            content: What its handler gets.
            seconds: How long to wait; None takes the agent's, 0 waits as long as it takes.
        """
        seconds = self.seconds if seconds is None else seconds
        number, future = next(self._numbers), Future()
        body = pack(self, to, content)
        limit = time.monotonic() + seconds if seconds > 0 else float("inf")
        with self._changed:
            if self._closed:
                raise RuntimeError("RPC has not been initialized: it was shut down")
            self._waiting[number] = _Waiting(future, to, limit, seconds)
            self._changed.notify_all()
        try:
            self._send(to, purpose, number, body)
        except DistBackendError as error:
            self._fail(number, RuntimeError(f"{self.workers[to]} cannot be reached: {error}"))
        return future

    def tell(self, to: int, purpose: bytes, content: Any) -> None:
        """Send a letter that is not answered."""
        with contextlib.suppress(DistBackendError):  # who has gone needs nothing more
            self._send(to, purpose, 0, pack(self, to, content))

    def answer(self, to: int, number: int, content: Any) -> None:
        """Answer a letter."""
        try:
            body = pack(self, to, content)
        except Exception as error:
            self.refuse(to, number, error)
            return
        with contextlib.suppress(DistBackendError):
            self._send(to, b"answer", number, body)

    def answer_later(self, to: int, number: int, future: Future, context: int) -> None:
        """Answer a letter with what a future gives, as part of a context of `distributed.autograd`."""

        def give(done: Future) -> None:
            try:
                value = done.value()
            except Exception as error:
                self.refuse(to, number, error)
                return
            with _contexts.entered(context):
                self.answer(to, number, value)

        future.add_done_callback(give)

    def refuse(self, to: int, number: int, error: BaseException) -> None:
        """Answer that something went wrong."""
        trace = "".join(traceback.format_exception(error))
        text = f"On {self.me}:\n{error!r}\n{trace}"
        kind: type[BaseException] = type(error)
        try:
            pickle.dumps(kind)
        except (pickle.PicklingError, AttributeError, TypeError):  # a class of a function, say
            kind = RuntimeError
        with contextlib.suppress(DistBackendError):
            self._send(to, b"error", number, pack(self, to, RemoteException(text, kind)))

    def run(self, job: Callable[[], None]) -> None:
        """Do something in a thread that may wait for others."""
        self._crew.run(job)

    def _send(self, to: int, purpose: bytes, number: int, body: bytes) -> None:
        with self._changed:
            self._sent += 1
        self._mesh.send(to, _GROUP, _CALLS, purpose, number.to_bytes(8, "little") + body)

    def _listen(self) -> None:
        while True:
            try:
                letter = self._mesh.receive(None, _GROUP, _CALLS, _FOREVER)
            except DistBackendError:  # all others have gone; `_watch` tells who waits
                return
            if letter.purpose == b"stop":
                return
            number, body = int.from_bytes(letter.content[:8], "little"), bytes(memoryview(letter.content)[8:])
            if letter.purpose in at_once:
                self._serve(at_once[letter.purpose], letter, number, body)
            else:
                self.run(functools.partial(self._serve, handlers[letter.purpose], letter, number, body))

    def _serve(self, handler: Handler, letter: Letter, number: int, body: bytes) -> None:
        try:
            handler(self, letter.source, number, body)
        except BaseException as error:
            self.refuse(letter.source, number, error)
        finally:
            with self._changed:
                self._done += 1

    def _watch(self) -> None:
        """Tells who waits for an answer that does not come."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed and not self._waiting:
                    return
                now, gone = time.monotonic(), self._mesh.gone
                late = {n: w for n, w in self._waiting.items() if w.limit < now or w.to in gone}
            for number, waiting in late.items():
                if waiting.to in gone:
                    text = f"{self.workers[waiting.to]} has gone: {gone[waiting.to]}"
                else:
                    text = (
                        f"RPC ran for more than set timeout ({round(1000 * waiting.seconds)} ms) and will now be "
                        "marked with an error"
                    )
                self._fail(number, RuntimeError(text))
            time.sleep(_LOOK if not late else 0)

    def _fail(self, number: int, error: BaseException) -> None:
        with self._changed:
            waiting = self._waiting.pop(number, None)
        if waiting is not None:
            waiting.future.set_exception(error)

    def take(self, number: int) -> Future | None:
        """Who waits for the answer of that number; nobody any more if it came too late."""
        with self._changed:
            waiting = self._waiting.pop(number, None)
        return None if waiting is None else waiting.future

    def wait_for_all(self) -> None:
        """Until every process has come here and no letter is on its way or being answered.

        Each tells the first process how many letters it has sent and done with. Nothing is left once the sums are equal
        twice in a row, with nothing sent in between.
        """
        rank, size, before = self.me.id, len(self.workers), (-1, -1)
        while True:
            with self._changed:
                while self._waiting:
                    self._changed.wait(_LOOK)
                counts = self._sent, self._done
            self._mesh.send(0, _GROUP, _COUNTS, b"counts", pickle.dumps(counts))
            if rank == 0:
                every = [
                    pickle.loads(self._mesh.receive(other, _GROUP, _COUNTS, _FOREVER).content)
                    for other in range(size)
                ]
                now = sum(sent for sent, _ in every), sum(done for _, done in every)
                over, before = now == before and now[0] == now[1], now
                for other in range(size):
                    self._mesh.send(other, _GROUP, _VERDICT, b"verdict", b"\1" if over else b"\0")
            if self._mesh.receive(0, _GROUP, _VERDICT, _FOREVER).content == b"\1":
                return
            time.sleep(_ROUND)

    def close(self) -> None:
        """Ends what waits, the threads and the connections."""
        with self._changed:
            self._closed = True
            left = list(self._waiting)
            self._changed.notify_all()
        for number in left:
            self._fail(number, RuntimeError("RPC was shut down"))
        self._mesh.send(self.me.id, _GROUP, _CALLS, b"stop", b"")
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(5)
        self._crew.end()
        self._mesh.close()


def _answered(agent: Agent, source: int, number: int, body: bytes) -> None:
    future = agent.take(number)
    if future is not None:
        try:
            future.set_result(unpack(agent, source, body)[0])
        except Exception as error:
            if not future.done():
                future.set_exception(error)


def _refused(agent: Agent, source: int, number: int, body: bytes) -> None:
    future = agent.take(number)
    if future is not None:
        future.set_exception(unpack(agent, source, body)[0].error())


handlers[b"answer"], handlers[b"error"] = _answered, _refused

#: The agent of this process, while there is one.
current: Agent | None = None


def agent() -> Agent:
    """That of this process.

    Raises:
        RuntimeError: There is none.
    """
    if current is None:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")
    return current
