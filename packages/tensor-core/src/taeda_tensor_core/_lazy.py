"""Where the names of the package are that are loaded when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from taeda_tensor_core import _older_names

#: Modules of the package.
MODULES = frozenset({
    "accelerator", "amp", "array_api", "backends", "default_device", "library", "monitor", "nested", "overrides",
    "quantized", "quasirandom", "random", "return_types", "serialization", "signal", "sparse", "storage", "testing",
})  # fmt: skip
#: Names by the module that has them.
NAMES = {
    "serialization": "save load CheckpointError",
    "checkpoint.records": "PyTorchFileReader PyTorchFileWriter",
    "_binomial": "binomial",
    "composed_names": "ccol_indices_copy col_indices_copy cond convolution crow_indices_copy dsmm frobenius_norm "
    "from_file has_lapack has_mkl has_openmp has_spectral hsmm hspmm indices_copy native_norm norm_except_dim "
    "nuclear_norm row_indices_copy rrelu_ saddmm smm spmm sspaddmm values_copy while_loop "
    "hash_tensor",
    "_lowrank": "lobpcg lu pca_lowrank svd_lowrank",
    "device_module": "get_device_module",
    "default_device": "set_default_device get_default_device",
    "legacy_types": "set_default_tensor_type",
    "_named_dtypes": "complex32 chalf int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7 "
    "bits1x8 bits2x4 bits4x2 bits8 bits16 float4_e2m1fn_x2 qint8 quint8 qint32 quint4x2 quint2x4",
    "packed_weights": "_convert_weight_to_int4pack_for_cpu _weight_int4pack_mm_for_cpu _weight_int8pack_mm",
    "private_names": "_shape_as_tensor _assert_async _convert_indices_from_coo_to_csr "
    "_convert_indices_from_csr_to_coo _softmax_backward_data _log_softmax_backward_data _grouped_mm _int_mm "
    "_scaled_mm _has_compatible_shallow_copy_type _is_all_true _is_any_true _segment_reduce "
    "_amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_ _nested_tensor_from_mask "
    "_nested_tensor_from_mask_left_aligned",
    "random": "thread_safe_generator",
    "removed_names": "eig lstsq matrix_rank solve symeig",
    "storage": " ".join(
        ("Storage StorageBase UntypedStorage TypedStorage is_storage", *_older_names.STORAGES.values())
    ),
    "program_names": "is_inference is_signed is_conj is_neg is_distributed is_vulkan_available get_device "
    "get_float32_matmul_precision set_float32_matmul_precision set_warn_always is_warn_always_enabled "
    "get_num_interop_threads set_num_interop_threads init_num_threads set_flush_denormal set_deterministic_debug_mode "
    "get_deterministic_debug_mode compiled_with_cxx11_abi prepare_multiprocessing_environment sym_int "
    "sym_float sym_not "
    "sym_max sym_min sym_sum sym_ite sym_sqrt SymInt SymFloat SymBool ScriptObject OutOfMemoryError AcceleratorError "
    "to_dlpack resize_as_ detach_ range",
    "amp": "GradScaler autocast get_autocast_dtype set_autocast_dtype is_autocast_enabled set_autocast_enabled "
    "is_autocast_cpu_enabled set_autocast_cpu_enabled get_autocast_cpu_dtype set_autocast_cpu_dtype "
    "get_autocast_gpu_dtype set_autocast_gpu_dtype is_autocast_cache_enabled set_autocast_cache_enabled "
    "autocast_increment_nesting autocast_decrement_nesting clear_autocast_cache is_autocast_available",
    "overrides": "DisableTorchFunction DisableTorchFunctionSubclass",
    "quantized": "quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic dequantize int_repr q_scale "
    "q_zero_point q_per_channel_scales q_per_channel_zero_points q_per_channel_axis empty_quantized qscheme "
    "per_tensor_affine per_tensor_symmetric per_channel_affine per_channel_symmetric per_channel_affine_float_qparams "
    "fake_quantize_per_tensor_affine fake_quantize_per_channel_affine fused_moving_avg_obs_fake_quant "
    "quantized_batch_norm quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d _empty_affine_quantized "
    "_empty_per_channel_affine_quantized _make_per_tensor_quantized_tensor _make_per_channel_quantized_tensor "
    "_choose_qparams_per_tensor _fake_quantize_learnable_per_tensor_affine "
    "_fake_quantize_learnable_per_channel_affine",
    "sparse": (
        "sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor "
        "sparse_compressed_tensor"
    ),
}
_HOMES = {name: module for module, names in NAMES.items() for name in names.split()}


def find(name: str, package: dict[str, Any]) -> Any:
    """The value of a name; it stays in the package, so that its next use is a plain attribute.

    Raises:
        AttributeError: There is no such name.
    """
    if name in MODULES:
        return import_module(f"{__package__}.{name}")
    if name in _HOMES:
        return package.setdefault(name, getattr(import_module(f"{__package__}.{_HOMES[name]}"), name))
    if name.startswith("_") and not name.startswith("__") and not _is_file(name):
        from taeda_tensor_core.library import _aten_parts

        if name in _aten_parts.PARTS:
            return package.setdefault(name, _aten_parts.PARTS[name][1])
    if name.startswith("_foreach_"):
        from taeda_tensor_core import foreach

        if name in foreach.FUNCTIONS:
            return package.setdefault(name, getattr(foreach, name))
    if name == "default_generator":
        from taeda_tensor_core import random

        return package.setdefault(name, random.default_generator)
    if name in _older_names.TENSORS.values():
        from taeda_tensor_core import legacy_types

        return package.setdefault(name, legacy_types.legacy_type(name))
    from taeda_tensor_core import _C

    if (dtype := _C._find_dtype(name)) is not None:  # of a plug-in, which may take it away again
        return dtype
    raise AttributeError(f"module {__package__!r} has no attribute {name!r}")


def _is_file(name: str) -> bool:
    """Whether it is a module of the package, which Python asks for here before it imports it."""
    from importlib.util import find_spec

    return find_spec(f"{__package__}.{name}") is not None


def names() -> list[str]:
    """All such names."""
    return [*MODULES, *_HOMES, "default_generator", *_older_names.TENSORS.values()]
