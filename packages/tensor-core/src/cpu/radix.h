// The order of many unsigned keys, by their digits.
#pragma once
#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cpu/room.h"
#include "taeda/interrupt.h"

namespace taeda::cpu {

/// A stable sort that takes digits from the lowest up and leaves out the bits that all keys have in common. Its memory
/// is kept from call to call.
template <class Key>
class RadixOrder {
 public:
  static constexpr int64_t kMost = int64_t(1) << 32;  // keys that it can order: fewer than that

  /// Calls store(place, index) for each of the keys key_at(0) ... key_at(n - 1), in no order of places.
  template <class KeyAt, class Store>
  void operator()(int64_t n, const KeyAt& key_at, const Store& store) {
    if (n == 0) return;
    if constexpr (sizeof(Key) == 1) return by_digits(narrow_, n, {0, 0}, 0xff, key_at, store);
    const Key first = key_at(0);
    Key low = first, high = first, varied = 0;
    in_blocks(n, [&](int64_t begin, int64_t end) {
      Key least = first, most = first, found = 0;
      for (int64_t i = begin; i < end; ++i) {
        const Key key = key_at(i);
        least = key < least ? key : least;
        most = key > most ? key : most;
        found |= Key(key ^ first);
      }
      low = least < low ? least : low;
      high = most > high ? most : high;
      varied |= found;
    });
    const Range range{low, varied ? std::countr_zero(varied) : 0};
    const uint64_t span = uint64_t(range.offset(high));
    if (span > UINT32_MAX) by_digits(wide_, n, range, span, key_at, store);
    else by_digits(narrow_, n, range, span, key_at, store);
  }

 private:
  struct Range {
    Key low;
    int shift;
    Key offset(Key key) const { return Key(Key(key - low) >> shift); }
  };
  template <class Offset>
  struct Keyed {
    Offset offset;
    uint32_t index;
  };
  template <class Offset>
  struct Rooms {
    Room<Keyed<Offset>> from, to;
  };

  /// Wide digits take fewer passes, and longer to count.
  static constexpr int64_t kManyKeys = 1 << 13;

  template <class Offset, class KeyAt, class Store>
  void by_digits(Rooms<Offset>& rooms, int64_t n, const Range& range, uint64_t span, const KeyAt& key_at,
                 const Store& store) {
    const int bits = std::bit_width(span), widest = n >= kManyKeys ? 11 : 8, passes = (bits + widest - 1) / widest;
    if (passes == 0)
      return in_blocks(n, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) store(i, i);
      });
    const int width = (bits + passes - 1) / passes;
    const Offset mask = Offset((Offset(1) << width) - 1);
    counts_.assign(size_t(passes) << width, 0);
    Keyed<Offset>*from = rooms.from.get(n), *to = passes > 1 ? rooms.to.get(n) : nullptr;
    in_blocks(n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Offset offset = Offset(range.offset(key_at(i)));
        from[i] = {offset, uint32_t(i)};
        Offset rest = offset;
        for (uint32_t* count = counts_.data(); count != counts_.data() + counts_.size(); count += mask + 1) {
          ++count[rest & mask];
          rest = Offset(rest >> width);
        }
      }
    });
    for (int pass = 0; pass < passes; ++pass) {
      uint32_t* const places = counts_.data() + (size_t(pass) << width);
      const int down = pass * width;
      const bool last = pass + 1 == passes;
      if (!last && places[(from[0].offset >> down) & mask] == n) continue;
      std::exclusive_scan(places, places + mask + 1, places, uint32_t(0));
      in_blocks(n, [&](int64_t begin, int64_t end) {
        if (last)
          for (int64_t i = begin; i < end; ++i)
            store(int64_t(places[(from[i].offset >> down) & mask]++), int64_t(from[i].index));
        else
          for (int64_t i = begin; i < end; ++i) to[places[(from[i].offset >> down) & mask]++] = from[i];
      });
      std::swap(from, to);
    }
  }

  Rooms<uint32_t> narrow_;
  Rooms<uint64_t> wide_;
  std::vector<uint32_t> counts_;
};

}  // namespace taeda::cpu
