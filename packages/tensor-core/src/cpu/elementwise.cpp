// The element-wise engine: straight path for plain operands, else a strided walk with conversion by chunks.
#include "taeda/elementwise.h"

#include <algorithm>
#include <atomic>

#include "cpu/float8.h"
#include "cpu/loops/blocks.h"
#include "cpu/loops/cast.h"
#include "cpu/transposed.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

constexpr int kMax = kMaxLoopOperands;
/// Elements converted at a time: all buffers of a call stay in the first-level cache.
constexpr int64_t kChunk = 512;

using CastRow = const Loop (*)[kDTypeCount];
/// This machine's loops, and the base ones of pairs that have no others. Those of float8 have float32 on the other
/// side.
CastRow make_cast_table() noexcept {
  static const loops::CastTable table = [] {
    loops::CastTable all = loops::cast_table();
    for (int to = 0; to < kDTypeCount; ++to)
      for (int from = 0; from < kDTypeCount; ++from)
        if (!all.rows[to][from]) all.rows[to][from] = loops::least_cast_table().rows[to][from];
    constexpr int single = int(DType::Float32), byte = int(DType::UInt8);
    for (int d = 0; d < kDTypeCount; ++d) {
      if (!is_float8(DType(d))) continue;
      all.rows[d][d] = all.rows[byte][byte];
      all.rows[d][single] = cpu::float8_from_float32(DType(d));
      all.rows[single][d] = cpu::float8_to_float32(DType(d));
    }
    return all;
  }();
  return table.rows;
}
inline CastRow cast_table() noexcept {
  static std::atomic<CastRow> made{nullptr};  // asked in every copy: cheaper to read than a guarded static
  CastRow rows = made.load(std::memory_order_acquire);
  if (!rows) [[unlikely]]
    made.store(rows = make_cast_table(), std::memory_order_release);
  return rows;
}

/// Pairs without a loop of their own, by way of float32.
[[gnu::noinline]] void convert_twice(DType to, DType from, char* const* pair, const int64_t* strides, int64_t n) {
  float between[kChunk];
  constexpr int64_t step = sizeof(float);
  for (int64_t done = 0; done < n; done += kChunk) {
    const int64_t m = std::min(kChunk, n - done);
    char* const first[2] = {reinterpret_cast<char*>(between), pair[1] + done * strides[1]};
    char* const second[2] = {pair[0] + done * strides[0], reinterpret_cast<char*>(between)};
    const int64_t first_steps[2] = {step, strides[1]}, second_steps[2] = {strides[0], step};
    cast_table()[int(DType::Float32)][int(from)](first, first_steps, m, nullptr);
    cast_table()[int(to)][int(DType::Float32)](second, second_steps, m, nullptr);
  }
}

/// Operands reduced to addresses and byte strides; broadcast ones have stride 0.
struct Plain {
  char* data[kMax];
  int64_t strides[kMax];
  alignas(16) char numbers[kMax][16];
};

/// True when every input is one number or lies in memory exactly as the output does.
bool straight(const LoopOperand* operands, int count, int outputs, Plain& plain) {
  const Tensor& out = *operands[0].tensor;
  const int64_t numel = out.numel();
  const bool row_major = out.contiguous();
  if (!row_major && !out.dense()) return false;
  for (int k = 0; k < count; ++k) {
    const Tensor& t = *operands[k].tensor;
    const DType want = operands[k].compute;
    plain.data[k] = t.bytes();
    if (t.numel() == 1 && k >= outputs) {
      plain.strides[k] = 0;
      if (t.dtype() != want) {
        const int64_t none[2] = {0, 0};
        char* const pair[2] = {plain.numbers[k], t.bytes()};
        convert_elements(want, t.dtype(), pair, none, 1);
        plain.data[k] = plain.numbers[k];
      }
      continue;
    }
    if (t.dtype() != want || t.numel() != numel) return false;
    if (row_major ? !t.contiguous()
                  : !std::ranges::equal(t.sizes(), out.sizes()) || !std::ranges::equal(t.strides(), out.strides()))
      return false;
    plain.strides[k] = item_size(want);
  }
  return true;
}

/// The walk over dimensions, innermost first.
struct Walk {
  int ndim = 0, count = 0, outputs = 1;
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxDims][kMax];  // bytes
  char* base[kMax];
  DType dtype[kMax], compute[kMax];
  bool converts = false;
  bool joins = false;     // short runs go together, as of class Rows
  uint32_t gathered = 0;  // bits of inputs that are brought together first, as those that are converted are

  bool direct(int k) const { return dtype[k] == compute[k] && !(gathered >> k & 1); }
};

void add_dims(Walk& walk, const LoopOperand* operands) {
  const Tensor& out = *operands[0].tensor;
  const int64_t *sizes[kMax], *strides[kMax];
  int64_t missing[kMax], bytes[kMax];
  for (int k = 0; k < walk.count; ++k) {
    const Tensor& t = *operands[k].tensor;
    missing[k] = out.dim() - t.dim(), bytes[k] = t.item_bytes();
    sizes[k] = t.sizes().data(), strides[k] = t.strides().data();
  }
  for (int64_t d = out.dim() - 1; d >= 0; --d) {
    if (sizes[0][d] == 1) continue;
    const int n = walk.ndim++;
    walk.sizes[n] = sizes[0][d];
    for (int k = 0; k < walk.count; ++k) {
      const int64_t own = d - missing[k];
      walk.strides[n][k] = own < 0 || sizes[k][own] == 1 ? 0 : strides[k][own] * bytes[k];
    }
  }
}

/// Smallest strides first, so that the inner loop runs along memory: the output decides, then the inputs in order.
bool goes_inside(const Walk& walk, int a, int b) {
  for (int k = 0; k < walk.count; ++k) {
    const int64_t x = std::abs(walk.strides[a][k]), y = std::abs(walk.strides[b][k]);
    if (x == y || x == 0 || y == 0) continue;
    return x < y;
  }
  return false;
}
void swap_dims(Walk& walk, int a, int b) {
  std::swap(walk.sizes[a], walk.sizes[b]);
  std::swap(walk.strides[a], walk.strides[b]);
}
void order_dims(Walk& walk) {
  for (int i = 1; i < walk.ndim; ++i)
    for (int j = i; j > 0 && goes_inside(walk, j, j - 1); --j) swap_dims(walk, j, j - 1);
}
void merge_dims(Walk& walk) {
  if (walk.ndim == 0) {  // one element
    walk.ndim = 1;
    walk.sizes[0] = 1;
    std::fill_n(walk.strides[0], kMax, 0);
    return;
  }
  int last = 0;
  for (int d = 1; d < walk.ndim; ++d) {
    bool fits = true;
    for (int k = 0; k < walk.count && fits; ++k) fits = walk.strides[d][k] == walk.strides[last][k] * walk.sizes[last];
    if (fits) {
      walk.sizes[last] *= walk.sizes[d];
    } else if (++last != d) {
      walk.sizes[last] = walk.sizes[d];
      std::copy_n(walk.strides[d], kMax, walk.strides[last]);
    }
  }
  walk.ndim = last + 1;
}

/// Runs of a few elements cost more than they do: a long dimension that comes next goes inside instead.
void lengthen_runs(Walk& walk) {
  constexpr int64_t few = 4, many = 16;
  if (walk.ndim > 1 && walk.sizes[0] <= few && walk.sizes[1] >= many) swap_dims(walk, 0, 1);
}

/// Whether inputs run along memory in another dimension than the output, as those of a transposed matrix do: they are
/// marked, and that dimension goes next to the innermost one.
bool is_turned(Walk& walk) {
  constexpr int64_t line = 64, least = 16;
  int turned = 0;
  for (int k = walk.outputs; k < walk.count; ++k) {
    if (std::abs(walk.strides[0][k]) < line) continue;
    for (int d = 1; d < walk.ndim; ++d)
      if (walk.strides[d][k] == item_size(walk.dtype[k]) && walk.sizes[d] >= least) {
        walk.gathered |= uint32_t(1) << k;
        if (!turned) turned = d;
      }
  }
  for (int d = turned; d > 1; --d) swap_dims(walk, d, d - 1);
  walk.converts |= walk.gathered != 0;
  return turned != 0;
}
/// Takes the first `n` of the innermost dimension away from `walk`, as a walk of their own.
Walk take_off(Walk& walk, int64_t n) {
  Walk taken = walk;
  taken.sizes[0] = n;
  walk.sizes[0] -= n;
  for (int k = 0; k < walk.count; ++k) walk.base[k] += n * walk.strides[0][k];
  return taken;
}
/// Runs of `block` elements, one below the other, before the next ones to the right.
void walk_in_stripes(Walk& walk, int64_t block) {
  const int outermost = walk.ndim++;
  walk.sizes[outermost] = walk.sizes[0] / block;
  walk.sizes[0] = block;
  for (int k = 0; k < walk.count; ++k) walk.strides[outermost][k] = walk.strides[0][k] * block;
}

/// One run along the innermost dimension with operands converted through stack buffers.
void run_converted(const Walk& walk, Loop loop, const LoopParams* params, char* const* data, int64_t n) {
  alignas(64) char buffers[kMax][kChunk * 16];
  char* at[kMax];
  int64_t steps[kMax];
  const int64_t* strides = walk.strides[0];
  for (int64_t done = 0; done < n; done += kChunk) {
    const int64_t m = std::min(kChunk, n - done);
    for (int k = 0; k < walk.count; ++k) {
      char* place = data[k] + done * strides[k];
      if (walk.direct(k)) {
        at[k] = place;
        steps[k] = strides[k];
        continue;
      }
      at[k] = buffers[k];
      const int64_t size = item_size(walk.compute[k]);
      const bool repeated = strides[k] == 0 && k >= walk.outputs;
      steps[k] = repeated ? 0 : size;
      if (k < walk.outputs) continue;
      char* const pair[2] = {buffers[k], place};
      const int64_t pair_strides[2] = {size, strides[k]};
      convert_elements(walk.compute[k], walk.dtype[k], pair, pair_strides, repeated ? 1 : m);
    }
    loop(at, steps, m, params);
    for (int k = 0; k < walk.outputs; ++k) {
      if (walk.direct(k)) continue;
      char* const pair[2] = {data[k] + done * strides[k], buffers[k]};
      const int64_t pair_strides[2] = {strides[k], item_size(walk.compute[k])};
      convert_elements(walk.dtype[k], walk.compute[k], pair, pair_strides, m);
    }
  }
}

/// Short runs that follow each other along the second dimension, as one: each of them alone would cost more in calls
/// than in conversions.
class Rows {
 public:
  Rows(const Walk& walk, Loop loop, const LoopParams* params) : walk_(walk), loop_(loop), params_(params) {}

  /// How many runs of `left` elements are worth it, from place `index` of the second dimension on; fewer than 2: none.
  int64_t count(int64_t index, int64_t left) const {
    return walk_.ndim < 2 ? 0 : std::min({walk_.sizes[1] - index, left / walk_.sizes[0], kChunk / walk_.sizes[0]});
  }
  void run(char* const* data, int64_t rows) {
    const int64_t n = walk_.sizes[0];
    char* at[kMax];
    int64_t steps[kMax];
    for (int k = 0; k < walk_.count; ++k) {
      const int64_t inner = walk_.strides[0][k], outer = walk_.strides[1][k], size = item_size(walk_.compute[k]);
      const bool follows = outer == inner * n, as_it_is = walk_.dtype[k] == walk_.compute[k];
      at[k] = buffers_[k];
      steps[k] = size;
      if (as_it_is && follows && inner == size) at[k] = data[k];
      else if (k < walk_.outputs) continue;
      else if (inner == 0 && outer == 0) fetch(k, data[k], 0, 1), steps[k] = 0;
      else if (follows) fetch(k, data[k], inner, rows * n);
      else if (inner == 0) spread(k, data[k], outer, rows);
      else if (outer == 0) repeat(k, data[k], inner, rows);
      else
        for (int64_t r = 0; r < rows; ++r) fetch(k, data[k] + r * outer, inner, n, r * n);
    }
    loop_(at, steps, rows * n, params_);
    for (int k = 0; k < walk_.outputs; ++k) {
      if (at[k] == data[k]) continue;
      const int64_t inner = walk_.strides[0][k], outer = walk_.strides[1][k], size = item_size(walk_.compute[k]);
      const bool follows = outer == inner * n;
      const int64_t strides[2] = {inner, size};
      for (int64_t r = 0; r < (follows ? 1 : rows); ++r) {
        char* const pair[2] = {data[k] + r * outer, buffers_[k] + r * n * size};
        convert_elements(walk_.dtype[k], walk_.compute[k], pair, strides, follows ? rows * n : n);
      }
    }
  }

 private:
  /// `n` elements of operand k into its buffer, from element `to` on.
  void fetch(int k, char* from, int64_t stride, int64_t n, int64_t to = 0) {
    const int64_t size = item_size(walk_.compute[k]), strides[2] = {size, stride};
    char* const pair[2] = {buffers_[k] + to * size, from};
    convert_elements(walk_.compute[k], walk_.dtype[k], pair, strides, n);
  }
  /// One element for each row.
  void spread(int k, char* from, int64_t stride, int64_t rows) {
    const int64_t size = item_size(walk_.compute[k]), n = walk_.sizes[0], strides[2] = {size, 0};
    alignas(64) char numbers[kChunk * 16];
    char* const pair[2] = {numbers, from};
    const int64_t fetched[2] = {size, stride};
    convert_elements(walk_.compute[k], walk_.dtype[k], pair, fetched, rows);
    for (int64_t r = 0; r < rows; ++r) {
      char* const row[2] = {buffers_[k] + r * n * size, numbers + r * size};
      convert_elements(walk_.compute[k], walk_.compute[k], row, strides, n);
    }
  }
  /// The same row each time.
  void repeat(int k, char* from, int64_t stride, int64_t rows) {
    const int64_t bytes = walk_.sizes[0] * int64_t(item_size(walk_.compute[k]));
    if (from == repeated_[k] && rows <= times_[k]) return;
    fetch(k, from, stride, walk_.sizes[0]);
    for (int64_t r = 1; r < rows; ++r) std::memcpy(buffers_[k] + r * bytes, buffers_[k], size_t(bytes));
    repeated_[k] = from;
    times_[k] = rows;
  }

  const Walk& walk_;
  Loop loop_;
  const LoopParams* params_;
  const char* repeated_[kMax] = {};
  int64_t times_[kMax] = {};
  // At different places of a page, so that what is read does not wait for what was written at the same ones.
  alignas(64) char buffers_[kMax][kChunk * 16 + 320];
};

/// Elements [begin, end) of the walk's own order.
void run_range(const Walk& walk, Loop loop, const LoopParams* params, int64_t begin, int64_t end) {
  int64_t index[kMaxDims];
  char* data[kMax];
  std::copy_n(walk.base, walk.count, data);
  std::fill_n(index, walk.ndim, 0);
  int64_t rest = begin;
  for (int d = 0; rest != 0; ++d) {
    index[d] = rest % walk.sizes[d];
    rest /= walk.sizes[d];
    for (int k = 0; k < walk.count; ++k) data[k] += index[d] * walk.strides[d][k];
  }
  // Behind so many whole runs.
  const auto advance = [&](int64_t runs) {
    for (int d = 1; d < walk.ndim; ++d, runs = 1) {
      for (int k = 0; k < walk.count; ++k) data[k] += runs * walk.strides[d][k];
      if ((index[d] += runs) < walk.sizes[d]) break;
      index[d] = 0;
      for (int k = 0; k < walk.count; ++k) data[k] -= walk.sizes[d] * walk.strides[d][k];
    }
  };
  Rows rows(walk, loop, params);
  for (;;) {
    if (walk.joins && index[0] == 0) {
      if (const int64_t count = rows.count(index[1], end - begin); count > 1) {
        rows.run(data, count);
        if ((begin += count * walk.sizes[0]) >= end) return;
        advance(count);
        continue;
      }
    }
    const int64_t n = std::min(walk.sizes[0] - index[0], end - begin);
    if (walk.converts) run_converted(walk, loop, params, data, n);
    else loop(data, walk.strides[0], n, params);
    if ((begin += n) >= end) return;
    if (index[0] != 0) {  // only the first run begins in the middle
      for (int k = 0; k < walk.count; ++k) data[k] -= index[0] * walk.strides[0][k];
      index[0] = 0;
    }
    advance(1);
  }
}

/// Whether short runs are better taken together: where they are converted, or where all operands but some short row
/// that comes again each time go on from one to the next, as where a number for each channel meets images whose
/// channels lie side by side.
bool joins_runs(const Walk& walk) {
  constexpr int64_t shortest = 64;
  if (walk.ndim < 2) return false;
  const int64_t n = walk.sizes[0];
  if (walk.converts) return n <= kChunk / 2;
  if (n > shortest) return false;
  for (int k = 0; k < walk.count; ++k) {
    const int64_t inner = walk.strides[0][k], outer = walk.strides[1][k], size = item_size(walk.dtype[k]);
    const bool comes_again = k >= walk.outputs && outer == 0, follows = inner == size && outer == n * size;
    if (!comes_again && !follows) return false;
  }
  return true;
}

/// Whether a loop must not end half way: in place on a tensor that takes a fraction of a second.
bool stays_whole(const LoopOperand* operands, int count, int64_t numel) {
  bool in_place = false;
  for (int k = 1; k < count; ++k) in_place |= operands[k].tensor->bytes() == operands[0].tensor->bytes();
  return in_place && numel < (int64_t(1) << 24);
}

[[gnu::noinline]] void walk_all(Loop loop, const LoopParams* params, const LoopOperand* operands, int count,
                                int outputs) {
  Walk walk;
  walk.count = count;
  walk.outputs = outputs;
  for (int k = 0; k < count; ++k) {
    walk.base[k] = operands[k].tensor->bytes();
    walk.dtype[k] = operands[k].tensor->dtype();
    walk.compute[k] = operands[k].compute;
    walk.converts |= walk.dtype[k] != walk.compute[k];
  }
  add_dims(walk, operands);
  order_dims(walk);
  merge_dims(walk);
  lengthen_runs(walk);
  walk.joins = joins_runs(walk);
  const int64_t numel = operands[0].tensor->numel();
  if (numel <= kLoopGrain) return run_range(walk, loop, params, 0, numel);
  const Unlocked unlocked(true);
  const Uninterrupted whole(stays_whole(operands, count, numel));
  const auto run = [&](const Walk& part) {
    int64_t elements = 1;
    for (int d = 0; d < part.ndim; ++d) elements *= part.sizes[d];
    parallel_for(elements, kLoopGrain, [&](int64_t begin, int64_t end) { run_range(part, loop, params, begin, end); });
  };
  // As long as the cache lines of a stripe stay, each is read once.
  constexpr int64_t stripe = 64;
  if (walk.ndim < kMaxDims && walk.sizes[0] >= 2 * stripe && is_turned(walk)) {
    walk.joins = false;
    if (const int64_t rest = walk.sizes[0] % stripe) run(take_off(walk, rest));
    walk_in_stripes(walk, stripe);
  }
  run(walk);
}

}  // namespace

void run_loop(Loop loop, const LoopParams* params, std::initializer_list<LoopOperand> list, int outputs) {
  const LoopOperand* operands = list.begin();
  const int count = int(list.size());
  const int64_t numel = operands[0].tensor->numel();
  if (numel == 0) return;
  Plain plain;
  if (!straight(operands, count, outputs, plain)) return walk_all(loop, params, operands, count, outputs);
  if (numel <= kLoopGrain) return loop(plain.data, plain.strides, numel, params);
  const Unlocked unlocked(true);
  const Uninterrupted whole(stays_whole(operands, count, numel));
  parallel_for(numel, kLoopGrain, [&](int64_t begin, int64_t end) {
    char* data[kMax];
    for (int k = 0; k < count; ++k) data[k] = plain.data[k] + begin * plain.strides[k];
    loop(data, plain.strides, end - begin, params);
  });
}

namespace {

constexpr int64_t kFewApart = 16;

/// Elements that lie apart are brought together first: what converts vectors of them takes much less time.
[[gnu::noinline]] void convert_apart(Loop loop, int64_t size, char* const* pair, const int64_t* strides, int64_t n) {
  constexpr int64_t most = 256;
  alignas(64) char gathered[most * sizeof(Complex128)];
  const int64_t steps[2] = {strides[0], size};
  for (int64_t done = 0; done < n; done += most) {
    const int64_t m = std::min(most, n - done);
    loops::gather(gathered, pair[1] + done * strides[1], strides[1], size, m);
    char* const at[2] = {pair[0] + done * strides[0], gathered};
    loop(at, steps, m, nullptr);
  }
}

}  // namespace

void convert_elements(DType to, DType from, char* const* pair, const int64_t* strides, int64_t n) {
  if (const Loop loop = cast_table()[int(to)][int(from)]) [[likely]] {
    const int64_t size = item_size(from);
    if (strides[1] == size || strides[1] == 0 || to == from || n < kFewApart) [[likely]]
      return loop(pair, strides, n, nullptr);
    return convert_apart(loop, size, pair, strides, n);
  }
  convert_twice(to, from, pair, strides, n);
}

namespace {

/// Copies where the output and the input run along memory in two different dimensions, as between images whose channels
/// come first and last: in tiles of both. False where it is no such copy, or too small to be worth it.
bool copy_turned(const Tensor& out, const Tensor& in) {
  constexpr int64_t least = 4096, shortest = 8;
  const int64_t item = out.item_bytes();
  if (out.numel() < least || out.dtype() != in.dtype() || out.numel() != in.numel()) return false;
  Walk walk;
  walk.count = 2;
  const LoopOperand operands[] = {{&out, out.dtype()}, {&in, in.dtype()}};
  add_dims(walk, operands);
  order_dims(walk);
  merge_dims(walk);
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
  if (copy_turned(out, in)) return;
  if (const Loop direct = cast_table()[int(out.dtype())][int(in.dtype())]) [[likely]]
    return run_loop(direct, nullptr, {{&out, out.dtype()}, {&in, in.dtype()}});
  // The engine brings the other side of a float8 to and from float32.
  const DType to = is_float8(out.dtype()) ? out.dtype() : DType::Float32;
  const DType from = is_float8(out.dtype()) ? DType::Float32 : in.dtype();
  run_loop(cast_table()[int(to)][int(from)], nullptr, {{&out, to}, {&in, from}});
}

Scalar scalar_of(const Tensor& one) {
  if (is_float8(one.dtype())) {
    float wide = 0;
    const int64_t none[2] = {0, 0};
    char* const pair[2] = {reinterpret_cast<char*>(&wide), one.bytes()};
    convert_elements(DType::Float32, one.dtype(), pair, none, 1);
    return Scalar(double(wide));
  }
  return visit_dtype(one.dtype(), [&]<class T>() -> Scalar {
    const T value = *one.data<T>();
    if constexpr (std::is_same_v<T, bool>) return Scalar(value);
    else if constexpr (std::is_same_v<T, uint64_t>) return Scalar(value);
    else if constexpr (std::is_integral_v<T>) return Scalar(int64_t(value));
    else if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>)
      return Scalar(std::complex<double>(value));
    else return Scalar(double(value));
  });
}

void store_scalar(void* place, DType d, const Scalar& value) {
  visit_dtype(d, [&]<class T>() { *static_cast<T*>(place) = value.to<T>(); });
}

}  // namespace taeda
