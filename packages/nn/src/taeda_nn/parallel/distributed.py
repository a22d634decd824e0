"""The name under which programs look for training over several processes."""

from __future__ import annotations

from typing import Any

from taeda_nn.modules.module import Module


class DistributedDataParallel(Module):
    """A module trained by several processes, which average its gradients.

    There are no groups of processes yet: RuntimeError when one is made. Programs can import the name, and use the
    module itself in one process.
    """

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "DistributedDataParallel: taeda has no process groups; call the module itself in one process, or use "
            "nn.DataParallel over the devices of one process"
        )


class DistributedDataParallelCPU(DistributedDataParallel):
    """Deprecated name of `DistributedDataParallel`."""
