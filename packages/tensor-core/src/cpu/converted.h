// Elements of dense tensors in the dtype that a kernel computes in: converted piece by piece, as a copy of all of them
// would go through memory twice more.
#pragma once
#include <algorithm>

#include "cpu/dense_rows.h"
#include "cpu/room.h"
#include "taeda/tensor.h"

namespace taeda::cpu {

/// Elements converted at a time: the pieces of a few operands stay in the cache.
inline constexpr int64_t kConverted = 4096;

/// Reads a tensor whose elements lie together; for one thread.
template <class T>
class Reader {
 public:
  explicit Reader(const Tensor& t) : bytes_(t.bytes()), dtype_(t.dtype()) {}
  /// `n` elements from `first` on in the order of memory, until the next call.
  const T* at(int64_t first, int64_t n) {
    if (dtype_ == dtype_of<T>) return reinterpret_cast<const T*>(bytes_) + first;
    T* const copy = room_.get(n);
    convert_row(dtype_, bytes_ + first * int64_t(item_size(dtype_)), n, dtype_of<T>, copy);
    return copy;
  }

 private:
  const char* bytes_;
  DType dtype_;
  Room<T> room_;
};

/// Writes such a tensor.
template <class T>
class Writer {
 public:
  explicit Writer(const Tensor& t) : bytes_(t.bytes()), dtype_(t.dtype()) {}
  /// Where `n` elements from `first` on are to be put before done().
  T* at(int64_t first, int64_t n) {
    first_ = first;
    n_ = n;
    return dtype_ == dtype_of<T> ? reinterpret_cast<T*>(bytes_) + first : room_.get(n);
  }
  void done() {
    if (dtype_ != dtype_of<T>)
      convert_row(dtype_of<T>, room_.get(n_), n_, dtype_, bytes_ + first_ * int64_t(item_size(dtype_)));
  }

 private:
  char* bytes_;
  DType dtype_;
  int64_t first_ = 0, n_ = 0;
  Room<T> room_;
};

/// Calls `body(first, count)` for the rows [begin, end) of `n` elements: all at once, or, where they are converted, as
/// many as stay in the cache.
template <class Body>
void in_runs(int64_t begin, int64_t end, int64_t n, bool converted, const Body& body) {
  const int64_t step = converted ? std::max<int64_t>(1, kConverted / std::max<int64_t>(1, n)) : end - begin;
  for (int64_t i = begin; i < end; i += step) body(i, std::min(step, end - i));
}
/// The same of rows with results of their own: long ones that are converted come singly, so that the next one is on its
/// way from memory while the last one is written.
template <class Body>
void in_row_runs(int64_t begin, int64_t end, int64_t n, bool converted, const Body& body) {
  if (!converted || n <= kConverted / 8) return in_runs(begin, end, n, converted, body);
  for (int64_t i = begin; i < end; ++i) body(i, 1);
}

}  // namespace taeda::cpu
