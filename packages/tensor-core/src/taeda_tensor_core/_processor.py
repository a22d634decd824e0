"""What the processor can do, as the system tells it."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Callable, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any

#: PyTorch's names of instructions, and the system's where they differ.
_SAME = (
    "sse", "sse2", "sse4a", "avx", "avx2", "fma4", "f16c", "bmi2", "popcnt", "aes", "clflush", "clflushopt", "clwb",
    "amx_tile", "amx_int8", "amx_bf16", "amx_fp16", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx512_vbmi2",
    "avx512_bitalg", "avx512_vpopcntdq", "ssse3", "sse4_1", "sse4_2", "avx_vnni", "sve", "sve2", "bf16", "i8mm",
)  # fmt: skip
_FLAGS = {
    **{name: name for name in _SAME},
    **{f"avx512_{part}": f"avx512{part}" for part in ("f", "bw", "cd", "dq", "vl", "ifma", "vbmi")},
    "sse3": "pni", "fma3": "fma", "bmi": "bmi1", "lzcnt": "abm", "sha": "sha_ni", "neon": "asimd",
}  # fmt: skip
_X86 = frozenset({"x86_64", "AMD64", "i686"})
_ARM = frozenset({"neon", "sve", "sve2", "bf16", "i8mm"})


@functools.cache
def get_capabilities() -> Mapping[str, Any]:
    """What the processor can do: names of instructions with True or False, and its architecture.

    Example:
        >>> taeda.cpu.get_capabilities()["architecture"]  # doctest: +SKIP
        'x86_64'
    """
    found = system_flags()
    x86 = platform.machine() in _X86
    shown = {name: flag in found for name, flag in _FLAGS.items() if (name in _ARM) != x86}
    return MappingProxyType({
        **shown, "architecture": platform.machine(), "num_logical_cores": os.cpu_count() or 1
    })  # fmt: skip


@functools.cache
def system_flags() -> frozenset[str]:
    """Names of instructions as Linux writes them; none elsewhere."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            lines = (line for line in file if line.lower().startswith(("flags", "features")))
            return frozenset(next(lines, "").partition(":")[2].split())
    except OSError:
        return frozenset()


def _question(flag: str) -> Callable[[], bool]:
    def asked() -> bool:
        return bool(get_capabilities().get(flag, False))

    asked.__doc__ = f"Whether the processor has {flag}."
    return asked


def _init_amx() -> bool:
    """Whether programs may use AMX, which oneDNN asks for itself."""
    return bool(get_capabilities().get("amx_tile", False))


#: By name: functions that programs find at `cpu`.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "get_capabilities": get_capabilities,
    "_init_amx": _init_amx,
    "_is_avx2_supported": _question("avx2"),
    "_is_avx512_supported": _question("avx512_f"),
    "_is_avx512_bf16_supported": _question("avx512_bf16"),
    "_is_vnni_supported": _question("avx512_vnni"),
    "_is_amx_tile_supported": _question("amx_tile"),
    "_is_amx_fp16_supported": _question("amx_fp16"),
}
#: The same as a part of the compiled module.
extension = SimpleNamespace(_get_cpu_capability=lambda: dict(get_capabilities()), **FUNCTIONS)
