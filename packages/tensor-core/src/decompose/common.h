// What the decompositions share: registration by name, and small parts of formulas.
#pragma once
#include "taeda/arithmetic.h"
#include "taeda/decompose.h"
#include "taeda/ops.h"

#define DECOMPOSE(operation)                                                            \
  static const AddDecomposition operation##_entry(#operation, &Boxed<&operation>::call, \
                                                  erased<taeda::op::operation>(&operation));

namespace taeda::decompose {

using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

/// (C) so that it broadcasts against (N, C, ...).
inline Tensor by_channel(const Tensor& t, int64_t ndim) {
  Shape sizes(size_t(ndim), 1);
  sizes[1] = -1;
  return ops::reshape(t, sizes);
}

}  // namespace taeda::decompose
