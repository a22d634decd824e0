// Shared by indexing kernels: plans of advanced indexing, strided block copies, sums into indexed places.
#pragma once
#include <type_traits>
#include <vector>

#include "cpu/loops/total.h"
#include "taeda/half.h"
#include "taeda/interrupt.h"
#include "taeda/ops/cast.h"

namespace taeda::cpu {

/// Whether all of a run, `step` elements apart, lie in [0, size).
bool plain_indices(const int64_t* index, int64_t count, int64_t size, int64_t step = 1);

/// Offsets in elements: a list of their own, or an index tensor whose numbers are offsets as they stand.
class Offsets {
 public:
  Offsets() = default;
  Offsets(std::vector<int64_t> own) : own_(std::move(own)) {}
  explicit Offsets(Tensor index) : index_(std::move(index)) {}
  const int64_t* data() const { return index_.defined() ? index_.data<int64_t>() : own_.data(); }
  size_t size() const { return index_.defined() ? size_t(index_.numel()) : own_.size(); }
  int64_t operator[](size_t i) const { return data()[i]; }
  std::vector<int64_t>& own() { return own_; }
  Offsets times(int64_t length) const {
    std::vector<int64_t> made(data(), data() + size());
    for (int64_t& offset : made) offset *= length;
    return made;
  }

 private:
  std::vector<int64_t> own_;
  Tensor index_;
};

/// Advanced indexing resolved to byte offsets: result = [before dims] + picked shape + [after dims].
struct IndexPlan {
  Shape result;                    // shape of self[indices]
  Shape picked;                    // broadcast shape of the index tensors
  int64_t picked_at = 0;           // its position in `result`
  Offsets offsets;                 // one per picked element, into self
  Shape rest_sizes, rest_strides;  // dimensions of self that are kept whole (strides in elements)
};
IndexPlan plan_index(const char* op, const Tensor& self, TensorList indices);

/// What negative indices mean: places counted from the end, as in NumPy, or a mistake.
enum class Negative { FromEnd, Refused };

/// The entries of an integer index tensor in row-major order, each checked and brought into [0, size). They do not
/// change when `target` is written to.
Offsets checked_indices(const char* op, const Tensor& index, int64_t size, int64_t dim, const Tensor& target,
                        Negative negative);

/// Copies a block of `sizes` elements between strided places (strides in elements).
void copy_block(char* to, IntSpan to_strides, const char* from, IntSpan from_strides, IntSpan sizes, int64_t item);

/// a + b in the arithmetic of the dtype: bool as "or".
template <class T>
T plus(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) return a || b;
  else if constexpr (std::is_integral_v<T>) return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
  else return a + b;
}
template <class T>
T times(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) return a && b;
  else if constexpr (std::is_integral_v<T>) return T(uint64_t(a) * uint64_t(b));
  else return a * b;
}

// Whole slices along one dimension, at places that `index` names once for all their elements (index.cpp).

/// out = the slices of `self`.
void select_slices(const char* op, const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index);
/// Adds the slices of `source` to those of `out`, in order; where `out` is wider than `source` as of Note [Sums into
/// indexed places].
void add_slices(const char* op, const Tensor& out, int64_t dim, const Tensor& index, const Tensor& source);
/// Puts them there.
void assign_slices(const char* op, const Tensor& out, int64_t dim, const Tensor& index, const Tensor& source,
                   Negative negative = Negative::Refused);

/// 0-d tensors are handled as 1-d ones of one element.
inline Tensor at_least_1d(const Tensor& t) { return t.dim() ? t : alias(t, Shape{1}, Shape{1}, 0); }
/// What an operator does first whose result is `self` with changes.
inline void start_from(const Tensor& out, const Tensor& self) {
  if (!out.same(self)) ops::copy_(out, self);
}

/// Sixteen bytes of an element that is only moved.
struct Wide {
  uint64_t words[2];
};
/// Calls `body.template operator()<T>()` with a type of the dtype's width: of elements that are only moved no more
/// counts.
template <class Body>
void visit_width(DType d, const Body& body) {
  switch (item_size(d)) {
    case 1: return body.template operator()<uint8_t>();
    case 2: return body.template operator()<uint16_t>();
    case 4: return body.template operator()<uint32_t>();
    case 8: return body.template operator()<uint64_t>();
    default: return body.template operator()<Wide>();
  }
}
/// How a value enters a place that it takes.
struct Assign {
  template <class T>
  void operator()(T& place, const T& value) const {
    place = value;
  }
};

// Note [Sums into indexed places]
// What many addends round in one place adds up, so where they are many more than the places they are summed in double
// beside the result, and rounded once. With fewer, the second array would cost more time than they do: they are added
// in the result's own dtype, halves always beside it.

inline DType total_dtype(DType d) noexcept {
  return is_complex(d) ? DType::Complex128 : is_floating(d) ? DType::Float64 : d;
}
/// Whether `addends` elements are added to `out` in an array beside it.
inline bool sums_apart(const Tensor& out, int64_t addends) noexcept {
  constexpr int64_t many = 8;
  return is_half(out) || (total_dtype(out.dtype()) != out.dtype() && addends / many >= out.numel());
}
/// What is added up. float16 is converted at once: one by one that takes several times as long as the sum.
inline Tensor addends(const Tensor& source) {
  return source.dtype() == DType::Float16 ? ops::to_dtype(source, DType::Float32) : source;
}
/// Runs `body(sums)`, which fills an array of the totals' dtype, and rounds that into `out`.
template <class Body>
void summed_apart(const Tensor& out, const Body& body) {
  const Tensor sums = empty(out.sizes(), total_dtype(out.dtype()));
  body(sums);
  ops::copy_(out, sums);
}
/// Calls `body.template operator()<T, V>()` for places of type T and values of V: the same, or T holds totals of V.
template <class Body>
void visit_sum(DType places, DType values, const Body& body) {
  visit_dtype(values, [&]<class V>() {
    if (places == values) {
      if constexpr (!std::is_same_v<V, Half> && !std::is_same_v<V, BFloat16>) body.template operator()<V, V>();
    } else if constexpr (!std::is_same_v<V, Total<V>>) {
      body.template operator()<Total<V>, V>();
    }
  });
}

/// Visits every position of `sizes` in row-major order with element offsets into N strided tensors, from `offset` on.
template <size_t N, class Body>
void for_each_offset(IntSpan sizes, const std::array<IntSpan, N>& strides, const Body& body,
                     std::array<int64_t, N> offset = {}) {
  const int64_t count = product(sizes);
  if (count == 0) return;
  std::array<int64_t, kMaxDims> at{};
  if (sizes.empty()) return body(offset, at);
  // Rows of the last dimension go without the bookkeeping of the others.
  const int64_t last = int64_t(sizes.size()) - 1, length = sizes[size_t(last)];
  std::array<int64_t, N> step;
  for (size_t k = 0; k < N; ++k) step[k] = strides[k][size_t(last)];
  constexpr int64_t between = 1 << 16;  // elements between looks at signals
  int64_t left = between;
  for (int64_t row = 0; row < count; row += length) {
    for (at[size_t(last)] = 0; at[size_t(last)] < length;) {
      const int64_t end = std::min(length, at[size_t(last)] + between);
      if ((left -= end - at[size_t(last)]) < 0) [[unlikely]] {
        poll_signals();
        left = between;
      }
      for (; at[size_t(last)] < end; ++at[size_t(last)]) {
        body(offset, at);
        for (size_t k = 0; k < N; ++k) offset[k] += step[k];
      }
    }
    for (size_t k = 0; k < N; ++k) offset[k] -= step[k] * length;
    for (int64_t d = last - 1; d >= 0; --d) {
      for (size_t k = 0; k < N; ++k) offset[k] += strides[k][d];
      if (++at[d] < sizes[d]) break;
      for (size_t k = 0; k < N; ++k) offset[k] -= strides[k][d] * sizes[d];
      at[d] = 0;
    }
  }
}

}  // namespace taeda::cpu
