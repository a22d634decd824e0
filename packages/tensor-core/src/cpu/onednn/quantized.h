// Layers of int8 weights by oneDNN: sums of whole numbers, scaled and rounded as they leave the registers.
#pragma once
#include <cstdint>
#include <optional>

#include "cpu/onednn/weights.h"
#include "infer/conv.h"

namespace taeda::onednn {

/// Whether the processor and oneDNN sum products of int8 and uint8 without saturating in between. Older instructions
/// add pairs of products in 16 bits.
bool has_int8();

/// What is made of the sums of (input - zero) * weight in float32: y = sum * factors[output] + bias[output], not below
/// 0 with `relu`; and of that, where `stored`, the code round(y / scale) + zero within the codes there are.
struct Scaling {
  struct Stored {
    float scale;
    int32_t zero;
  };
  int32_t input_zero = 0;
  const float* factors = nullptr;  // one for each output; none: the sums themselves, in int32
  const float* bias = nullptr;     // or none
  bool relu = false;
  std::optional<Stored> stored;
};

/// Activations channels-last, of dtype `from` (UInt8 or Int8), weights int8; results of `to`: that of the codes where
/// they are stored, Float32, or Int32 for sums. False where oneDNN is not built in or has no fast routine.
bool conv_int8(const infer::ConvPlan& shape, DType from, const void* x, Weights& weight, const Scaling& scaling,
               DType to, void* y);
/// The same of rows: y (m, n) = x (m, k) @ weight. `weight` is row-major (k, n), or (n, k) where `turned`.
bool matmul_int8(int64_t m, int64_t n, int64_t k, DType from, const void* x, Weights& weight, bool turned,
                 const Scaling& scaling, DType to, void* y);

}  // namespace taeda::onednn
