"""Objects as bytes: tensors without their graphs, references with a new user."""

from __future__ import annotations

import io
import pickle
import threading
from typing import TYPE_CHECKING, Any

from taeda.distributed.autograd import _contexts

if TYPE_CHECKING:
    from taeda.distributed.rpc._agent import Agent

__all__ = ["RemoteException", "destination", "pack", "unpack"]

_thread = threading.local()


def destination() -> int | None:
    """The process for which this thread turns an object into bytes; None while it does not."""
    return getattr(_thread, "to", None)


class RemoteException:
    """What went wrong in another process.

    Attributes:
        msg: What happened, with the traceback there.
        exception_type: Class of the exception.
    """

    def __init__(self, msg: str, exception_type: type[BaseException]) -> None:
        self.msg, self.exception_type = msg, exception_type

    def error(self) -> BaseException:
        """The exception, of the same class where its class takes one text."""
        try:
            return self.exception_type(self.msg)
        except Exception:  # a class of the program's may ask for anything: what it said arrives all the same
            return RuntimeError(f"{self.exception_type.__name__}: {self.msg}")


class _Packer(pickle.Pickler):
    """Leaves out tensors that carry gradients, which travel beside the bytes."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.linked: list[Any] = []

    def persistent_id(self, value: Any) -> int | None:
        if not _contexts.is_linked(value):
            return None
        self.linked.append(value)
        return len(self.linked) - 1


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, linked: list[Any]) -> None:
        super().__init__(file)
        self._linked = linked

    def persistent_load(self, place: Any) -> Any:
        return self._linked[place]


def pack(agent: Agent, to: int, value: Any) -> bytes:
    """An object as bytes for another process.

    Tensors that require gradients are noted in the context of this thread, so that their gradients find back.
    """
    before, _thread.to = destination(), to
    try:
        buffer = io.BytesIO()
        packer = _Packer(buffer)
        packer.dump(value)
    finally:
        _thread.to = before
    context, link = _contexts.note_sent(agent, to, packer.linked)
    parts = [tensor.detach() for tensor in packer.linked]
    return pickle.dumps((context, link, parts, buffer.getvalue()), pickle.HIGHEST_PROTOCOL)


def unpack(agent: Agent, source: int, body: bytes) -> tuple[Any, int]:
    """What `pack` made bytes of, and the number of the context that it belongs to; 0 for none."""
    context, link, parts, content = pickle.loads(body)
    linked = _contexts.note_received(source, context, link, parts)
    return _Unpacker(io.BytesIO(content), linked).load(), context
