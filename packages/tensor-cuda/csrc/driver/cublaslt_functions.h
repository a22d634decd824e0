// The functions of cuBLASLt that are looked up in its library, as they are declared in NVIDIA's cublasLt.h (12 and 13).
#pragma once
#include <cstddef>
#include <cstdint>

namespace taeda::cuda {

/// A configuration that computes a product (cublasLtMatmulHeuristicResult_t).
struct CublasLtChoice {
  uint64_t algorithm[8];
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

// Constants of cublasLt.h.
/// Of what is computed.
inline constexpr int kCublasLtTurnedA = 3, kCublasLtTurnedB = 4, kCublasLtEpilogue = 7, kCublasLtVector = 8,
                     kCublasLtKept = 11, kCublasLtKeptLd = 12;
/// Of a matrix.
inline constexpr int kCublasLtBatchCount = 5, kCublasLtBatchStep = 6;
/// Of what is wanted.
inline constexpr int kCublasLtMostWorkspace = 1, kCublasLtReductions = 3, kCublasLtAlignmentA = 5,
                     kCublasLtAlignmentB = 6, kCublasLtAlignmentC = 7, kCublasLtAlignmentD = 8;
/// Parts of a sum are added in the type of the computation, in order; not in the result's, which rounds them.
inline constexpr uint32_t kCublasLtReduceInOrder = 2;
/// Epilogues are made of these.
inline constexpr uint32_t kCublasLtPlain = 1, kCublasLtRelu = 2, kCublasLtBias = 4, kCublasLtReluSlope = 8 | 128,
                          kCublasLtSums = 16, kCublasLtGelu = 32, kCublasLtGeluSlope = 64 | 128, kCublasLtKeeps = 128,
                          kCublasLtSumsOfA = 256, kCublasLtSumsOfB = 512;

}  // namespace taeda::cuda

// Handles, descriptors and streams are pointers; statuses, names and types are ints.
#define TAEDA_CUBLASLT_FUNCTIONS(X)                                                                                    \
  X(int, cublasLtCreate, (void**))                                                                                     \
  X(int, cublasLtMatrixLayoutCreate, (void**, int, uint64_t, uint64_t, int64_t))                                       \
  X(int, cublasLtMatrixLayoutDestroy, (void*))                                                                         \
  X(int, cublasLtMatrixLayoutSetAttribute, (void*, int, const void*, size_t))                                          \
  X(int, cublasLtMatmulDescCreate, (void**, int, int))                                                                 \
  X(int, cublasLtMatmulDescDestroy, (void*))                                                                           \
  X(int, cublasLtMatmulDescSetAttribute, (void*, int, const void*, size_t))                                            \
  X(int, cublasLtMatmulPreferenceCreate, (void**))                                                                     \
  X(int, cublasLtMatmulPreferenceDestroy, (void*))                                                                     \
  X(int, cublasLtMatmulPreferenceSetAttribute, (void*, int, const void*, size_t))                                      \
  X(int, cublasLtMatmulAlgoGetHeuristic,                                                                               \
    (void*, void*, void*, void*, void*, void*, void*, int, taeda::cuda::CublasLtChoice*, int*))                        \
  X(int, cublasLtMatmul,                                                                                               \
    (void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*, void*, void*, \
     const void*, void*, size_t, void*))
