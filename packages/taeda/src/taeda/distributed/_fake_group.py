"""A group of one process that plays one of many: nothing is sent, and others are taken to have what this one has.

Results have the right shapes and no meaning. Programs look at themselves so: how they cut up a model, what they call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda.distributed._group import ProcessGroup, listed, put
from taeda.distributed._mesh import Mesh
from taeda.distributed._reductions import ReduceOp
from taeda.distributed._stores import HashStore
from taeda.distributed._work import Receiving, Work, done


class FakeStore(HashStore):
    """A store that no other process sees."""


class Alone(Mesh):
    """In the place of connections to other processes, of which there are none."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(0, 1, FakeStore(), "", 0.0)
        self.rank, self.size = rank, size


def _copy(targets: Sequence[Any], values: Sequence[Any]) -> None:
    for target, value in zip(targets, values, strict=True):
        put(target, value.detach().reshape(target.shape))


class FakeGroup(ProcessGroup):
    """The operations of a group, without the others."""

    def _done(self, result: Any) -> Work:
        self._calls += 1
        return done(result)

    def allreduce(self, tensors: Any, op: Any = ReduceOp.SUM, later: bool = True) -> Work:
        """The tensors stay as they are."""
        return self._done(listed(tensors))

    def broadcast(self, tensors: Any, root: int = 0, later: bool = True) -> Work:
        """The tensors stay as they are."""
        return self._done(listed(tensors))

    def reduce(self, tensors: Any, root: int = 0, op: Any = ReduceOp.SUM, later: bool = True) -> Work:
        """The tensors stay as they are."""
        return self._done(listed(tensors))

    def _exchange(self, purpose: str, sent: Any, outputs: Any, later: bool) -> Work:
        for given, taken in zip(sent, outputs, strict=True):
            _copy(taken, [value.clone() for value in given])
        return self._done(outputs)

    def gather(self, outputs: Any, inputs: Any, root: int = 0, later: bool = True) -> Work:
        """Every process has had the same tensor."""
        if self._me == root:
            _copy(outputs[0], [inputs[0]] * len(outputs[0]))
        return self._done(outputs)

    def scatter(self, outputs: Any, inputs: Any, root: int = 0, later: bool = True) -> Work:
        """The tensor at the place of this process, where it is the one that has them."""
        if self._me == root:
            _copy(outputs, [inputs[0][self._me]])
        return self._done(outputs)

    def reduce_scatter(self, outputs: Any, inputs: Any, op: Any = ReduceOp.SUM, later: bool = True) -> Work:
        """The tensor at the place of this process."""
        _copy(outputs, [given[self._me] for given in inputs])
        return self._done(outputs)

    def barrier(self, opts: Any = None, later: bool = True) -> Work:
        """At once."""
        return self._done(None)

    def send(self, tensors: Any, place: int, tag: int = 0) -> Work:
        """Nothing is sent."""
        return self._done(listed(tensors))

    def recv(self, tensors: Any, place: int | None, tag: int = 0) -> Work:
        """The tensors stay as they are."""
        source = self._me if place is None else place
        return Receiving(lambda wait: (source, listed(tensors)))
