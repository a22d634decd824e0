"""Gradients through calls of other processes.

Example:
    >>> with dist_autograd.context() as context_id:                       # doctest: +SKIP
    ...     loss = rpc.rpc_sync("worker1", torch.add, args=(a, b)).sum()
    ...     dist_autograd.backward(context_id, [loss])
    ...     gradients = dist_autograd.get_gradients(context_id)
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

import taeda as torch
from taeda.distributed.autograd import _contexts

__all__ = ["DistAutogradContext", "backward", "context", "get_gradients", "is_available"]

DistAutogradContext = _contexts.Context


def is_available() -> bool:
    """Whether graphs may go through several processes: True."""
    return True


class context:
    """A ``with`` block whose calls of other processes carry gradients; it gives the number of the context.

    Raises:
        RuntimeError: `rpc.init_rpc` was not called.
    """

    def __enter__(self) -> int:
        from taeda.distributed.rpc import _agent

        self._number = _contexts.make(_agent.agent().me.id).number
        self._entered = _contexts.entered(self._number)
        self._entered.__enter__()
        return self._number

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from taeda.distributed.rpc import _agent

        self._entered.__exit__(kind, error, trace)
        if _agent.current is not None:
            _contexts.forget(_agent.current, self._number)


def backward(context_id: int, roots: Sequence[torch.Tensor], retain_graph: bool = False) -> None:
    """Gradients of the sum of scalars, through all processes that took part; they stay in the context.

    Args:
        context_id: The number that `context` gave.
        roots: Scalars of this process that require gradients.
        retain_graph: Kept: graphs live as long as the context.

    Raises:
        RuntimeError: There is no such context, or a root is no scalar or requires no gradient.
    """
    found = _contexts.find(context_id)
    if not roots:
        raise RuntimeError("No tensors provided for gradient computation.")
    for root in roots:
        if not root.requires_grad:
            raise RuntimeError("requires_grad not set on root")
        if root.numel() != 1:
            raise RuntimeError(
                f"root is not a scalar, all roots need to be scalar: found shape {tuple(root.shape)}"
            )
    _contexts.go_back(found, list(roots), [torch.ones_like(root) for root in roots])


def get_gradients(context_id: int) -> dict[torch.Tensor, torch.Tensor]:
    """The gradients of this process's leaves in a context, by leaf.

    Raises:
        RuntimeError: There is no such context.
    """
    found = _contexts.find(context_id)
    with found.lock:
        return dict(found.gradients)


def _current_context() -> DistAutogradContext:
    return _contexts.find(_contexts.current())
