"""Settings that programs make for a code generator that is not there."""

from __future__ import annotations

from typing import Any

from taeda import _absent
from taeda.compiler import _Config, cudagraph_mark_step_begin

__all__ = [
    "aot_compile", "aoti_compile_and_package", "aoti_load_package", "config", "cudagraph_mark_step_begin",
    "list_mode_options", "list_options",
]  # fmt: skip

globals().update(
    _absent.functions(
        "taeda._inductor",
        "aot_compile aoti_compile_and_package aoti_load_package",
        "there is no compiler; taeda.export.save and load keep a program as a file",
    )
)

# Programs read some of these before they change them.
config = _Config(
    "taeda._inductor.config",
    **{
        part: _Config(f"taeda._inductor.config.{part}")
        for part in ("aot_inductor", "cpp", "cuda", "eager_numerics", "trace", "triton")
    },
    benchmark_kernel=False, compile_threads=1, conv_1x1_as_mm=False, coordinate_descent_tuning=False, cpp_wrapper=False,
    debug=False, dce=False, disable_progress=True, epilogue_fusion=True, fallback_random=False,
    force_fuse_int_mm_with_mul=False, freezing=False, fx_graph_cache=True, inplace_buffers=True,
    layout_optimization=True, max_autotune=False, max_autotune_gemm=False, memory_planning=False, permute_fusion=False,
    shape_padding=True, size_asserts=True, split_reductions=True, use_mixed_mm=True, verbose_progress=False,
)  # fmt: skip


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """What a mode of `compile` sets: nothing."""
    return {}


def list_options() -> list[str]:
    """Names of settings: none that anything reads."""
    return []


def __getattr__(name: str) -> Any:
    if name in ("compile_fx", "custom_graph_pass", "utils"):
        from importlib import import_module

        return import_module(f"taeda._inductor.{name}")
    raise AttributeError(f"module 'taeda._inductor' has no attribute {name!r}")
