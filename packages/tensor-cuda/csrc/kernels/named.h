// Elements that index tensors name together, read and written: advanced indexing, and slices along one dimension. What
// adds up does so in the order of the indices.
//
// Note [Runs]
// Equal indices meet at one place. Where there may be some, few of them are compared with each other by each block
// (PutFew); many are put in order first, and those of one place are a run then. What is written by the last of a run
// stays (PutLast). Sums are made by tiles of the order (SumTiles): a run that lies within a tile is added to its place
// at once; of one that does not each tile keeps what it has of it, and the tile in which it begins adds these up
// (JoinTiles). So an index that names one place a million times does not leave the work to one thread.
#pragma once
#include "kernels/items.h"

namespace taeda::cuda {

/// Nothing is there.
inline constexpr int64_t kNowhere = INT64_MIN;

/// Places by index tensors of common sizes.
struct Named {
  static constexpr int kMost = 8;
  struct One {
    Array index;
    int64_t step, limit;
    int64_t strides[kDims];
  };
  int64_t start;   // what is added to each
  Address before;  // int64 of each, by earlier indices; or none
  int32_t ndim, count;
  int32_t wraps, reserved;  // negative indices count from the end
  int64_t sizes[kDims];
  One ones[kMost];
  Report report;
  TAEDA_HD int64_t at_place(int64_t p) const {
    int64_t at_index[kMost] = {};
    int64_t rest = p;
    for (int d = ndim - 1; d >= 0; --d) {
      const int64_t next = d == 0 ? 0 : quotient(rest, sizes[d]), place = rest - next * sizes[d];
      TAEDA_UNROLL
      for (int k = 0; k < kMost; ++k)
        if (k < count) at_index[k] += place * ones[k].strides[d];
      rest = next;
    }
    int64_t found = before ? at<const int64_t>(before)[p] : start;
    TAEDA_UNROLL
    for (int k = 0; k < kMost; ++k) {
      if (k >= count) continue;
      const int64_t index = load<int64_t>(ones[k].index, at_index[k]), limit = ones[k].limit;
      const int64_t place = wraps && index < 0 && index >= -limit ? index + limit : index;
      if (!within(report, place, limit)) found = kNowhere;
      else if (found != kNowhere) found += place * ones[k].step;
    }
    return found;
  }
};
/// Writes the places down.
struct NamePlaces {
  Named named;
  Address to;
  TAEDA_HD void operator()(int64_t p) const { at<int64_t>(to)[p] = named.at_place(p); }
};

/// What lies around each place: dimensions before and behind, as one tensor has them. A row-major tensor of (front,
/// count, back) elements, or units of them, has the values.
struct Around {
  Walk front, back;
  int64_t count, inner;  // places, and units behind each
  struct Part {
    int64_t front, place, back;
  };
  TAEDA_HD Part part(int64_t i) const {
    const int64_t row = inner == 1 ? i : quotient(i, inner), f = row < count ? 0 : quotient(row, count);
    return {f, row - f * count, i - row * inner};
  }
  TAEDA_HD int64_t offset(int64_t f, int64_t b) const { return front.offset(f) + back.offset(b); }
};
/// out[i] = self[...]
struct PickNamed {
  Named named;
  Around around;
  Address self, out;
  int32_t unit, reserved;
  TAEDA_HD void operator()(int64_t i) const {
    const Around::Part part = around.part(i);
    const int64_t place = named.at_place(part.place);
    if (place != kNowhere) copy_unit(unit, out, i, self, place + around.offset(part.front, part.back));
  }
};

/// What is written, and where: a key of a place times `scale` and with `shift` is where it lies in the output.
struct Putting {
  Around around;
  int64_t scale, shift;
  Array source, out;
  int64_t step_source;  // 0: one number for all
  Number factor;        // of sums
  int32_t unit, factored;
  TAEDA_HD int64_t target(int64_t key, int64_t f, int64_t b) const { return key * scale + shift + around.offset(f, b); }
  TAEDA_HD int64_t value_at(int64_t f, int64_t place, int64_t b) const {
    return ((f * around.count + place) * around.inner + b) * step_source;
  }
  template <class C>
  TAEDA_HD C value(int64_t i) const {
    const C x = load<C>(source, i);
    return factored ? C(x * factor.template as<C>()) : x;
  }
};
struct PutValue {
  TAEDA_HD static void one(const Putting& p, int64_t target, int64_t from) {
    copy_unit(p.unit, p.out.data, target, p.source.data, from);
  }
};
template <class C>
struct AddValue {
  using Sum = C;
  TAEDA_HD static void one(const Putting& p, int64_t target, int64_t from) {
    store<C>(p.out, target, C(load<C>(p.out, target) + p.value<C>(from)));
  }
};
/// Where no place is named twice.
template <class Do>
struct PutEach {
  Named named;
  Putting p;
  TAEDA_HD void operator()(int64_t i) const {
    const Around::Part part = p.around.part(i);
    const int64_t key = named.at_place(part.place);
    if (key != kNowhere) Do::one(p, p.target(key, part.front, part.back), i * p.step_source);
  }
};
/// Few places, which each block finds anew; a block for each portion of what is written. See Note [Runs].
template <class Do>
struct PutFew {
  static constexpr int kThreads = 256, kPortion = 8 * kThreads;
  static constexpr bool kSums = requires { typename Do::Sum; };
  struct Shared {
    int64_t keys[kThreads];
    int32_t next[kThreads];  // of the same place: the place behind, 0 for the last; before one of them: -1 for none
  };
  struct Own {};
  Named named;
  Putting p;
  int64_t total;
  TAEDA_HD int phases() const { return 3; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    const int count = int(p.around.count);
    if (phase == 0) {
      if (thread < count) shared.keys[thread] = named.at_place(thread);
    } else if (phase == 1) {
      if (thread < count) shared.next[thread] = find(shared, thread, count);
    } else {
      const int64_t end = (item + 1) * kPortion < total ? (item + 1) * kPortion : total;
      for (int64_t i = item * kPortion + thread; i < end; i += kThreads) put(shared, i);
    }
  }

 private:
  /// The next one of the same place, 0 where there is none; -1 of one that does nothing.
  TAEDA_HD static int32_t find(const Shared& shared, int thread, int count) {
    const int64_t key = shared.keys[thread];
    if (key == kNowhere) return -1;
    if constexpr (kSums)
      for (int j = 0; j < thread; ++j)
        if (shared.keys[j] == key) return next(shared, thread, count) | kNotFirst;
    const int32_t behind = next(shared, thread, count);
    return kSums || behind == 0 ? behind : -1;
  }
  static constexpr int32_t kNotFirst = 1 << 16;
  TAEDA_HD static int32_t next(const Shared& shared, int thread, int count) {
    for (int j = thread + 1; j < count; ++j)
      if (shared.keys[j] == shared.keys[thread]) return j;
    return 0;
  }
  TAEDA_HD void put(const Shared& shared, int64_t i) const {
    const Around::Part part = p.around.part(i);
    const int32_t behind = shared.next[part.place];
    if (behind < 0 || behind & kNotFirst) return;
    const int64_t target = p.target(shared.keys[part.place], part.front, part.back);
    if constexpr (kSums) {
      using C = typename Do::Sum;
      C sum = load<C>(p.out, target);
      for (int64_t j = part.place;;) {
        sum = C(sum + p.template value<C>(p.value_at(part.front, j, part.back)));
        j = shared.next[j] & (kNotFirst - 1);
        if (j == 0) break;
      }
      store<C>(p.out, target, sum);
    } else {
      Do::one(p, target, i * p.step_source);
    }
  }
};

/// Keys of places, and the places in the order of these.
struct InOrder {
  Address keys, order;
  TAEDA_HD int64_t place(int64_t k) const { return at<const int64_t>(order)[k]; }
  TAEDA_HD int64_t key(int64_t k) const { return at<const int64_t>(keys)[place(k)]; }
};
/// A thread for each of those in order and what lies around: the last of a run writes.
struct PutLast {
  InOrder in;
  Putting p;
  TAEDA_HD void operator()(int64_t i) const {
    const Around::Part part = p.around.part(i);
    const int64_t key = in.key(part.place);
    if (key < 0 || (part.place + 1 < p.around.count && in.key(part.place + 1) == key)) return;
    PutValue::one(p, p.target(key, part.front, part.back), p.value_at(part.front, in.place(part.place), part.back));
  }
};
/// Runs by tiles of the order: what is kept of those that go beyond a tile, of each element around. See Note [Runs].
struct Tiles {
  static constexpr int64_t kTile = 128;
  InOrder in;
  Putting p;
  int64_t tiles;
  Address heads, tails;  // (front, tiles, back): of runs that began before, and of those that go on behind
  TAEDA_HD int64_t begin(int64_t tile) const { return tile * kTile; }
  TAEDA_HD int64_t end(int64_t tile) const {
    return (tile + 1) * kTile < p.around.count ? (tile + 1) * kTile : p.around.count;
  }
  /// Whether the run that a tile begins with began before, and that it ends with goes on behind.
  TAEDA_HD bool goes_on(int64_t border) const {
    return border > 0 && border < p.around.count && in.key(border - 1) == in.key(border);
  }
  /// A thread for each tile and what lies around.
  TAEDA_HD Around::Part part(int64_t i) const {
    const int64_t row = quotient(i, p.around.inner), f = quotient(row, tiles);
    return {f, row - f * tiles, i - row * p.around.inner};
  }
  TAEDA_HD int64_t kept(const Around::Part& part, int64_t tile) const {
    return (part.front * tiles + tile) * p.around.inner + part.back;
  }
  template <class C>
  TAEDA_HD void add(const Around::Part& part, int64_t key, C sum) const {
    if (key < 0) return;
    const int64_t target = p.target(key, part.front, part.back);
    store<C>(p.out, target, C(load<C>(p.out, target) + sum));
  }
};
template <class C>
struct SumTiles {
  Tiles t;
  TAEDA_HD void operator()(int64_t i) const {
    const Around::Part part = t.part(i);
    const int64_t begin = t.begin(part.place), end = t.end(part.place);
    bool began = t.goes_on(begin);
    int64_t key = t.in.key(begin);
    C sum(0);
    for (int64_t k = begin; k < end; ++k) {
      const int64_t place = t.in.place(k), next = at<const int64_t>(t.in.keys)[place];
      if (next != key) {
        if (began) at<C>(t.heads)[t.kept(part, part.place)] = sum;
        else t.add<C>(part, key, sum);
        key = next, sum = C(0), began = false;
      }
      sum = C(sum + t.p.template value<C>(t.p.value_at(part.front, place, part.back)));
    }
    if (began) at<C>(t.heads)[t.kept(part, part.place)] = sum;
    else if (t.goes_on(end)) at<C>(t.tails)[t.kept(part, part.place)] = sum;
    else t.add<C>(part, key, sum);
  }
};
/// Where a run begins in a tile and goes on behind it.
template <class C>
struct JoinTiles {
  Tiles t;
  TAEDA_HD void operator()(int64_t i) const {
    const Around::Part part = t.part(i);
    int64_t tile = part.place;
    if (!t.goes_on(t.end(tile))) return;
    const int64_t key = t.in.key(t.end(tile));
    if (t.goes_on(t.begin(tile)) && t.in.key(t.begin(tile)) == key) return;
    C sum = at<const C>(t.tails)[t.kept(part, tile)];
    do {
      ++tile;
      sum = C(sum + at<const C>(t.heads)[t.kept(part, tile)]);
    } while (t.goes_on(t.end(tile)) && t.in.key(t.end(tile)) == key);
    t.add<C>(part, key, sum);
  }
};

}  // namespace taeda::cuda
