// Sorting networks on columns of numbers, for one instruction set.
//
// Which numbers are compared follows from the count alone, so all columns are sorted by the same comparisons, without a
// branch: Batcher's merge exchange (Knuth, The Art of Computer Programming, volume 3, algorithm 5.2.2M).
#include "cpu/loops/network.h"

#include <bit>
#include <cstring>

#include "cpu/loops/lanes.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

using Vector = Register<int64_t>::type;
constexpr int kLanes = kRegister / 8, kParts = int(kSortedColumns) / kLanes;

Vector load(const int64_t* p) {
  Vector v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store(int64_t* p, Vector v) { std::memcpy(p, &v, sizeof v); }

/// Calls `exchange(first, distance)` for the runs of rows that are compared with those at a distance.
template <class Exchange>
void merge_exchange(int64_t count, const Exchange& exchange) {
  if (count < 2) return;
  const int64_t top = int64_t(std::bit_ceil(uint64_t(count))) / 2;
  for (int64_t p = top; p > 0; p /= 2) {
    int64_t q = top, r = 0, d = p;
    for (;;) {
      for (int64_t from = r; from < count - d; from += 2 * p)
        for (int64_t i = from; i < from + p && i < count - d; ++i) exchange(i, i + d);
      if (q == p) break;
      d = q - p, q /= 2, r = p;
    }
  }
}

void sort(int64_t* numbers, int64_t count) {
  merge_exchange(count, [=](int64_t i, int64_t j) {
#pragma GCC unroll 4
    for (int k = 0; k < kParts; ++k) {
      int64_t *const low = numbers + i * kSortedColumns + k * kLanes, *const high =
                                                                          numbers + j * kSortedColumns + k * kLanes;
      const Vector a = load(low), b = load(high);
      store(low, a < b ? a : b);
      store(high, a < b ? b : a);
    }
  });
}
void sort_pairs(int64_t* numbers, int64_t* places, int64_t count) {
  merge_exchange(count, [=](int64_t i, int64_t j) {
#pragma GCC unroll 4
    for (int k = 0; k < kParts; ++k) {
      const int64_t low = i * kSortedColumns + k * kLanes, high = j * kSortedColumns + k * kLanes;
      const Vector a = load(numbers + low), b = load(numbers + high), x = load(places + low), y = load(places + high);
      const auto behind = (a > b) | ((a == b) & (x > y));
      store(numbers + low, behind ? b : a);
      store(numbers + high, behind ? a : b);
      store(places + low, behind ? y : x);
      store(places + high, behind ? x : y);
    }
  });
}

}  // namespace

constinit const NetworkTable network{sort, sort_pairs};

}  // namespace taeda::loops::TAEDA_ISA
