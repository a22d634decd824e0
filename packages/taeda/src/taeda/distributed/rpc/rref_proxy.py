"""Methods of an object of another process, called there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taeda.distributed.rpc._references import RRef

__all__ = ["RRefProxy"]


class RRefProxy:
    """What ``rref.rpc_sync()``, ``rref.rpc_async()`` and ``rref.remote()`` give.

    Args:
        rref: A reference to the object.
        rpc_api: `rpc_sync`, `rpc_async` or `remote`.
        timeout: Seconds that a call may take.
    """

    def __init__(self, rref: RRef, rpc_api: Callable[..., Any], timeout: float) -> None:
        self.rref, self.rpc_api, self.rpc_timeout = rref, rpc_api, timeout

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        from taeda.distributed.rpc.api import Method

        def call(*args: Any, **kwargs: Any) -> Any:
            return self.rpc_api(self.rref.owner(), Method(name), (self.rref, *args), kwargs, self.rpc_timeout)

        return call
