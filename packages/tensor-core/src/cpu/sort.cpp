// CPU kernels of the sort family.
#include "taeda/ops/sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "cpu/loops/first.h"
#include "cpu/order.h"
#include "cpu/radix.h"
#include "infer/dims.h"
#include "infer/sort.h"
#include "taeda/checked.h"
#include "taeda/interrupt.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/reduce.h"
#include "taeda/ops/shape.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::before;
using cpu::key_of;
using cpu::KeyOf;
using cpu::order_key;
using cpu::visit_ordered;

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

/// An element of a row by its key, inverted where the largest come first.
template <class Key>
struct Item {
  Key key;
  int64_t index;
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

/// A vector whose elements are not set when it is made: the first to touch fresh memory, which takes long, is the loop
/// that writes it and looks at signals.
template <class T>
struct Unset : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = Unset<U>;
  };
  template <class U>
  void construct(U* place) noexcept {
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class... Args>
  void construct(U* place, Args&&... args) {
    ::new (static_cast<void*>(place)) U(std::forward<Args>(args)...);
  }
};
template <class T> using Room = std::vector<T, Unset<T>>;
template <class Key> using Items = Room<Item<Key>>;

template <class T>
void fill_items(const T* from, int64_t step, bool descending, Items<KeyOf<T>>& items) {
  in_blocks(int64_t(items.size()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      items[size_t(i)] = {key_of(from[i * step], descending), i};
    }
  });
}

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

/// Rows from this length on are sorted by digits.
constexpr int64_t kManyItems = 257;
bool by_digits(int64_t length) { return length >= kManyItems && length < cpu::RadixOrder<uint64_t>::kMost; }

/// Stable.
template <class Key>
void sort_items(Items<Key>& items) {
  if (items.size() <= 16) {  // by insertion, which needs no memory
    for (auto item = items.begin(); item != items.end(); ++item)
      std::rotate(std::upper_bound(items.begin(), item, *item,
                                   [](const Item<Key>& a, const Item<Key>& b) { return a.key < b.key; }),
                  item, item + 1);
    return;
  }
  Patience patience;
  std::stable_sort(items.begin(), items.end(), [&](const Item<Key>& a, const Item<Key>& b) {
    patience();
    return a.key < b.key;
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

void sort_kernel(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool descending, bool) {
  const int64_t d = infer::axis_of(dim, self.dim());
  const Places places(values, indices, self, d);
  visit_ordered(self.dtype(), "sort", [&]<class T>() {
    if (by_digits(places.rows.length)) return sort_long_rows<T>(places, descending);
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
  const Room<Packed<Key>>& operator()(const T* from, int64_t n, int64_t step, bool largest) {
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
  Room<Key> keys_;
  Room<int32_t> places_;
  Room<Key> least_;
  Room<Packed<Key>> kept_;
};

void topk_kernel(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t k, int64_t dim, bool largest,
                 bool) {
  const int64_t d = infer::axis_of(dim, self.dim());
  if (self.dim() == 0) k = 1;  // a number has no size that could be 0
  if (k == 0) return;
  const Places to(values, indices, self, d);
  const Rows& rows = to.rows;
  const Unlocked unlocked(self.numel() > 8192);
  visit_ordered(self.dtype(), "topk", [&]<class T>() {
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
    return nth(n, rank, left.span ? among_few(n, rank, left, key_at) : left.low, key_at);
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
  visit_ordered(self.dtype(), "rank_indices", [&]<class T>() {
    const Unlocked unlocked(self.numel() > 8192);
    parallel_for(rows.count, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, rows.length)),
                 [&](int64_t begin, int64_t end) {
                   RankFinder<T> finder;
                   for (int64_t r = begin; r < end; ++r) {
                     const int64_t sought = rank.data<int64_t>()[ranks.start(r)];
                     check(sought >= 0 && sought < rows.length, ErrorKind::Index,
                           "rank_indices: argument 'rank' holds ", sought, ", expected 0 to ", rows.length - 1);
                     out.data<int64_t>()[places.start(r)] =
                         finder(self.data<T>() + rows.start(r), rows.length, rows.step, sought);
                   }
                 });
  });
}

/// The runs of equal items: where each begins first in memory, how long it is, and for each element the run's number.
/// Each NaN is a value of its own, as NaN != NaN.
template <class Key>
void runs_of(const Items<Key>& items, std::optional<Key> nan, std::vector<int64_t>& first, std::vector<int64_t>& counts,
             int64_t* inverse) {
  in_blocks(int64_t(items.size()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Item<Key>& item = items[size_t(i)];
      if (i == 0 || items[size_t(i - 1)].key != item.key || (nan && item.key == *nan)) {
        first.push_back(item.index);
        counts.push_back(0);
      }
      ++counts.back();
      inverse[item.index] = int64_t(first.size()) - 1;
    }
  });
}

std::tuple<Tensor, Tensor, Tensor, Tensor> unique_all_kernel(const Tensor& self) {
  const Tensor flat = ops::contiguous(ops::ravel(self));
  const int64_t n = flat.numel();
  const Tensor inverse = empty(self.sizes(), DType::Int64);
  std::vector<int64_t> first, counts;
  Tensor values;
  visit_ordered(self.dtype(), "unique_all", [&]<class T>() {
    const T* data = flat.data<T>();
    const Unlocked unlocked(n > 8192);
    Items<KeyOf<T>> items(static_cast<size_t>(n));
    if (by_digits(n)) {
      cpu::RadixOrder<KeyOf<T>>()(
          n, [=](int64_t i) { return order_key(data[i]); },
          [&](int64_t place, int64_t index) { items[size_t(place)] = {order_key(data[index]), index}; });
    } else {
      fill_items(data, 1, false, items);
      sort_items(items);
    }
    constexpr bool has_nan = cpu::is_half<T> || std::is_floating_point_v<T>;
    runs_of(items, has_nan ? std::optional<KeyOf<T>>(KeyOf<T>(~KeyOf<T>(0))) : std::nullopt, first, counts,
            inverse.data<int64_t>());
    values = empty(Shape{int64_t(first.size())}, self.dtype());
    in_blocks(int64_t(first.size()), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values.data<T>()[i] = data[first[size_t(i)]];
    });
  });
  const auto list = [](const std::vector<int64_t>& items) {
    const Tensor out = empty(Shape{int64_t(items.size())}, DType::Int64);
    in_blocks(out.numel(), [&](int64_t begin, int64_t end) {
      std::copy(items.begin() + begin, items.begin() + end, out.data<int64_t>() + begin);
    });
    return out;
  };
  return {values, list(first), inverse, list(counts)};
}

std::tuple<Tensor, Tensor, Tensor> unique_consecutive_kernel(const Tensor& self) {
  const Tensor flat = ops::contiguous(ops::ravel(self));
  const Tensor inverse = empty(self.sizes(), DType::Int64);
  std::vector<int64_t> starts;
  Tensor values, counts;
  visit_dtype(self.dtype(), [&]<class T>() {
    const T* data = flat.data<T>();
    const Unlocked unlocked(flat.numel() > 32768);
    in_blocks(flat.numel(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        bool fresh = i == 0;
        if constexpr (cpu::is_half<T>) fresh = fresh || float(data[i]) != float(data[i - 1]);
        else if constexpr (std::is_same_v<T, bool>) fresh = fresh || order_key(data[i]) != order_key(data[i - 1]);
        else fresh = fresh || data[i] != data[i - 1];
        if (fresh) starts.push_back(i);
        inverse.data<int64_t>()[i] = int64_t(starts.size()) - 1;
      }
    });
    values = empty(Shape{int64_t(starts.size())}, self.dtype());
    counts = empty(Shape{int64_t(starts.size())}, DType::Int64);
    in_blocks(int64_t(starts.size()), [&](int64_t begin, int64_t end) {
      for (size_t i = size_t(begin); i < size_t(end); ++i) {
        values.data<T>()[i] = data[starts[i]];
        counts.data<int64_t>()[i] = (i + 1 < starts.size() ? starts[i + 1] : flat.numel()) - starts[i];
      }
    });
  });
  return {values, inverse, counts};
}

/// As many bins as the numbers of `index` need, at least `bins`.
template <class T>
int64_t bins_for(const Tensor& index, int64_t bins) {
  const int64_t n = index.numel();
  if (n == 0) return bins;
  const T least = *ops::amin(index).data<T>(), most = *ops::amax(index).data<T>();
  if (least < 0 || int64_t(most) < 0) {
    const T* const numbers = index.data<T>();
    const int64_t at = std::ranges::find_if(numbers, numbers + n, [](T v) { return int64_t(v) < 0; }) - numbers;
    fail(ErrorKind::Runtime, "bincount: argument 'self' must hold non-negative integers, found ", int64_t(numbers[at]),
         " at position ", at);
  }
  return std::max(bins, (Count(int64_t(most)) + 1).of("bincount", "the number of bins up to ", int64_t(most)));
}

constexpr int64_t kFewBins = 512;

/// One bin's size for each number, or the sums of weights there.
template <class T>
Tensor counted(const Tensor& index, const double* weights, int64_t bins) {
  const T* const numbers = index.data<T>();
  const int64_t n = index.numel();
  const Tensor sums = empty(Shape{bins_for<T>(index, bins)}, weights ? DType::Float64 : DType::Int64);
  std::memset(sums.bytes(), 0, size_t(sums.numel() * 8));
  const Unlocked unlocked(n > 32768);
  if (weights) {
    double* const of = sums.data<double>();
    in_blocks(n, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) of[int64_t(numbers[i])] += weights[i];
    });
  } else {
    int64_t* const of = sums.data<int64_t>();
    const int64_t count = sums.numel();
    if (count > kFewBins) {
      in_blocks(n, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++of[int64_t(numbers[i])];
      });
      return sums;
    }
    // Four of each bin, as adding to one again has to wait for the sum before.
    int64_t parts[4][kFewBins] = {};
    in_blocks(n, [&](int64_t begin, int64_t end) {
      int64_t i = begin;
      for (; i + 4 <= end; i += 4)
        for (int k = 0; k < 4; ++k) ++parts[k][int64_t(numbers[i + k])];
      for (; i < end; ++i) ++parts[0][int64_t(numbers[i])];
    });
    for (int64_t bin = 0; bin < count; ++bin) of[bin] = parts[0][bin] + parts[1][bin] + parts[2][bin] + parts[3][bin];
  }
  return sums;
}

Tensor bincount_kernel(const Tensor& self, const Tensor& weights, int64_t minlength) {
  const Tensor index = ops::contiguous(self.dtype() == DType::Bool ? ops::to_dtype(self, DType::UInt8) : self);
  const Tensor w = weights.defined() ? ops::contiguous(ops::to_dtype(weights, DType::Float64)) : Tensor();
  Tensor sums;
  visit_ordered(index.dtype(), "bincount", [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      sums = counted<T>(index, w.defined() ? w.data<double>() : nullptr, minlength);
  });
  return weights.defined() && weights.dtype() == DType::Float32 ? ops::to_dtype(sums, DType::Float32) : sums;
}

Tensor histc_kernel(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  const Tensor values = ops::contiguous(self.dtype() == DType::Float32 ? self : ops::to_dtype(self, DType::Float64));
  const int64_t n = values.numel();
  double low = min.to_double(), high = max.to_double();
  if (low == high && n > 0) {
    const auto number = [](const Tensor& t) { return *ops::to_dtype(t, DType::Float64).data<double>(); };
    low = number(ops::amin(values));
    high = number(ops::amax(values));
  }
  infer::histogram_range(low, high);
  const Tensor counts = empty(Shape{bins}, DType::Float64);
  std::memset(counts.bytes(), 0, size_t(bins) * 8);
  {
    const Unlocked unlocked(n > 32768);
    // Multiplied before it is divided, in the elements' dtype, so that whole numbers fall into bins of their own.
    const auto count = [&]<class T>(const T* data) {
      const T first = T(low), last = T(high), width = last - first, parts = T(bins);
      const auto place = [&](T x) {
        const T at = (x - first) * parts / width;
        if (std::isfinite(width) && at <= parts) return int64_t(at);
        return int64_t((double(x) - low) / (high - low) * double(bins));  // the product is too large
      };
      in_blocks(n, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          if (const T x = data[i]; x >= first && x <= last) counts.data<double>()[std::min(bins - 1, place(x))] += 1;
      });
    };
    if (values.dtype() == DType::Float32) count(values.data<float>());
    else count(values.data<double>());
  }
  return ops::to_dtype(counts, self.dtype());
}

/// How many elements at the beginning `hold`, which no element behind them does; without a branch that depends on one.
template <class T, class Holds>
int64_t leading(const T* row, int64_t length, const Holds& holds) {
  if (length == 0) return 0;
  const T* first = row;
  while (length > 1) {
    const int64_t half = length / 2;
    first += half & -int64_t(holds(first[half - 1]));
    length -= half;
  }
  return first - row + int64_t(holds(*first));
}

/// How many elements of an ascending row, NaN last, are less than `v`; on the `right` also those that are equal.
template <class T>
int64_t place_of(const T* row, int64_t length, T v, bool right) {
  if constexpr (cpu::is_half<T>) {
    return right ? leading(row, length, [v](T edge) { return !before(v, edge); })
                 : leading(row, length, [v](T edge) { return before(edge, v); });
  } else {
    if (v != v) return right ? length : leading(row, length, [](T edge) { return edge == edge; });
    return right ? leading(row, length, [v](T edge) { return edge <= v; })
                 : leading(row, length, [v](T edge) { return edge < v; });
  }
}

Tensor searchsorted_kernel(const Tensor& sorted_sequence, const Tensor& self, bool right) {
  const DType dtype = promote(sorted_sequence.dtype(),
                              self.is_wrapped_number() && !is_integral(self.dtype()) ? default_dtype() : self.dtype());
  const Tensor edges = ops::contiguous(ops::to_dtype(sorted_sequence, dtype)),
               wanted = ops::contiguous(ops::to_dtype(self, dtype));
  const bool shared = edges.dim() == 1;
  const Tensor out = empty(wanted.sizes(), DType::Int64);
  const int64_t length = edges.size(-1), per_row = shared ? wanted.numel() : wanted.size(-1);
  visit_ordered(dtype, "searchsorted", [&]<class T>() {
    const Unlocked unlocked(wanted.numel() > 32768);
    parallel_for(wanted.numel(), 32768, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = edges.data<T>() + (shared ? 0 : i / per_row * length);
        const T v = wanted.data<T>()[i];
        out.data<int64_t>()[i] = place_of(row, length, v, right);
      }
    });
  });
  return out;
}

const bool registered = [] {
  kernel<op::bincount>(kCPU, bincount_kernel);
  kernel<op::rank_indices>(kCPU, rank_indices_kernel);
  kernel<op::histc>(kCPU, histc_kernel);
  kernel<op::searchsorted>(kCPU, searchsorted_kernel);
  kernel<op::sort>(kCPU, sort_kernel);
  kernel<op::topk>(kCPU, topk_kernel);
  kernel<op::unique_all>(kCPU, unique_all_kernel);
  kernel<op::unique_consecutive_all>(kCPU, unique_consecutive_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
