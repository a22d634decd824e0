"""Tensors from other libraries and for them, over the same memory."""

from __future__ import annotations

import enum

from taeda_registry.slots import tensor

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """Kinds of devices in DLPack (https://github.com/dmlc/dlpack/blob/main/include/dlpack/dlpack.h)."""

    kDLCPU = 1  # noqa: N815 (the names of the standard)
    kDLCUDA = 2  # noqa: N815
    kDLCUDAHost = 3  # noqa: N815
    kDLOpenCL = 4  # noqa: N815
    kDLVulkan = 7  # noqa: N815
    kDLMetal = 8  # noqa: N815
    kDLVPI = 9  # noqa: N815
    kDLROCM = 10  # noqa: N815
    kDLROCMHost = 11  # noqa: N815
    kDLExtDev = 12  # noqa: N815
    kDLCUDAManaged = 13  # noqa: N815
    kDLOneAPI = 14  # noqa: N815


from_dlpack = tensor.from_dlpack


def to_dlpack(tensor: object) -> object:
    """A DLPack capsule of a tensor."""
    return tensor.__dlpack__()  # type: ignore[attr-defined]
