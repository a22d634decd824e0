// The functions of cuDNN that are looked up in its library, as they are declared in NVIDIA's cudnn_graph.h, cudnn_ops.h
// and cudnn_adv.h (9).
#pragma once
#include <cstddef>
#include <cstdint>

// Handles, streams and descriptors are pointers; statuses, names and types are ints.
#define TAEDA_CUDNN_FUNCTIONS(X)                                                \
  X(size_t, cudnnGetVersion, (void))                                            \
  X(const char*, cudnnGetErrorString, (int))                                    \
  X(void, cudnnGetLastErrorString, (char*, size_t))                             \
  X(int, cudnnCreate, (void**))                                                 \
  X(int, cudnnSetStream, (void*, void*))                                        \
  X(int, cudnnBackendCreateDescriptor, (int, void**))                           \
  X(int, cudnnBackendDestroyDescriptor, (void*))                                \
  X(int, cudnnBackendFinalize, (void*))                                         \
  X(int, cudnnBackendSetAttribute, (void*, int, int, int64_t, const void*))     \
  X(int, cudnnBackendGetAttribute, (void*, int, int, int64_t, int64_t*, void*)) \
  X(int, cudnnBackendExecute, (void*, void*, void*))

#define TAEDA_CUDNN_RECURRENT_FUNCTIONS(X)                                                                             \
  X(int, cudnnCreateTensorDescriptor, (void**))                                                                        \
  X(int, cudnnDestroyTensorDescriptor, (void*))                                                                        \
  X(int, cudnnSetTensorNdDescriptor, (void*, int, int, const int*, const int*))                                        \
  X(int, cudnnCreateDropoutDescriptor, (void**))                                                                       \
  X(int, cudnnDestroyDropoutDescriptor, (void*))                                                                       \
  X(int, cudnnSetDropoutDescriptor, (void*, void*, float, void*, size_t, unsigned long long))                          \
  X(int, cudnnCreateRNNDescriptor, (void**))                                                                           \
  X(int, cudnnDestroyRNNDescriptor, (void*))                                                                           \
  X(int, cudnnSetRNNDescriptor_v8,                                                                                     \
    (void*, int, int, int, int, int, int, int, int, int32_t, int32_t, int32_t, int32_t, void*, uint32_t))              \
  X(int, cudnnCreateRNNDataDescriptor, (void**))                                                                       \
  X(int, cudnnDestroyRNNDataDescriptor, (void*))                                                                       \
  X(int, cudnnSetRNNDataDescriptor, (void*, int, int, int, int, int, const int*, void*))                               \
  X(int, cudnnGetRNNTempSpaceSizes, (void*, void*, int, void*, size_t*, size_t*))                                      \
  X(int, cudnnGetRNNWeightSpaceSize, (void*, void*, size_t*))                                                          \
  X(int, cudnnGetRNNWeightParams, (void*, void*, int32_t, size_t, const void*, int32_t, void*, void**, void*, void**)) \
  X(int, cudnnRNNForward,                                                                                              \
    (void*, void*, int, const int32_t*, void*, const void*, void*, void*, void*, const void*, void*, void*,            \
     const void*, void*, size_t, const void*, size_t, void*, size_t, void*))                                           \
  X(int, cudnnRNNBackwardData_v8,                                                                                      \
    (void*, void*, const int32_t*, void*, const void*, const void*, void*, void*, void*, const void*, const void*,     \
     void*, void*, const void*, const void*, void*, size_t, const void*, size_t, void*, size_t, void*))                \
  X(int, cudnnRNNBackwardWeights_v8,                                                                                   \
    (void*, void*, int, const int32_t*, void*, const void*, void*, const void*, void*, const void*, size_t, void*,     \
     size_t, void*, size_t, void*))

namespace taeda::cuda {

// Constants of cudnn_graph.h.
inline constexpr int kCudnnFloat = 0, kCudnnDouble = 1, kCudnnHalf = 2, kCudnnBfloat16 = 9;
/// Types of attributes.
inline constexpr int kCudnnTypeHandle = 0, kCudnnTypeData = 1, kCudnnTypeInteger = 3, kCudnnTypeFloat = 4,
                     kCudnnTypeDouble = 5, kCudnnTypePointer = 6, kCudnnTypeMode = 7, kCudnnTypeHeuristic = 8,
                     kCudnnTypeNote = 11, kCudnnTypeDescriptor = 15;
/// Kinds of descriptors.
inline constexpr int kCudnnConvolution = 1, kCudnnEngine = 2, kCudnnConfiguration = 3, kCudnnHeuristics = 4,
                     kCudnnPlan = 5, kCudnnForward = 10, kCudnnBackwardFilter = 11, kCudnnBackwardData = 12,
                     kCudnnGraph = 15, kCudnnPack = 16, kCudnnTensor = 17;
/// Attributes.
inline constexpr int kCudnnConvolutionCompute = 100, kCudnnConvolutionMode = 101, kCudnnConvolutionDilations = 102,
                     kCudnnConvolutionStrides = 103, kCudnnConvolutionAfter = 104, kCudnnConvolutionBefore = 105,
                     kCudnnConvolutionSpatial = 106;
inline constexpr int kCudnnHeuristicsMode = 200, kCudnnHeuristicsGraph = 201, kCudnnHeuristicsResults = 202;
inline constexpr int kCudnnConfigurationEngine = 300, kCudnnEngineNotes = 1303;
inline constexpr int kCudnnPlanHandle = 400, kCudnnPlanConfiguration = 401, kCudnnPlanWorkspace = 402;
inline constexpr int kCudnnGraphHandle = 800, kCudnnGraphOperations = 801;
inline constexpr int kCudnnTensorAlignment = 900, kCudnnTensorData = 901, kCudnnTensorSizes = 902,
                     kCudnnTensorStrides = 903, kCudnnTensorId = 906;
inline constexpr int kCudnnPackIds = 1000, kCudnnPackPointers = 1001, kCudnnPackWorkspace = 1003;
/// Of an operation, in the order of: alpha, beta, convolution, w, x, y.
inline constexpr int kCudnnForwardParts[] = {700, 701, 702, 703, 704, 705};
inline constexpr int kCudnnBackwardDataParts[] = {706, 707, 708, 709, 710, 711};
inline constexpr int kCudnnBackwardFilterParts[] = {712, 713, 714, 715, 716, 717};
/// Where candidates come from: the fast guess, the thorough one, and what is always there.
inline constexpr int kCudnnHeuristicInstant = 0, kCudnnHeuristicFallback = 2;
inline constexpr int kCudnnNoteTensorCore = 0, kCudnnNoteDownConverts = 1, kCudnnNoteReducedReduction = 2,
                     kCudnnNoteNondeterministic = 4;
inline constexpr int kCudnnCrossCorrelation = 1;

// Of recurrent layers; cells have the numbers of `Cell`.
inline constexpr int kCudnnDefaultMath = 0, kCudnnTensorMath = 1, kCudnnPlainMath = 3;
inline constexpr int kCudnnStandardRecurrence = 0, kCudnnLinearInput = 0, kCudnnAddGradients = 0;
inline constexpr int kCudnnNotSupported = 3000;
inline constexpr int kCudnnNoBias = 0, kCudnnTwoBiases = 2;
inline constexpr int kCudnnPaddedSteps = 0, kCudnnPackedSteps = 1, kCudnnPaddedBatch = 2;
inline constexpr uint32_t kCudnnPaddedData = 1;

}  // namespace taeda::cuda
