"""Questions after GPUs, and decorators around them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import taeda as tc
from taeda._testing.common_utils import TEST_CUDA, TEST_MULTIGPU, _as_it_is

__all__ = ["TEST_CUDA", "TEST_MULTIGPU", "with_tf32_off"]

_CAPABILITY = tc.cuda.get_device_capability() if TEST_CUDA else (0, 0)
TEST_CUDNN = TEST_MAGMA = TEST_CUDNN_VERSION = TEST_NUMBA_CUDA = TEST_BF16 = False
CUDA_DEVICE = tc.device("cuda:0") if TEST_CUDA else None
SM53OrLater, SM60OrLater, SM70OrLater, SM75OrLater, SM80OrLater, SM89OrLater, SM90OrLater, SM100OrLater = (
    TEST_CUDA and tuple(_CAPABILITY or (0, 0)) >= least
    for least in ((5, 3), (6, 0), (7, 0), (7, 5), (8, 0), (8, 9), (9, 0), (10, 0))
)
PLATFORM_SUPPORTS_FLASH_ATTENTION = PLATFORM_SUPPORTS_MEM_EFF_ATTENTION = (
    PLATFORM_SUPPORTS_CUDNN_ATTENTION
) = False
PLATFORM_SUPPORTS_FUSED_ATTENTION = PLATFORM_SUPPORTS_FP8 = PLATFORM_SUPPORTS_MX_GEMM = False
PLATFORM_SUPPORTS_BF16 = PLATFORM_SUPPORTS_HALF_GREEDY = PLATFORM_SUPPORTS_FP8_GROUPED_GEMM = False
with_tf32_off = tf32_on_and_off = _as_it_is


@contextlib.contextmanager
def tf32_off() -> Iterator[None]:
    """A block without short factors: there are none."""
    yield


tf32_on = tf32_enabled = tf32_off


def _get_torch_cuda_version() -> tuple[int, ...]:
    """The version of CUDA; (0, 0) without."""
    return (0, 0)


def initialize_cuda_context_rng() -> None:
    """Begin the GPU's random numbers, where there is one."""
    if TEST_CUDA:
        tc.cuda.manual_seed_all(0)


def xfailIfSM89(function: Any) -> Any:
    """The test itself."""
    return function
