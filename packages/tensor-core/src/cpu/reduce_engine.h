// Runs a Reducer over any layout: by rows or by columns, in fixed pieces.
#pragma once
#include "cpu/loops/reduce.h"
#include "taeda/tensor.h"

namespace taeda::cpu {

/// What is reduced: a tensor whose elements enter as numbers of `dtype`, which the reducer expects. Where it is of
/// another one they are converted as they come, piece by piece.
struct Operand {
  const Tensor& tensor;
  DType dtype;
  Operand(const Tensor& t) : Operand(t, t.dtype()) {}
  Operand(const Tensor& t, DType as) : tensor(t), dtype(as) {}
};

/// Reduces the dimensions in `reduced` of `self` into the contiguous `acc`, one element for each kept index in
/// row-major order.
void reduce_into(const loops::Reducer& reducer, const Operand& self, uint64_t reduced, const Tensor& acc);

/// Takes `n` finished accumulators, of the results `first`, `first` + `step`, ... in row-major order.
struct Finish {
  void (*call)(const void* body, const char* acc, int64_t n, int64_t first, int64_t step);
  const void* body;
};
/// At most this many bytes of an accumulator.
inline constexpr int64_t kMaxAccumulator = 32;
void reduce_through(const loops::Reducer& reducer, int64_t acc_size, const Operand& self, uint64_t reduced,
                    int64_t results, const Finish& finish);
/// Reduces the dimensions in `reduced` of `self` and calls `finish(const Acc* acc, n, first, step)`, possibly in
/// several threads, for all `results`: accumulators that are no results yet take no memory of their own.
template <class Acc, class Body>
void reduce_each(const loops::Reducer& reducer, const Operand& self, uint64_t reduced, int64_t results,
                 const Body& body) {
  static_assert(sizeof(Acc) <= kMaxAccumulator);
  reduce_through(reducer, sizeof(Acc), self, reduced, results,
                 {[](const void* b, const char* acc, int64_t n, int64_t first, int64_t step) {
                    (*static_cast<const Body*>(b))(reinterpret_cast<const Acc*>(acc), n, first, step);
                  },
                  &body});
}
/// First indices of the extremum along `dim` into the contiguous int64 `index`.
void arg_reduce_into(const loops::ArgReducer& reducer, const Tensor& self, int64_t dim, int64_t* index);

}  // namespace taeda::cpu
