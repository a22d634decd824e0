// Types of elements and of computations, as cuBLAS and cuBLASLt name them.
#pragma once
#include <cstddef>

#include "driver/cublas.h"
#include "driver/cublas_functions.h"
#include "taeda/abi.h"

namespace taeda::cuda {

/// What NVIDIA recommends for its newest devices; smaller ones make the library choose slower kernels.
inline constexpr size_t kCublasWorkspace = size_t(32) << 20;

/// Types of elements and of the computation; -1 where cuBLAS multiplies no such elements.
struct CublasTypes {
  int data = -1, compute = -1;
};
inline CublasTypes cublas_types_of(int dtype, bool tf32 = false) {
  const int single = tf32 ? kCublasComputeTf32 : kCublasComputeFloat;
  switch (dtype) {
    case TAEDA_FLOAT16: return {kCublasHalf, kCublasComputeFloat};
    case TAEDA_BFLOAT16: return {kCublasBfloat16, kCublasComputeFloat};
    case TAEDA_FLOAT32: return {kCublasFloat, single};
    case TAEDA_FLOAT64: return {kCublasDouble, kCublasComputeDouble};
    case TAEDA_COMPLEX64: return {kCublasComplexFloat, single};
    case TAEDA_COMPLEX128: return {kCublasComplexDouble, kCublasComputeDouble};
    default: return {};
  }
}
/// A factor in the type in which the library reads it.
struct CublasFactor {
  union {
    float single[2];
    double wide[2];
  };
  CublasFactor(const double (&value)[2], int compute) {
    for (int i = 0; i < 2; ++i)
      compute == kCublasComputeDouble ? void(wide[i] = value[i]) : void(single[i] = float(value[i]));
  }
};

}  // namespace taeda::cuda
