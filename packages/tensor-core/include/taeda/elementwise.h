// The element-wise engine: runs an inner loop over operands of any layout, shape and dtype.
#pragma once
#include <initializer_list>

#include "taeda/tensor.h"

namespace taeda {

/// Numbers that an inner loop is parameterised with, readable in any compute dtype.
struct LoopParams {
  double real[4] = {};
  double imag[4] = {};
  int64_t integer[4] = {};

  LoopParams() = default;
  LoopParams(std::initializer_list<Scalar> values) {
    int k = 0;
    for (const Scalar& v : values) set(k++, v);
  }
  void set(int k, const Scalar& v) {
    real[k] = v.to_double();
    imag[k] = v.imag();
    integer[k] = v.to<int64_t>();
  }
  template <class T>
  T get(int k) const {
    if constexpr (std::is_integral_v<T>) return T(integer[k]);
    else if constexpr (std::is_floating_point_v<T>) return T(real[k]);
    else return T(typename T::value_type(real[k]), typename T::value_type(imag[k]));
  }
};

/// Handles n elements: data[0] is the output, the others the inputs; strides in bytes, 0 for a broadcast operand.
using Loop = void (*)(char* const* data, const int64_t* strides, int64_t n, const LoopParams* params);

/// The loops of one operator by compute dtype; null where it has none. Half precision computes in float32.
struct LoopRow {
  Loop fn[kDTypeCount] = {};
};

/// float16 and bfloat16 -> float32, others unchanged.
constexpr DType compute_dtype(DType d) noexcept {
  return d == DType::Float16 || d == DType::BFloat16 ? DType::Float32 : d;
}

/// An operand and the dtype in which the loop wants it; the engine converts chunk by chunk where they differ.
struct LoopOperand {
  const Tensor* tensor;
  DType compute;
};
inline constexpr int kMaxLoopOperands = 6;
/// Elements per parallel piece; fixed, so that results do not depend on the number of threads.
inline constexpr int64_t kLoopGrain = 32768;

/// Runs `loop`. The first operand is the output, with the final shape; inputs broadcast to it. `outputs` > 1: so many
/// outputs lead.
TAEDA_API void run_loop(Loop loop, const LoopParams* params, std::initializer_list<LoopOperand> operands,
                        int outputs = 1);

/// Copies with broadcasting and conversion; both on the CPU.
TAEDA_API void copy_elements(const Tensor& out, const Tensor& in);
/// Converts n elements at pair[1] to those at pair[0]; strides in bytes.
TAEDA_API void convert_elements(DType to, DType from, char* const* pair, const int64_t* strides, int64_t n);
/// The one element of a CPU tensor, as a number.
TAEDA_API Scalar scalar_of(const Tensor& one);
/// `value` stored as an element of dtype `d` at `place`.
TAEDA_API void store_scalar(void* place, DType d, const Scalar& value);

}  // namespace taeda
