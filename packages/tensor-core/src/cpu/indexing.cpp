// Plans of advanced indexing and block copies.
#include "cpu/indexing.h"

#include <array>

#include "infer/index.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/index.h"
#include "taeda/ops/shape.h"
#include "taeda/texts.h"

namespace taeda::cpu {
namespace {

struct Picked {
  int64_t dim;   // of self
  Tensor index;  // int64
};

/// Integer tensors stay, masks become one index tensor for each dimension they span.
std::vector<Picked> resolve(TensorList indices) {
  std::vector<Picked> out;
  int64_t dim = 0;
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      ++dim;
      continue;
    }
    if (infer::is_mask(index)) {
      const Tensor places = ops::nonzero(index);
      for (int64_t k = 0; k < index.dim(); ++k) out.push_back({dim + k, ops::select(places, 1, k)});
      dim += index.dim();
      continue;
    }
    out.push_back({dim++, ops::to_dtype(index, DType::Int64)});
  }
  return out;
}

/// Adds `step` times each entry, checked and brought into [0, size), to `offsets`, which grows to their number.
void add_offsets(std::vector<int64_t>& offsets, const char* op, const Tensor& index, int64_t size, int64_t dim,
                 int64_t step, Negative negative = Negative::FromEnd) {
  const int64_t least = negative == Negative::FromEnd ? -size : 0;
  const Tensor plain = ops::contiguous(ops::to_dtype(index, DType::Int64));
  const int64_t* const from = plain.data<int64_t>();
  offsets.reserve(size_t(plain.numel()));
  in_blocks(plain.numel(), [&](int64_t begin, int64_t end) {
    if (offsets.size() < size_t(end)) offsets.resize(size_t(end));
    int64_t* const to = offsets.data();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t v = from[i];
      if (v < least || v >= size) [[unlikely]]
        fail(ErrorKind::Index, op, ": argument 'index' at position ", i, ": ", out_of_bounds(v, dim, size));
      to[i] += (v < 0 ? v + size : v) * step;
    }
  });
}

}  // namespace

/// Four at a time, which become vector instructions on any processor.
bool plain_indices(const int64_t* index, int64_t count, int64_t size, int64_t step) {
  std::array<uint64_t, 4> signs{};
  const uint64_t last = uint64_t(size) - 1;
  if (step != 1) {
    for (int64_t i = 0; i < count; ++i) signs[0] |= uint64_t(index[i * step]) | (last - uint64_t(index[i * step]));
    return !(signs[0] >> 63);
  }
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (size_t k = 0; k < 4; ++k)
      signs[k] |= uint64_t(index[i + int64_t(k)]) | (last - uint64_t(index[i + int64_t(k)]));
  for (; i < count; ++i) signs[0] |= uint64_t(index[i]) | (last - uint64_t(index[i]));
  return !((signs[0] | signs[1] | signs[2] | signs[3]) >> 63);
}

Offsets checked_indices(const char* op, const Tensor& index, int64_t size, int64_t dim, const Tensor& target,
                        Negative negative) {
  if (index.dtype() == DType::Int64 && index.contiguous() &&
      index.impl()->storage.get() != target.impl()->storage.get() &&
      plain_indices(index.data<int64_t>(), index.numel(), size))
    return Offsets(index);
  std::vector<int64_t> out;
  add_offsets(out, op, index, size, dim, 1, negative);
  return out;
}

IndexPlan plan_index(const char* op, const Tensor& self, TensorList indices) {
  const std::vector<Picked> picked = resolve(indices);
  IndexPlan plan;
  uint64_t used = 0;
  for (const Picked& p : picked) {
    plan.picked = infer::index_shapes(plan.picked, p.index.sizes(), op);
    used |= uint64_t(1) << p.dim;
  }
  // NumPy's rule: index tensors side by side keep their place, separated ones move to the front.
  bool adjacent = true;
  for (size_t i = 1; i < picked.size(); ++i) adjacent = adjacent && picked[i].dim == picked[i - 1].dim + 1;
  plan.picked_at = adjacent && !picked.empty() ? picked[0].dim : 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (used >> d & 1) continue;
    plan.rest_sizes.push_back(self.size(d));
    plan.rest_strides.push_back(self.stride(d));
  }
  for (int64_t d = 0; d < plan.picked_at; ++d) plan.result.push_back(plan.rest_sizes[d]);
  for (int64_t size : plan.picked) plan.result.push_back(size);
  for (size_t d = size_t(plan.picked_at); d < plan.rest_sizes.size(); ++d) plan.result.push_back(plan.rest_sizes[d]);
  if (picked.size() == 1 && self.stride(picked[0].dim) == 1) {
    plan.offsets =
        checked_indices(op, picked[0].index, self.size(picked[0].dim), picked[0].dim, self, Negative::FromEnd);
    return plan;
  }
  if (picked.empty()) plan.offsets.own().push_back(0);
  for (const Picked& p : picked)
    add_offsets(plan.offsets.own(), op, ops::expand(p.index, plan.picked), self.size(p.dim), p.dim, self.stride(p.dim));
  return plan;
}

namespace {

template <class T>
void copy_apart(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_step, from + i * from_step, sizeof(T));
}
/// Runs of bytes that lie some bytes apart on either side.
void copy_runs(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n, int64_t run) {
  switch (run) {
    case 1: return copy_apart<uint8_t>(to, to_step, from, from_step, n);
    case 2: return copy_apart<uint16_t>(to, to_step, from, from_step, n);
    case 4: return copy_apart<uint32_t>(to, to_step, from, from_step, n);
    case 8: return copy_apart<uint64_t>(to, to_step, from, from_step, n);
    case 16: return copy_apart<Complex128>(to, to_step, from, from_step, n);
    default:
      for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_step, from + i * from_step, size_t(run));
  }
}

}  // namespace

void copy_block(char* to, IntSpan to_strides, const char* from, IntSpan from_strides, IntSpan sizes, int64_t item) {
  // Dimensions that are contiguous in both from the right go as one run of bytes.
  int64_t run = item;
  size_t n = sizes.size();
  while (n > 0 && (sizes[n - 1] == 1 || (to_strides[n - 1] * item == run && from_strides[n - 1] * item == run)))
    run *= sizes[--n];
  if (n == 0) {
    std::memcpy(to, from, size_t(run));
    return;
  }
  const int64_t count = sizes[n - 1], to_step = to_strides[n - 1] * item, from_step = from_strides[n - 1] * item;
  if (--n == 0) return copy_runs(to, to_step, from, from_step, count, run);
  for_each_offset<2>(sizes.first(n), {to_strides.first(n), from_strides.first(n)},
                     [&](const auto& offset, const auto&) {
                       copy_runs(to + offset[0] * item, to_step, from + offset[1] * item, from_step, count, run);
                     });
}

}  // namespace taeda::cpu
