// CPU kernels of the index family.
#include "taeda/ops/index.h"

#include <algorithm>
#include <array>

#include "cpu/indexing.h"
#include "cpu/picked.h"
#include "cpu/prepare.h"
#include "infer/dims.h"
#include "infer/index.h"
#include "taeda/elementwise.h"
#include "taeda/half.h"
#include "taeda/ops/arith.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/compare.h"
#include "taeda/ops/shape.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::for_each_offset;
using cpu::IndexPlan;
using cpu::PickedBlocks;

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

/// Elements for which blocks would be most of the work.
constexpr int64_t kFewPicked = 64;
/// The blocks that a plan picks, where they are worth it; `values`, of its result shape, are row-major then.
PickedBlocks blocks_of(const IndexPlan& plan, Tensor& values) {
  PickedBlocks blocks;
  blocks.fits = values.numel() > kFewPicked;
  if (blocks.fits) blocks = PickedBlocks::of(plan);
  if (blocks.fits) values = ops::contiguous(values);
  return blocks;
}

/// Adds `values`, of the plan's result shape, to the places that it names.
void put_sums(const Tensor& self, const IndexPlan& plan, Tensor values) {
  const PickedBlocks blocks = blocks_of(plan, values);
  const Unlocked unlocked(values.numel() > 32768);
  const ResultStrides strides(plan, values.strides());
  cpu::visit_sum(self.dtype(), values.dtype(), [&]<class T, class V>() {
    const auto add = [](T& place, V value) { place = cpu::plus(place, T(value)); };
    if (blocks.fits) return cpu::combine_blocks(blocks, self.data<T>(), values.data<V>(), add);
    for_each_picked(plan, strides, 1, [&](size_t i, int64_t at) {
      T* const to = self.data<T>() + plan.offsets[i];
      const V* const from = values.data<V>() + at;
      for_each_offset<2>(plan.rest_sizes, {IntSpan(plan.rest_strides), IntSpan(strides.rest)},
                         [&](const auto& o, const auto&) { add(to[o[0]], from[o[1]]); });
    });
  });
}

/// The mask, spread beside the dimensions of `self`, where it is all that the indices hold.
Tensor lone_mask(const Tensor& self, TensorList indices) {
  Tensor mask;
  Shape sizes(size_t(self.dim()), 1), strides(size_t(self.dim()), 0);
  int64_t dim = 0;
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      ++dim;
      continue;
    }
    if (index.dtype() != DType::Bool || index.dim() == 0 || mask.defined() || dim + index.dim() > self.dim()) return {};
    mask = index;
    for (int64_t k = 0; k < index.dim(); ++k, ++dim) {
      if (index.size(k) != self.size(dim)) return {};
      sizes[size_t(dim)] = index.size(k);
      strides[size_t(dim)] = index.stride(k);
    }
  }
  return mask.defined() ? alias(mask, sizes, strides, 0) : mask;
}
/// What does not change when `self` is written to.
Tensor apart_from(const Tensor& self, const Tensor& other) {
  return other.impl()->storage.get() == self.impl()->storage.get() ? ops::clone(other) : other;
}
/// One value for all that a mask names takes one pass. False where the indices are something else.
bool fill_masked(const Tensor& self, TensorList indices, const Tensor& values) {
  if (values.numel() != 1) return false;
  const Tensor mask = lone_mask(self, indices);
  if (!mask.defined()) return false;
  const Tensor value = apart_from(self, ops::to_dtype(values, self.dtype()));
  ops::masked_fill_(self, apart_from(self, mask), alias(value, Shape{}, Shape{}, 0));
  return true;
}

/// `Count` elements of each of n rows, which lie `size` apart, side by side.
template <int Count, class T>
void gather_few(const T* from, int64_t size, int64_t n, const int64_t* places, T* to) {
  std::array<int64_t, Count> at;
  std::copy_n(places, Count, at.begin());
  for (int64_t i = 0; i < n; ++i, from += size, to += Count)
    for (size_t k = 0; k < Count; ++k) to[k] = from[at[k]];
}
/// Slices of so few elements that each is moved for a run of rows at once: the rows are `size` elements apart and lie
/// side by side in the result.
void select_from_narrow(const Tensor& to, const Tensor& self, const cpu::PickedBlocks& picked) {
  const int64_t length = picked.length, rows = int64_t(picked.stacks.size()), size = self.numel() / rows,
                count = int64_t(picked.offsets.size()) * length;
  const Unlocked unlocked(to.numel() > 32768);
  constexpr int64_t block = 1024;
  std::vector<int64_t> places(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; ++k) places[size_t(k)] = picked.offsets[size_t(k / length)] + k % length;
  cpu::visit_width(self.dtype(), [&]<class T>() {
    parallel_for((rows + block - 1) / block, std::max<int64_t>(1, 32 / count), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t first = b * block, n = std::min(block, rows - first);
        const T* const from = self.data<T>() + first * size;
        T* const place = to.data<T>() + first * count;
        switch (count) {
          case 1: gather_few<1>(from, size, n, places.data(), place); break;
          case 2: gather_few<2>(from, size, n, places.data(), place); break;
          case 3: gather_few<3>(from, size, n, places.data(), place); break;
          case 4: gather_few<4>(from, size, n, places.data(), place); break;
          default:
            for (int64_t k = 0; k < count; ++k)
              for (int64_t i = 0; i < n; ++i) place[i * count + k] = from[i * size + places[size_t(k)]];
        }
      }
    });
  });
}
/// The reverse: what stands side by side in `values` to slices of so few elements in `self`. The last one stays.
void assign_to_narrow(const Tensor& self, const Tensor& values, const cpu::PickedBlocks& picked) {
  const int64_t length = picked.length, rows = int64_t(picked.stacks.size()), size = self.numel() / rows,
                count = picked.stack_length();
  cpu::visit_width(self.dtype(), [&]<class T>() {
    constexpr int64_t block = 1024;
    parallel_for((rows + block - 1) / block, std::max<int64_t>(1, 32 / count), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t first = b * block, n = std::min(block, rows - first);
        const T* const from = reinterpret_cast<const T*>(values.bytes()) + first * count;
        for (int64_t k = 0; k < count; ++k) {
          T* const to =
              reinterpret_cast<T*>(self.bytes()) + first * size + picked.offsets[size_t(k / length)] + k % length;
          for (int64_t i = 0; i < n; ++i) to[i * size] = from[i * count + k];
        }
      }
    });
  });
}
/// Where rows are worth more than the slices in each.
bool is_narrow(const cpu::PickedBlocks& picked) {
  constexpr int64_t narrow = 16, many = 16;
  const int64_t count = picked.stack_length();
  return count <= narrow && int64_t(picked.stacks.size()) >= many * count;
}

void index_put_kernel(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  if (!accumulate && fill_masked(self, indices, values)) return;
  const IndexPlan plan = cpu::plan_index("index_put_", self, indices);
  infer::index_values("index_put_", plan.result, values);
  Tensor wide = ops::expand(ops::to_dtype(values, self.dtype()), plan.result);
  if (wide.numel() == 0) return;
  if (accumulate) {
    if (!cpu::sums_apart(self, wide.numel())) return put_sums(self, plan, wide);
    return cpu::summed_apart(self, [&](const Tensor& sums) {
      ops::copy_(sums, self);
      put_sums(sums, self.contiguous() ? plan : cpu::plan_index("index_put_", sums, indices), cpu::addends(wide));
    });
  }
  if (const PickedBlocks blocks = blocks_of(plan, wide); blocks.fits) {
    if (self.contiguous() && is_narrow(blocks)) return assign_to_narrow(self, wide, blocks);
    return cpu::visit_width(self.dtype(), [&]<class T>() {
      cpu::combine_blocks(blocks, reinterpret_cast<T*>(self.bytes()), reinterpret_cast<const T*>(wide.bytes()),
                          cpu::Assign{});
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

/// Room for positions, a column for each dimension, as PyTorch lays them.
Tensor room_for_positions(int64_t count, int64_t dims) {
  return empty_strided(Shape{count, dims}, Shape{1, count}, DType::Int64);
}

/// Writes the positions of the set elements among [begin, end) of a row-major tensor. Columns lie `step` apart.
template <class Test>
void write_positions(IntSpan sizes, int64_t begin, int64_t end, const Test& set, int64_t* to, int64_t step) {
  constexpr int64_t block = 1024;
  int32_t found[block];
  const int64_t n = int64_t(sizes.size());
  if (n == 0) return;
  const int64_t length = sizes[size_t(n - 1)];
  std::array<int64_t, kMaxDims> at{};
  for (int64_t d = n - 1, rest = begin; d >= 0; rest /= sizes[size_t(d--)]) at[size_t(d)] = rest % sizes[size_t(d)];
  int64_t& column = at[size_t(n - 1)];
  while (begin < end) {
    // A part of a row: first where its elements are set, without a branch.
    const int64_t part = std::min({block, end - begin, length - column});
    int64_t count = 0;
    for (int64_t j = 0; j < part; ++j) {
      found[count] = int32_t(j);
      count += set(begin + j);
    }
    const int64_t first = column;
    for (int64_t d = 0; d + 1 < n; ++d) std::fill_n(to + d * step, count, at[size_t(d)]);
    int64_t* const last = to + (n - 1) * step;
    for (int64_t k = 0; k < count; ++k) last[k] = first + found[k];
    to += count;
    begin += part;
    column += part;
    for (int64_t d = n - 1; d > 0 && at[size_t(d)] == sizes[size_t(d)]; --d) at[size_t(d)] = 0, ++at[size_t(d - 1)];
  }
}

// Note [Bytes of truth values]. What a program reads as bool, by `view` or out of a file, may hold any bytes; all but 0
// are true. Counts that say how much is written are counts of such bytes, not sums of what should be 0 or 1.
const uint8_t* bytes_of(const bool* values) noexcept { return reinterpret_cast<const uint8_t*>(values); }

Tensor nonzero_kernel(const Tensor& self_) {
  const Tensor self = self_.contiguous() ? self_ : ops::contiguous(self_);
  const int64_t n = self.dim(), elements = self.numel();
  Tensor out;
  visit_dtype(self.dtype(), [&]<class T>() {
    const T* const values = self.data<T>();
    const auto set = [values](int64_t i) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) return float(values[i]) != 0;
      else if constexpr (std::is_same_v<T, bool>) return bytes_of(values)[i] != 0;
      else return values[i] != T(0);
    };
    if (elements <= kMaskPiece) {
      int64_t count = 0;
      for (int64_t i = 0; i < elements; ++i) count += set(i);
      out = room_for_positions(count, n);
      if (count) write_positions(self.sizes(), 0, elements, set, out.data<int64_t>(), count);
      return;
    }
    const Unlocked unlocked(true);
    const std::vector<int64_t> before = set_before(elements, set);
    out = room_for_positions(before.back(), n);
    parallel_for(int64_t(before.size()) - 1, 2, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        if (before[size_t(p) + 1] > before[size_t(p)])
          write_positions(self.sizes(), p * kMaskPiece, std::min(elements, (p + 1) * kMaskPiece), set,
                          out.data<int64_t>() + before[size_t(p)], before.back());
    });
  });
  return out;
}

/// Keeps the elements of `from` whose mask is set.
template <class T>
void compact(const T* from, const uint8_t* mask, int64_t n, T* to) {
  constexpr int64_t block = 1024;
  T kept[block];
  for (int64_t i0 = 0; i0 < n; i0 += block) {
    int64_t count = 0;
    for (int64_t i = i0, last = std::min(n, i0 + block); i < last; ++i) {
      kept[count] = from[i];  // without a branch: what the mask drops is overwritten
      count += mask[i] != 0;
    }
    to = std::copy_n(kept, count, to);
  }
}
void compact_blocks(const char* from, const uint8_t* mask, int64_t n, int64_t bytes, char* to) {
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
void gather(const Tensor& out, const Tensor& self, const PickedBlocks& blocks) {
  const Unlocked unlocked(out.numel() > 32768);
  cpu::visit_width(self.dtype(), [&]<class T>() {
    cpu::gather_blocks(blocks, reinterpret_cast<const T*>(self.bytes()), reinterpret_cast<T*>(out.bytes()));
  });
}

/// self[mask] for one mask over the leading dimensions of a row-major tensor.
Tensor masked_rows(const Tensor& self, const Tensor& mask_) {
  const Tensor mask = ops::contiguous(mask_);
  const uint8_t* const keep = bytes_of(mask.data<bool>());
  const int64_t n = mask.numel(), bytes = n ? self.numel() / n * self.item_bytes() : 0;
  const Unlocked unlocked(self.numel() > kMaskPiece);
  const std::vector<int64_t> before = set_before(n, [keep](int64_t i) { return keep[i] != 0; });
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
  if (out.numel() > kFewPicked)
    if (const PickedBlocks blocks = PickedBlocks::of(plan); blocks.fits) {
      if (self.contiguous() && is_narrow(blocks)) select_from_narrow(out, self, blocks);
      else gather(out, self, blocks);
      return out;
    }
  // What lies in no blocks does after a copy, which pays where more is picked than there is.
  if (out.numel() >= self.numel() && !self.contiguous()) return index_kernel(ops::contiguous(self), indices);
  const ResultStrides strides(plan, out.strides());
  const int64_t item = self.item_bytes();
  for_each_picked(plan, strides, item, [&](size_t i, int64_t at) {
    cpu::copy_block(out.bytes() + at, strides.rest, self.bytes() + plan.offsets[i] * item, plan.rest_strides,
                    plan.rest_sizes, item);
  });
  return out;
}

// --- along one dimension -------------------------------------------------------------------------------------------

}  // namespace

namespace {

/// Elements of every row, where the dimension that is picked from is the last one.
void select_from_rows(const Tensor& to, const Tensor& self, const cpu::Offsets& places) {
  const size_t last = size_t(self.dim() - 1);
  const Unlocked unlocked(to.numel() > 32768);
  cpu::visit_width(self.dtype(), [&]<class T>() {
    const int64_t from_step = self.stride(-1), to_step = to.stride(-1), count = int64_t(places.size());
    for_each_offset<2>(self.sizes().first(last), {to.strides().first(last), self.strides().first(last)},
                       [&](const auto& offset, const auto&) {
                         T* const row = to.data<T>() + offset[0];
                         const T* const from = self.data<T>() + offset[1];
                         for (int64_t i = 0; i < count; ++i) row[i * to_step] = from[places[size_t(i)] * from_step];
                       });
  });
}

}  // namespace

namespace {}  // namespace

void cpu::select_slices(const char* op, const Tensor& out, const Tensor& self_, int64_t dim, const Tensor& index) {
  const Tensor self = cpu::at_least_1d(self_), to = cpu::at_least_1d(out);
  const int64_t d = infer::axis_of(dim, self.dim());
  cpu::Offsets places = cpu::checked_indices(op, index, self.size(d), d, to, cpu::Negative::Refused);
  if (out.numel() == 0) return;
  // A copy pays where more is picked than it has elements.
  const bool picks_many = to.contiguous() && to.numel() >= self.numel();
  if (to.contiguous() && (picks_many || self.contiguous())) {
    const Tensor plain = ops::contiguous(self);
    const PickedBlocks picked = PickedBlocks::along(plain, d, std::move(places));
    return is_narrow(picked) ? select_from_narrow(to, plain, picked) : gather(to, plain, picked);
  }
  if (d == self.dim() - 1) return select_from_rows(to, self, places);
  const int64_t item = self.item_bytes();
  const Unlocked unlocked(out.numel() > 32768);
  Shape sizes(self.sizes()), from_strides(self.strides()), to_strides(to.strides());
  for (Shape* s : {&sizes, &from_strides, &to_strides}) s->erase(d);
  const int64_t block = std::max<int64_t>(1, product(sizes) * item);
  parallel_for(int64_t(places.size()), std::max<int64_t>(1, (1 << 17) / block), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      cpu::copy_block(to.bytes() + i * to.stride(d) * item, to_strides,
                      self.bytes() + places[size_t(i)] * self.stride(d) * item, from_strides, sizes, item);
  });
}

namespace {

void index_select_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index) {
  cpu::select_slices("index_select", out, self, dim, index);
}

/// Applies `combine(place, value)` to whole slices of `out` at `index` along `dim`, in order. `Sums`: the places may be
/// wider than the values; otherwise it only moves them.
template <bool Sums = false, class Combine>
void into_slices(const char* op, const Tensor& out_, int64_t dim, const Tensor& index, const Tensor& source_,
                 cpu::Negative negative, const Combine& combine) {
  const Tensor out = cpu::at_least_1d(out_);
  Tensor source = cpu::at_least_1d(source_);
  const int64_t d = infer::axis_of(dim, out.dim());
  const cpu::Offsets places = cpu::checked_indices(op, index, out.size(d), d, out, negative);
  if (source.numel() == 0) return;
  const bool row_major = out.contiguous();
  if (row_major) source = ops::contiguous(source);
  const Unlocked unlocked(source.numel() > 32768);
  const PickedBlocks blocks = row_major ? PickedBlocks::along(out, d, places) : PickedBlocks{};
  Shape sizes(out.sizes()), to_strides(out.strides()), from_strides(source.strides());
  for (Shape* s : {&sizes, &to_strides, &from_strides}) s->erase(d);
  const auto visit = [&]<class T, class V>() {
    if (row_major) return cpu::combine_blocks(blocks, out.data<T>(), source.data<V>(), combine);
    Patience patience;
    for (size_t i = 0; i < places.size(); ++i) {
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

}  // namespace

void cpu::add_slices(const char* op, const Tensor& out, int64_t dim, const Tensor& index, const Tensor& source) {
  into_slices<true>(op, out, dim, index, addends(source), cpu::Negative::Refused,
                    []<class T, class V>(T& place, V value) { place = plus(place, T(value)); });
}
void cpu::assign_slices(const char* op, const Tensor& out, int64_t dim, const Tensor& index, const Tensor& source,
                        Negative negative) {
  into_slices(op, out, dim, index, source, negative, Assign{});
}

namespace {

void index_add_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                      const Scalar& alpha);
/// Where an index names few slices, these alone are kept in the totals' dtype meanwhile.
void add_to_few(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                const Scalar& alpha) {
  const Tensor to = cpu::at_least_1d(out), which = cpu::row_major(cpu::at_least_1d(index), DType::Int64);
  const int64_t d = infer::axis_of(dim, to.dim()), n = which.numel();
  cpu::checked_indices("index_add", index, to.size(d), d, to, cpu::Negative::Refused);
  std::vector<int64_t> named(which.data<int64_t>(), which.data<int64_t>() + n);
  std::ranges::sort(named);
  named.erase(std::unique(named.begin(), named.end()), named.end());
  const Tensor distinct = empty(Shape{int64_t(named.size())}, DType::Int64), number = empty(Shape{n}, DType::Int64);
  std::ranges::copy(named, distinct.data<int64_t>());
  for (int64_t i = 0; i < n; ++i)
    number.data<int64_t>()[i] = std::ranges::lower_bound(named, which.data<int64_t>()[i]) - named.begin();
  cpu::start_from(out, self);
  Shape sizes(to.sizes());
  sizes[size_t(d)] = distinct.numel();
  const Tensor slices = empty(sizes, to.dtype());
  cpu::select_slices("index_add", slices, to, d, distinct);
  const Tensor sums = ops::to_dtype(slices, cpu::total_dtype(to.dtype()));
  index_add_kernel(sums, sums, d, number, source, alpha);
  cpu::assign_slices("index_add", to, d, distinct, ops::to_dtype(sums, to.dtype()), cpu::Negative::Refused);
}

void index_add_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                      const Scalar& alpha) {
  if (cpu::sums_apart(out, source.numel())) {
    constexpr int64_t few = 4;
    if (source.numel() < out.numel() / few) return add_to_few(out, self, dim, index, source, alpha);
    return cpu::summed_apart(out, [&](const Tensor& sums) { index_add_kernel(sums, self, dim, index, source, alpha); });
  }
  cpu::start_from(out, self);
  const Tensor scaled = alpha.equal(1.0)
                            ? source
                            : ops::mul(ops::to_dtype(source, out.dtype()), ops::to_dtype(Tensor(alpha), out.dtype()));
  cpu::add_slices("index_add", out, dim, index, scaled);
}
void index_copy_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  cpu::start_from(out, self);
  cpu::assign_slices("index_copy", out, dim, index, source);
}
void index_fill_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  cpu::start_from(out, self);
  Shape sizes(cpu::at_least_1d(out).sizes());
  sizes[infer::axis_of(dim, out.dim())] = index.numel();
  cpu::assign_slices("index_fill", out, dim, index, ops::expand(ops::to_dtype(value, out.dtype()), sizes),
                     cpu::Negative::FromEnd);
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
