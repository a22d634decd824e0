"""Functions that run in other processes, and references to objects there.

The processes find each other as those of a group do, and may be a group as well. What is sent is pickled, so calls come
only from processes that have shown the secret which is written in the common store (`distributed._mesh`).

Source: Birrell and Nelson, "Implementing Remote Procedure Calls", 1984; "Distributed RPC Framework", PyTorch's notes.
"""

from __future__ import annotations

from taeda.distributed.rpc import api, backend_registry, constants, functions
from taeda.distributed.rpc._messages import RemoteException
from taeda.distributed.rpc._references import RRef
from taeda.distributed.rpc.api import (
    _get_current_rpc_agent,
    _is_current_rpc_agent_set,
    _set_rpc_timeout,
    get_rpc_timeout,
    get_worker_info,
    init_rpc,
    remote,
    rpc_async,
    rpc_sync,
    shutdown,
)
from taeda.distributed.rpc.backend_registry import BackendType
from taeda.distributed.rpc.functions import async_execution
from taeda.distributed.rpc.options import RpcBackendOptions, TensorPipeRpcBackendOptions, WorkerInfo

__all__ = [
    "BackendType", "PyRRef", "RRef", "RemoteException", "RpcBackendOptions", "TensorPipeRpcBackendOptions",
    "WorkerInfo", "_get_current_rpc_agent", "_is_current_rpc_agent_set", "_set_rpc_timeout", "api", "async_execution",
    "backend_registry", "constants", "functions", "get_rpc_timeout", "get_worker_info", "init_rpc", "is_available",
    "remote", "rpc_async", "rpc_sync", "shutdown",
]  # fmt: skip

PyRRef = RRef


def is_available() -> bool:
    """Whether functions can run in other processes: True."""
    return True
