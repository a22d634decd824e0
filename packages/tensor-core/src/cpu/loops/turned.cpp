// Transpositions of tiles, for one instruction set.
//
// A square of as many rows as a vector has elements is transposed in registers: within each 16 bytes first, by rounds
// that interleave the elements of two vectors, then its pieces of 16 bytes as wholes.
#include "cpu/loops/turned.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cpu/loops/lanes.h"
#include "taeda/dtype.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

/// Element: one of 1 to 16 bytes; vectors of up to 16 elements, so that a square has room in the registers.
template <class Element>
struct Square {
  // Elements of 16 bytes are moved as pairs of 8.
  using T = std::conditional_t<sizeof(Element) == 16, uint64_t, Element>;
  static constexpr int kItem = sizeof(Element), kBytes = std::min(kRegister, 16 * kItem);
  static constexpr int kSide = kBytes / kItem, kLane = 16 / kItem, kLanes = kBytes / 16;
  static constexpr int kCount = kBytes / int(sizeof(T)), kOfLane = 16 / int(sizeof(T));
  typedef T Vector __attribute__((vector_size(kBytes)));
  static constexpr auto kAll = std::make_integer_sequence<int, kCount>();

  /// The first or last halves of all 16 bytes, elements of a and b in turn.
  template <int Half, int... J>
  static Vector interleaved(Vector a, Vector b, std::integer_sequence<int, J...>) {
    return __builtin_shufflevector(a, b,
                                   (J / kOfLane * kOfLane + J % kOfLane / 2 + Half * kOfLane / 2 + J % 2 * kCount)...);
  }
  /// Every second piece of 16 bytes, those of a first.
  template <int First, int... J>
  static Vector every_second(Vector a, Vector b, std::integer_sequence<int, J...>) {
    return __builtin_shufflevector(a, b,
                                   ((J / kOfLane % (kLanes / 2) * 2 + First) * kOfLane + J % kOfLane +
                                    (J / kOfLane < kLanes / 2 ? 0 : kCount))...);
  }
  static void turn_within(Vector (&v)[kSide]) {
#pragma GCC unroll 4
    for (int round = 1; round < kLane; round *= 2) {
      Vector next[kSide];
#pragma GCC unroll 16
      for (int g = 0; g < kSide; g += kLane)
#pragma GCC unroll 8
        for (int i = 0; i < kLane / 2; ++i) {
          next[g + 2 * i] = interleaved<0>(v[g + i], v[g + i + kLane / 2], kAll);
          next[g + 2 * i + 1] = interleaved<1>(v[g + i], v[g + i + kLane / 2], kAll);
        }
#pragma GCC unroll 16
      for (int j = 0; j < kSide; ++j) v[j] = next[j];
    }
  }
  /// Vectors of the same place in their groups change pieces.
  static void turn_pieces(Vector (&v)[kSide]) {
#pragma GCC unroll 16
    for (int k = 0; k < kLane; ++k) {
      const Vector a = every_second<0>(v[k], v[kLane + k], kAll), b = every_second<1>(v[k], v[kLane + k], kAll);
      if constexpr (kLanes == 2) {
        v[k] = a, v[kLane + k] = b;
      } else {
        const Vector c = every_second<0>(v[2 * kLane + k], v[3 * kLane + k], kAll),
                     d = every_second<1>(v[2 * kLane + k], v[3 * kLane + k], kAll);
        v[k] = every_second<0>(a, c, kAll), v[2 * kLane + k] = every_second<1>(a, c, kAll);
        v[kLane + k] = every_second<0>(b, d, kAll), v[3 * kLane + k] = every_second<1>(b, d, kAll);
      }
    }
  }
  static void transpose(Element* out, const Element* in, int64_t out_step, int64_t in_step) {
    Vector v[kSide];
#pragma GCC unroll 16
    for (int j = 0; j < kSide; ++j) std::memcpy(&v[j], in + j * in_step, kBytes);
    turn_within(v);
    if constexpr (kLanes > 1) turn_pieces(v);
#pragma GCC unroll 16
    for (int j = 0; j < kSide; ++j) std::memcpy(static_cast<void*>(out + j * out_step), &v[j], kBytes);
  }
};

template <class T>
void transpose_rest(T* out, const T* in, int64_t rows, int64_t columns, int64_t out_step, int64_t in_step) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) out[r * out_step + c] = in[c * in_step + r];
}
template <class T>
void transpose_tile(void* out_, const void* in_, int64_t rows, int64_t columns, int64_t out_step, int64_t in_step) {
  constexpr int64_t side = Square<T>::kSide, line = std::max<int64_t>(side, 64 / int64_t(sizeof(T)));
  T* const out = static_cast<T*>(out_);
  const T* const in = static_cast<const T*>(in_);
  const int64_t whole_rows = rows / side * side, whole_columns = columns / side * side;
  for (int64_t c0 = 0; c0 < whole_columns; c0 += line)
    for (int64_t r = 0; r < whole_rows; r += side)
      for (int64_t c = c0; c < std::min(whole_columns, c0 + line); c += side)  // whole lines of the cache are written
        Square<T>::transpose(out + r * out_step + c, in + c * in_step + r, out_step, in_step);
  transpose_rest(out + whole_columns, in + whole_columns * in_step, whole_rows, columns - whole_columns, out_step,
                 in_step);
  transpose_rest(out + whole_rows * out_step, in + whole_rows, rows - whole_rows, columns, out_step, in_step);
}

}  // namespace

constinit const TurnedTable turned{{transpose_tile<uint8_t>, transpose_tile<uint16_t>, transpose_tile<uint32_t>,
                                    transpose_tile<uint64_t>, transpose_tile<Complex128>}};

}  // namespace taeda::loops::TAEDA_ISA
