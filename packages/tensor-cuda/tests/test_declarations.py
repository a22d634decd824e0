"""What is declared by hand of the driver and of NVIDIA's libraries, against NVIDIA's headers where there are such."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import taeda_registry

SOURCES = Path(__file__).resolve().parents[1] / "csrc"
# Enumerations are ints and handles are pointers, so types are compared by what a call passes.
AGREE = r"""
#include <type_traits>
namespace {
template <class T> constexpr int passed = std::is_pointer_v<T> ? 1 : std::is_void_v<T> ? 2 : 3;
template <class A, class B> constexpr bool same = passed<A> == passed<B> && (passed<A> != 3 || sizeof(A) == sizeof(B));
template <class F, class G> constexpr bool agree = false;
template <class R, class... A, class S, class... B>
  requires(sizeof...(A) == sizeof...(B))
constexpr bool agree<R (*)(A...), S (*)(B...)> = same<R, S> && (same<A, B> && ...);
}
"""
CHECK = (
    "#include <cuda.h>\n#include <cstddef>\n"
    + AGREE
    + r"""
#include "driver/functions.h"
#define CHECK(NAME, PARAMETERS) \
  static_assert(agree<decltype(&::NAME), decltype(taeda::cuda::Functions::NAME)>, #NAME);
TAEDA_CUDA_FUNCTIONS(CHECK)
static_assert(taeda::cuda::kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(taeda::cuda::kEventNoTiming == CU_EVENT_DISABLE_TIMING);
static_assert(taeda::cuda::kHostPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(sizeof(taeda::cuda::CudaMemoryKind) == sizeof(CUmemAllocationProp));
static_assert(offsetof(taeda::cuda::CudaMemoryKind, place) == offsetof(CUmemAllocationProp, location));
static_assert(offsetof(taeda::cuda::CudaMemoryKind, flags) == offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(taeda::cuda::CudaAccess) == sizeof(CUmemAccessDesc));
static_assert(offsetof(taeda::cuda::CudaAccess, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(CU_MEM_ALLOCATION_TYPE_PINNED == 1 && CU_MEM_LOCATION_TYPE_DEVICE == 1);
static_assert(CU_MEM_ACCESS_FLAGS_PROT_READWRITE == 3 && CU_MEM_HANDLE_TYPE_NONE == 0);
static_assert(taeda::cuda::kCaptureNone == CU_STREAM_CAPTURE_STATUS_NONE);
static_assert(taeda::cuda::kGraphVerbose == CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
static_assert(taeda::cuda::kSharedOfFunction == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(taeda::cuda::kAttributeSharedPerBlock == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
static_assert(taeda::cuda::kAttributeWarpSize == CU_DEVICE_ATTRIBUTE_WARP_SIZE);
static_assert(taeda::cuda::kAttributeL2Cache == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
static_assert(taeda::cuda::kAttributeThreadsPerProcessor == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
static_assert(taeda::cuda::kAttributeIntegrated == CU_DEVICE_ATTRIBUTE_INTEGRATED);
static_assert(taeda::cuda::kAttributePciBus == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
static_assert(taeda::cuda::kAttributePciDevice == CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
static_assert(taeda::cuda::kAttributePciDomain == CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
static_assert(taeda::cuda::kAttributeSharedPerProcessor == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
static_assert(taeda::cuda::kAttributeRegistersPerProcessor == CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
static_assert(taeda::cuda::kAttributeBoardOfSeveral == CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD);
static_assert(taeda::cuda::kAttributeSharedMost == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(taeda::cuda::kAttributeProcessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(taeda::cuda::kAttributeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(taeda::cuda::kAttributeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
"""
)
CUBLAS = (
    "#include <cublas_v2.h>\n"
    + AGREE
    + r"""
#include "driver/cublas_functions.h"
#define CHECK(RESULT, NAME, PARAMETERS) \
  static_assert(agree<decltype(&::NAME), RESULT (*) PARAMETERS>, #NAME);
TAEDA_CUBLAS_FUNCTIONS(CHECK)
static_assert(taeda::cuda::kCublasFloat == CUDA_R_32F && taeda::cuda::kCublasDouble == CUDA_R_64F);
static_assert(taeda::cuda::kCublasHalf == CUDA_R_16F && taeda::cuda::kCublasBfloat16 == CUDA_R_16BF);
static_assert(taeda::cuda::kCublasComplexFloat == CUDA_C_32F && taeda::cuda::kCublasComplexDouble == CUDA_C_64F);
static_assert(taeda::cuda::kCublasComputeFloat == CUBLAS_COMPUTE_32F);
static_assert(taeda::cuda::kCublasComputeDouble == CUBLAS_COMPUTE_64F);
static_assert(taeda::cuda::kCublasComputeTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(taeda::cuda::kCublasDefaultAlgorithm == CUBLAS_GEMM_DEFAULT);
static_assert(CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1 && CUBLAS_STATUS_SUCCESS == 0);
"""
)
CUBLASLT = (
    "#include <cublasLt.h>\n#include <cstddef>\n"
    + AGREE
    + r"""
#include "driver/cublaslt_functions.h"
#define CHECK(RESULT, NAME, PARAMETERS) \
  static_assert(agree<decltype(&::NAME), RESULT (*) PARAMETERS>, #NAME);
TAEDA_CUBLASLT_FUNCTIONS(CHECK)
using namespace taeda::cuda;
static_assert(sizeof(CublasLtChoice) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(sizeof(CublasLtChoice::algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(offsetof(CublasLtChoice, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(CublasLtChoice, status) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(kCublasLtTurnedA == CUBLASLT_MATMUL_DESC_TRANSA && kCublasLtTurnedB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(kCublasLtEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(kCublasLtVector == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(kCublasLtKept == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
static_assert(kCublasLtKeptLd == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
static_assert(kCublasLtBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(kCublasLtBatchStep == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(kCublasLtMostWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(kCublasLtReductions == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(kCublasLtAlignmentA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(kCublasLtAlignmentB == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(kCublasLtAlignmentC == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(kCublasLtAlignmentD == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(kCublasLtReduceInOrder == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(kCublasLtPlain == CUBLASLT_EPILOGUE_DEFAULT);
static_assert(kCublasLtBias == CUBLASLT_EPILOGUE_BIAS);
static_assert(kCublasLtRelu == CUBLASLT_EPILOGUE_RELU && kCublasLtGelu == CUBLASLT_EPILOGUE_GELU);
static_assert((kCublasLtRelu | kCublasLtKeeps) == CUBLASLT_EPILOGUE_RELU_AUX);
static_assert((kCublasLtGelu | kCublasLtKeeps) == CUBLASLT_EPILOGUE_GELU_AUX);
static_assert((kCublasLtRelu | kCublasLtBias) == CUBLASLT_EPILOGUE_RELU_BIAS);
static_assert((kCublasLtGelu | kCublasLtBias) == CUBLASLT_EPILOGUE_GELU_BIAS);
static_assert((kCublasLtRelu | kCublasLtKeeps | kCublasLtBias) == CUBLASLT_EPILOGUE_RELU_AUX_BIAS);
static_assert((kCublasLtGelu | kCublasLtKeeps | kCublasLtBias) == CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
static_assert(kCublasLtReluSlope == CUBLASLT_EPILOGUE_DRELU && kCublasLtGeluSlope == CUBLASLT_EPILOGUE_DGELU);
static_assert((kCublasLtReluSlope | kCublasLtSums) == CUBLASLT_EPILOGUE_DRELU_BGRAD);
static_assert((kCublasLtGeluSlope | kCublasLtSums) == CUBLASLT_EPILOGUE_DGELU_BGRAD);
static_assert(kCublasLtSumsOfA == CUBLASLT_EPILOGUE_BGRADA && kCublasLtSumsOfB == CUBLASLT_EPILOGUE_BGRADB);
"""
)
CUDNN = (
    "#include <cudnn.h>\n"
    + AGREE
    + r"""
#include "driver/cudnn_functions.h"
#include "driver/recurrence.h"
#define CHECK(RESULT, NAME, PARAMETERS) \
  static_assert(agree<decltype(&::NAME), RESULT (*) PARAMETERS>, #NAME);
TAEDA_CUDNN_FUNCTIONS(CHECK)
TAEDA_CUDNN_RECURRENT_FUNCTIONS(CHECK)
using namespace taeda::cuda;
static_assert(int(Cell::Relu) == CUDNN_RNN_RELU && int(Cell::Tanh) == CUDNN_RNN_TANH);
static_assert(int(Cell::Lstm) == CUDNN_LSTM && int(Cell::Gru) == CUDNN_GRU);
static_assert(kCudnnDefaultMath == CUDNN_DEFAULT_MATH && kCudnnTensorMath == CUDNN_TENSOR_OP_MATH);
static_assert(kCudnnPlainMath == CUDNN_FMA_MATH && kCudnnStandardRecurrence == CUDNN_RNN_ALGO_STANDARD);
static_assert(kCudnnLinearInput == CUDNN_LINEAR_INPUT && kCudnnAddGradients == CUDNN_WGRAD_MODE_ADD);
static_assert(kCudnnNoBias == CUDNN_RNN_NO_BIAS && kCudnnTwoBiases == CUDNN_RNN_DOUBLE_BIAS);
static_assert(CUDNN_UNIDIRECTIONAL == 0 && CUDNN_BIDIRECTIONAL == 1);
static_assert(CUDNN_FWD_MODE_INFERENCE == 0 && CUDNN_FWD_MODE_TRAINING == 1);
static_assert(kCudnnPaddedSteps == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED);
static_assert(kCudnnPackedSteps == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED);
static_assert(kCudnnPaddedBatch == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED);
static_assert(kCudnnPaddedData == CUDNN_RNN_PADDED_IO_ENABLED && kCudnnNotSupported == CUDNN_STATUS_NOT_SUPPORTED);
static_assert(kCudnnFloat == CUDNN_DATA_FLOAT && kCudnnDouble == CUDNN_DATA_DOUBLE);
static_assert(kCudnnHalf == CUDNN_DATA_HALF && kCudnnBfloat16 == CUDNN_DATA_BFLOAT16);
static_assert(kCudnnTypeHandle == CUDNN_TYPE_HANDLE && kCudnnTypeData == CUDNN_TYPE_DATA_TYPE);
static_assert(kCudnnTypeInteger == CUDNN_TYPE_INT64 && kCudnnTypeFloat == CUDNN_TYPE_FLOAT);
static_assert(kCudnnTypeDouble == CUDNN_TYPE_DOUBLE && kCudnnTypePointer == CUDNN_TYPE_VOID_PTR);
static_assert(kCudnnTypeMode == CUDNN_TYPE_CONVOLUTION_MODE && kCudnnTypeHeuristic == CUDNN_TYPE_HEUR_MODE);
static_assert(kCudnnTypeNote == CUDNN_TYPE_NUMERICAL_NOTE && kCudnnTypeDescriptor == CUDNN_TYPE_BACKEND_DESCRIPTOR);
static_assert(kCudnnConvolution == CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
static_assert(kCudnnEngine == CUDNN_BACKEND_ENGINE_DESCRIPTOR);
static_assert(kCudnnConfiguration == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
static_assert(kCudnnHeuristics == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
static_assert(kCudnnPlan == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
static_assert(kCudnnForward == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
static_assert(kCudnnBackwardFilter == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
static_assert(kCudnnBackwardData == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
static_assert(kCudnnGraph == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
static_assert(kCudnnPack == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
static_assert(kCudnnTensor == CUDNN_BACKEND_TENSOR_DESCRIPTOR);
static_assert(kCudnnConvolutionCompute == CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
static_assert(kCudnnConvolutionMode == CUDNN_ATTR_CONVOLUTION_CONV_MODE);
static_assert(kCudnnConvolutionDilations == CUDNN_ATTR_CONVOLUTION_DILATIONS);
static_assert(kCudnnConvolutionStrides == CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
static_assert(kCudnnConvolutionAfter == CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
static_assert(kCudnnConvolutionBefore == CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
static_assert(kCudnnConvolutionSpatial == CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
static_assert(kCudnnHeuristicsMode == CUDNN_ATTR_ENGINEHEUR_MODE);
static_assert(kCudnnHeuristicsGraph == CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
static_assert(kCudnnHeuristicsResults == CUDNN_ATTR_ENGINEHEUR_RESULTS);
static_assert(kCudnnConfigurationEngine == CUDNN_ATTR_ENGINECFG_ENGINE);
static_assert(kCudnnEngineNotes == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
static_assert(kCudnnPlanHandle == CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
static_assert(kCudnnPlanConfiguration == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
static_assert(kCudnnPlanWorkspace == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
static_assert(kCudnnGraphHandle == CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
static_assert(kCudnnGraphOperations == CUDNN_ATTR_OPERATIONGRAPH_OPS);
static_assert(kCudnnTensorAlignment == CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
static_assert(kCudnnTensorData == CUDNN_ATTR_TENSOR_DATA_TYPE && kCudnnTensorSizes == CUDNN_ATTR_TENSOR_DIMENSIONS);
static_assert(kCudnnTensorStrides == CUDNN_ATTR_TENSOR_STRIDES && kCudnnTensorId == CUDNN_ATTR_TENSOR_UNIQUE_ID);
static_assert(kCudnnPackIds == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
static_assert(kCudnnPackPointers == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
static_assert(kCudnnPackWorkspace == CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
#define PARTS(OURS, KIND, W, X, Y)                                              \
  static_assert(OURS[0] == CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_ALPHA);     \
  static_assert(OURS[1] == CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_BETA);      \
  static_assert(OURS[2] == CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_CONV_DESC); \
  static_assert(OURS[3] == CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_##W);       \
  static_assert(OURS[4] == CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_##X);       \
  static_assert(OURS[5] == CUDNN_ATTR_OPERATION_CONVOLUTION_##KIND##_##Y);
PARTS(kCudnnForwardParts, FORWARD, W, X, Y)
PARTS(kCudnnBackwardDataParts, BWD_DATA, W, DX, DY)
PARTS(kCudnnBackwardFilterParts, BWD_FILTER, DW, X, DY)
static_assert(kCudnnHeuristicInstant == CUDNN_HEUR_MODE_INSTANT && kCudnnHeuristicFallback == CUDNN_HEUR_MODE_FALLBACK);
static_assert(kCudnnNoteTensorCore == CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
static_assert(kCudnnNoteDownConverts == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
static_assert(kCudnnNoteReducedReduction == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
static_assert(kCudnnNoteNondeterministic == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
static_assert(kCudnnCrossCorrelation == CUDNN_CROSS_CORRELATION);
"""
)
CUFFT = (
    "#include <cufftXt.h>\n"
    + AGREE
    + r"""
#include "driver/cufft_functions.h"
#define CHECK(RESULT, NAME, PARAMETERS) \
  static_assert(agree<decltype(&::NAME), RESULT (*) PARAMETERS>, #NAME);
TAEDA_CUFFT_FUNCTIONS(CHECK)
#define STATUS(NUMBER, NAME) static_assert(CUFFT_##NAME == NUMBER);
TAEDA_CUFFT_STATUSES(STATUS)
using namespace taeda::cuda;
static_assert(kCufftReal[0] == CUDA_R_32F && kCufftReal[1] == CUDA_R_64F);
static_assert(kCufftComplex[0] == CUDA_C_32F && kCufftComplex[1] == CUDA_C_64F);
static_assert(kCufftForward == CUFFT_FORWARD && kCufftBackward == CUFFT_INVERSE && CUFFT_SUCCESS == 0);
"""
)
CUSOLVER = (
    "#include <cusolverDn.h>\n"
    + AGREE
    + r"""
#include "driver/cusolver_functions.h"
#include "driver/factoring.h"
#define CHECK(RESULT, NAME, PARAMETERS) \
  static_assert(agree<decltype(&::NAME), RESULT (*) PARAMETERS>, #NAME);
TAEDA_CUSOLVER_FUNCTIONS(CHECK)
#define STATUS(NUMBER, NAME) static_assert(CUSOLVER_STATUS_##NAME == NUMBER);
TAEDA_CUSOLVER_STATUSES(STATUS)
using namespace taeda::cuda;
static_assert(kCusolverTypes[0] == CUDA_R_32F && kCusolverTypes[1] == CUDA_R_64F);
static_assert(kCusolverTypes[2] == CUDA_C_32F && kCusolverTypes[3] == CUDA_C_64F);
static_assert(kCusolverReals[2] == CUDA_R_32F && kCusolverReals[3] == CUDA_R_64F);
static_assert(kCusolverLower == CUBLAS_FILL_MODE_LOWER && kCusolverUpper == CUBLAS_FILL_MODE_UPPER);
static_assert(kCusolverValues == CUSOLVER_EIG_MODE_NOVECTOR && kCusolverVectors == CUSOLVER_EIG_MODE_VECTOR);
static_assert(int(Taken::AsTheyAre) == CUBLAS_OP_N && int(Taken::Turned) == CUBLAS_OP_T);
static_assert(int(Taken::Adjoint) == CUBLAS_OP_C && CUSOLVER_STATUS_SUCCESS == 0);
"""
)
CUPTI = (
    "#include <cupti_activity.h>\n#include <cupti_result.h>\n#include <cstddef>\n"
    + AGREE
    + r"""
#include "driver/activities.h"
#include "driver/cupti_functions.h"
using namespace taeda::cuda;
#define CHECK(RESULT, NAME, PARAMETERS) \
  static_assert(agree<decltype(&::NAME), RESULT (*) PARAMETERS>, #NAME);
TAEDA_CUPTI_FUNCTIONS(CHECK)
static_assert(agree<CUpti_BuffersCallbackRequestFunc, CuptiRequested>);
static_assert(agree<CUpti_BuffersCallbackCompleteFunc, CuptiCompleted>);
#define PLACE(OURS, MINE, THEIRS, ITS) \
  static_assert(offsetof(OURS, MINE) == offsetof(THEIRS, ITS), #THEIRS #ITS); \
  static_assert(sizeof(OURS::MINE) == sizeof(THEIRS::ITS), #THEIRS #ITS);
#define TIMES(OURS, THEIRS)              \
  PLACE(OURS, start, THEIRS, start)      \
  PLACE(OURS, end, THEIRS, end)          \
  PLACE(OURS, device, THEIRS, deviceId)  \
  PLACE(OURS, stream, THEIRS, streamId)  \
  PLACE(OURS, correlation, THEIRS, correlationId)
#define KERNEL(THEIRS) TIMES(CuptiKernel, THEIRS) PLACE(CuptiKernel, name, THEIRS, name)
#define COPY(OURS, THEIRS)            \
  TIMES(OURS, THEIRS)                 \
  PLACE(OURS, bytes, THEIRS, bytes)   \
  PLACE(OURS, from, THEIRS, srcKind)  \
  PLACE(OURS, to, THEIRS, dstKind)
#define FILL(THEIRS) TIMES(CuptiFill, THEIRS) PLACE(CuptiFill, bytes, THEIRS, bytes)
// Of all versions that this header knows.
KERNEL(CUpti_ActivityKernel4) KERNEL(CUpti_ActivityKernel5) KERNEL(CUpti_ActivityKernel6)
KERNEL(CUpti_ActivityKernel7) KERNEL(CUpti_ActivityKernel8) KERNEL(CUpti_ActivityKernel9)
COPY(CuptiCopy, CUpti_ActivityMemcpy) COPY(CuptiCopy, CUpti_ActivityMemcpy3) COPY(CuptiCopy, CUpti_ActivityMemcpy4)
COPY(CuptiCopy, CUpti_ActivityMemcpy5)
COPY(CuptiPeerCopy, CUpti_ActivityMemcpyPtoP) COPY(CuptiPeerCopy, CUpti_ActivityMemcpyPtoP2)
COPY(CuptiPeerCopy, CUpti_ActivityMemcpyPtoP3) COPY(CuptiPeerCopy, CUpti_ActivityMemcpyPtoP4)
FILL(CUpti_ActivityMemset) FILL(CUpti_ActivityMemset2) FILL(CUpti_ActivityMemset3) FILL(CUpti_ActivityMemset4)
#if CUPTI_API_VERSION >= 130000
KERNEL(CUpti_ActivityKernel10) COPY(CuptiCopy, CUpti_ActivityMemcpy6)
#endif
PLACE(CuptiOrigin, external_kind, CUpti_ActivityExternalCorrelation, externalKind)
PLACE(CuptiOrigin, external, CUpti_ActivityExternalCorrelation, externalId)
PLACE(CuptiOrigin, correlation, CUpti_ActivityExternalCorrelation, correlationId)
static_assert(kCuptiCopy == CUPTI_ACTIVITY_KIND_MEMCPY && kCuptiFill == CUPTI_ACTIVITY_KIND_MEMSET);
static_assert(kCuptiKernel == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
static_assert(kCuptiPeerCopy == CUPTI_ACTIVITY_KIND_MEMCPY2);
static_assert(kCuptiOrigin == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
static_assert(kCuptiOwnNumbers == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
static_assert(kCuptiFlushAll == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
static_assert(kCuptiInsufficientPrivileges == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
static_assert(kCuptiOtherSubscriber == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
static_assert(int(Side::Pageable) == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
static_assert(int(Side::Pinned) == CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
static_assert(int(Side::Device) == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
"""
)
NCCL = (
    "#include <nccl.h>\n#include <cstddef>\n"
    + AGREE
    + r"""
#include "driver/nccl_functions.h"
#include "taeda/abi.h"
using namespace taeda::cuda;
#define CHECK(RESULT, NAME, PARAMETERS) \
  static_assert(agree<decltype(&::NAME), RESULT (*) PARAMETERS>, #NAME);
TAEDA_NCCL_FUNCTIONS(CHECK)
static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));
static_assert(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(kNcclInProgress == ncclInProgress && ncclSuccess == 0 && NCCL_API_MAGIC == 0xcafebeef);
static_assert(kNcclTypes[TAEDA_BOOL] == ncclUint8 && kNcclTypes[TAEDA_INT8] == ncclInt8);
static_assert(kNcclTypes[TAEDA_INT32] == ncclInt32 && kNcclTypes[TAEDA_INT64] == ncclInt64);
static_assert(kNcclTypes[TAEDA_UINT8] == ncclUint8 && kNcclTypes[TAEDA_UINT32] == ncclUint32);
static_assert(kNcclTypes[TAEDA_UINT64] == ncclUint64 && kNcclTypes[TAEDA_FLOAT16] == ncclFloat16);
static_assert(kNcclTypes[TAEDA_BFLOAT16] == ncclBfloat16 && kNcclTypes[TAEDA_FLOAT32] == ncclFloat32);
static_assert(kNcclTypes[TAEDA_FLOAT64] == ncclFloat64);
// As taeda_tensor_cuda.nccl.Reduction counts.
static_assert(ncclSum == 0 && ncclProd == 1 && ncclMax == 2 && ncclMin == 3 && ncclAvg == 4);
"""
)
STATUSES = r"""
#include "driver/driver.h"
using taeda::cuda::Status;
static_assert(int(Status::InvalidValue) == CUDA_ERROR_INVALID_VALUE);
static_assert(int(Status::OutOfMemory) == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(int(Status::NotInitialized) == CUDA_ERROR_NOT_INITIALIZED);
static_assert(int(Status::NoDevice) == CUDA_ERROR_NO_DEVICE);
static_assert(int(Status::IllegalAddress) == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(int(Status::LaunchFailed) == CUDA_ERROR_LAUNCH_FAILED);
static_assert(int(Status::NotReady) == CUDA_ERROR_NOT_READY);
static_assert(int(Status::CaptureUnsupported) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
static_assert(int(Status::CaptureInvalidated) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
static_assert(int(Status::CaptureUnmatched) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
static_assert(int(Status::CaptureUnjoined) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
static_assert(int(Status::CaptureIsolation) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
static_assert(int(Status::CapturedEvent) == CUDA_ERROR_CAPTURED_EVENT);
static_assert(int(Status::CaptureWrongThread) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
using taeda::cuda::CaptureMode;
static_assert(int(CaptureMode::Global) == CU_STREAM_CAPTURE_MODE_GLOBAL);
static_assert(int(CaptureMode::ThreadLocal) == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(int(CaptureMode::Relaxed) == CU_STREAM_CAPTURE_MODE_RELAXED);
"""


def compiled(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    compiler = shutil.which("nvcc")
    if compiler is None or not SOURCES.is_dir():
        pytest.skip("needs nvcc, which brings cuda.h, and the package's sources")
    source = folder / "check.cpp"
    source.write_text(text)
    # Everything but the host's compiler, which nvcc gives the toolkit's folders to.
    folders = [f"-I{SOURCES}", f"-I{taeda_registry.include_dir()}"]
    command = [compiler, "-std=c++20", *folders, "-c", str(source), "-o", str(folder / "check.o")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_what_is_declared_is_what_the_toolkit_declares(tmp_path: Path) -> None:
    made = compiled(tmp_path, CHECK + STATUSES)
    assert made.returncode == 0, made.stderr


@pytest.mark.parametrize(
    ("header", "text", "brought"),
    [
        ("cublas_v2.h", CUBLAS, "a whole toolkit or CPATH brings"),
        ("cublasLt.h", CUBLASLT, "a whole toolkit or CPATH brings"),
        ("cudnn.h", CUDNN, "NVIDIA's wheel of cuDNN or CPATH brings"),
        ("cufftXt.h", CUFFT, "NVIDIA's wheel of cuFFT or CPATH brings"),
        ("cusolverDn.h", CUSOLVER, "NVIDIA's wheels of cuSOLVER and cuBLAS or CPATH bring"),
        ("nccl.h", NCCL, "NVIDIA's wheel of NCCL or CPATH brings"),
        ("cupti_activity.h", CUPTI, "a toolkit with CUPTI, NVIDIA's wheel of it or CPATH brings"),
    ],
    ids=["cublas", "cublaslt", "cudnn", "cufft", "cusolver", "nccl", "cupti"],
)
def test_what_is_declared_of_a_library_is_what_its_header_declares(
    tmp_path: Path, header: str, text: str, brought: str
) -> None:
    if compiled(tmp_path, f"#include <{header}>").returncode != 0:
        pytest.skip(f"needs {header}, which {brought}")
    made = compiled(tmp_path, text)
    assert made.returncode == 0, made.stderr


def test_a_wrong_declaration_would_be_found(tmp_path: Path) -> None:
    wrong = CHECK.replace("TAEDA_CUDA_FUNCTIONS(CHECK)", "TAEDA_CUDA_FUNCTIONS(CHECK)\nCHECK(cuMemFree_v2, )")
    wrong = wrong.replace("decltype(taeda::cuda::Functions::NAME)", "int (*)(int*)")
    made = compiled(tmp_path, wrong)
    assert made.returncode != 0 and "cuMemFree_v2" in made.stderr
