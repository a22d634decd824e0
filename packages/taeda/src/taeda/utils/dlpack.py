"""Tensors from other libraries and for them, over the same memory."""

from __future__ import annotations

import enum

from taeda_registry.slots import tensor

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """Kinds of devices in DLPack (https://github.com/dmlc/dlpack/blob/main/include/dlpack/dlpack.h)."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14


from_dlpack = tensor.from_dlpack
to_dlpack = tensor.to_dlpack
