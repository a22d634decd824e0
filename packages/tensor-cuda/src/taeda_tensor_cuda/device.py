"""The names that ``taeda.cuda`` has from this package, found by an entry point of the group ``taeda.device_names``.

They can be imported, and most be called, on machines without a device.
"""

from __future__ import annotations

from taeda_tensor_cuda import libraries, memory, nccl, unavailable_reason
from taeda_tensor_cuda.arrays import from_array_interface
from taeda_tensor_cuda.capability import is_bf16_supported, is_tf32_supported
from taeda_tensor_cuda.graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from taeda_tensor_cuda.memory import *  # noqa: F403
from taeda_tensor_cuda.settings import cufft_plan_cache as cufft_plan_cache
from taeda_tensor_cuda.settings import get_sync_debug_mode, set_sync_debug_mode
from taeda_tensor_cuda.settings import library_settings as library_settings
from taeda_tensor_cuda.settings import matmul_settings as matmul_settings

__all__ = list(memory.__all__)
__all__ += [
    "CUDAGraph",
    "from_array_interface",
    "get_sync_debug_mode",
    "graph",
    "graph_pool_handle",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_tf32_supported",
    "libraries",
    "make_graphed_callables",
    "nccl",
    "set_sync_debug_mode",
    "unavailable_reason",
]
