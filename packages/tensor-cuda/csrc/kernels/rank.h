// Elements of lines by their rank, without putting the lines in order: digit by digit from the highest one down, those
// of the sought element are found by counting (Knuth, "The Art of Computer Programming", volume 3, 5.3.3 and 5.2.5).
#pragma once
#include "kernels/order.h"

namespace taeda::cuda {

/// Where the element of a rank stands in each line; `rank` and `found` have an int64 for each.
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
/// A block for each line, of which it goes through all elements once for each digit, and once more for those that are
/// equal.
template <class K>
struct RankLines {
  static constexpr int kThreads = kDigitValues;
  struct Shared {
    uint32_t counts[kDigitValues];
    K key;         // its digits so far
    int64_t rank;  // among those that have them; below 0: there is none
  };
  struct Own {
    int64_t equal;
  };
  Sought sought;
  int32_t bits, reserved;
  TAEDA_HD int turns() const { return (bits + kDigitBits - 1) / kDigitBits; }
  TAEDA_HD int phases() const { return 3 * turns() + 3; }
  TAEDA_HD void run(int phase, int64_t line, int thread, Shared& shared, Own& own) const {
    const int64_t begin = line * sought.length, stretch = (sought.length + kThreads - 1) / kThreads;
    const int turn = phase / 3, shift = (turns() - 1 - turn) * kDigitBits;
    if (turn == turns()) return finish(phase % 3, line, begin, thread * stretch, stretch, thread, shared, own);
    if (phase == 0 && thread == 0) shared.key = 0, shared.rank = sought.rank_of(line);
    if (phase % 3 == 0) {
      shared.counts[thread] = 0;
    } else if (phase % 3 == 1) {
      if (shared.rank < 0) return;
      for (int64_t i = thread; i < sought.length; i += kThreads) {
        const K key = sought.keys.at_place<K>(begin + i);
        if (turn > 0 && K(key ^ shared.key) >> (shift + kDigitBits) != 0) continue;
        add_one(shared.counts[uint32_t(key >> shift) & (kDigitValues - 1)]);
      }
    } else if (thread == 0 && shared.rank >= 0) {
      int digit = 0;
      for (; shared.rank >= shared.counts[digit]; ++digit) shared.rank -= shared.counts[digit];
      shared.key = K(shared.key | K(digit) << shift);
    }
  }

 private:
  /// Among elements with the key, each thread having a stretch of them.
  TAEDA_HD void finish(int phase, int64_t line, int64_t begin, int64_t first, int64_t stretch, int thread,
                       Shared& shared, Own& own) const {
    const int64_t end = first + stretch < sought.length ? first + stretch : sought.length;
    if (phase == 0) {
      if (thread == 0) at<int64_t>(sought.found)[line] = 0;
      own.equal = 0;
      for (int64_t i = first; i < end && shared.rank >= 0; ++i)
        own.equal += sought.keys.at_place<K>(begin + i) == shared.key;
      shared.counts[thread] = uint32_t(own.equal);
    } else if (phase == 1) {
      if (thread != 0) return;
      uint32_t sum = 0;
      for (int t = 0; t < kThreads; ++t) {
        const uint32_t next = sum + shared.counts[t];
        shared.counts[t] = sum;
        sum = next;
      }
    } else {
      int64_t left = shared.rank - shared.counts[thread];
      if (shared.rank < 0 || left < 0 || left >= own.equal) return;
      for (int64_t i = first; i < end; ++i)
        if (sought.keys.at_place<K>(begin + i) == shared.key && left-- == 0) at<int64_t>(sought.found)[line] = i;
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

}  // namespace taeda::cuda
