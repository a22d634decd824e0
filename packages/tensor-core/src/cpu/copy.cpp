// Copies between tensors of any layout.
#include <algorithm>
#include <cstring>

#include "cpu/conversion.h"
#include "cpu/runs.h"
#include "cpu/transposed.h"
#include "cpu/walk.h"
#include "taeda/elementwise.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::cast_table;
using cpu::Ends;
using cpu::Pieces;
using cpu::Walk;
using cpu::Whole;

/// Elements that go down from `from` on, as those of flipped images do.
template <class T>
struct Reversed {
  static void copy(char* to, const char* from, int64_t bytes) {
    constexpr int64_t size = sizeof(T), lanes = 16 / size;
    typedef T Vector __attribute__((vector_size(16)));
    const int64_t n = bytes / size;
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      Vector v;
      std::memcpy(&v, from - (i + lanes - 1) * size, 16);
      if constexpr (lanes == 4) v = __builtin_shufflevector(v, v, 3, 2, 1, 0);
      else v = __builtin_shufflevector(v, v, 1, 0);
      std::memcpy(to + i * size, &v, 16);
    }
    for (; i < n; ++i) std::memcpy(to + i * size, from - i * size, size);
  }
};

/// Calls `body(where a run goes, where it comes from)` for the runs [begin, end) of the innermost dimension.
template <class Body>
void for_runs(const Walk& walk, int64_t begin, int64_t end, const Body& body) {
  int64_t index[kMaxDims];
  char* to = walk.base[0];
  const char* from = walk.base[1];
  int64_t rest = begin;
  for (int d = 1; d < walk.ndim; ++d) {
    index[d] = d + 1 < walk.ndim ? rest % walk.sizes[d] : rest;
    to += index[d] * walk.strides[d][0], from += index[d] * walk.strides[d][1];
    rest /= walk.sizes[d];
  }
  const int64_t to_step = walk.strides[1][0], from_step = walk.strides[1][1];
  for (int64_t run = begin; run < end;) {
    const int64_t count = std::min(end - run, walk.sizes[1] - index[1]);
    for (int64_t i = 0; i < count; ++i) body(to + i * to_step, from + i * from_step);
    if ((run += count) == end) return;
    to -= index[1] * to_step, from -= index[1] * from_step;
    index[1] = 0;
    for (int d = 2; d < walk.ndim; ++d) {
      to += walk.strides[d][0], from += walk.strides[d][1];
      if (++index[d] < walk.sizes[d]) break;
      to -= walk.sizes[d] * walk.strides[d][0], from -= walk.sizes[d] * walk.strides[d][1];
      index[d] = 0;
    }
  }
}
/// Each contiguous in the result, and in the source or, reversed, downwards.
template <class Run>
void copy_some_runs(const Walk& walk, int64_t bytes, int64_t begin, int64_t end) {
  for_runs(walk, begin, end, [=](char* to, const char* from) { Run::copy(to, from, bytes); });
}
/// Elements that lie apart on one side at least.
template <class T>
void copy_some_apart(const Walk& walk, int64_t begin, int64_t end) {
  const int64_t n = walk.sizes[0], to_inner = walk.strides[0][0], from_inner = walk.strides[0][1];
  for_runs(walk, begin, end, [=](char* to, const char* from) {
    for (int64_t j = 0; j < n; ++j) std::memcpy(to + j * to_inner, from + j * from_inner, sizeof(T));
  });
}
/// Copies of short rows of such elements; of the shortest, a longer dimension nearby goes inside. False where there are
/// no such.
bool copy_apart(Walk walk, const Tensor& out) {
  constexpr int64_t longest = 24, few = 4, many = 8;
  if (walk.ndim < 2 || walk.sizes[0] > longest) return false;
  if (walk.sizes[0] <= few) {
    const auto is_long = [&](int d) { return walk.ndim > d && walk.sizes[d] >= many; };
    if (is_long(1)) cpu::swap_dims(walk, 0, 1);
    else if (is_long(2)) cpu::swap_dims(walk, 0, 2);
  }
  const Unlocked unlocked(out.numel() > kLoopGrain);
  parallel_for(out.numel() / walk.sizes[0], std::max<int64_t>(1, kLoopGrain / walk.sizes[0]),
               [&](int64_t begin, int64_t end) {
                 switch (out.item_bytes()) {
                   case 1: return copy_some_apart<uint8_t>(walk, begin, end);
                   case 2: return copy_some_apart<uint16_t>(walk, begin, end);
                   case 4: return copy_some_apart<uint32_t>(walk, begin, end);
                   case 8: return copy_some_apart<uint64_t>(walk, begin, end);
                   default: return copy_some_apart<Complex128>(walk, begin, end);
                 }
               });
  return true;
}
/// How runs of so many bytes are copied; null where the loops of conversions do it as well.
auto run_copier(int64_t bytes, int64_t item, bool reversed) -> decltype(&copy_some_runs<Whole>) {
  constexpr int64_t longest = 4096;
  if (reversed)
    return item == 4 ? copy_some_runs<Reversed<uint32_t>> : item == 8 ? copy_some_runs<Reversed<uint64_t>> : nullptr;
  if (bytes > longest) return nullptr;
  return cpu::with_run_of(bytes, [](auto run) { return copy_some_runs<decltype(run)>; });
}
/// Copies of runs that are too short for calls, as of slices and of parts of rows, or reversed. False where there are
/// no such.
bool copy_runs(const Walk& walk, const Tensor& out) {
  const int64_t item = out.item_bytes(), bytes = walk.sizes[0] * item, step = walk.strides[0][1];
  if (walk.ndim < 2 || walk.sizes[0] < 2 || walk.strides[0][0] != item || (step != item && step != -item)) return false;
  const auto some = run_copier(bytes, item, step < 0);
  if (!some) return false;
  const Unlocked unlocked(out.numel() > kLoopGrain);
  parallel_for(out.numel() / walk.sizes[0], std::max<int64_t>(1, kLoopGrain / walk.sizes[0]),
               [&](int64_t begin, int64_t end) { some(walk, bytes, begin, end); });
  return true;
}

/// Copies where the output and the input run along memory in two different dimensions, as between images whose channels
/// come first and last: in tiles of both. False where it is no such copy, or too small to be worth it.
bool copy_turned(const Walk& walk, const Tensor& out, const Tensor& in) {
  constexpr int64_t least = 4096, shortest = 8;
  const int64_t item = out.item_bytes();
  if (out.numel() < least) return false;
  int row = 1;  // the dimension in which the input's elements lie side by side
  while (row < walk.ndim && walk.strides[row][1] != item) ++row;
  if (row >= walk.ndim || walk.strides[0][0] != item || walk.strides[0][1] < item || walk.strides[row][0] < item)
    return false;
  const int64_t rows = walk.sizes[row], columns = walk.sizes[0], matrices = out.numel() / (rows * columns);
  if (rows < shortest || columns < shortest) return false;
  const Unlocked unlocked(out.numel() > kLoopGrain);
  const auto copy = [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m) {
      char* to = out.bytes();
      const char* from = in.bytes();
      int64_t rest = m;
      for (int d = 1; d < walk.ndim; ++d) {
        if (d == row) continue;
        to += rest % walk.sizes[d] * walk.strides[d][0];
        from += rest % walk.sizes[d] * walk.strides[d][1];
        rest /= walk.sizes[d];
      }
      cpu::copy_transposed(to, from, rows, columns, walk.strides[row][0] / item, walk.strides[0][1] / item, item);
    }
  };
  if (rows * columns >= kLoopGrain) copy(0, matrices);  // a large matrix is divided among threads itself
  else parallel_for(matrices, std::max<int64_t>(1, kLoopGrain / (rows * columns)), copy);
  return true;
}

}  // namespace

void copy_elements(const Tensor& out, const Tensor& in) {
  if (out.numel() == 0) return;
  if (out.dtype() == in.dtype() && out.contiguous() && in.contiguous() && out.numel() == in.numel() &&
      out.numel() <= kLoopGrain) {
    std::memmove(out.bytes(), in.bytes(), size_t(out.numel() * out.item_bytes()));
    return;
  }
  constexpr int64_t least = 128;  // fewer elements are copied while it is looked for a way
  if (out.dtype() == in.dtype() && out.numel() == in.numel() && out.numel() >= least) {
    Walk walk;
    walk.count = 2;
    const LoopOperand operands[] = {{&out, out.dtype()}, {&in, in.dtype()}};
    add_dims(walk, operands);
    order_dims(walk);
    merge_dims(walk);
    walk.base[0] = out.bytes(), walk.base[1] = in.bytes();
    if (copy_turned(walk, out, in) || copy_runs(walk, out) || copy_apart(walk, out)) return;
  }
  if (const Loop direct = cast_table()[int(out.dtype())][int(in.dtype())]) [[likely]]
    return run_loop(direct, nullptr, {{&out, out.dtype()}, {&in, in.dtype()}});
  // The engine brings the other side of a float8 to and from float32.
  const DType to = is_float8(out.dtype()) ? out.dtype() : DType::Float32;
  const DType from = is_float8(out.dtype()) ? DType::Float32 : in.dtype();
  run_loop(cast_table()[int(to)][int(from)], nullptr, {{&out, to}, {&in, from}});
}

}  // namespace taeda
