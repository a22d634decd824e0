// What the element-wise kernels share: choosing the compute dtype and the loop, then running the engine.
#pragma once
#include "infer/dtypes.h"
#include "taeda/elementwise.h"
#include "taeda/infer.h"

#define TAEDA_ISA portable
#include "cpu/loops/types.h"

namespace taeda::cpu {

using infer::float_of;
using namespace loops;
using namespace loops::portable;

/// The row's loop for `d`; NotImplementedError names the operator and the dtype.
template <class Row>
Loop need(const Row& row, DType d, const char* op) {
  Loop loop = row.fn[int(d)];
  if (!loop) [[unlikely]]
    fail(ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(d));
  return loop;
}

inline DType operands_dtype(const Tensor& a, const Tensor& b) { return compute_dtype(infer::common_dtype(a, b)); }

}  // namespace taeda::cpu
