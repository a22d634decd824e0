// The element-wise engine: straight path for plain operands, else a strided walk with conversion by chunks.
#include "taeda/elementwise.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "cpu/loops/turned.h"
#include "cpu/runs.h"
#include "cpu/scratch.h"
#include "cpu/walk.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::add_dims;
using cpu::kChunk;
using cpu::merge_dims;
using cpu::order_dims;
using cpu::swap_dims;
using cpu::Walk;

constexpr int kMax = kMaxLoopOperands;

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

/// Runs of a few elements cost more than they do: a long dimension that comes next goes inside instead.
void lengthen_runs(Walk& walk) {
  constexpr int64_t few = 4, many = 16;
  if (walk.ndim > 1 && walk.sizes[0] <= few && walk.sizes[1] >= many) swap_dims(walk, 0, 1);
}

/// Whether inputs run along memory in another dimension than the output, as those of a transposed matrix do: they are
/// marked, and that dimension goes next to the innermost one.
bool is_turned(Walk& walk) {
  constexpr int64_t line = 64, least = 8;
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
  walk.tiles = turned != 0;
  for (int k = 0; k < walk.count; ++k)
    walk.tiles &=
        walk.direct(k) || (walk.dtype[k] == walk.compute[k] && walk.strides[1][k] == item_size(walk.dtype[k]));
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

// Of an operand's chunk. At different places of a page, so that what is read does not wait for what was written at the
// same ones.
constexpr int64_t kBuffer = kChunk * 16 + 320;

/// One run along the innermost dimension with operands converted through buffers.
void run_converted(const Walk& walk, Loop loop, const LoopParams* params, char* const* data, int64_t n, char* room) {
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
      char* const buffer = at[k] = room + k * kBuffer;
      const int64_t size = item_size(walk.compute[k]);
      const bool repeated = strides[k] == 0 && k >= walk.outputs;
      steps[k] = repeated ? 0 : size;
      if (k < walk.outputs) continue;
      char* const pair[2] = {buffer, place};
      const int64_t pair_strides[2] = {size, strides[k]};
      convert_elements(walk.compute[k], walk.dtype[k], pair, pair_strides, repeated ? 1 : m);
    }
    loop(at, steps, m, params);
    for (int k = 0; k < walk.outputs; ++k) {
      if (walk.direct(k)) continue;
      char* const pair[2] = {data[k] + done * strides[k], at[k]};
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
    if (!room_) room_.emplace(walk_.count * kBuffer);
    const int64_t n = walk_.sizes[0];
    char* at[kMax];
    int64_t steps[kMax];
    for (int k = 0; k < walk_.count; ++k) {
      const int64_t inner = walk_.strides[0][k], outer = walk_.strides[1][k], size = item_size(walk_.compute[k]);
      const bool follows = outer == inner * n, as_it_is = walk_.dtype[k] == walk_.compute[k];
      at[k] = buffer(k);
      steps[k] = size;
      if (as_it_is && follows && inner == size) at[k] = data[k];
      else if (k < walk_.outputs) continue;
      else if (inner == 0 && outer == 0) fetch(k, data[k], 0, 1), steps[k] = 0;
      else if (follows) fetch(k, data[k], inner, rows * n);
      else if (inner == 0) spread(k, data[k], outer, rows);
      else if (outer == 0) repeat(k, data[k], inner, rows);
      else if (as_it_is && inner == size) cpu::copy_rows(buffer(k), n * size, data[k], outer, n * size, rows);
      else
        for (int64_t r = 0; r < rows; ++r) fetch(k, data[k] + r * outer, inner, n, r * n);
    }
    loop_(at, steps, rows * n, params_);
    for (int k = 0; k < walk_.outputs; ++k) {
      if (at[k] == data[k]) continue;
      const int64_t inner = walk_.strides[0][k], outer = walk_.strides[1][k], size = item_size(walk_.compute[k]);
      const bool follows = outer == inner * n;
      if (walk_.dtype[k] == walk_.compute[k] && inner == size && !follows) {
        cpu::copy_rows(data[k], outer, buffer(k), n * size, n * size, rows);
        continue;
      }
      const int64_t strides[2] = {inner, size};
      for (int64_t r = 0; r < (follows ? 1 : rows); ++r) {
        char* const pair[2] = {data[k] + r * outer, buffer(k) + r * n * size};
        convert_elements(walk_.dtype[k], walk_.compute[k], pair, strides, follows ? rows * n : n);
      }
    }
  }

 private:
  char* buffer(int k) const { return room_->data() + k * kBuffer; }
  /// `n` elements of operand k into its buffer, from element `to` on.
  void fetch(int k, char* from, int64_t stride, int64_t n, int64_t to = 0) {
    const int64_t size = item_size(walk_.compute[k]), strides[2] = {size, stride};
    char* const pair[2] = {buffer(k) + to * size, from};
    convert_elements(walk_.compute[k], walk_.dtype[k], pair, strides, n);
  }
  /// One element for each row.
  void spread(int k, char* from, int64_t stride, int64_t rows) {
    const int64_t size = item_size(walk_.compute[k]);
    std::optional<cpu::Scratch> converted;
    if (walk_.dtype[k] != walk_.compute[k]) {
      char* const numbers = converted.emplace(rows * size).data();
      char* const pair[2] = {numbers, from};
      const int64_t fetched[2] = {size, stride};
      convert_elements(walk_.compute[k], walk_.dtype[k], pair, fetched, rows);
      from = numbers, stride = size;
    }
    switch (size) {
      case 1: return spread_as<uint8_t>(buffer(k), from, stride, rows);
      case 2: return spread_as<uint16_t>(buffer(k), from, stride, rows);
      case 4: return spread_as<uint32_t>(buffer(k), from, stride, rows);
      case 8: return spread_as<uint64_t>(buffer(k), from, stride, rows);
      default: return spread_as<Complex128>(buffer(k), from, stride, rows);
    }
  }
  /// By whole vectors: what they write behind a row is the next one's, or the buffer's rest.
  template <class T>
  void spread_as(char* to, const char* from, int64_t stride, int64_t rows) const {
    constexpr int64_t lanes = 16 / sizeof(T);
    const int64_t n = walk_.sizes[0];
    for (int64_t r = 0; r < rows; ++r, to += n * int64_t(sizeof(T)), from += stride) {
      T repeated[lanes];
      for (T& one : repeated) std::memcpy(static_cast<void*>(&one), from, sizeof(T));
      for (int64_t j = 0; j < n; j += lanes) std::memcpy(to + j * int64_t(sizeof(T)), repeated, 16);
    }
  }
  /// The same row each time.
  void repeat(int k, char* from, int64_t stride, int64_t rows) {
    const int64_t bytes = walk_.sizes[0] * int64_t(item_size(walk_.compute[k]));
    if (from == repeated_[k] && rows <= times_[k]) return;
    fetch(k, from, stride, walk_.sizes[0]);
    for (int64_t filled = 1; filled < rows; filled *= 2)
      std::memcpy(buffer(k) + filled * bytes, buffer(k), size_t(std::min(filled, rows - filled) * bytes));
    repeated_[k] = from;
    times_[k] = rows;
  }

  const Walk& walk_;
  Loop loop_;
  const LoopParams* params_;
  const char* repeated_[kMax] = {};
  int64_t times_[kMax] = {};
  std::optional<cpu::Scratch> room_;
};

/// So many whole runs, along the second dimension.
void run_each(const Walk& walk, Loop loop, const LoopParams* params, char* const* data, int64_t count) {
  char* at[kMax];
  std::copy_n(data, walk.count, at);
  for (int64_t i = 0; i < count; ++i) {
    loop(at, walk.strides[0], walk.sizes[0], params);
    for (int k = 0; k < walk.count; ++k) at[k] += walk.strides[1][k];
  }
}

constexpr int64_t kTileBytes = kChunk * 16;  // of an operand

/// Runs along the second dimension that make a tile, at most `most`.
int64_t tile_runs(const Walk& walk, int64_t most) {
  constexpr int64_t line = 16;  // by whole lines of the cache, where there are several
  int64_t item = 1;
  for (int k = walk.outputs; k < walk.count; ++k)
    if (!walk.direct(k)) item = std::max<int64_t>(item, item_size(walk.dtype[k]));
  const int64_t count = std::min(most, kTileBytes / (walk.sizes[0] * item));
  return count > line ? count / line * line : count;
}
/// So many whole runs, whose gathered operands are turned first.
void run_tile(const Walk& walk, Loop loop, const LoopParams* params, char* const* data, int64_t count) {
  const cpu::Scratch room(walk.count * kBuffer);
  char* at[kMax];
  int64_t along[kMax], down[kMax];
  for (int k = 0; k < walk.count; ++k) {
    at[k] = data[k], along[k] = walk.strides[0][k], down[k] = walk.strides[1][k];
    if (walk.direct(k)) continue;
    const int64_t item = item_size(walk.dtype[k]);
    char* const buffer = room.data() + k * kBuffer;
    loops::turned_table().by_item[std::countr_zero(uint64_t(item))](buffer, data[k], count, walk.sizes[0],
                                                                    walk.sizes[0], along[k] / item);
    at[k] = buffer, along[k] = item, down[k] = walk.sizes[0] * item;
  }
  for (int64_t r = 0; r < count; ++r) {
    loop(at, along, walk.sizes[0], params);
    for (int k = 0; k < walk.count; ++k) at[k] += down[k];
  }
}

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
  std::optional<cpu::Scratch> converted;
  if (walk.converts) converted.emplace(walk.count * kBuffer);
  Rows rows(walk, loop, params);
  for (;;) {
    if (walk.tiles && index[0] == 0) {
      const int64_t count = tile_runs(walk, std::min(walk.sizes[1] - index[1], (end - begin) / walk.sizes[0]));
      if (count > 1) {
        run_tile(walk, loop, params, data, count);
        if ((begin += count * walk.sizes[0]) >= end) return;
        advance(count);
        continue;
      }
    }
    if (walk.joins && index[0] == 0) {
      if (const int64_t count = rows.count(index[1], end - begin); count > 1) {
        rows.run(data, count);
        if ((begin += count * walk.sizes[0]) >= end) return;
        advance(count);
        continue;
      }
    }
    if (!walk.converts && index[0] == 0 && walk.ndim > 1) {
      if (const int64_t count = std::min(walk.sizes[1] - index[1], (end - begin) / walk.sizes[0]); count > 1) {
        run_each(walk, loop, params, data, count);
        if ((begin += count * walk.sizes[0]) >= end) return;
        advance(count);
        continue;
      }
    }
    const int64_t n = std::min(walk.sizes[0] - index[0], end - begin);
    if (walk.converts) run_converted(walk, loop, params, data, n, converted->data());
    else loop(data, walk.strides[0], n, params);
    if ((begin += n) >= end) return;
    if (index[0] != 0) {  // only the first run begins in the middle
      for (int k = 0; k < walk.count; ++k) data[k] -= index[0] * walk.strides[0][k];
      index[0] = 0;
    }
    advance(1);
  }
}

/// Whether short runs are better taken together: where they are converted, or where all operands go on from one to the
/// next, but for short rows that come again each time and numbers that stand for a row, as where a number for each
/// channel, or for each pixel, meets images whose channels lie side by side; and the shortest rows that lie apart, too.
bool joins_runs(const Walk& walk) {
  constexpr int64_t shortest = 64, shortest_apart = 24;
  if (walk.ndim < 2) return false;
  const int64_t n = walk.sizes[0];
  if (walk.converts) return n <= kChunk / 2;
  if (n > shortest) return false;
  for (int k = 0; k < walk.count; ++k) {
    const int64_t inner = walk.strides[0][k], outer = walk.strides[1][k], size = item_size(walk.dtype[k]);
    const bool comes_again = k >= walk.outputs && outer == 0,
               is_number = k >= walk.outputs && inner == 0 && n <= shortest_apart;
    const bool is_row = inner == size && (outer == n * size || n <= shortest_apart);
    if (!comes_again && !is_number && !is_row) return false;
  }
  return true;
}

int64_t size_of(const Walk& walk) {
  int64_t elements = 1;
  for (int d = 0; d < walk.ndim; ++d) elements *= walk.sizes[d];
  return elements;
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
  walk.joins = joins_runs(walk);
  if (!walk.joins) lengthen_runs(walk);
  const int64_t numel = operands[0].tensor->numel();
  // Of few elements the walk would be more work than what it saves.
  constexpr int64_t least = 1024, shortest = 16, stripe = 64;
  Walk rest;
  rest.ndim = 0;
  if (numel >= least && walk.ndim > 1 && walk.ndim < kMaxDims && walk.sizes[0] >= shortest) {
    Walk turned = walk;
    if (is_turned(turned) && (turned.tiles || walk.sizes[0] >= 2 * stripe)) {
      walk = turned;
      walk.joins = false;
      // As long as the cache lines of a stripe stay, each is read once.
      if (walk.sizes[0] >= 2 * stripe) {
        if (const int64_t n = walk.sizes[0] % stripe) rest = take_off(walk, n);
        walk_in_stripes(walk, stripe);
      }
    }
  }
  if (numel <= kLoopGrain) {
    if (rest.ndim) run_range(rest, loop, params, 0, size_of(rest));
    return run_range(walk, loop, params, 0, size_of(walk));
  }
  const Unlocked unlocked(true);
  const Uninterrupted whole(stays_whole(operands, count, numel));
  const auto run = [&](const Walk& part) {
    parallel_for(size_of(part), kLoopGrain,
                 [&](int64_t begin, int64_t end) { run_range(part, loop, params, begin, end); });
  };
  if (rest.ndim) run(rest);
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

}  // namespace taeda
