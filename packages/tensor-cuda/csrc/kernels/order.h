// Stable order of lines, by radix (Knuth, "The Art of Computer Programming", volume 3, 5.2.5): keys become bits that
// compare as they do, and places are dealt out by one digit after the other, from the lowest one up.
//
// Note [Dealing out]
// Lines that fit a block's shared memory are put in order there at once (OrderLines). Longer ones are cut into tiles,
// and each digit of 8 bits takes three kernels: how often it occurs in each tile (OrderCounts), where those of a tile
// begin among those of all tiles (StartsOfParts), and a tile's elements, put in order among themselves, go there in
// runs (OrderDeal). Nothing depends on which thread comes first.
#pragma once
#include <type_traits>

#include "kernels/before.h"
#include "kernels/items.h"

namespace taeda::cuda {

/// A floating-point number as bits that compare as numbers do; NaNs are largest and both zeros the same.
template <class U>
TAEDA_HD inline U ordered_float(U bits, U infinity) {
  const U sign = U(U(1) << (8 * sizeof(U) - 1)), size = U(bits & U(~sign));
  if (size > infinity) return U(~U(0));
  if (size == 0) return sign;
  return U(bits & sign ? ~bits : bits | sign);
}
template <class T>
TAEDA_HD inline auto ordered_bits(T v) {
  using loops::TAEDA_ISA::bit_cast;
  if constexpr (is_same<T, bool> || is_complex<T>) {
    return uint8_t(number_as<bool>(v));  // complex numbers have no order
  } else if constexpr (is_same<T, Half>) {
    return ordered_float<uint16_t>(v.bits, 0x7c00);
  } else if constexpr (is_same<T, BFloat16>) {
    return ordered_float<uint16_t>(v.bits, 0x7f80);
  } else if constexpr (is_same<T, float>) {
    return ordered_float<uint32_t>(bit_cast<uint32_t>(v), 0x7f800000u);
  } else if constexpr (is_same<T, double>) {
    return ordered_float<uint64_t>(bit_cast<uint64_t>(v), 0x7ff0000000000000u);
  } else {
    using U = std::make_unsigned_t<T>;
    return std::is_signed_v<T> ? U(U(v) ^ U(U(1) << (8 * sizeof(U) - 1))) : U(v);
  }
}
/// What lines are put in order by.
struct Keys {
  Array array;      // row-major
  int64_t limit;    // elements are places below it, and what is none comes last; 0: they are any numbers
  uint64_t turned;  // bits that are turned for the largest to come first
  template <class K>
  TAEDA_HD K at_place(int64_t i) const {
    K key(0);
    if (limit > 0) {
      const int64_t place = load<int64_t>(array, i);
      key = K(place < 0 || place > limit ? limit : place);
    } else {
      with_type(array.dtype, [&]<class T>() { key = K(ordered_bits(at<const T>(array.data)[i])); });
    }
    return K(key ^ K(turned));
  }
};

/// How often something occurs.
struct Occurrences {
  TAEDA_HD static uint32_t start() { return 0; }
  TAEDA_HD static uint32_t join(uint32_t a, uint32_t b) { return a + b; }
};

/// Keys and places in a block's shared memory.
template <class K>
struct OrderTile {
  static constexpr int kThreads = 256, kEach = 8, kElements = kThreads * kEach;
  static constexpr int kBits = 4, kDigits = 1 << kBits, kPhases = 5;
  struct Own {
    K keys[kEach];
    uint32_t places[kEach];
  };
  // Gaps let threads meet different banks.
  TAEDA_HD static constexpr int slot(int i) { return i + i / kEach; }
  TAEDA_HD static constexpr int counter(int i) { return i + i / kDigits * 2; }
  K keys[slot(kElements)];
  uint32_t places[slot(kElements)];
  uint16_t counts[counter(kDigits * kThreads)];  // of each digit, those of all threads
  Before<Occurrences> before;

  /// One of the phases in which the first `count` elements are put in the order of a digit. Threads have neighbours.
  TAEDA_HD void arrange(int phase, int shift, int count, int thread, Own& own) {
    const int first = thread * kEach, end = count - first < kEach ? count - first : kEach;
    const auto of_digit = [&](K key) {
      return counter(int(uint32_t(key >> shift) & (kDigits - 1)) * kThreads + thread);
    };
    if (phase == 0) {
      for (int d = 0; d < kDigits; ++d) counts[counter(d * kThreads + thread)] = 0;
      TAEDA_UNROLL
      for (int j = 0; j < kEach; ++j) {
        if (j >= end) continue;
        own.keys[j] = keys[slot(first + j)], own.places[j] = places[slot(first + j)];
        ++counts[of_digit(own.keys[j])];
      }
    } else if (phase == 1) {
      uint32_t sum = 0;
      for (int j = 0; j < kDigits; ++j) sum += counts[counter(thread * kDigits + j)];
      before.states[thread] = sum;
    } else if (phase == 2) {
      before.fold(thread);
    } else if (phase == 3) {
      uint32_t sum = before.of(thread);
      for (int j = 0; j < kDigits; ++j) {
        uint16_t& mine = counts[counter(thread * kDigits + j)];
        const uint32_t next = sum + mine;
        mine = uint16_t(sum);
        sum = next;
      }
    } else {
      TAEDA_UNROLL
      for (int j = 0; j < kEach; ++j) {
        if (j >= end) continue;
        const int to = slot(counts[of_digit(own.keys[j])]++);
        keys[to] = own.keys[j], places[to] = own.places[j];
      }
    }
  }
};
static_assert(sizeof(OrderTile<uint64_t>) < 46 << 10, "a block has 48 KiB of shared memory");

/// Short lines, a thread for each element: it counts those that come before.
template <class K>
struct OrderShort {
  Keys keys;
  int64_t length;
  Address order;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t begin = quotient(i, length) * length;
    const K own = keys.at_place<K>(i);
    int64_t rank = 0;
    for (int64_t j = begin; j < begin + length; ++j) {
      const K other = keys.at_place<K>(j);
      rank += other < own || (other == own && j < i);
    }
    at<int64_t>(order)[begin + rank] = i - begin;
  }
};
/// A block for each line.
template <class K>
struct OrderLines {
  using Shared = OrderTile<K>;
  using Own = typename Shared::Own;
  static constexpr int kThreads = Shared::kThreads;
  Keys keys;
  int64_t length;
  Address order;
  int32_t bits, reserved;
  TAEDA_HD int phases() const { return 2 + (bits + Shared::kBits - 1) / Shared::kBits * Shared::kPhases; }
  TAEDA_HD void run(int phase, int64_t line, int thread, Shared& shared, Own& own) const {
    const int64_t begin = line * length;
    if (phase == 0) {
      for (int i = thread; i < length; i += kThreads)
        shared.keys[Shared::slot(i)] = keys.at_place<K>(begin + i), shared.places[Shared::slot(i)] = uint32_t(i);
    } else if (phase == phases() - 1) {
      for (int i = thread; i < length; i += kThreads) at<int64_t>(order)[begin + i] = shared.places[Shared::slot(i)];
    } else {
      const int digit = (phase - 1) / Shared::kPhases;
      shared.arrange((phase - 1) % Shared::kPhases, digit * Shared::kBits, int(length), thread, own);
    }
  }
};

// --- long lines, see Note [Dealing out] ---

inline constexpr int kDigitBits = 8, kDigitValues = 1 << kDigitBits;
/// One digit's turn.
struct Deal {
  Keys source;
  Address keys, places, to_keys, to_places;  // without keys, the first turn takes them from the source
  Address order;                             // of the last turn, which leaves nothing else
  Address counts, totals;                    // (lines, digits, tiles) and (lines, digits)
  int64_t length, tiles;
  int32_t shift, reserved;
  template <class K>
  TAEDA_HD K key(int64_t line, int64_t i) const {
    return keys ? at<const K>(keys)[line * length + i] : source.at_place<K>(line * length + i);
  }
  template <class K>
  TAEDA_HD int digit(K key) const {
    return int(uint32_t(key >> shift) & (kDigitValues - 1));
  }
  TAEDA_HD int64_t place_of_count(int64_t line, int digit, int64_t tile) const {
    return (line * kDigitValues + digit) * tiles + tile;
  }
};
/// Elements of a tile.
struct TileOfLine {
  int64_t line, tile, first;
  int count;
  TAEDA_HD TileOfLine(const Deal& deal, int64_t item, int most)
      : line(quotient(item, deal.tiles)), tile(item - line * deal.tiles), first(tile * most) {
    count = deal.length - first < most ? int(deal.length - first) : most;
  }
};
TAEDA_HD inline void add_one(uint32_t& to) {
#ifdef __CUDA_ARCH__
  atomicAdd(&to, 1u);
#else
  ++to;
#endif
}
template <class K>
struct OrderCounts {
  static constexpr int kThreads = kDigitValues;
  struct Shared {
    uint32_t counts[kDigitValues];
  };
  struct Own {};
  Deal deal;
  TAEDA_HD int phases() const { return 3; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    const TileOfLine of(deal, item, OrderTile<K>::kElements);
    if (phase == 0) shared.counts[thread] = 0;
    else if (phase == 1)
      for (int i = thread; i < of.count; i += kThreads)
        add_one(shared.counts[deal.digit(deal.key<K>(of.line, of.first + i))]);
    else at<uint32_t>(deal.counts)[deal.place_of_count(of.line, thread, of.tile)] = shared.counts[thread];
  }
};
template <class K>
struct OrderDeal {
  using Tile = OrderTile<K>;
  using Own = typename Tile::Own;
  static constexpr int kThreads = Tile::kThreads, kTurns = kDigitBits / Tile::kBits;
  struct Shared {
    Tile tile;
    Before<Occurrences> lower;      // digits, by all of the line
    uint32_t starts[kDigitValues];  // first where they begin in the tile, then where the tile's go, less that
  };
  Deal deal;
  TAEDA_HD int phases() const { return 4 + kTurns * Tile::kPhases; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own& own) const {
    const TileOfLine of(deal, item, Tile::kElements);
    Tile& tile = shared.tile;
    const int64_t begin = of.line * deal.length;
    const int rest = phase - 1 - kTurns * Tile::kPhases;
    if (phase == 0) {
      for (int i = thread; i < of.count; i += kThreads) {
        tile.keys[Tile::slot(i)] = deal.key<K>(of.line, of.first + i);
        tile.places[Tile::slot(i)] =
            deal.keys ? at<const uint32_t>(deal.places)[begin + of.first + i] : uint32_t(of.first + i);
      }
      shared.lower.states[thread] = at<const uint32_t>(deal.totals)[of.line * kDigitValues + thread];
    } else if (rest < 0) {
      const int turn = (phase - 1) / Tile::kPhases;
      tile.arrange((phase - 1) % Tile::kPhases, deal.shift + turn * Tile::kBits, of.count, thread, own);
    } else if (rest == 0) {
      shared.lower.fold(thread);
      for (int i = thread; i < of.count; i += kThreads) {
        const int digit = deal.digit(tile.keys[Tile::slot(i)]);
        if (i == 0 || deal.digit(tile.keys[Tile::slot(i - 1)]) != digit) shared.starts[digit] = uint32_t(i);
      }
    } else if (rest == 1) {
      const uint32_t before = at<const uint32_t>(deal.counts)[deal.place_of_count(of.line, thread, of.tile)];
      shared.starts[thread] = shared.lower.of(thread) + before - shared.starts[thread];
    } else {
      for (int i = thread; i < of.count; i += kThreads) {
        const K key = tile.keys[Tile::slot(i)];
        const uint32_t place = tile.places[Tile::slot(i)], to = shared.starts[deal.digit(key)] + uint32_t(i);
        if (deal.order) {
          at<int64_t>(deal.order)[begin + to] = place;
        } else {
          at<K>(deal.to_keys)[begin + to] = key;
          at<uint32_t>(deal.to_places)[begin + to] = place;
        }
      }
    }
  }
};

/// Elements of lines in a given order.
struct Arrange {
  int64_t length;
  Array from, to;
  Address order;
  int32_t item, reserved;
  TAEDA_HD void operator()(int64_t i) const {
    copy_item(item, to.data, i, from.data, quotient(i, length) * length + at<const int64_t>(order)[i]);
  }
};

}  // namespace taeda::cuda
