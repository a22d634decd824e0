"""Questions about process groups: there are none, and programs that ask first run in one process.

What would start or need a group raises; `taeda.multiprocessing` starts processes of one machine that share tensors.
"""

from __future__ import annotations

import enum
import os
from datetime import timedelta
from typing import Any

from taeda import _absent

_REASON = "there are no process groups; ask taeda.distributed.is_available() first"

default_pg_timeout = timedelta(minutes=30)


def is_available() -> bool:
    """Whether process groups exist: False."""
    return False


def is_initialized() -> bool:
    """Whether there is a default process group: False."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether a launcher has started this process, as its environment says."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_backend_available(backend: str) -> bool:
    """Whether a way of communication exists: False."""
    return False


def _no_backend() -> bool:
    """False."""
    return False


is_gloo_available = is_mpi_available = is_nccl_available = is_ucc_available = is_xccl_available = _no_backend


def _no_group(*args: Any, **kwargs: Any) -> Any:
    raise ValueError(
        "Default process group has not been initialized, please make sure to call init_process_group."
    )


#: What asks about a group raises ValueError, as it does elsewhere before a group was made.
get_rank = get_world_size = get_backend = get_backend_config = get_process_group_ranks = _no_group
get_group_rank = get_global_rank = get_node_local_rank = _no_group
all_gather = all_gather_coalesced = all_gather_into_tensor = all_gather_object = all_reduce = _no_group
all_reduce_coalesced = all_to_all = all_to_all_single = barrier = batch_isend_irecv = broadcast = _no_group
broadcast_object_list = gather = gather_object = irecv = isend = monitored_barrier = recv = _no_group
recv_object_list = reduce = reduce_scatter = reduce_scatter_tensor = scatter = scatter_object_list = _no_group
send = send_object_list = new_group = new_subgroups = split_group = destroy_process_group = _no_group


def get_pg_count() -> int:
    """Number of process groups: 0."""
    return 0


class ReduceOp(enum.Enum):
    """How values of several processes are combined."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


reduce_op = ReduceOp


class Backend(str):
    """Name of a way of communication."""

    __slots__ = ()
    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"


class GroupMember:
    """The group of all processes: there is none."""

    WORLD = None
    NON_GROUP_MEMBER = None


class group:
    """The group of all processes: there is none."""

    WORLD = None


ProcessGroup = _absent.cls("taeda.distributed.ProcessGroup", _REASON)
Work = _absent.cls("taeda.distributed.Work", _REASON)
P2POp = _absent.cls("taeda.distributed.P2POp", _REASON)
Store = _absent.cls("taeda.distributed.Store", _REASON)
TCPStore = _absent.cls("taeda.distributed.TCPStore", _REASON, Store)
FileStore = _absent.cls("taeda.distributed.FileStore", _REASON, Store)
HashStore = _absent.cls("taeda.distributed.HashStore", _REASON, Store)
PrefixStore = _absent.cls("taeda.distributed.PrefixStore", _REASON, Store)
init_process_group = _absent.function("taeda.distributed.init_process_group", _REASON)
init_device_mesh = _absent.function("taeda.distributed.init_device_mesh", _REASON)


class DistError(RuntimeError):
    """Failure of a process group."""


class DistBackendError(DistError):
    """Failure of a way of communication."""


class DistNetworkError(DistError):
    """Failure of the network."""


class DistStoreError(DistError):
    """Failure of a store."""


_FILES = frozenset({"device_mesh", "distributed_c10d", "fsdp", "tensor"})


def __getattr__(name: str) -> Any:
    if not name.startswith("__"):
        from importlib import import_module

        from taeda import _distributed_names

        if name in _FILES or _distributed_names.has(name):
            return import_module(f"taeda.distributed.{name}")
    if name == "DeviceMesh":
        from taeda.distributed.device_mesh import DeviceMesh

        return DeviceMesh
    raise AttributeError(f"module 'taeda.distributed' has no attribute {name!r}")
