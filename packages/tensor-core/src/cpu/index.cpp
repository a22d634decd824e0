// CPU kernels of the index family.
#include "taeda/ops/index.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "cpu/indexing.h"
#include "infer/index.h"
#include "taeda/elementwise.h"
#include "taeda/half.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/shape.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::for_each_offset;
using cpu::IndexPlan;

/// Strides of the kept dimensions and of the picked ones within a tensor of the plan's result shape.
struct ResultStrides {
  Shape rest, picked;
  ResultStrides(const IndexPlan& plan, IntSpan strides) {
    const size_t at = size_t(plan.picked_at), n = plan.picked.size();
    for (size_t d = 0; d < strides.size(); ++d) (d >= at && d < at + n ? picked : rest).push_back(strides[d]);
  }
};

/// Calls `body(picked element, byte offset of its block in the tensor of result shape)`.
template <class Body>
void for_each_picked(const IndexPlan& plan, const ResultStrides& strides, int64_t item, const Body& body) {
  size_t i = 0;
  for_each_offset<1>(plan.picked, {IntSpan(strides.picked)},
                     [&](const auto& offset, const auto&) { body(i++, offset[0] * item); });
}

/// Runs `body(wide)` on a float32 copy of `out`, which is of half precision: many addends are rounded once, together.
template <class Body>
void summed_in_float32(const Tensor& out, const Body& body) {
  const Tensor wide = in_float32(out);
  body(wide);
  ops::copy_(out, wide);
}

void index_put_kernel(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  if (accumulate && is_half(self))
    return summed_in_float32(self, [&](const Tensor& wide) { index_put_kernel(wide, indices, values, true); });
  const IndexPlan plan = cpu::plan_index("index_put_", self, indices);
  infer::index_values("index_put_", plan.result, values);
  Tensor source = ops::to_dtype(values, self.dtype());
  const Tensor wide = ops::expand(source, plan.result);
  if (wide.numel() == 0) return;
  const ResultStrides strides(plan, wide.strides());
  const int64_t item = self.item_bytes();
  for_each_picked(plan, strides, item, [&](size_t i, int64_t at) {
    char* to = self.bytes() + plan.offsets[i];
    const char* from = wide.bytes() + at;
    if (!accumulate) return cpu::copy_block(to, plan.rest_strides, from, strides.rest, plan.rest_sizes, item);
    visit_dtype(self.dtype(), [&]<class T>() {
      for_each_offset<2>(plan.rest_sizes, {IntSpan(plan.rest_strides), IntSpan(strides.rest)},
                         [&](const auto& o, const auto&) {
                           T& place = reinterpret_cast<T*>(to)[o[0]];
                           place = cpu::plus(place, reinterpret_cast<const T*>(from)[o[1]]);
                         });
    });
  });
}

constexpr int64_t kMaskPiece = 16384;

/// The number of set elements before each piece of `n` elements, and at the end their total.
template <class Test>
std::vector<int64_t> set_before(int64_t n, const Test& set) {
  std::vector<int64_t> before(size_t((n + kMaskPiece - 1) / kMaskPiece + 1), 0);
  parallel_for(int64_t(before.size()) - 1, 2, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t count = 0;
      for (int64_t i = p * kMaskPiece, last = std::min(n, i + kMaskPiece); i < last; ++i) count += set(i);
      before[size_t(p) + 1] = count;
    }
  });
  for (size_t p = 1; p < before.size(); ++p) before[p] += before[p - 1];
  return before;
}

/// Writes the positions of the set elements among [begin, end) of a row-major tensor.
template <class Test>
void write_positions(IntSpan sizes, int64_t begin, int64_t end, const Test& set, int64_t* to) {
  const int64_t n = int64_t(sizes.size());
  std::array<int64_t, kMaxDims> at{};
  for (int64_t d = n - 1, rest = begin; d >= 0; rest /= sizes[size_t(d--)]) at[size_t(d)] = rest % sizes[size_t(d)];
  for (int64_t i = begin; i < end; ++i) {
    if (set(i)) to = std::copy_n(at.begin(), n, to);
    for (int64_t d = n - 1; d >= 0 && ++at[size_t(d)] == sizes[size_t(d)]; --d) at[size_t(d)] = 0;
  }
}

Tensor nonzero_kernel(const Tensor& self_) {
  const Tensor self = ops::contiguous(self_);
  const int64_t n = self.dim(), elements = self.numel();
  Tensor out;
  visit_dtype(self.dtype(), [&]<class T>() {
    const T* const values = self.data<T>();
    const auto set = [values](int64_t i) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
        return float(values[i]) != 0;
      else
        return values[i] != T(0);
    };
    const Unlocked unlocked(elements > kMaskPiece);
    const std::vector<int64_t> before = set_before(elements, set);
    out = empty(Shape{before.back(), n}, DType::Int64);
    parallel_for(int64_t(before.size()) - 1, 2, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        if (before[size_t(p) + 1] > before[size_t(p)])
          write_positions(self.sizes(), p * kMaskPiece, std::min(elements, (p + 1) * kMaskPiece), set,
                          out.data<int64_t>() + before[size_t(p)] * n);
    });
  });
  return out;
}

/// Keeps the elements of `from` whose mask is set.
template <class T>
void compact(const T* from, const bool* mask, int64_t n, T* to) {
  constexpr int64_t block = 1024;
  T kept[block];
  for (int64_t i0 = 0; i0 < n; i0 += block) {
    int64_t count = 0;
    for (int64_t i = i0, last = std::min(n, i0 + block); i < last; ++i) {
      kept[count] = from[i];  // without a branch: what the mask drops is overwritten
      count += mask[i];
    }
    to = std::copy_n(kept, count, to);
  }
}
void compact_blocks(const char* from, const bool* mask, int64_t n, int64_t bytes, char* to) {
  switch (bytes) {
    case 1:
      return compact(from, mask, n, to);
    case 2:
      return compact(reinterpret_cast<const uint16_t*>(from), mask, n, reinterpret_cast<uint16_t*>(to));
    case 4:
      return compact(reinterpret_cast<const uint32_t*>(from), mask, n, reinterpret_cast<uint32_t*>(to));
    case 8:
      return compact(reinterpret_cast<const uint64_t*>(from), mask, n, reinterpret_cast<uint64_t*>(to));
    default:
      break;
  }
  for (int64_t i = 0; i < n; ++i) {
    if (!mask[i]) continue;
    std::memcpy(to, from + i * bytes, size_t(bytes));
    to += bytes;
  }
}
/// self[mask] for one mask over the leading dimensions of a row-major tensor.
Tensor masked_rows(const Tensor& self, const Tensor& mask_) {
  const Tensor mask = ops::contiguous(mask_);
  const bool* const keep = mask.data<bool>();
  const int64_t n = mask.numel(), bytes = n ? self.numel() / n * self.item_bytes() : 0;
  const Unlocked unlocked(self.numel() > kMaskPiece);
  const std::vector<int64_t> before = set_before(n, [keep](int64_t i) { return keep[i]; });
  Shape sizes{before.back()};
  for (int64_t d = mask.dim(); d < self.dim(); ++d) sizes.push_back(self.size(d));
  const Tensor out = empty(sizes, self.dtype());
  parallel_for(int64_t(before.size()) - 1, 2, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      compact_blocks(self.bytes() + p * kMaskPiece * bytes, keep + p * kMaskPiece,
                     std::min(kMaskPiece, n - p * kMaskPiece), bytes, out.bytes() + before[size_t(p)] * bytes);
  });
  return out;
}
bool leads(const Tensor& mask, const Tensor& self) {
  return mask.dtype() == DType::Bool && mask.dim() > 0 && mask.dim() <= self.dim() &&
         std::ranges::equal(mask.sizes(), self.sizes().first(size_t(mask.dim())));
}

Tensor index_kernel(const Tensor& self, TensorList indices) {
  if (indices.size() == 1 && indices[0].defined() && self.contiguous() && leads(indices[0], self))
    return masked_rows(self, indices[0]);
  const IndexPlan plan = cpu::plan_index("index", self, indices);
  const Tensor out = empty(plan.result, self.dtype(), self.device());
  if (out.numel() == 0) return out;
  const ResultStrides strides(plan, out.strides());
  const int64_t item = self.item_bytes();
  for_each_picked(plan, strides, item, [&](size_t i, int64_t at) {
    cpu::copy_block(out.bytes() + at, strides.rest, self.bytes() + plan.offsets[i], plan.rest_strides, plan.rest_sizes,
                    item);
  });
  return out;
}

// --- along one dimension -------------------------------------------------------------------------------------------

/// 0-d tensors are handled as 1-d ones of one element.
Tensor at_least_1d(const Tensor& t) { return t.dim() ? t : alias(t, Shape{1}, Shape{1}, 0); }

void index_select_kernel(const Tensor& out, const Tensor& self_, int64_t dim, const Tensor& index) {
  const Tensor self = at_least_1d(self_), to = at_least_1d(out);
  const int64_t d = wrap_dim(dim, self.dim(), "index_select");
  const std::vector<int64_t> places = cpu::checked_indices("index_select", index, self.size(d), d);
  const int64_t item = self.item_bytes();
  Shape sizes(self.sizes()), from_strides(self.strides()), to_strides(to.strides());
  for (Shape* s : {&sizes, &from_strides, &to_strides}) s->erase(d);
  const int64_t block = std::max<int64_t>(1, product(sizes) * item);
  const Unlocked unlocked(out.numel() > 32768);
  parallel_for(int64_t(places.size()), std::max<int64_t>(1, (1 << 17) / block), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      cpu::copy_block(to.bytes() + i * to.stride(d) * item, to_strides,
                      self.bytes() + places[size_t(i)] * self.stride(d) * item, from_strides, sizes, item);
  });
}

void start_from(const Tensor& out, const Tensor& self) {
  if (!out.same(self)) ops::copy_(out, self);
}

/// Applies `combine(place, value)` to whole slices of `out` at `index` along `dim`, in order.
template <class Combine>
void into_slices(const char* op, const Tensor& out_, int64_t dim, const Tensor& index, const Tensor& source_,
                 const Combine& combine) {
  const Tensor out = at_least_1d(out_), source = at_least_1d(source_);
  const int64_t d = wrap_dim(dim, out.dim(), op);
  const std::vector<int64_t> places = cpu::checked_indices(op, index, out.size(d), d);
  Shape sizes(out.sizes()), to_strides(out.strides()), from_strides(source.strides());
  for (Shape* s : {&sizes, &to_strides, &from_strides}) s->erase(d);
  visit_dtype(out.dtype(), [&]<class T>() {
    Patience patience;
    for (size_t i = 0; i < places.size(); ++i) {
      patience();
      T* to = out.data<T>() + places[i] * out.stride(d);
      const T* from = source.data<T>() + int64_t(i) * source.stride(d);
      for_each_offset<2>(sizes, {IntSpan(to_strides), IntSpan(from_strides)},
                         [&](const auto& o, const auto&) { combine(to[o[0]], from[o[1]]); });
    }
  });
}

void index_add_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                      const Scalar& alpha) {
  if (is_half(out))
    return summed_in_float32(out, [&](const Tensor& wide) {
      index_add_kernel(wide, in_float32(self), dim, index, in_float32(source), alpha);
    });
  start_from(out, self);
  const bool scaled = !alpha.equal(1.0);
  into_slices("index_add", out, dim, index, source, [&]<class T>(T& place, T value) {
    place = cpu::plus(place, scaled ? cpu::times(alpha.to<T>(), value) : value);
  });
}
void index_copy_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  start_from(out, self);
  into_slices("index_copy", out, dim, index, source, []<class T>(T& place, T value) { place = value; });
}
void index_fill_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  start_from(out, self);
  Shape sizes(at_least_1d(out).sizes());
  sizes[wrap_dim(dim, out.dim(), "index_fill")] = index.numel();
  into_slices("index_fill", out, dim, index, ops::expand(ops::to_dtype(value, out.dtype()), sizes),
              []<class T>(T& place, T v) { place = v; });
}

// --- gather and scatter --------------------------------------------------------------------------------------------

/// One row of index elements: where its places in the target and its elements of the other tensor lie.
struct IndexRow {
  const int64_t* index;
  int64_t length, index_step, place, place_step, other, other_step;
  IndexRow part(int64_t begin, int64_t end) const {
    return {index + begin * index_step,  end - begin, index_step, place + begin * place_step, place_step,
            other + begin * other_step, other_step};
  }
};

/// Whether all of a dense run lie in [0, size); four at a time, which become vector instructions on any processor.
bool plain_indices(const int64_t* index, int64_t count, int64_t size) {
  std::array<uint64_t, 4> signs{};
  const uint64_t last = uint64_t(size) - 1;
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (size_t k = 0; k < 4; ++k)
      signs[k] |= uint64_t(index[i + int64_t(k)]) | (last - uint64_t(index[i + int64_t(k)]));
  for (; i < count; ++i) signs[0] |= uint64_t(index[i]) | (last - uint64_t(index[i]));
  return !((signs[0] | signs[1] | signs[2] | signs[3]) >> 63);
}

/// Calls `body(place, element of the other tensor)` along a row; `step` is the target's stride along the indexed
/// dimension of `size`.
template <class Body>
void visit_row(const char* op, const IndexRow& row, bool checked, int64_t dim, int64_t size, int64_t step,
               const Body& body) {
  if (row.index_step == 1 && (checked || plain_indices(row.index, row.length, size))) {
    // Copies of the members stay in registers, whatever `body` writes to.
    const auto [index, length, index_step, place, place_step, other, other_step] = row;
    if (step == 1 && place_step == 0 && other_step == 1) {
#pragma GCC unroll 8
      for (int64_t j = 0; j < length; ++j) body(place + index[j], other + j);
    } else {
#pragma GCC unroll 4
      for (int64_t j = 0; j < length; ++j) body(place + j * place_step + index[j] * step, other + j * other_step);
    }
    return;
  }
  for (int64_t j = 0; j < row.length; ++j) {
    const int64_t v = row.index[j * row.index_step];
    if (v < -size || v >= size)
      fail(ErrorKind::Index, op, ": argument 'index' holds ", v, ", out of range for dimension ", dim, " of size ",
           size);
    body(row.place + j * row.place_step + (v < 0 ? v + size : v) * step, row.other + j * row.other_step);
  }
}

/// Visits index elements: `body(offset of the place in `target`, offset in `other`)`.
/// `checked`: what check_all returned. `split`: in several threads, each with slices of its own along another
/// dimension, so that places do not meet.
template <class Body>
void along(const char* op, const Tensor& target, int64_t dim, const Tensor& index_, const Tensor& other,
           const Body& body, bool split = false, bool checked = false) {
  const Tensor index = ops::to_dtype(index_, DType::Int64);
  if (index.numel() == 0) return;
  const int64_t size = target.size(dim), step = target.stride(dim);
  Shape outer(target.strides());
  outer[dim] = 0;
  const std::array<IntSpan, 3> strides{index.strides(), IntSpan(outer), other.strides()};
  const size_t last = size_t(index.dim()) - 1;
  const std::array<IntSpan, 3> rows{strides[0].first(last), strides[1].first(last), strides[2].first(last)};
  const int64_t* const values = index.data<int64_t>();
  const auto visit = [&](IntSpan sizes, const std::array<int64_t, 3>& from) {
    for_each_offset<3>(
        sizes.first(last), rows,
        [&](const auto& o, const auto&) {
          const IndexRow row{values + o[0],    sizes[last], strides[0][last], o[1],
                             strides[1][last], o[2],        strides[2][last]};
          in_blocks(row.length, [&](int64_t begin, int64_t end) {
            visit_row(op, row.part(begin, end), checked, dim, size, step, body);
          });
        },
        from);
  };
  const size_t cut = dim == 0 ? 1 : 0;  // the dimension that threads share out
  if (!split || index.numel() <= kLoopGrain || index.dim() <= int64_t(cut)) return visit(index.sizes(), {});
  const int64_t slices = index.size(int64_t(cut)), grain = std::max<int64_t>(1, kLoopGrain * slices / index.numel());
  parallel_for(slices, grain, [&](int64_t begin, int64_t end) {
    Shape sizes(index.sizes());
    sizes[cut] = end - begin;
    visit(sizes, {begin * strides[0][cut], begin * strides[1][cut], begin * strides[2][cut]});
  });
}

void gather_kernel(const Tensor& out_, const Tensor& self_, int64_t dim, const Tensor& index_, bool) {
  const Tensor out = at_least_1d(out_), self = at_least_1d(self_), index = at_least_1d(index_);
  const int64_t d = wrap_dim(dim, self.dim(), "gather");
  const Unlocked unlocked(index.numel() > 32768);
  visit_dtype(self.dtype(), [&]<class T>() {
    along(
        "gather", self, d, index, out,
        [to = out.data<T>(), from = self.data<T>()](int64_t place, int64_t at) { to[at] = from[place]; }, true);
  });
}

/// Indices are all checked before the first write, so that a bad one leaves `self` as it was.
/// True when they are dense and need no wrapping either.
bool check_all(const char* op, const Tensor& target, int64_t dim, const Tensor& index) {
  if (index.contiguous() && index.dtype() == DType::Int64) {
    std::atomic<bool> plain = true;
    parallel_for(index.numel(), kLoopGrain, [&](int64_t begin, int64_t end) {
      if (!plain_indices(index.data<int64_t>() + begin, end - begin, target.size(dim))) plain = false;
    });
    if (plain) return true;
  }
  along(
      op, target, dim, index, index, [](int64_t, int64_t) {}, true);
  return false;
}

template <class Combine>
void scatter_with(const char* op, const Tensor& out_, const Tensor& self, int64_t dim, const Tensor& index_,
                  const Tensor& src_, const Combine& combine) {
  const Tensor out = at_least_1d(out_), index = at_least_1d(index_);
  if (index.numel() == 0) return start_from(out_, self);
  const int64_t d = wrap_dim(dim, out.dim(), op);
  const bool checked = check_all(op, out, d, index);
  const Tensor src = at_least_1d(src_);
  start_from(out_, self);
  visit_dtype(out.dtype(), [&]<class T>() {
    along(
        op, out, d, index, src,
        [&combine, to = out.data<T>(), from = src.data<T>()](int64_t place, int64_t at) {
          combine(to[place], from[at]);
        },
        true, checked);
  });
}

void scatter_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_with("scatter", out, self, dim, index, src, []<class T>(T& place, T value) { place = value; });
}
void scatter_value_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                          const Scalar& value) {
  scatter_with("scatter", out, self, dim, index,
               ops::expand(ops::to_dtype(Tensor(value), out.dtype()), at_least_1d(index).sizes()),
               []<class T>(T& place, T v) { place = v; });
}
void scatter_add_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  if (is_half(out))
    return summed_in_float32(out, [&](const Tensor& wide) {
      scatter_add_kernel(wide, in_float32(self), dim, index, in_float32(src));
    });
  scatter_with("scatter_add", out, self, dim, index, src,
               []<class T>(T& place, T value) { place = cpu::plus(place, value); });
}

/// Order of real numbers with NaN above everything, as amax and amin propagate it.
template <class T>
bool exceeds(T a, T b) {
  if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>)
    return false;  // inference has refused it
  else if constexpr (std::is_integral_v<T>)
    return a > b;
  else
    return std::isnan(double(a)) || (!std::isnan(double(b)) && double(a) > double(b));
}

void scatter_reduce_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                           std::string_view reduce, bool include_self) {
  if (is_half(out))
    return summed_in_float32(out, [&](const Tensor& wide) {
      scatter_reduce_kernel(wide, in_float32(self), dim, index, in_float32(src), reduce, include_self);
    });
  const bool mean = reduce == "mean", sum = reduce == "sum" || mean, prod = reduce == "prod",
             largest = reduce == "amax";
  const Tensor counts = empty(at_least_1d(out).sizes(), DType::Int64);
  const int64_t d = wrap_dim(dim, counts.dim(), "scatter_reduce");
  const Tensor index1 = at_least_1d(index);
  std::fill_n(counts.data<int64_t>(), counts.numel(), int64_t(include_self));
  if (index1.numel()) check_all("scatter_reduce", counts, d, index1);
  const Tensor source = at_least_1d(src), to = at_least_1d(out);
  start_from(out, self);
  if (index1.numel() == 0) return;
  // Both walks visit the same positions in the same order, so one list of counter places serves both.
  std::vector<int64_t> counter_of;
  along("scatter_reduce", counts, d, index1, index1, [&](int64_t place, int64_t) { counter_of.push_back(place); });
  visit_dtype(out.dtype(), [&]<class T>() {
    size_t i = 0;
    along("scatter_reduce", to, d, index1, source, [&](int64_t place, int64_t at) {
      T& into = to.data<T>()[place];
      const T value = source.data<T>()[at];
      int64_t& seen = counts.data<int64_t>()[counter_of[i++]];
      if (seen++ == 0)
        into = value;
      else if (sum)
        into = cpu::plus(into, value);
      else if (prod)
        into = cpu::times(into, value);
      else if (largest ? exceeds(value, into) : value != value || (into == into && exceeds(into, value)))
        into = value;
    });
    if (!mean) return;
    for_each_offset<2>(to.sizes(), {to.strides(), counts.strides()}, [&](const auto& o, const auto&) {
      const int64_t n = counts.data<int64_t>()[o[1]];
      if (n <= 1) return;
      T& value = to.data<T>()[o[0]];
      if constexpr (std::is_integral_v<T>)
        value = T(int64_t(std::floor(double(value) / double(n))));
      else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
        value = T(float(value) / float(n));
      else
        value = value / T(n);
    });
  });
}

const bool registered = [] {
  kernel<op::gather>(kCPU, gather_kernel);
  kernel<op::index>(kCPU, index_kernel);
  kernel<op::index_add>(kCPU, index_add_kernel);
  kernel<op::index_copy>(kCPU, index_copy_kernel);
  kernel<op::index_fill>(kCPU, index_fill_kernel);
  kernel<op::index_put_>(kCPU, index_put_kernel);
  kernel<op::index_select>(kCPU, index_select_kernel);
  kernel<op::nonzero>(kCPU, nonzero_kernel);
  kernel<op::scatter>(kCPU, scatter_kernel);
  kernel<op::scatter_add>(kCPU, scatter_add_kernel);
  kernel<op::scatter_reduce>(kCPU, scatter_reduce_kernel);
  kernel<op::scatter_value>(kCPU, scatter_value_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
