"""Who takes part in remote calls, and how long they may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from taeda.distributed.rpc import constants

__all__ = ["RpcBackendOptions", "TensorPipeRpcBackendOptions", "WorkerInfo"]


class WorkerInfo(NamedTuple):
    """A process that can be called: its name and its number."""

    name: str
    id: int

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"

    __str__ = __repr__


class RpcBackendOptions:
    """Settings of remote calls.

    Args:
        rpc_timeout: Seconds that a call may take; 0 for as long as it takes.
        init_method: How processes find each other, as in `init_process_group`.
    """

    def __init__(
        self,
        rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC,
        init_method: str = constants.DEFAULT_INIT_METHOD,
    ) -> None:
        if rpc_timeout < 0:
            raise RuntimeError(f"RPC Timeout must be non-negative, found {rpc_timeout}")
        self.rpc_timeout, self.init_method = rpc_timeout, init_method


class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """The same, with what PyTorch's way of sending asks for.

    Args:
        num_worker_threads: Kept; there are as many threads as calls that wait.
        rpc_timeout: Seconds that a call may take; 0 for as long as it takes.
        init_method: How processes find each other, as in `init_process_group`.
        device_maps: By worker's name, which device of it takes the place of which of ours. Kept: tensors of a device
            travel through the memory of the host, and arrive on the device of the same name.
        devices: Kept.

    Raises:
        ValueError: A number of threads that is not positive, or a map of devices to the CPU.
    """

    def __init__(
        self,
        *,
        num_worker_threads: int = constants.DEFAULT_NUM_WORKER_THREADS,
        rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC,
        init_method: str = constants.DEFAULT_INIT_METHOD,
        device_maps: Mapping[str, Mapping[Any, Any]] | None = None,
        devices: Sequence[Any] | None = None,
        _transports: Any = None,
        _channels: Any = None,
    ) -> None:
        super().__init__(rpc_timeout, init_method)
        if num_worker_threads <= 0:
            raise ValueError(f"num_worker_threads must be positive, found {num_worker_threads}")
        self.num_worker_threads = num_worker_threads
        self.device_maps: dict[str, dict[Any, Any]] = {}
        for to, devices_of in (device_maps or {}).items():
            self.set_device_map(to, devices_of)
        self.devices: list[Any] = []
        self.set_devices(devices or [])

    def set_device_map(self, to: str, device_map: Mapping[Any, Any]) -> None:
        """Which device of a worker takes the place of which of ours.

        Raises:
            ValueError: One of them is the CPU, or two of ours go to the same.
        """
        found = {_device(ours): _device(theirs) for ours, theirs in device_map.items()}
        found = {**self.device_maps.get(to, {}), **found}
        if len(set(found.values())) != len(found):
            raise ValueError(f"`set_device_map` only supports 1-to-1 mapping, found {found} to {to!r}")
        self.device_maps[to] = found

    def set_devices(self, devices: Sequence[Any]) -> None:
        """The devices that calls use here."""
        self.devices = [_device(device) for device in devices]


def _device(given: Any) -> Any:
    import taeda as torch

    found = torch.device("cuda", given) if isinstance(given, int) else torch.device(given)
    if found.type == "cpu":
        raise ValueError(
            "`set_devices` and `set_device_map` do not take the cpu: its tensors stay where they are"
        )
    return found
