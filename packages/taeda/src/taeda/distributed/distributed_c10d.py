"""Where programs look for the classes of process groups."""

from taeda.distributed import (
    Backend,
    GroupMember,
    ProcessGroup,
    ReduceOp,
    Work,
    _no_group,
    default_pg_timeout,
    is_initialized,
)

_get_default_group = _no_group

__all__ = [
    "Backend",
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "default_pg_timeout",
    "is_initialized",
]
