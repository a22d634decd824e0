// Inner loops of `any` and `all`. They go by the width of the elements: all that counts of one is whether it has a bit
// that a zero has not.
#pragma once
#include <cstring>
#include <initializer_list>

#include "cpu/loops/reduce.h"

namespace taeda::loops::TAEDA_ISA {

/// Elements of `Words` words each. The bits of `Mask` tell zeros from others: the sign of a floating zero does not.
template <bool All, class Word, Word Mask, int Words>
struct Truth {
  using W [[gnu::may_alias]] = Word;
  static constexpr int64_t size = sizeof(Word) * Words;
  static Word item(const char* p, int64_t i) {
    const W* x = reinterpret_cast<const W*>(p) + i * Words;
    return Words == 1 ? x[0] : Word(x[0] | x[1]);
  }
  // What decides a result: a true element that of `any`, a false one that of `all`. Words that do so are gathered.
  static Word deciding(Word item) { return All ? Word(Word(item & Mask) == 0) : item; }
  static bool decided(Word seen) { return All ? seen != 0 : Word(seen & Mask) != 0; }

  static void row(void* acc_, const char* in, int64_t stride, int64_t n) {
    uint8_t& acc = *static_cast<uint8_t*>(acc_);
    constexpr int64_t block = 4096;
    for (int64_t i = 0; i < n && acc == All; i += block, in += block * stride) {
      const int64_t m = n - i < block ? n - i : block;
      Word seen = 0;
      if (stride == size)
        for (int64_t j = 0; j < m; ++j) seen |= deciding(item(in, j));
      else
        for (int64_t j = 0; j < m; ++j) seen |= deciding(item(in + j * stride, 0));
      if (decided(seen)) acc = !All;
    }
  }

  static void columns(void* acc_, const char* in, int64_t row_stride, int64_t rows, int64_t count) {
    uint8_t* acc = static_cast<uint8_t*>(acc_);
    constexpr int64_t tile = 256;
    for (int64_t c = 0; c < count; c += tile) {
      const int64_t m = count - c < tile ? count - c : tile;
      Word seen[tile] = {};
      for (int64_t r = 0; r < rows; ++r) {
        const char* x = in + r * row_stride + c * size;
        for (int64_t j = 0; j < m; ++j) seen[j] |= deciding(item(x, j));
      }
      for (int64_t j = 0; j < m; ++j)
        if (decided(seen[j])) acc[c + j] = !All;
    }
  }
};

template <bool All>
void start_truth(void* acc, int64_t n) {
  std::memset(acc, All, size_t(n));
}
template <bool All>
void join_truth(void* acc_, const void* other_, int64_t n) {
  uint8_t* acc = static_cast<uint8_t*>(acc_);
  const uint8_t* other = static_cast<const uint8_t*>(other_);
  for (int64_t i = 0; i < n; ++i) acc[i] = All ? acc[i] & other[i] : acc[i] | other[i];
}

/// The row of `any` (or `all`) in the table of reductions.
template <bool All>
constexpr void fill_truth(Reducer (&row_of)[kDTypeCount]) {
  const auto put = [&]<class T>(T, std::initializer_list<DType> dtypes) {
    for (DType d : dtypes)
      row_of[int(d)] = Reducer{DType::UInt8, start_truth<All>, T::row,
                               T::columns,   join_truth<All>,  rows_one_by_one<T::row, uint8_t, T::size>};
  };
  constexpr uint32_t magnitude32 = ~0u >> 1;
  constexpr uint64_t magnitude64 = ~uint64_t(0) >> 1;
  put(Truth<All, uint8_t, uint8_t(~0), 1>{}, {DType::Bool, DType::Int8, DType::UInt8});
  put(Truth<All, uint16_t, uint16_t(~0), 1>{}, {DType::Int16, DType::UInt16});
  put(Truth<All, uint32_t, ~0u, 1>{}, {DType::Int32, DType::UInt32});
  put(Truth<All, uint64_t, ~uint64_t(0), 1>{}, {DType::Int64, DType::UInt64});
  put(Truth<All, uint32_t, magnitude32, 1>{}, {DType::Float32});
  put(Truth<All, uint64_t, magnitude64, 1>{}, {DType::Float64});
  put(Truth<All, uint32_t, magnitude32, 2>{}, {DType::Complex64});
  put(Truth<All, uint64_t, magnitude64, 2>{}, {DType::Complex128});
}

}  // namespace taeda::loops::TAEDA_ISA
