// Operators of several steps on half precision: computed in float32 and rounded once, at the end.
#pragma once
#include <initializer_list>
#include <tuple>
#include <vector>

#include "taeda/tensor.h"

namespace taeda {

inline bool is_half(DType d) noexcept { return d == DType::Float16 || d == DType::BFloat16; }
inline bool is_half(const Tensor& t) noexcept { return t.defined() && is_half(t.dtype()); }
inline bool is_half(TensorList list) noexcept {
  for (const Tensor& t : list)
    if (is_half(t)) return true;
  return false;
}
template <class... Operands>
inline bool any_half(const Operands&... operands) noexcept {
  return (is_half(operands) || ...);
}

/// Halves in float32, anything else as it is; recorded for gradients like any cast.
TAEDA_API Tensor in_float32(const Tensor& t);
TAEDA_API std::vector<Tensor> in_float32(TensorList list);
/// The same without a reference counted when there is nothing to do; `room` keeps the copy.
inline const Tensor& in_float32(const Tensor& t, Tensor& room) {
  if (!is_half(t)) [[likely]]
    return t;
  return room = in_float32(t);
}

/// A result of several steps in the dtype of the operand that it follows, where that has numbers of this kind.
TAEDA_API Tensor like_operand(const Tensor& result, const Tensor& operand);

/// The dtype of results whose operands were halves at first: what the floating ones among them promote to.
TAEDA_API DType joint_dtype(std::initializer_list<TensorList> operands);

/// A float32 result in the dtype that the operands ask for.
TAEDA_API Tensor from_float32(const Tensor& result, DType dtype);
template <class... Results>
std::tuple<Results...> from_float32(const std::tuple<Results...>& results, DType dtype) {
  return std::apply([dtype](const auto&... result) { return std::tuple(from_float32(result, dtype)...); }, results);
}

}  // namespace taeda
