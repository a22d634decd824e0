// CPU kernels of the sort family.
#include "taeda/ops/sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "cpu/items.h"
#include "cpu/loops/first.h"
#include "cpu/loops/network.h"
#include "cpu/order.h"
#include "cpu/radix.h"
#include "infer/dims.h"
#include "infer/sort.h"
#include "taeda/checked.h"
#include "taeda/interrupt.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/reduce.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::by_digits;
using cpu::fill_items;
using cpu::Item;
using cpu::Items;
using cpu::key_of;
using cpu::KeyOf;
using cpu::order_key;
using cpu::sort_items;
using cpu::UnsetVector;
using cpu::visit_ordered;
using loops::kSortedColumns;

/// One row along the sorted dimension: where it starts in each tensor (elements).
struct Rows {
  int64_t count, length, step;
  Shape sizes, strides;
  Rows(const Tensor& t, int64_t dim) : sizes(t.sizes()), strides(t.strides()) {
    length = t.dim() ? t.size(dim) : 1;
    step = t.dim() ? t.stride(dim) : 1;
    if (t.dim()) {
      sizes.erase(size_t(dim));
      strides.erase(size_t(dim));
    }
    count = product(sizes);
  }
  int64_t start(int64_t row) const {
    int64_t at = 0;
    for (size_t d = sizes.size(); d-- > 1;) {
      at += row % sizes[d] * strides[d];
      row /= sizes[d];
    }
    return sizes.empty() ? at : at + row * strides[0];
  }
};

/// An element by its key and, of equal ones, by its place: one unsigned number.
template <class Key>
struct Packed {
  static constexpr int kPlaceBits = sizeof(Key) == 8 ? 64 : 32;
  __extension__ using Number = std::conditional_t<sizeof(Key) == 8, unsigned __int128, uint64_t>;
  Number number;
  Packed() = default;
  Packed(Key key, int64_t place) : number(Number(key) << kPlaceBits | Number(uint64_t(place))) {}
  Key key() const { return Key(number >> kPlaceBits); }
  int64_t index() const { return kPlaceBits == 64 ? int64_t(uint64_t(number)) : int64_t(uint32_t(number)); }
  bool operator<(const Packed& other) const { return number < other.number; }
};

/// Where the results of a call lie, and what they are taken from.
struct Places {
  const Tensor &values, &indices, &self;
  const Rows value_rows, index_rows, rows;
  Places(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim)
      : values(values),
        indices(indices),
        self(self),
        value_rows(values, dim),
        index_rows(indices, dim),
        rows(self, dim) {}
};
/// Calls `body(row's elements, its items, row)` for every row, in parallel.
template <class T, class Body>
void for_each_row(const Places& places, bool descending, const Body& body) {
  const Tensor& self = places.self;
  const Rows& rows = places.rows;
  const Unlocked unlocked(self.numel() > 8192);
  parallel_for(rows.count, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, rows.length)),
               [&](int64_t begin, int64_t end) {
                 Items<KeyOf<T>> items(size_t(rows.length));
                 for (int64_t r = begin; r < end; ++r) {
                   const T* const from = self.data<T>() + rows.start(r);
                   fill_items(from, rows.step, descending, items);
                   body(from, items, r);
                 }
               });
}

template <class Key>
int64_t place_of(const Item<Key>& item) {
  return item.index;
}
template <class Key>
int64_t place_of(const Packed<Key>& item) {
  return item.index();
}
/// The first `count` items of a row whose elements begin at `from`: their values and places.
template <class T, class List>
void store_row(const Places& to, const T* from, const List& items, int64_t count, int64_t row) {
  T* const v = to.values.data<T>() + to.value_rows.start(row);
  int64_t* const x = to.indices.data<int64_t>() + to.index_rows.start(row);
  in_blocks(count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = place_of(items[size_t(i)]);
      v[i * to.value_rows.step] = from[index * to.rows.step];
      x[i * to.index_rows.step] = index;
    }
  });
}

/// Note [Rows side by side]
/// Short rows are sorted as columns, several at once (cpu/loops/network.cpp), by numbers of which no two are equal: the
/// key of an element above its place, or a pair of both where the key alone fills a number. So the order is stable.
template <class T>
class Columns {
  using Key = KeyOf<T>;
  static constexpr bool kPairs = sizeof(Key) == 8;
  static constexpr int kPlaceBits = 32;
  static constexpr uint64_t kSign = uint64_t(1) << 63;  // numbers are compared as signed ones

 public:
  static constexpr int64_t kMost = kPairs ? 256 : 512;  // elements of rows; from there on digits are quicker
  /// Of rows of n elements.
  explicit Columns(int64_t n)
      : n_(n), numbers_(size_t(n * kSortedColumns)), places_(kPairs ? size_t(n * kSortedColumns) : size_t(0)) {}
  void sort(const std::array<const T*, kSortedColumns>& from, int64_t step, bool descending) {
    for (int64_t i = 0; i < n_; ++i)
      for (int64_t c = 0; c < kSortedColumns; ++c) {
        const uint64_t key = key_of(from[size_t(c)][i * step], descending);
        const size_t at = size_t(i * kSortedColumns + c);
        numbers_[at] = int64_t((kPairs ? key : key << kPlaceBits | uint64_t(i)) ^ kSign);
        if (kPairs) places_[at] = i;
      }
    if (kPairs) loops::network_table().sort_pairs(numbers_.data(), places_.data(), n_);
    else loops::network_table().sort(numbers_.data(), n_);
  }
  /// The place that element `i` of a sorted row came from.
  int64_t place(int64_t i, int64_t column) const {
    const size_t at = size_t(i * kSortedColumns + column);
    return kPairs ? places_[at] : int64_t(uint32_t(uint64_t(numbers_[at])));
  }

 private:
  const int64_t n_;
  UnsetVector<int64_t> numbers_, places_;
};
/// Rows that are fewer leave most columns empty.
constexpr int64_t kFewRows = 4;

/// Calls `body(row, its elements, its column, columns)` for all rows, sorted side by side.
template <class T, class Body>
void for_sorted_columns(const Tensor& self, const Rows& rows, bool descending, const Body& body) {
  const Unlocked unlocked(self.numel() > 8192);
  const int64_t groups = (rows.count + kSortedColumns - 1) / kSortedColumns;
  parallel_for(groups, std::max<int64_t>(1, 16384 / (kSortedColumns * std::max<int64_t>(1, rows.length))),
               [&](int64_t begin, int64_t end) {
                 Columns<T> columns(rows.length);
                 Patience patience;
                 for (int64_t g = begin; g < end; ++g) {
                   patience();
                   const int64_t first = g * kSortedColumns, count = std::min(kSortedColumns, rows.count - first);
                   std::array<const T*, kSortedColumns> from;
                   for (int64_t c = 0; c < kSortedColumns; ++c)
                     from[size_t(c)] = self.data<T>() + rows.start(first + (c < count ? c : 0));
                   columns.sort(from, rows.step, descending);
                   for (int64_t c = 0; c < count; ++c) body(first + c, from[size_t(c)], c, columns);
                 }
               });
}
/// The first `count` elements of each row.
template <class T>
void store_sorted_columns(const Places& to, int64_t count, bool descending) {
  const int64_t step = to.rows.step, value_step = to.value_rows.step, index_step = to.index_rows.step;
  for_sorted_columns<T>(to.self, to.rows, descending,
                        [&](int64_t row, const T* from, int64_t column, const Columns<T>& columns) {
                          T* const values = to.values.data<T>() + to.value_rows.start(row);
                          int64_t* const indices = to.indices.data<int64_t>() + to.index_rows.start(row);
                          for (int64_t i = 0; i < count; ++i) {
                            const int64_t place = columns.place(i, column);
                            values[i * value_step] = from[place * step];
                            indices[i * index_step] = place;
                          }
                        });
}

/// Long rows, in order at once.
template <class T>
void sort_long_rows(const Places& to, bool descending) {
  const Rows& rows = to.rows;
  const Unlocked unlocked(true);
  parallel_for(rows.count, 1, [&](int64_t begin, int64_t end) {
    cpu::RadixOrder<KeyOf<T>> order;
    for (int64_t r = begin; r < end; ++r) {
      const T* const from = to.self.data<T>() + rows.start(r);
      T* const values = to.values.data<T>() + to.value_rows.start(r);
      int64_t* const indices = to.indices.data<int64_t>() + to.index_rows.start(r);
      const int64_t step = rows.step, value_step = to.value_rows.step, index_step = to.index_rows.step;
      order(
          rows.length, [=](int64_t i) { return key_of(from[i * step], descending); },
          [=](int64_t place, int64_t index) {
            values[place * value_step] = from[index * step];
            indices[place * index_step] = index;
          });
    }
  });
}

/// Rows of one element are in order. False where there are others.
bool copies_singles(const Places& places) {
  if (places.rows.length != 1 || places.value_rows.length != 1) return false;
  ops::copy_(places.values, places.self);
  ops::fill_(places.indices, Tensor(0));
  return true;
}

void sort_kernel(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool descending, bool) {
  const int64_t d = infer::axis_of(dim, self.dim());
  const Places places(values, indices, self, d);
  if (copies_singles(places)) return;
  visit_ordered(self.dtype(), "sort", [&]<class T>() {
    const Rows& rows = places.rows;
    if (rows.count >= kFewRows && rows.length <= Columns<T>::kMost)
      return store_sorted_columns<T>(places, rows.length, descending);
    if (by_digits(rows.length)) return sort_long_rows<T>(places, descending);
    for_each_row<T>(places, descending, [&](const T* from, Items<KeyOf<T>>& items, int64_t row) {
      sort_items(items);
      store_row(places, from, items, int64_t(items.size()), row);
    });
  });
}

/// The k first elements of rows. Elements go by in blocks; those whose keys are at most a bound are kept, and of these,
/// when there are many, the k first, which lowers the bound. The least keys of groups of elements give the first bound:
/// as many elements as there are groups with keys at most such a one.
template <class T>
class FirstOf {
  using Key = KeyOf<T>;

 public:
  /// Of rows of n elements.
  FirstOf(int64_t k, int64_t n)
      : k_(k),
        groups_(int64_t(std::bit_ceil(uint64_t(std::max<int64_t>(16, 2 * k))))),
        block_(std::min(n, std::max<int64_t>(2048, 4 * groups_))),
        keys_(size_t(block_)),
        places_(size_t(block_)),
        least_(size_t(groups_)) {}

  /// In order; valid until the next call.
  const UnsetVector<Packed<Key>>& operator()(const T* from, int64_t n, int64_t step, bool largest) {
    kept_.clear();
    if (n <= kFew) {
      for (int64_t i = 0; i < n; ++i) insert({key_of(from[i * step], largest), i});
      return kept_;
    }
    Key bound = Key(~Key(0));
    Patience patience;
    for (int64_t first = 0; first < n; first += block_) {
      const int64_t count = std::min(block_, n - first);
      patience(), loops_.keys(from + first * step, count, step, largest, keys_.data());
      if (first == 0 && count >= 2 * groups_) bound = first_bound(count);
      const int64_t found = loops_.at_most(keys_.data(), count, bound, places_.data());
      for (int64_t i = 0; i < found; ++i) {
        const int64_t place = places_[size_t(i)];
        kept_.push_back({keys_[size_t(place)], first + place});
      }
      if (int64_t(kept_.size()) < 2 * k_ || first + count == n) continue;
      cut();
      // The last one; later ones of its key are behind it.
      if (kept_.back().key() == 0) break;
      bound = Key(kept_.back().key() - 1);
    }
    if (int64_t(kept_.size()) > 2 * k_) cut();
    in_order();
    return kept_;
  }

 private:
  static constexpr int64_t kFew = 16;

  Key first_bound(int64_t count) {
    loops_.least(keys_.data(), count, groups_, least_.data());
    std::nth_element(least_.begin(), least_.begin() + (k_ - 1), least_.end());
    return least_[size_t(k_ - 1)];
  }
  void cut() {
    Patience patience;
    std::nth_element(kept_.begin(), kept_.begin() + (k_ - 1), kept_.end(), [&](const auto& a, const auto& b) {
      patience();
      return a < b;
    });
    kept_.resize(size_t(k_));
  }
  /// The k first so far, in order, and one more.
  void insert(const Packed<Key>& one) {
    size_t at = kept_.size();
    if (at == size_t(k_)) {
      if (kept_[--at] < one) return;
    } else {
      kept_.push_back(one);
    }
    for (; at > 0 && one < kept_[at - 1]; --at) kept_[at] = kept_[at - 1];
    kept_[at] = one;
  }
  void in_order() {
    Patience patience;
    std::sort(kept_.begin(), kept_.end(), [&](const auto& a, const auto& b) {
      patience();
      return a < b;
    });
  }

  const loops::FirstLoops<T>& loops_ = loops::first_loops<T>();
  const int64_t k_, groups_, block_;
  UnsetVector<Key> keys_;
  UnsetVector<int32_t> places_;
  UnsetVector<Key> least_;
  UnsetVector<Packed<Key>> kept_;
};

/// Rows that are sorted sooner than their first elements are looked for, and an element of some rank.
constexpr int64_t kSortedForTop = 24, kSortedForRank = 128;

void topk_kernel(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t k, int64_t dim, bool largest,
                 bool) {
  const int64_t d = infer::axis_of(dim, self.dim());
  if (self.dim() == 0) k = 1;  // a number has no size that could be 0
  if (k == 0) return;
  const Places to(values, indices, self, d);
  if (copies_singles(to)) return;
  const Rows& rows = to.rows;
  const Unlocked unlocked(self.numel() > 8192);
  visit_ordered(self.dtype(), "topk", [&]<class T>() {
    if (rows.count >= kFewRows && rows.length <= kSortedForTop) return store_sorted_columns<T>(to, k, largest);
    parallel_for(rows.count, std::max<int64_t>(1, 16384 / rows.length), [&](int64_t begin, int64_t end) {
      FirstOf<T> first(k, rows.length);
      for (int64_t r = begin; r < end; ++r) {
        const T* const from = self.data<T>() + rows.start(r);
        store_row(to, from, first(from, rows.length, rows.step, largest), k, r);
      }
    });
  });
}

/// Finds elements by their rank: the interval in which the key lies is narrowed by histograms until few are left in it.
template <class T>
class RankFinder {
 public:
  /// The place of the element of rank `rank` among n; of equal elements the first has the lowest rank.
  int64_t operator()(const T* from, int64_t n, int64_t step, int64_t rank) {
    if (step == 1) return find(n, rank, [from](int64_t i) { return order_key(from[i]); });
    row_.resize(size_t(n));
    in_blocks(n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) row_[size_t(i)] = order_key(from[i * step]);
    });
    return find(n, rank, [this](int64_t i) { return row_[size_t(i)]; });
  }

 private:
  using Key = KeyOf<T>;
  static constexpr int64_t kFew = 128;
  static constexpr int kWidest = 11;

  /// Keys from `low` on, at most `span` above it.
  struct Interval {
    Key low, span;
    bool has(Key key) const { return Key(key - low) <= span; }
  };

  template <class KeyAt>
  int64_t find(int64_t n, int64_t rank, const KeyAt& key_at) {
    Interval left = range_of(n, key_at);
    int64_t count = n;
    while (count > kFew && left.span > 0) {
      const int width = n < 2048 ? 8 : kWidest, shift = std::max(0, int(std::bit_width(left.span)) - width);
      std::fill_n(counts_.begin(), size_t(1) << width, 0);
      in_blocks(n, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          if (const Key key = key_at(i); left.has(key)) ++counts_[size_t(Key(key - left.low) >> shift)];
      });
      size_t digit = 0;
      for (; rank >= counts_[digit]; ++digit) rank -= counts_[digit];
      count = counts_[digit];
      const Key passed = Key(Key(digit) << shift);
      left = {Key(left.low + passed), std::min(Key((Key(1) << shift) - 1), Key(left.span - passed))};
    }
    const Key sought = left.span ? among_few(n, rank, left, key_at) : left.low;  // before `rank` is read
    return nth(n, rank, sought, key_at);
  }
  template <class KeyAt>
  static Interval range_of(int64_t n, const KeyAt& key_at) {
    Key low = key_at(0), high = low;
    in_blocks(n, [&](int64_t begin, int64_t end) {
      Key least = low, most = high;
      for (int64_t i = begin; i < end; ++i) {
        least = std::min(least, key_at(i));
        most = std::max(most, key_at(i));
      }
      low = least;
      high = most;
    });
    return {low, Key(high - low)};
  }
  /// The key of rank `rank` among those in the interval; `rank` is afterwards that among its equals.
  template <class KeyAt>
  Key among_few(int64_t n, int64_t& rank, Interval left, const KeyAt& key_at) {
    few_.clear();
    in_blocks(n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (const Key key = key_at(i); left.has(key)) few_.push_back(key);
    });
    std::ranges::nth_element(few_, few_.begin() + rank);
    const Key sought = few_[size_t(rank)];
    rank -= std::ranges::count_if(few_, [sought](Key key) { return key < sought; });
    return sought;
  }
  template <class KeyAt>
  static int64_t nth(int64_t n, int64_t rank, Key sought, const KeyAt& key_at) {
    Patience patience;
    for (int64_t i = 0; i < n; ++i) {
      patience();
      if (key_at(i) == sought && rank-- == 0) return i;
    }
    return n - 1;  // not reached
  }

  std::vector<Key> row_, few_;
  std::array<int64_t, size_t(1) << kWidest> counts_;
};

void rank_indices_kernel(const Tensor& out, const Tensor& self, const Tensor& rank, int64_t dim) {
  const int64_t d = infer::axis_of(dim, self.dim());
  const Rows rows(self, d), ranks(rank, d), places(out, d);
  const auto sought_of = [&](int64_t row) {
    const int64_t sought = rank.data<int64_t>()[ranks.start(row)];
    check(sought >= 0 && sought < rows.length, ErrorKind::Index, "rank_indices: argument 'rank' holds ", sought,
          ", expected 0 to ", rows.length - 1);
    return sought;
  };
  if (rows.length == 1 && !*ops::any(rank).data<bool>()) return void(ops::fill_(out, Tensor(0)));
  int64_t* const found = out.data<int64_t>();
  visit_ordered(self.dtype(), "rank_indices", [&]<class T>() {
    if (rows.count >= kFewRows && rows.length <= kSortedForRank)
      return for_sorted_columns<T>(self, rows, false,
                                   [&](int64_t row, const T*, int64_t column, const Columns<T>& columns) {
                                     found[places.start(row)] = columns.place(sought_of(row), column);
                                   });
    const Unlocked unlocked(self.numel() > 8192);
    parallel_for(
        rows.count, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, rows.length)), [&](int64_t begin, int64_t end) {
          RankFinder<T> finder;
          for (int64_t r = begin; r < end; ++r) {
            found[places.start(r)] = finder(self.data<T>() + rows.start(r), rows.length, rows.step, sought_of(r));
          }
        });
  });
}

const bool registered = [] {
  kernel<op::rank_indices>(kCPU, rank_indices_kernel);
  kernel<op::sort>(kCPU, sort_kernel);
  kernel<op::topk>(kCPU, topk_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
