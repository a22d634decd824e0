// Blocks of elements that indices pick, in stacks: what selecting, indexing and summing into picked places share.
#pragma once
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "cpu/indexing.h"
#include "taeda/parallel.h"

namespace taeda::cpu {

/// In each stack, `offsets[i]` is where the block of `length` elements begins that block i of the row-major side
/// belongs to.
struct PickedBlocks {
  std::vector<int64_t> stacks;
  Offsets offsets;
  int64_t length = 1;
  bool fits = true;  // whether the picked places are such blocks at all

  struct Run {
    int64_t first, count;
  };
  /// Blocks that lie side by side on both sides; none where they are too few in a run to be worth it.
  std::vector<Run> runs() const {
    std::vector<Run> found;
    const int64_t n = int64_t(offsets.size()), start = std::min<int64_t>(n / 4, 256);
    if (n < 8) return found;
    for (int64_t i = 0; i < n;) {
      int64_t end = i + 1;
      while (end < n && offsets[size_t(end)] == offsets[size_t(end - 1)] + length) ++end;
      if (int64_t(found.size()) >= start + i / 4) return {};
      found.push_back({i, end - i});
      i = end;
    }
    return found;
  }
  int64_t stack_length() const { return int64_t(offsets.size()) * length; }

  /// Those of a plan of advanced indexing.
  static PickedBlocks of(IndexPlan plan) {
    PickedBlocks p;
    const size_t at = size_t(plan.picked_at);
    for (size_t d = plan.rest_sizes.size(); d-- > at;) {
      p.fits &= plan.rest_sizes[d] == 1 || plan.rest_strides[d] == p.length;
      p.length *= plan.rest_sizes[d];
    }
    if (!p.fits) return p;
    p.stacks.push_back(0);
    for (size_t d = 0; d < at;) {
      // With the dimensions behind that go on where it takes its steps.
      int64_t size = plan.rest_sizes[d];
      while (++d < at && plan.rest_strides[d - 1] == plan.rest_strides[d] * plan.rest_sizes[d])
        size *= plan.rest_sizes[d];
      const int64_t step = plan.rest_strides[d - 1];
      std::vector<int64_t> next(p.stacks.size() * size_t(size));
      int64_t* to = next.data();
      for (const int64_t stack : p.stacks)
        for (int64_t k = 0; k < size; ++k) *to++ = stack + k * step;
      p.stacks = std::move(next);
    }
    p.offsets = std::move(plan.offsets);
    return p;
  }
  /// Those of `places` along one dimension of a row-major tensor.
  static PickedBlocks along(const Tensor& t, int64_t dim, Offsets places) {
    PickedBlocks p;
    int64_t outer = 1;
    for (int64_t d = 0; d < dim; ++d) outer *= t.size(d);
    for (int64_t d = dim + 1; d < t.dim(); ++d) p.length *= t.size(d);
    p.stacks.resize(size_t(outer));
    for (int64_t i = 0; i < outer; ++i) p.stacks[size_t(i)] = i * t.size(dim) * p.length;
    p.offsets = p.length == 1 ? std::move(places) : places.times(p.length);
    return p;
  }
};

/// The picked blocks of `in`, one after the other.
template <class T>
void gather_blocks(const PickedBlocks& p, const T* in, T* out) {
  constexpr int64_t grain = (1 << 17) / int64_t(sizeof(T)), short_run = 4;
  const int64_t count = int64_t(p.offsets.size()), length = p.length;
  const auto copy = [](const T* from, int64_t n, T* to) {
    if (n > short_run) std::memcpy(to, from, size_t(n) * sizeof(T));
    else
      for (int64_t j = 0; j < n; ++j) to[j] = from[j];
  };
  const std::vector<PickedBlocks::Run> runs = p.stacks.size() > 1 ? p.runs() : std::vector<PickedBlocks::Run>();
  if (!runs.empty())
    return parallel_for(int64_t(p.stacks.size()), std::max<int64_t>(1, grain / p.stack_length()),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t s = begin; s < end; ++s)
                            for (const auto [first, several] : runs)
                              copy(in + p.stacks[size_t(s)] + p.offsets[size_t(first)], several * length,
                                   out + (s * count + first) * length);
                        });
  parallel_for(int64_t(p.stacks.size()) * count, std::max<int64_t>(1, grain / length), [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t first = begin % count, several = std::min(end - begin, count - first);
      const T* const from = in + p.stacks[size_t(begin / count)];
      const int64_t* const offsets = p.offsets.data() + first;
      T* const to = out + begin * length;
      if (length == 1)
        for (int64_t i = 0; i < several; ++i) to[i] = from[offsets[i]];
      else
        for (int64_t i = 0; i < several; ++i) copy(from + offsets[i], length, to + i * length);
      begin += several;
    }
  });
}

/// Applies `combine(place, value)` to the picked blocks of `out` and the values that stand one after the other, in
/// their order; threads share the stacks.
template <class T, class V, class Combine>
void combine_blocks(const PickedBlocks& p, T* out, const V* values, const Combine& combine) {
  constexpr int64_t grain = 1 << 15;
  const int64_t count = int64_t(p.offsets.size()), length = p.length;
  const std::vector<PickedBlocks::Run> runs = p.runs();
  const auto block = [&](T* to, const V* from, int64_t n) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) combine(to[j], from[j]);
  };
  parallel_for(int64_t(p.stacks.size()), std::max<int64_t>(1, grain / std::max<int64_t>(1, p.stack_length())),
               [&](int64_t begin, int64_t end) {
                 for (int64_t s = begin; s < end; ++s) {
                   T* const to = out + p.stacks[size_t(s)];
                   const V* const from = values + s * count * length;
                   for (const auto [first, several] : runs)
                     block(to + p.offsets[size_t(first)], from + first * length, several * length);
                   if (!runs.empty()) continue;
                   in_blocks(count, [&](int64_t i, int64_t last) {
                     const int64_t* const offsets = p.offsets.data();
                     if (length == 1)
                       for (; i < last; ++i) combine(to[offsets[i]], from[i]);
                     else
                       for (; i < last; ++i) block(to + offsets[i], from + i * length, length);
                   });
                 }
               });
}

}  // namespace taeda::cpu
