# What type checkers and editors see: everything public, from where it is defined; a test holds it to what is there.
import builtins
from typing import Any

from taeda_tensor_core import accelerator as accelerator
from taeda_tensor_core import amp as amp
from taeda_tensor_core import array_api as array_api
from taeda_tensor_core import backends as backends
from taeda_tensor_core import default_device as default_device
from taeda_tensor_core import library as library
from taeda_tensor_core import monitor as monitor
from taeda_tensor_core import nested as nested
from taeda_tensor_core import overrides as overrides
from taeda_tensor_core import quantized as quantized
from taeda_tensor_core import quasirandom as quasirandom
from taeda_tensor_core import random as random
from taeda_tensor_core import removed_names as removed_names
from taeda_tensor_core import return_types as return_types
from taeda_tensor_core import serialization as serialization
from taeda_tensor_core import signal as signal
from taeda_tensor_core import sparse as sparse
from taeda_tensor_core import storage as storage
from taeda_tensor_core import streams as streams
from taeda_tensor_core import testing as testing
from taeda_tensor_core._binomial import binomial as binomial
from taeda_tensor_core._build_facts import get_include as get_include
from taeda_tensor_core._build_facts import get_library_dir as get_library_dir
from taeda_tensor_core._build_facts import get_ops_dir as get_ops_dir
from taeda_tensor_core._C import *
from taeda_tensor_core._C import Generator, dtype
from taeda_tensor_core._functions import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
)
from taeda_tensor_core._functions import broadcast_shapes as broadcast_shapes
from taeda_tensor_core._functions import is_complex as is_complex
from taeda_tensor_core._functions import (
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
)
from taeda_tensor_core._functions import is_floating_point as is_floating_point
from taeda_tensor_core._functions import is_nonzero as is_nonzero
from taeda_tensor_core._functions import is_same_size as is_same_size
from taeda_tensor_core._functions import is_tensor as is_tensor
from taeda_tensor_core._functions import numel as numel
from taeda_tensor_core._functions import resolve_conj as resolve_conj
from taeda_tensor_core._functions import resolve_neg as resolve_neg
from taeda_tensor_core._functions import use_deterministic_algorithms as use_deterministic_algorithms
from taeda_tensor_core._info import finfo as finfo
from taeda_tensor_core._info import iinfo as iinfo
from taeda_tensor_core._info import jagged as jagged
from taeda_tensor_core._info import layout as layout
from taeda_tensor_core._info import memory_format as memory_format
from taeda_tensor_core._info import sparse_bsc as sparse_bsc
from taeda_tensor_core._info import sparse_bsr as sparse_bsr
from taeda_tensor_core._info import sparse_coo as sparse_coo
from taeda_tensor_core._info import sparse_csc as sparse_csc
from taeda_tensor_core._info import sparse_csr as sparse_csr
from taeda_tensor_core._info import strided as strided
from taeda_tensor_core._lowrank import lobpcg as lobpcg
from taeda_tensor_core._lowrank import lu as lu
from taeda_tensor_core._lowrank import pca_lowrank as pca_lowrank
from taeda_tensor_core._lowrank import svd_lowrank as svd_lowrank
from taeda_tensor_core._modes import enable_grad as enable_grad
from taeda_tensor_core._modes import inference_mode as inference_mode
from taeda_tensor_core._modes import no_grad as no_grad
from taeda_tensor_core._modes import set_grad_enabled as set_grad_enabled
from taeda_tensor_core._named_dtypes import chalf as chalf
from taeda_tensor_core._overridable import DisableTorchFunction as DisableTorchFunction
from taeda_tensor_core._overridable import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from taeda_tensor_core._overridable import overridable as overridable
from taeda_tensor_core._printing import set_printoptions as set_printoptions
from taeda_tensor_core._unique import unique as unique
from taeda_tensor_core._unique import unique_consecutive as unique_consecutive
from taeda_tensor_core.amp import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from taeda_tensor_core.amp import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from taeda_tensor_core.amp import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from taeda_tensor_core.amp import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from taeda_tensor_core.amp import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from taeda_tensor_core.amp import set_autocast_gpu_dtype as set_autocast_gpu_dtype
from taeda_tensor_core.amp._state import autocast_decrement_nesting as autocast_decrement_nesting
from taeda_tensor_core.amp._state import autocast_increment_nesting as autocast_increment_nesting
from taeda_tensor_core.amp._state import clear_autocast_cache as clear_autocast_cache
from taeda_tensor_core.amp._state import get_autocast_dtype as get_autocast_dtype
from taeda_tensor_core.amp._state import is_autocast_available as is_autocast_available
from taeda_tensor_core.amp._state import is_autocast_cache_enabled as is_autocast_cache_enabled
from taeda_tensor_core.amp._state import is_autocast_enabled as is_autocast_enabled
from taeda_tensor_core.amp._state import set_autocast_cache_enabled as set_autocast_cache_enabled
from taeda_tensor_core.amp._state import set_autocast_dtype as set_autocast_dtype
from taeda_tensor_core.amp._state import set_autocast_enabled as set_autocast_enabled
from taeda_tensor_core.amp.autocast_mode import autocast as autocast
from taeda_tensor_core.amp.grad_scaler import GradScaler as GradScaler
from taeda_tensor_core.checkpoint.common import CheckpointError as CheckpointError
from taeda_tensor_core.checkpoint.records import PyTorchFileReader as PyTorchFileReader
from taeda_tensor_core.checkpoint.records import PyTorchFileWriter as PyTorchFileWriter
from taeda_tensor_core.composed_names import ccol_indices_copy as ccol_indices_copy
from taeda_tensor_core.composed_names import col_indices_copy as col_indices_copy
from taeda_tensor_core.composed_names import cond as cond
from taeda_tensor_core.composed_names import convolution as convolution
from taeda_tensor_core.composed_names import crow_indices_copy as crow_indices_copy
from taeda_tensor_core.composed_names import dsmm as dsmm
from taeda_tensor_core.composed_names import frobenius_norm as frobenius_norm
from taeda_tensor_core.composed_names import from_file as from_file
from taeda_tensor_core.composed_names import hash_tensor as hash_tensor
from taeda_tensor_core.composed_names import hsmm as hsmm
from taeda_tensor_core.composed_names import hspmm as hspmm
from taeda_tensor_core.composed_names import indices_copy as indices_copy
from taeda_tensor_core.composed_names import native_norm as native_norm
from taeda_tensor_core.composed_names import norm_except_dim as norm_except_dim
from taeda_tensor_core.composed_names import nuclear_norm as nuclear_norm
from taeda_tensor_core.composed_names import row_indices_copy as row_indices_copy
from taeda_tensor_core.composed_names import rrelu_ as rrelu_
from taeda_tensor_core.composed_names import saddmm as saddmm
from taeda_tensor_core.composed_names import smm as smm
from taeda_tensor_core.composed_names import spmm as spmm
from taeda_tensor_core.composed_names import sspaddmm as sspaddmm
from taeda_tensor_core.composed_names import values_copy as values_copy
from taeda_tensor_core.composed_names import while_loop as while_loop
from taeda_tensor_core.default_device import get_default_device as get_default_device
from taeda_tensor_core.default_device import set_default_device as set_default_device
from taeda_tensor_core.device_module import get_device_module as get_device_module
from taeda_tensor_core.legacy_types import set_default_tensor_type as set_default_tensor_type
from taeda_tensor_core.program_names import AcceleratorError as AcceleratorError
from taeda_tensor_core.program_names import OutOfMemoryError as OutOfMemoryError
from taeda_tensor_core.program_names import ScriptObject as ScriptObject
from taeda_tensor_core.program_names import SymBool as SymBool
from taeda_tensor_core.program_names import SymFloat as SymFloat
from taeda_tensor_core.program_names import SymInt as SymInt
from taeda_tensor_core.program_names import compiled_with_cxx11_abi as compiled_with_cxx11_abi
from taeda_tensor_core.program_names import detach_ as detach_
from taeda_tensor_core.program_names import get_deterministic_debug_mode as get_deterministic_debug_mode
from taeda_tensor_core.program_names import get_device as get_device
from taeda_tensor_core.program_names import get_float32_matmul_precision as get_float32_matmul_precision
from taeda_tensor_core.program_names import get_num_interop_threads as get_num_interop_threads
from taeda_tensor_core.program_names import init_num_threads as init_num_threads
from taeda_tensor_core.program_names import is_conj as is_conj
from taeda_tensor_core.program_names import is_distributed as is_distributed
from taeda_tensor_core.program_names import is_inference as is_inference
from taeda_tensor_core.program_names import is_neg as is_neg
from taeda_tensor_core.program_names import is_signed as is_signed
from taeda_tensor_core.program_names import is_vulkan_available as is_vulkan_available
from taeda_tensor_core.program_names import is_warn_always_enabled as is_warn_always_enabled
from taeda_tensor_core.program_names import (
    prepare_multiprocessing_environment as prepare_multiprocessing_environment,
)
from taeda_tensor_core.program_names import resize_as_ as resize_as_
from taeda_tensor_core.program_names import set_deterministic_debug_mode as set_deterministic_debug_mode
from taeda_tensor_core.program_names import set_float32_matmul_precision as set_float32_matmul_precision
from taeda_tensor_core.program_names import set_flush_denormal as set_flush_denormal
from taeda_tensor_core.program_names import set_num_interop_threads as set_num_interop_threads
from taeda_tensor_core.program_names import set_warn_always as set_warn_always
from taeda_tensor_core.program_names import sym_float as sym_float
from taeda_tensor_core.program_names import sym_int as sym_int
from taeda_tensor_core.program_names import sym_ite as sym_ite
from taeda_tensor_core.program_names import sym_max as sym_max
from taeda_tensor_core.program_names import sym_min as sym_min
from taeda_tensor_core.program_names import sym_not as sym_not
from taeda_tensor_core.program_names import sym_sqrt as sym_sqrt
from taeda_tensor_core.program_names import sym_sum as sym_sum
from taeda_tensor_core.program_names import to_dlpack as to_dlpack
from taeda_tensor_core.quantized._fake import (
    fake_quantize_per_channel_affine as fake_quantize_per_channel_affine,
)
from taeda_tensor_core.quantized._fake import (
    fake_quantize_per_tensor_affine as fake_quantize_per_tensor_affine,
)
from taeda_tensor_core.quantized._fake import (
    fused_moving_avg_obs_fake_quant as fused_moving_avg_obs_fake_quant,
)
from taeda_tensor_core.quantized._making import dequantize as dequantize
from taeda_tensor_core.quantized._making import empty_quantized as empty_quantized
from taeda_tensor_core.quantized._making import int_repr as int_repr
from taeda_tensor_core.quantized._making import q_per_channel_axis as q_per_channel_axis
from taeda_tensor_core.quantized._making import q_per_channel_scales as q_per_channel_scales
from taeda_tensor_core.quantized._making import q_per_channel_zero_points as q_per_channel_zero_points
from taeda_tensor_core.quantized._making import q_scale as q_scale
from taeda_tensor_core.quantized._making import q_zero_point as q_zero_point
from taeda_tensor_core.quantized._making import quantize_per_channel as quantize_per_channel
from taeda_tensor_core.quantized._making import quantize_per_tensor as quantize_per_tensor
from taeda_tensor_core.quantized._making import quantize_per_tensor_dynamic as quantize_per_tensor_dynamic
from taeda_tensor_core.quantized._operators import quantized_batch_norm as quantized_batch_norm
from taeda_tensor_core.quantized._operators import quantized_max_pool1d as quantized_max_pool1d
from taeda_tensor_core.quantized._operators import quantized_max_pool2d as quantized_max_pool2d
from taeda_tensor_core.quantized._operators import quantized_max_pool3d as quantized_max_pool3d
from taeda_tensor_core.quantized._schemes import per_channel_affine as per_channel_affine
from taeda_tensor_core.quantized._schemes import (
    per_channel_affine_float_qparams as per_channel_affine_float_qparams,
)
from taeda_tensor_core.quantized._schemes import per_channel_symmetric as per_channel_symmetric
from taeda_tensor_core.quantized._schemes import per_tensor_affine as per_tensor_affine
from taeda_tensor_core.quantized._schemes import per_tensor_symmetric as per_tensor_symmetric
from taeda_tensor_core.quantized._schemes import qscheme as qscheme
from taeda_tensor_core.random import get_rng_state as get_rng_state
from taeda_tensor_core.random import initial_seed as initial_seed
from taeda_tensor_core.random import seed as seed
from taeda_tensor_core.random import set_rng_state as set_rng_state
from taeda_tensor_core.random import thread_safe_generator as thread_safe_generator
from taeda_tensor_core.serialization import load as load
from taeda_tensor_core.serialization import save as save
from taeda_tensor_core.sparse._making import sparse_bsc_tensor as sparse_bsc_tensor
from taeda_tensor_core.sparse._making import sparse_bsr_tensor as sparse_bsr_tensor
from taeda_tensor_core.sparse._making import sparse_compressed_tensor as sparse_compressed_tensor
from taeda_tensor_core.sparse._making import sparse_coo_tensor as sparse_coo_tensor
from taeda_tensor_core.sparse._making import sparse_csc_tensor as sparse_csc_tensor
from taeda_tensor_core.sparse._making import sparse_csr_tensor as sparse_csr_tensor
from taeda_tensor_core.storage import Storage as Storage
from taeda_tensor_core.storage import StorageBase as StorageBase
from taeda_tensor_core.storage import TypedStorage as TypedStorage
from taeda_tensor_core.storage import UntypedStorage as UntypedStorage
from taeda_tensor_core.storage import is_storage as is_storage
from taeda_tensor_core.streams import Event as Event
from taeda_tensor_core.streams import Stream as Stream
from taeda_tensor_core.streams import current_stream as current_stream
from taeda_tensor_core.streams import set_stream as set_stream

BFloat16Storage: type[Any]
BFloat16Tensor: type[Any]
BoolStorage: type[Any]
BoolTensor: type[Any]
ByteStorage: type[Any]
ByteTensor: type[Any]
CharStorage: type[Any]
CharTensor: type[Any]
ComplexDoubleStorage: type[Any]
ComplexDoubleTensor: type[Any]
ComplexFloatStorage: type[Any]
ComplexFloatTensor: type[Any]
DoubleStorage: type[Any]
DoubleTensor: type[Any]
FloatStorage: type[Any]
FloatTensor: type[Any]
HalfStorage: type[Any]
HalfTensor: type[Any]
IntStorage: type[Any]
IntTensor: type[Any]
LongStorage: type[Any]
LongTensor: type[Any]
ShortStorage: type[Any]
ShortTensor: type[Any]
bits16: dtype
bits1x8: dtype
bits2x4: dtype
bits4x2: dtype
bits8: dtype
channels_last: memory_format
channels_last_3d: memory_format
complex32: dtype
contiguous_format: memory_format
default_generator: Generator
e: builtins.float
float4_e2m1fn_x2: dtype
has_lapack: builtins.bool
has_mkl: builtins.bool
has_openmp: builtins.bool
has_spectral: builtins.bool
inf: builtins.float
int1: dtype
int2: dtype
int3: dtype
int4: dtype
int5: dtype
int6: dtype
int7: dtype
legacy_contiguous_format: memory_format
nan: builtins.float
newaxis: None
ops: Any
pi: builtins.float
preserve_format: memory_format
qint32: dtype
qint8: dtype
quint2x4: dtype
quint4x2: dtype
quint8: dtype
uint1: dtype
uint2: dtype
uint3: dtype
uint4: dtype
uint5: dtype
uint6: dtype
uint7: dtype

def abi_capsule(major: builtins.int = 1, minor: builtins.int = 0, distribution: str = "") -> object: ...
def eig(*args: Any, **kwargs: Any) -> Any: ...
def lstsq(*args: Any, **kwargs: Any) -> Any: ...
def matrix_rank(*args: Any, **kwargs: Any) -> Any: ...
def range(*args: Any, **kwargs: Any) -> Any: ...
def solve(*args: Any, **kwargs: Any) -> Any: ...
def symeig(*args: Any, **kwargs: Any) -> Any: ...
