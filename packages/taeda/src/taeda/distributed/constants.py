"""How long processes wait for one another, unless a program says otherwise."""

from taeda.distributed._world import default_pg_timeout

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_nccl_timeout = default_pg_timeout
