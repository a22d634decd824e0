"""The process groups of this process: making the first one, further ones of some of its processes, ending them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import taeda as torch
from taeda.distributed._fake_group import Alone, FakeGroup, FakeStore
from taeda.distributed._group import ProcessGroup
from taeda.distributed._mesh import Mesh
from taeda.distributed._stores import PrefixStore, Store
from taeda_registry import processes

default_pg_timeout = timedelta(minutes=30)
#: What stands for a group that this process is not in.
NON_GROUP_MEMBER = -100


class Backend(str):
    """Name of a way of communication, in small letters.

    Sockets between processes answer to "gloo". Where there is a GPU there is "nccl" too: tensors of GPUs go by NVIDIA's
    NCCL if that library is there, else through the memory of the host.

    Example:
        >>> taeda.distributed.Backend("GLOO")
        'gloo'
    """

    __slots__ = ()
    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"
    backend_list = (UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE)
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, found {type(name).__name__}")
        return super().__new__(cls, name.lower())


class _Groups:
    """What there is: the first group, and all by name."""

    def __init__(self) -> None:
        self.mesh: Mesh | None = None
        self.named: dict[str, ProcessGroup] = {}
        self.made = 0
        self.seconds = default_pg_timeout.total_seconds()

    @property
    def default_pg(self) -> ProcessGroup | None:
        """The group of all processes."""
        return processes.default

    @property
    def pg_map(self) -> dict[ProcessGroup, tuple[str, Store]]:
        """Groups, with the way of communication and the store of each."""
        return {group: (group.name(), group.get_group_store()) for group in self.named.values()}

    @property
    def pg_names(self) -> dict[ProcessGroup, str]:
        """The names of groups."""
        return {group: name for name, group in self.named.items()}

    @property
    def pg_group_ranks(self) -> dict[ProcessGroup, dict[int, int]]:
        """Of each group, from numbers in the job to numbers in the group."""
        return {group: dict(group._places) for group in self.named.values()}


groups = _Groups()


class _WorldMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes, or None before there is one."""
        return processes.default


class group(metaclass=_WorldMeta):
    """Where the group of all processes stands: ``group.WORLD``."""


class GroupMember(metaclass=_WorldMeta):
    """Where the group of all processes stands, and what stands for a group that this process is not in."""

    NON_GROUP_MEMBER = NON_GROUP_MEMBER


def is_nccl_available() -> bool:
    """Whether "nccl" is accepted: where there is a GPU."""
    return bool(torch.cuda.is_available())


def is_backend_available(backend: str) -> bool:
    """Whether a way of communication of that name is accepted."""
    name = backend.lower()
    return name in (Backend.GLOO, Backend.FAKE) or (name == Backend.NCCL and is_nccl_available())


def get_default_backend_for_device(device: Any) -> str:
    """The way of communication of a device's tensors that is taken when a program names none.

    Args:
        device: A device or its name.
    """
    return Backend.NCCL if torch.device(device).type == "cuda" else Backend.GLOO


def _checked_backend(backend: str | None) -> str:
    """The name under which the group is known.

    Raises:
        ValueError: Another name. RuntimeError: "nccl" without a GPU.
    """
    if backend in (None, "", Backend.UNDEFINED):
        return f"cpu:gloo,cuda:{Backend.NCCL}" if is_nccl_available() else Backend.GLOO
    names = [part.rpartition(":")[2].lower() for part in str(backend).split(",")]
    for name in names:
        if name == Backend.NCCL and not is_nccl_available():
            raise ValueError("ProcessGroupNCCL is only supported with GPUs, no GPUs found!")
        if not is_backend_available(name):
            raise ValueError(
                f"Invalid backend: '{name}': there are 'gloo', 'fake', and 'nccl' where there is a GPU"
            )
    return str(backend).lower()


def _made(way: str, ranks: Sequence[int], name: str, seconds: float, store: Store) -> ProcessGroup:
    """A group with that way of communication."""
    kind: type[ProcessGroup] = ProcessGroup
    if Backend.FAKE in way:
        kind = FakeGroup
    elif Backend.NCCL in way:
        from taeda.distributed import _nccl_group

        if _nccl_group.library() is not None:
            kind = _nccl_group.NcclGroup
    assert groups.mesh is not None
    return kind(groups.mesh, ranks, name, seconds, way, store)


def is_initialized() -> bool:
    """Whether there is a group of all processes."""
    return processes.default is not None


def default_group() -> ProcessGroup:
    """The group of all processes.

    Raises:
        ValueError: There is none.
    """
    if processes.default is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group."
        )
    found: ProcessGroup = processes.default
    return found


def chosen(found: Any) -> ProcessGroup | None:
    """A group, the one of all processes for None; None where this process is not in it."""
    if found is None or found is group.WORLD:
        return default_group()
    if found == NON_GROUP_MEMBER:
        return None
    if not isinstance(found, ProcessGroup):
        raise TypeError(f"expected a ProcessGroup, found {type(found).__name__}")
    if found.group_name not in groups.named:
        raise ValueError(f"Invalid process group specified: {found} was destroyed")
    return found


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: list[int] | None = None,
) -> None:
    """Meets the other processes of the job, and makes the group of all.

    Args:
        backend: "gloo", or None; where there is a GPU, "nccl" and names by device ("cpu:gloo,cuda:nccl") too. With
            "fake" this process plays one of many, which are not there: what they would send is what it has.
        init_method: How the processes find each other: "env://", the default, "tcp://HOST:PORT" or
            "file:///PATH" of a file that does not exist yet.
        timeout: How long to wait for others, now and in everything that is done together; 30 minutes.
        world_size, rank: How many processes there are, and which of them this is; with "env://" the environment says.
        store: A store in the place of `init_method`.
        group_name, pg_options, device_id: Accepted for PyTorch's sake.

    Raises:
        ValueError: There is a group already, an unknown backend, or numbers that do not fit or are missing.
        DistNetworkError, DistStoreError, DistBackendError: Others did not come in time.

    Example:
        >>> store = taeda.distributed.HashStore()
        >>> taeda.distributed.init_process_group("gloo", store=store, world_size=1, rank=0)
        >>> taeda.distributed.get_world_size()
        1
        >>> taeda.distributed.destroy_process_group()
    """
    if processes.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    timeout = _checked_timeout(timeout)
    if store is not None and init_method is not None:
        raise ValueError("Cannot specify both init_method and store.")
    name = _checked_backend(backend)
    if name == Backend.FAKE and store is None and min(rank, world_size) >= 0:
        store = FakeStore()
    if store is not None:
        if world_size <= 0:
            raise ValueError("world_size must be positive if using store")
        if rank < 0:
            raise ValueError("rank must be non-negative if using store")
    else:
        from taeda.distributed.rendezvous import rendezvous

        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
        store.set_timeout(timeout)
    if not 0 <= rank < world_size:
        raise ValueError(f"init_process_group: rank {rank} is not in a job of {world_size} processes")
    host = getattr(store, "local_host", "127.0.0.1")
    home = PrefixStore("default_pg", store)
    if name == Backend.FAKE:
        groups.mesh = Alone(rank, world_size)
    else:
        groups.mesh = Mesh(rank, world_size, home, host, timeout.total_seconds())
    groups.seconds = timeout.total_seconds()
    groups.made = 0
    made = _made(name, range(world_size), "0", groups.seconds, home)
    if device_id is not None:
        made.bound_device_id = torch.device(device_id)
    groups.named["0"] = made
    processes.default = made


def _checked_timeout(timeout: timedelta | None) -> timedelta:
    if timeout is None:
        return default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {type(timeout).__name__}"
        )
    return timeout


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group, or with the group of all processes all of them.

    Raises:
        AssertionError: There is none.
    """
    if group is None and processes.default is None:
        raise AssertionError(
            "destroy_process_group: there is no process group; init_process_group makes the first"
        )
    found = chosen(group)
    if found is None:
        return
    if found is not processes.default:
        found.shutdown()
        del groups.named[found.group_name]
        return
    for other in list(groups.named.values()):
        other.shutdown()
    if groups.mesh is not None:
        groups.mesh.close()
    groups.named.clear()
    groups.mesh = processes.default = None


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some of the processes. All processes of the job call it, in the same order.

    Args:
        ranks: The processes, by their numbers in the job; None takes all.
        timeout: How long to wait for others in this group.
        backend: As in `init_process_group`; None takes that of the group of all.
        use_local_synchronization: Only the processes of the group call it.
        group_desc: A text about it.
        sort_ranks: Whether numbers in the group follow those in the job; otherwise their order in `ranks`.
        pg_options, device_id: Accepted for PyTorch's sake.

    Returns: the group, or `GroupMember.NON_GROUP_MEMBER` in processes that are not in it; with
        `use_local_synchronization` None.

    Raises:
        ValueError: A process that is not there, or one twice.
    """
    world = default_group()
    chosen_ranks = list(range(world.size())) if ranks is None else [int(rank) for rank in ranks]
    if sort_ranks:
        chosen_ranks.sort()
    if len(set(chosen_ranks)) != len(chosen_ranks):
        raise ValueError(f"new_group: argument 'ranks' has a process twice: {chosen_ranks}")
    if len(chosen_ranks) > world.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for rank in chosen_ranks:
        if not 0 <= rank < world.size():
            raise ValueError("The new group's rank should be within the world_size set by init_process_group")
    if use_local_synchronization:
        name = f"ranks {chosen_ranks} {sum(other._ranks == tuple(chosen_ranks) for other in groups.named.values())}"
    else:
        groups.made += 1
        name = str(groups.made)
    if world.rank() not in chosen_ranks:
        return None if use_local_synchronization else NON_GROUP_MEMBER
    seconds = groups.seconds if timeout is None else _checked_timeout(timeout).total_seconds()
    way = world.name() if backend is None else _checked_backend(backend)
    store = PrefixStore(name, world.get_group_store())
    made = _made(way, chosen_ranks, name, seconds, store)
    if group_desc is not None:
        made.group_desc = group_desc
    groups.named[name] = made
    return made


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of equal size, of processes that follow one another: that of this process, and all.

    Raises:
        ValueError: A size that does not divide the number of processes, or none where there is no GPU to count.
    """
    size = default_group().size()
    if group_size is None:
        if not torch.cuda.is_available():
            raise ValueError(
                "Default group size only takes effect when CUDA is available. If your subgroup is on a CPU, please "
                "specify group_size."
            )
        group_size = torch.cuda.device_count()
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={group_size}'")
    lists = [list(range(start, start + group_size)) for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of the given processes: that of this process, None where it is in none, and all.

    Raises:
        ValueError: No groups, or a process in two of them.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    every = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(every)) != len(every):
        raise ValueError("ranks_per_subgroup_list: a process is in two groups")
    mine, made = None, []
    for ranks in ranks_per_subgroup_list:
        found = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        made.append(found)
        if get_rank() in ranks:
            mine = found
    return mine, made


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process in a group; -1 where it is not in it.

    Raises:
        ValueError: There is no group of all processes.
    """
    found = chosen(group)
    return -1 if found is None else found.rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes are in a group; -1 where this one is not in it.

    Raises:
        ValueError: There is no group of all processes.
    """
    found = chosen(group)
    return -1 if found is None else found.size()


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """The way of communication of a group."""
    found = chosen(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    name = found.name()
    return Backend(name.rpartition(":")[2] if "," in name else name)


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """The ways of communication of a group, by device."""
    found = chosen(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    return found.name() if ":" in found.name() else f"cpu:{found.name()},cuda:{found.name()}"


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The processes of a group, by their numbers in the job."""
    found = chosen(group)
    return [] if found is None else list(found._ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """From a number in a group to that in the job.

    Raises:
        ValueError: There is no such process in the group.
    """
    ranks = get_process_group_ranks(group)
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """From a number in the job to that in a group.

    Raises:
        ValueError: That process is not in the group.
    """
    ranks = get_process_group_ranks(group)
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process among those of its machine, as the environment's LOCAL_RANK says.

    Raises:
        RuntimeError: It does not say, and no other number was given.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError(
            "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to "
            "work, assuming you are not running in a multi-device context and want the code to run locally instead."
        )
    return int(fallback_rank)


def get_pg_count() -> int:
    """How many groups this process is in."""
    return len(groups.named)


def warn_not_in_group(name: str) -> None:
    """Tell that an operation of a group was called in a process that is not in it."""
    rank = default_group().rank()
    warnings.warn(
        f"Running {name} on global rank {rank} which does not belong to the given group.", stacklevel=4
    )
