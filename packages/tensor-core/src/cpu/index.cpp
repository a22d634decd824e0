// CPU kernels of the index family.
#include "taeda/ops/index.h"

#include <algorithm>
#include <array>

#include "cpu/indexing.h"
#include "infer/dims.h"
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

/// Adds `values`, of the plan's result shape, to the places that it names.
void put_sums(const Tensor& self, const IndexPlan& plan, const Tensor& values) {
  const ResultStrides strides(plan, values.strides());
  cpu::visit_sum(self.dtype(), values.dtype(), [&]<class T, class V>() {
    for_each_picked(plan, strides, 1, [&](size_t i, int64_t at) {
      T* const to = self.data<T>() + plan.offsets[i];
      const V* const from = values.data<V>() + at;
      for_each_offset<2>(plan.rest_sizes, {IntSpan(plan.rest_strides), IntSpan(strides.rest)},
                         [&](const auto& o, const auto&) { to[o[0]] = cpu::plus(to[o[0]], T(from[o[1]])); });
    });
  });
}

void index_put_kernel(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  const IndexPlan plan = cpu::plan_index("index_put_", self, indices);
  infer::index_values("index_put_", plan.result, values);
  const Tensor wide = ops::expand(ops::to_dtype(values, self.dtype()), plan.result);
  if (wide.numel() == 0) return;
  if (accumulate) {
    if (!cpu::sums_apart(self, wide.numel())) return put_sums(self, plan, wide);
    return cpu::summed_apart(self, [&](const Tensor& sums) {
      ops::copy_(sums, self);
      put_sums(sums, self.contiguous() ? plan : cpu::plan_index("index_put_", sums, indices), wide);
    });
  }
  const ResultStrides strides(plan, wide.strides());
  const int64_t item = self.item_bytes();
  for_each_picked(plan, strides, item, [&](size_t i, int64_t at) {
    cpu::copy_block(self.bytes() + plan.offsets[i] * item, plan.rest_strides, wide.bytes() + at, strides.rest,
                    plan.rest_sizes, item);
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
  const Tensor self = self_.contiguous() ? self_ : ops::contiguous(self_);
  const int64_t n = self.dim(), elements = self.numel();
  Tensor out;
  visit_dtype(self.dtype(), [&]<class T>() {
    const T* const values = self.data<T>();
    const auto set = [values](int64_t i) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) return float(values[i]) != 0;
      else return values[i] != T(0);
    };
    if (elements <= kMaskPiece) {
      int64_t count = 0;
      for (int64_t i = 0; i < elements; ++i) count += set(i);
      out = empty(Shape{count, n}, DType::Int64);
      if (count) write_positions(self.sizes(), 0, elements, set, out.data<int64_t>());
      return;
    }
    const Unlocked unlocked(true);
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
    case 1: return compact(from, mask, n, to);
    case 2: return compact(reinterpret_cast<const uint16_t*>(from), mask, n, reinterpret_cast<uint16_t*>(to));
    case 4: return compact(reinterpret_cast<const uint32_t*>(from), mask, n, reinterpret_cast<uint32_t*>(to));
    case 8: return compact(reinterpret_cast<const uint64_t*>(from), mask, n, reinterpret_cast<uint64_t*>(to));
    default: break;
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
    cpu::copy_block(out.bytes() + at, strides.rest, self.bytes() + plan.offsets[i] * item, plan.rest_strides,
                    plan.rest_sizes, item);
  });
  return out;
}

// --- along one dimension -------------------------------------------------------------------------------------------

/// A row-major tensor along one dimension: `outer` stacks of `size` blocks of `inner` elements.
struct Stacks {
  int64_t outer = 1, size, inner = 1;
  Stacks(const Tensor& t, int64_t dim) : size(t.size(dim)) {
    for (int64_t d = 0; d < dim; ++d) outer *= t.size(d);
    for (int64_t d = dim + 1; d < t.dim(); ++d) inner *= t.size(d);
  }
};

/// Blocks of row-major `self` at `places`, in their order.
void select_blocks(const Tensor& out, const Tensor& self, int64_t dim, const std::vector<int64_t>& places) {
  const Stacks from(self, dim);
  const int64_t item = self.item_bytes(), bytes = from.inner * item, count = int64_t(places.size());
  const auto select = [&](int64_t stack, int64_t first, int64_t end) {
    const char* const in = self.bytes() + stack * from.size * bytes;
    char* const to = out.bytes() + stack * count * bytes;
    if (from.inner == 1)
      return cpu::visit_width(self.dtype(), [&]<class T>() {
        for (int64_t i = first; i < end; ++i)
          reinterpret_cast<T*>(to)[i] = reinterpret_cast<const T*>(in)[places[size_t(i)]];
      });
    for (int64_t i = first; i < end; ++i) std::memcpy(to + i * bytes, in + places[size_t(i)] * bytes, size_t(bytes));
  };
  parallel_for(from.outer * count, std::max<int64_t>(1, (1 << 17) / bytes), [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t stack = begin / count, first = begin % count, several = std::min(end - begin, count - first);
      select(stack, first, first + several);
      begin += several;
    }
  });
}

void index_select_kernel(const Tensor& out, const Tensor& self_, int64_t dim, const Tensor& index) {
  const Tensor self = cpu::at_least_1d(self_), to = cpu::at_least_1d(out);
  const int64_t d = infer::axis_of(dim, self.dim());
  const std::vector<int64_t> places = cpu::checked_indices("index_select", index, self.size(d), d);
  if (out.numel() == 0) return;
  const int64_t item = self.item_bytes();
  const Unlocked unlocked(out.numel() > 32768);
  if (self.contiguous() && to.contiguous()) return select_blocks(to, self, d, places);
  Shape sizes(self.sizes()), from_strides(self.strides()), to_strides(to.strides());
  for (Shape* s : {&sizes, &from_strides, &to_strides}) s->erase(d);
  const int64_t block = std::max<int64_t>(1, product(sizes) * item);
  parallel_for(int64_t(places.size()), std::max<int64_t>(1, (1 << 17) / block), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      cpu::copy_block(to.bytes() + i * to.stride(d) * item, to_strides,
                      self.bytes() + places[size_t(i)] * self.stride(d) * item, from_strides, sizes, item);
  });
}

/// Applies `combine(place, value)` to whole slices of `out` at `index` along `dim`, in order. `Sums`: the places may be
/// wider than the values; otherwise it only moves them.
template <bool Sums = false, class Combine>
void into_slices(const char* op, const Tensor& out_, int64_t dim, const Tensor& index, const Tensor& source_,
                 const Combine& combine) {
  const Tensor out = cpu::at_least_1d(out_), source = cpu::at_least_1d(source_);
  const int64_t d = infer::axis_of(dim, out.dim());
  const std::vector<int64_t> places = cpu::checked_indices(op, index, out.size(d), d);
  Shape sizes(out.sizes()), to_strides(out.strides()), from_strides(source.strides());
  for (Shape* s : {&sizes, &to_strides, &from_strides}) s->erase(d);
  const bool row_major = out.contiguous() && source.contiguous();
  const Stacks stacks(out, d);
  const auto visit = [&]<class T, class V>() {
    Patience patience;
    // Side by side: whole blocks, or the single elements of one stack after the other.
    for (int64_t stack = 0; row_major && stack < stacks.outer; ++stack) {
      T* const to = out.data<T>() + stack * stacks.size * stacks.inner;
      const V* const from = source.data<V>() + stack * int64_t(places.size()) * stacks.inner;
      for (size_t i = 0; i < places.size(); ++i) {
        patience();
        T* const block = to + places[i] * stacks.inner;
        const V* const values = from + int64_t(i) * stacks.inner;
        for (int64_t j = 0; j < stacks.inner; ++j) combine(block[j], values[j]);
      }
    }
    for (size_t i = 0; !row_major && i < places.size(); ++i) {
      patience();
      T* to = out.data<T>() + places[i] * out.stride(d);
      const V* from = source.data<V>() + int64_t(i) * source.stride(d);
      for_each_offset<2>(sizes, {IntSpan(to_strides), IntSpan(from_strides)},
                         [&](const auto& o, const auto&) { combine(to[o[0]], from[o[1]]); });
    }
  };
  if constexpr (Sums) cpu::visit_sum(out.dtype(), source.dtype(), visit);
  else cpu::visit_width(out.dtype(), [&]<class T>() { visit.template operator()<T, T>(); });
}

void index_add_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                      const Scalar& alpha) {
  if (cpu::sums_apart(out, source.numel()))
    return cpu::summed_apart(out, [&](const Tensor& sums) { index_add_kernel(sums, self, dim, index, source, alpha); });
  cpu::start_from(out, self);
  const bool scaled = !alpha.equal(1.0);
  into_slices<true>("index_add", out, dim, index, source, [&]<class T, class V>(T& place, V value) {
    place = cpu::plus(place, scaled ? cpu::times(alpha.to<T>(), T(value)) : T(value));
  });
}
void index_copy_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  cpu::start_from(out, self);
  into_slices("index_copy", out, dim, index, source, cpu::Assign{});
}
void index_fill_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  cpu::start_from(out, self);
  Shape sizes(cpu::at_least_1d(out).sizes());
  sizes[infer::axis_of(dim, out.dim())] = index.numel();
  into_slices("index_fill", out, dim, index, ops::expand(ops::to_dtype(value, out.dtype()), sizes), cpu::Assign{});
}

const bool registered = [] {
  kernel<op::index>(kCPU, index_kernel);
  kernel<op::index_add>(kCPU, index_add_kernel);
  kernel<op::index_copy>(kCPU, index_copy_kernel);
  kernel<op::index_fill>(kCPU, index_fill_kernel);
  kernel<op::index_put_>(kCPU, index_put_kernel);
  kernel<op::index_select>(kCPU, index_select_kernel);
  kernel<op::nonzero>(kCPU, nonzero_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
