"""Groups of processes that train together: what programs call, under the name of PyTorch's own file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NewType

from taeda.distributed._collectives import (
    P2POp,
    _all_gather_base,
    _reduce_scatter_base,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    gather,
    irecv,
    isend,
    monitored_barrier,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
    send,
)
from taeda.distributed._debug import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from taeda.distributed._errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    QueueEmptyError,
)
from taeda.distributed._group import ProcessGroup
from taeda.distributed._objects import (
    _object_to_tensor,
    _tensor_to_object,
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from taeda.distributed._reductions import ReduceOp, supports_complex
from taeda.distributed._stores import FileStore, HashStore, PrefixStore, Store
from taeda.distributed._tcp_store import TCPStore
from taeda.distributed._work import Work
from taeda.distributed._world import (
    Backend,
    GroupMember,
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_backend_available,
    is_initialized,
    is_nccl_available,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from taeda.distributed._world import default_group as _get_default_group
from taeda.distributed._world import groups as _world
from taeda.distributed.rendezvous import register_rendezvous_handler, rendezvous

#: The name of a group, for annotations.
GroupName = NewType("GroupName", str)

__all__ = [
    "Backend",
    "DebugLevel",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "QueueEmptyError",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "register_rendezvous_handler",
    "rendezvous",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
    "supports_complex",
]  # fmt: skip

reduce_op = ReduceOp.RedOpType
default_pg_nccl_timeout = default_pg_timeout


def is_gloo_available() -> bool:
    """Whether "gloo" is accepted: it is."""
    return True


def _is_not_available() -> bool:
    """Whether that way of communication is accepted: it is not."""
    return False


is_mpi_available = is_ucc_available = is_xccl_available = _is_not_available


def is_torchelastic_launched() -> bool:
    """Whether `taeda.distributed.run` has started this process, as its environment says."""
    import os

    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def _rank_not_in_group(group: Any) -> bool:
    """Whether this process is not in a group."""
    return get_rank(group) < 0


def _get_group_size(group: Any) -> int:
    """How many processes are in a group."""
    return get_world_size(group)


def _get_default_store() -> Store:
    """The store by which the processes have found each other."""
    return _get_default_group().get_group_store()


def _get_process_group_store(pg: ProcessGroup) -> Store:
    """The store of a group."""
    return pg.get_group_store()


def _get_process_group_name(pg: ProcessGroup) -> str:
    """The name of a group."""
    return pg.group_name


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """The group of that name."""
    return _world.named[group_name]


def _get_pg_default_device(group: Any = None) -> Any:
    """The device that every group can use."""
    import taeda as torch

    return torch.device("cpu")


def _get_global_rank(group: Any, rank: int) -> int:
    """From a number in a group to that in the job."""
    return get_global_rank(group, rank)


class _CoalescingManager:
    """What `_coalescing_manager` gives: everything has been done when its block ends."""

    def __init__(self) -> None:
        self.works: list[Any] = []

    def append(self, work: Any) -> None:
        """Another operation to wait for."""
        self.works.append(work)

    def wait(self) -> None:
        """Waits for the operations."""
        for work in self.works:
            if work is not None:
                work.wait()


@contextmanager
def _coalescing_manager(
    group: Any = None, device: Any = None, async_ops: bool = False
) -> Iterator[_CoalescingManager]:
    """Context in which operations could be put together: each is done by itself."""
    manager = _CoalescingManager()
    yield manager
    if not async_ops:
        manager.wait()


def __getattr__(name: str) -> Any:
    from taeda import _distributed_names

    if name in ("_pg_map", "_pg_names", "_pg_group_ranks"):
        return getattr(_world, name[1:])
    if name in _distributed_names.TOP:
        return _distributed_names.top(name)
    raise AttributeError(f"module 'taeda.distributed.distributed_c10d' has no attribute {name!r}")


def _check_valid_timeout(timeout: Any) -> None:
    """Raises TypeError for what is no `timedelta`."""
    from datetime import timedelta

    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")


def _get_default_timeout(backend: Any = None) -> Any:
    """How long is waited for others unless something else is said."""
    return default_pg_timeout


def _new_process_group_helper(*args: Any, **kwargs: Any) -> Any:
    """Groups from stores of their own: not there.

    Raises:
        NotImplementedError: Always. `new_group` makes groups of a job's processes.
    """
    raise NotImplementedError(
        "_new_process_group_helper is not there: new_group makes groups of a job's processes"
    )


_GLOO_AVAILABLE, _MPI_AVAILABLE, _NCCL_AVAILABLE, _UCC_AVAILABLE = True, False, False, False
_get_object_coll_device = _get_pg_default_device
_ = (_all_gather_base, _object_to_tensor, _reduce_scatter_base, _tensor_to_object)
