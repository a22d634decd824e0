// Conversions of elements from one dtype to another.
#include "cpu/conversion.h"

#include <algorithm>
#include <atomic>

#include "cpu/float8.h"
#include "cpu/loops/blocks.h"
#include "cpu/loops/cast.h"
#include "cpu/walk.h"

namespace taeda {
namespace {

using cpu::cast_table;
using cpu::CastRow;
using cpu::kChunk;

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
}  // namespace

CastRow cpu::cast_table() noexcept {
  static std::atomic<CastRow> made{nullptr};  // asked in every copy: cheaper to read than a guarded static
  CastRow rows = made.load(std::memory_order_acquire);
  if (!rows) [[unlikely]]
    made.store(rows = make_cast_table(), std::memory_order_release);
  return rows;
}

namespace {

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
