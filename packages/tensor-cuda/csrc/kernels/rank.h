// Elements of lines by their rank, without putting the lines in order: digit by digit from the highest one down, those
// of the sought element are found by counting (Knuth, "The Art of Computer Programming", volume 3, 5.3.3 and 5.2.5).
#pragma once
#include "kernels/order.h"

namespace taeda::cuda {

/// Where the element of a rank stands in each line. `rank` and `found` have an int64 for each.
struct Sought {
  Keys keys;
  int64_t length;
  Address rank, found;
  Report report;
  /// Below 0 where there is no such rank, which is reported.
  TAEDA_HD int64_t rank_of(int64_t line) const {
    const int64_t wanted = at<const int64_t>(rank)[line];
    return within(report, wanted, length) ? wanted : -1;
  }
};
/// The first elements of each line, in the order in which they stand there: items and places, (lines, count).
struct FirstOfLines {
  Keys keys;
  int64_t length, count;
  Address items, places;
  int32_t item, reserved;
  TAEDA_HD int64_t rank_of(int64_t) const { return count - 1; }
};

/// Short lines, a thread for each: it counts those that come before each element.
template <class K>
struct RankShort {
  Sought sought;
  TAEDA_HD void operator()(int64_t line) const {
    const int64_t begin = line * sought.length, end = begin + sought.length, wanted = sought.rank_of(line);
    at<int64_t>(sought.found)[line] = 0;
    for (int64_t i = begin; i < end && wanted >= 0; ++i) {
      const K own = sought.keys.at_place<K>(i);
      int64_t rank = 0;
      for (int64_t j = begin; j < end; ++j) {
        const K other = sought.keys.at_place<K>(j);
        rank += other < own || (other == own && j < i);
      }
      if (rank == wanted) return void(at<int64_t>(sought.found)[line] = i - begin);
    }
  }
};
/// A block for each line, of which it goes through all elements once for each digit, and twice more to find those that
/// have the key, or come before it. `Wanted` is Sought or FirstOfLines.
template <class K, class Wanted>
struct RankLines {
  static constexpr bool kFirst = is_same<Wanted, FirstOfLines>;
  static constexpr int kThreads = 1024, kEach = 4, kGroup = 16, kGroups = kDigitValues / kGroup, kWide = 32;
  /// How many of a thread's stretch are lower and how many equal; then how many are in those before it.
  struct Counts {
    uint32_t lower, equal;
  };
  struct Shared {
    uint32_t digits[kDigitValues], groups[kGroups];
    K key;         // its digits so far
    int64_t rank;  // among those that have them; below 0: there is none
    Counts counts[kThreads], sums[kThreads / kWide];
  };
  struct Own {
    uint32_t equal;
  };
  Wanted wanted;
  int32_t bits, reserved;
  TAEDA_HD int turns() const { return (bits + kDigitBits - 1) / kDigitBits; }
  TAEDA_HD int phases() const { return 4 * turns() + 3; }
  TAEDA_HD void run(int phase, int64_t line, int thread, Shared& shared, Own& own) const {
    const int turn = phase / 4, shift = (turns() - 1 - turn) * kDigitBits;
    if (turn >= turns()) return finish(phase - 4 * turns(), line, thread, shared, own);
    if (phase == 0 && thread == 0) shared.key = 0, shared.rank = wanted.rank_of(line);
    if (phase % 4 == 0) {
      if (thread < kDigitValues) shared.digits[thread] = 0;
    } else if (phase % 4 == 1) {
      count(line * wanted.length, turn > 0, shift, thread, shared);
    } else if (phase % 4 == 2) {
      if (thread >= kGroups) return;
      uint32_t sum = 0;
      for (int digit = thread * kGroup; digit < (thread + 1) * kGroup; ++digit) sum += shared.digits[digit];
      shared.groups[thread] = sum;
    } else if (thread == 0 && shared.rank >= 0) {
      int group = 0;
      for (; shared.rank >= shared.groups[group]; ++group) shared.rank -= shared.groups[group];
      int digit = group * kGroup;
      for (; shared.rank >= shared.digits[digit]; ++digit) shared.rank -= shared.digits[digit];
      shared.key = K(shared.key | K(digit) << shift);
    }
  }

 private:
  /// How often digits occur, of elements that have the higher ones; several are read before the first is counted.
  TAEDA_HD void count(int64_t begin, bool some, int shift, int thread, Shared& shared) const {
    if (shared.rank < 0) return;
    for (int64_t first = thread; first < wanted.length; first += int64_t(kThreads) * kEach) {
      K keys[kEach];
      TAEDA_UNROLL
      for (int j = 0; j < kEach; ++j) {
        const int64_t i = first + int64_t(j) * kThreads;
        if (i < wanted.length) keys[j] = wanted.keys.template at_place<K>(begin + i);
      }
      TAEDA_UNROLL
      for (int j = 0; j < kEach; ++j) {
        if (first + int64_t(j) * kThreads >= wanted.length) continue;
        if (some && K(keys[j] ^ shared.key) >> (shift + kDigitBits) != 0) continue;
        add_one(shared.digits[uint32_t(keys[j] >> shift) & (kDigitValues - 1)]);
      }
    }
  }
  /// Each thread has a stretch of the line.
  TAEDA_HD void finish(int phase, int64_t line, int thread, Shared& shared, Own& own) const {
    const int64_t stretch = (wanted.length + kThreads - 1) / kThreads, first = thread * stretch,
                  begin = line * wanted.length;
    const int64_t end = first + stretch < wanted.length ? first + stretch : wanted.length;
    if (phase == 0) {
      Counts counts{0, 0};
      for (int64_t i = first; i < end && shared.rank >= 0; ++i) {
        const K key = wanted.keys.template at_place<K>(begin + i);
        counts.lower += key < shared.key, counts.equal += key == shared.key;
      }
      own.equal = counts.equal;
      shared.counts[thread] = counts;
      if constexpr (!kFirst)
        if (thread == 0) at<int64_t>(wanted.found)[line] = 0;
    } else if (phase == 1) {
      if (thread >= kThreads / kWide) return;
      Counts sum{0, 0};
      for (int t = thread * kWide; t < (thread + 1) * kWide; ++t) {
        const Counts here = shared.counts[t];
        shared.counts[t] = sum;
        sum.lower += here.lower, sum.equal += here.equal;
      }
      shared.sums[thread] = sum;
    } else if (shared.rank >= 0) {
      Counts before = shared.counts[thread];
      for (int t = 0; t < thread / kWide; ++t)
        before.lower += shared.sums[t].lower, before.equal += shared.sums[t].equal;
      write(line, begin, first, end, before, shared, own);
    }
  }
  TAEDA_HD void write(int64_t line, int64_t begin, int64_t first, int64_t end, Counts before, const Shared& shared,
                      const Own& own) const {
    if constexpr (kFirst) {
      int64_t lower = before.lower, equal = before.equal;
      for (int64_t i = first; i < end; ++i) {
        const K key = wanted.keys.template at_place<K>(begin + i);
        const bool is_lower = key < shared.key, is_equal = key == shared.key;
        if (is_lower || (is_equal && equal <= shared.rank)) {
          const int64_t to = line * wanted.count + lower + (equal <= shared.rank ? equal : shared.rank + 1);
          at<int64_t>(wanted.places)[to] = i;
          copy_item(wanted.item, wanted.items, to, wanted.keys.array.data, begin + i);
        }
        lower += is_lower, equal += is_equal;
      }
    } else {
      int64_t left = shared.rank - before.equal;
      if (left < 0 || left >= own.equal) return;
      for (int64_t i = first; i < end; ++i)
        if (wanted.keys.template at_place<K>(begin + i) == shared.key && left-- == 0)
          at<int64_t>(wanted.found)[line] = i;
    }
  }
};
/// Lines whose order is there.
struct RankInOrder {
  Sought sought;
  Address order;
  TAEDA_HD void operator()(int64_t line) const {
    const int64_t wanted = sought.rank_of(line);
    at<int64_t>(sought.found)[line] = wanted < 0 ? 0 : at<const int64_t>(order)[line * sought.length + wanted];
  }
};
/// The first of each line in order, and their places in it. The order is that of `ordered` elements of a line: of all,
/// or of those that stand at `places`.
struct ArrangeFirst {
  int64_t length, count, ordered;
  Array from, to;
  Address order, places, found;
  int32_t item, reserved;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t line = quotient(i, count), turn = at<const int64_t>(order)[line * ordered + i - line * count];
    const int64_t place = places ? at<const int64_t>(places)[line * ordered + turn] : turn;
    at<int64_t>(found)[i] = place;
    copy_item(item, to.data, i, from.data, line * length + place);
  }
};

}  // namespace taeda::cuda
