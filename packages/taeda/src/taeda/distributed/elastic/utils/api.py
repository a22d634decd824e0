"""Environment, ports, and places in arguments where the number of a process is put."""

from __future__ import annotations

import os
import socket
from string import Template

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "macros"]


def get_env_variable_or_raise(env_name: str) -> str:
    """The value of a variable of the environment.

    Raises:
        ValueError: There is none of that name.
    """
    value = os.environ.get(env_name)
    if value is None:
        raise ValueError(f"Environment variable {env_name} required, but not set")
    return value


def get_socket_with_port() -> socket.socket:
    """A socket that listens at a free port of this machine."""
    made = socket.socket()
    made.bind(("localhost", 0))
    made.listen(0)
    return made


class macros:
    """What stands in arguments for the number of the process that gets them."""

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args: list[object], local_rank: str) -> list[object]:
        """The arguments of a process; what is no text stays as it is.

        Example:
            >>> macros.substitute(["--rank=${local_rank}", 2], "1")
            ['--rank=1', 2]
        """
        return [
            Template(arg).safe_substitute(local_rank=local_rank) if isinstance(arg, str) else arg
            for arg in args
        ]
