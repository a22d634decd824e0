// Batches of matrices for kernels that take them one by one: where each lies, copies by columns, threads over the
// batch.
#pragma once
#include <limits>

#include "cpu/blas.h"
#include "cpu/lapack.h"
#include "cpu/prepare.h"
#include "cpu/transposed.h"
#include "taeda/interrupt.h"
#include "taeda/linalg_error.h"
#include "taeda/parallel.h"

namespace taeda::cpu {

using lapack::Real;
using lapack::Rooms;
using lapack::visit_exact;

/// One matrix in memory, with any strides.
template <class T>
struct Strided {
  T* data;
  int64_t rows, columns, down, across;

  T& at(int64_t i, int64_t j) const { return data[i * down + j * across]; }
  /// Whether LAPACK can work on it as it is.
  bool by_columns() const { return (down == 1 || rows <= 1) && (across >= std::max<int64_t>(1, rows) || columns <= 1); }
  int64_t leading() const { return columns <= 1 ? std::max<int64_t>(1, rows) : across; }
  Strided turned() const { return {data, columns, rows, across, down}; }
};

/// Copies all elements, conjugated if asked for; blocks keep both sides in the cache.
template <class T>
void copy_elements(const Strided<T>& from, const Strided<T>& to, bool conjugated = false) {
  constexpr int64_t kBlock = 16, kFew = 64;
  const auto value = [=](T x) {
    if constexpr (lapack::is_complex<T>) return conjugated ? std::conj(x) : x;
    else return x;
  };
  if (to.rows * to.columns <= kFew) {  // a choice among ways would take longer
    for (int64_t j = 0; j < to.columns; ++j)
      for (int64_t i = 0; i < to.rows; ++i) to.at(i, j) = value(from.at(i, j));
    return;
  }
  if (!conjugated || !lapack::is_complex<T>) {
    if (from.down == 1 && to.across == 1)
      return copy_transposed(to.data, from.data, to.rows, to.columns, to.down, from.across, sizeof(T));
    if (from.across == 1 && to.down == 1)
      return copy_transposed(to.data, from.data, to.columns, to.rows, to.across, from.down, sizeof(T));
  }
  if (from.down == 1 && to.down == 1) {
    for (int64_t j = 0; j < to.columns; ++j)
      for (int64_t i = 0; i < to.rows; ++i) to.data[i + j * to.across] = value(from.data[i + j * from.across]);
    return;
  }
  for (int64_t j0 = 0; j0 < to.columns; j0 += kBlock)
    for (int64_t i0 = 0; i0 < to.rows; i0 += kBlock)
      for (int64_t j = j0; j < std::min(to.columns, j0 + kBlock); ++j)
        for (int64_t i = i0; i < std::min(to.rows, i0 + kBlock); ++i) to.at(i, j) = value(from.at(i, j));
}

/// The places in a tensor of each item of a batch, whose sizes it may broadcast to; `tail` dimensions make an item.
template <class T>
class Stack {
 public:
  Stack(const Tensor& t, int64_t tail, IntSpan batch) : tensor_(t), tail_(tail), first_(t.data<T>()) {
    const int64_t lead = int64_t(batch.size()) - (t.dim() - tail);
    for (size_t d = 0; d < batch.size(); ++d) {
      const int64_t own = int64_t(d) - lead;
      sizes_.push_back(batch[d]);
      strides_.push_back(own < 0 || t.size(own) == 1 ? 0 : t.stride(own));
    }
    for (size_t d = 1; d < sizes_.size(); ++d) even_ &= strides_[d - 1] == strides_[d] * sizes_[d];
    if (tail == 2) item_ = {nullptr, t.size(-2), t.size(-1), t.stride(-2), t.stride(-1)};
  }
  /// Of the tensor's own batch.
  explicit Stack(const Tensor& t, int64_t tail = 2) : Stack(t, tail, t.sizes().first(size_t(t.dim() - tail))) {}

  T* place(int64_t i) const {
    if (even_) return sizes_.empty() ? first_ : first_ + i * strides_.back();
    T* at = first_;
    for (size_t d = sizes_.size(); d-- > 0 && i > 0;) {
      at += i % sizes_[d] * strides_[d];
      i /= sizes_[d];
    }
    return at;
  }
  /// Matrix `i`, of a stack of such.
  Strided<T> operator[](int64_t i) const {
    Strided<T> one = item_;
    one.data = place(i);
    return one;
  }
  /// The number of the item in the tensor's own batch, for what is kept beside it in row-major order.
  int64_t own_number(int64_t i) const {
    int64_t number = 0, count = 1;
    const int64_t own = tensor_.dim() - tail_;
    for (int64_t d = 0; d < own; ++d) {
      const size_t at = sizes_.size() - 1 - size_t(d);
      const int64_t size = tensor_.size(own - 1 - d);
      number += size == 1 ? 0 : i % sizes_[at] * count;
      i /= sizes_[at];
      count *= size;
    }
    return number;
  }

 private:
  const Tensor& tensor_;
  int64_t tail_;
  T* first_;
  Strided<T> item_{};
  Shape sizes_, strides_;
  bool even_ = true;  // whether items lie at one distance from each other
};

/// A matrix as LAPACK wants it: its own memory where columns are dense in it, else scratch that store() copies back.
template <class T>
class Columns {
 public:
  Columns(const Strided<T>& of, lapack::Room<T>& room)
      : of_(of),
        data_(of.by_columns() ? of.data : room.get(of.rows * of.columns)),
        ld_(of.by_columns() ? of.leading() : std::max<int64_t>(1, of.rows)) {}
  T* data() const { return data_; }
  int ld() const { return int(ld_); }
  Strided<T> matrix() const { return {data_, of_.rows, of_.columns, 1, ld_}; }
  T& at(int64_t i, int64_t j) const { return data_[i + j * ld_]; }
  void store() const {
    if (data_ != of_.data) copy_elements(matrix(), of_);
  }

 private:
  Strided<T> of_;
  T* data_;
  int64_t ld_;
};
/// A matrix that is only read.
template <class T>
Columns<T> read_columns(const Strided<T>& from, lapack::Room<T>& room) {
  const Columns<T> made(from, room);
  if (made.data() != from.data) copy_elements(from, made.matrix());
  return made;
}

/// LAPACK counts in 32 bits.
inline void expect_countable(const char* op, const Tensor& t) {
  for (int64_t d = 1; d <= std::min<int64_t>(2, t.dim()); ++d)
    check(t.size(-d) < std::numeric_limits<int>::max() / 8, ErrorKind::Runtime, op, ": matrices of shape ",
          shape_text(t.sizes()), " are too large for LAPACK, which counts in 32 bits");
}

/// Calls `body(begin, end)` for ranges of `count` matrices that take `work` multiplications each: in the pool's
/// threads, or where there are a few large ones in the threads of the routines, if `body` calls such.
template <class Body>
void each_matrix(int64_t count, double work, const Body& body, bool routines = true) {
  constexpr double kPiece = 1 << 16, kLarge = 1 << 20;
  const Unlocked unlocked(double(count) * work > double(blas::kUnlockFlops));
  if (count < num_threads() && work > kLarge) {
    const lapack::Threads threads(routines);
    for (int64_t i = 0; i < count; ++i) {
      poll_signals();
      body(i, i + 1);
    }
    return;
  }
  parallel_for(count, std::max<int64_t>(1, int64_t(kPiece / std::max(work, 1.0))), body);
}

/// LinAlgError that says of the first matrix with an `info` what went wrong, as `reason(info)` puts it.
template <class Reason>
void check_infos(const char* op, const int* infos, int64_t count, bool single, const Reason& reason) {
  for (int64_t i = 0; i < count; ++i)
    if (infos[i] != 0) [[unlikely]]
      fail(kLinAlgError, op, ": ",
           single ? std::string() : "(Batch element " + std::to_string(i) + "): ", std::string(reason(infos[i])));
}

template <class T>
bool all_finite(const Strided<T>& m) {
  for (int64_t j = 0; j < m.columns; ++j)
    for (int64_t i = 0; i < m.rows; ++i)
      if (!std::isfinite(std::real(m.at(i, j))) || !std::isfinite(std::imag(m.at(i, j)))) return false;
  return true;
}

}  // namespace taeda::cpu
