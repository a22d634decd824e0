// Reductions of many short rows at once, for one instruction set.
//
// A row alone ends with a fold of its lanes, whose steps wait for each other; of rows of some dozens of elements that
// is most of the time. Here as many rows as a vector has elements are folded together: each step joins halves of the
// parts of two rows, so that at the end one vector holds a result for each row. Which elements are joined with which is
// the same as in `block_of`, to the last bit.
#pragma once
#include <algorithm>
#include <type_traits>
#include <utility>

#include "cpu/loops/lanes.h"
#include "taeda/dtype.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

/// F: the reduction, whose accumulators are of the elements' type T; `Lanes`: those of `block_of`.
template <class F, class T, int Lanes>
struct ShortRows {
  static constexpr int width = kRegister / int(sizeof(T)), kFew = Lanes / 4;
  using Vector = typename Register<T>::type;

  static Vector load(const T* x) {
    Vector v;
    __builtin_memcpy(&v, x, sizeof v);
    return F::map(v);
  }

  /// Blocks of Size lanes, of one row each, in two vectors: the first halves of all blocks, or the second ones.
  template <int Size, int Half, size_t... J>
  static Vector halves(Vector a, Vector b, std::index_sequence<J...>) {
    constexpr int half = Size / 2;
    return __builtin_shufflevector(a, b, (int(J) / half * Size + int(J) % half + Half * half)...);
  }
  /// Lanes of Rows rows from `row` on, in blocks of width / Rows.
  template <int Rows, int First, class Parts>
  static Vector folded(const Parts& parts) {
    if constexpr (Rows == 1) {
      return parts(First);
    } else {
      constexpr int size = 2 * width / Rows;
      const Vector a = folded<Rows / 2, First>(parts), b = folded<Rows / 2, First + Rows / 2>(parts);
      const auto all = std::make_index_sequence<size_t(width)>();
      return F::join(halves<size, 0>(a, b, all), halves<size, 1>(a, b, all));
    }
  }
  /// `groups` groups of L elements of a row, in L lanes folded until they fit a vector.
  template <int L>
  static Vector lanes_of(const T* x, int64_t groups) {
    constexpr int vectors = L / width;
    static_assert(vectors > 0);
    Vector lanes[vectors];
    for (int k = 0; k < vectors; ++k) lanes[k] = load(x + k * width);
    for (int64_t g = 1; g < groups; ++g)
      for (int k = 0; k < vectors; ++k) lanes[k] = F::join(lanes[k], load(x + g * L + k * width));
    for (int step = vectors / 2; step; step /= 2)
      for (int k = 0; k < step; ++k) lanes[k] = F::join(lanes[k], lanes[k + step]);
    return lanes[0];
  }
  /// What is left of a row, fewer than kFew elements, where kFew can be read: those for which `there` is 0 are neutral.
  static Vector rest_of_row(const T* x, const T* there) {
    constexpr int vectors = kFew / width;
    Vector lanes[vectors];
    for (int k = 0; k < vectors; ++k) {
      Vector wanted, neutral = {};
      __builtin_memcpy(&wanted, there + k * width, sizeof wanted);
      neutral += F::neutral();
      lanes[k] = wanted != 0 ? load(x + k * width) : neutral;
    }
    for (int step = vectors / 2; step; step /= 2)
      for (int k = 0; k < step; ++k) lanes[k] = F::join(lanes[k], lanes[k + step]);
    return lanes[0];
  }
  /// How many of `count` rows can be taken: what is read beyond a row's end is the next ones'.
  static int64_t readable(int64_t row_step, int64_t count, int64_t n) {
    const int64_t size = sizeof(T), left = n % kFew, beyond = left ? (kFew - left) * size : 0;
    if (beyond == 0) return count;
    return row_step < n * size ? 0 : count - (beyond + row_step - 1) / row_step;
  }
  /// acc[r] joined with row r, for as many rows as `width`.
  static void block(T* acc, int64_t acc_step, const char* in, int64_t row_step, int64_t n) {
    const auto row = [=](int r) { return reinterpret_cast<const T*>(in + r * row_step); };
    const int64_t groups = n / Lanes, more = n % Lanes / kFew, done = groups * Lanes + more * kFew;
    Vector total;
    for (int j = 0; j < width; ++j) total[j] = F::neutral();
    if (groups) total = F::join(total, folded<width, 0>([&](int r) { return lanes_of<Lanes>(row(r), groups); }));
    if (more)
      total = F::join(total, folded<width, 0>([&](int r) { return lanes_of<kFew>(row(r) + groups * Lanes, more); }));
    if (done < n) {
      T there[kFew];
      for (int64_t j = 0; j < kFew; ++j) there[j] = T(j < n - done);
      total = F::join(total, folded<width, 0>([&](int r) { return rest_of_row(row(r) + done, there); }));
    }
    T totals[width];
    __builtin_memcpy(totals, &total, sizeof totals);
    for (int r = 0; r < width; ++r) acc[r * acc_step] = F::join(acc[r * acc_step], totals[r]);
  }
};

struct Adds {
  template <class V> static V join(V a, V b) { return a + b; }
};
/// NaN wins.
struct Greatest {
  template <class V> static V join(V a, V b) { return (a > b) | (a != a) ? a : b; }
};

/// Sums (or whatever joins) over short rows of what a function makes of their elements. Where there are fewer rows than
/// are folded together the last one stands for those that are missing, so that a row's result does not depend on what
/// is beside it.
template <class T>
struct RowSums {
  using Vector = typename ShortRows<Adds, T, 0>::Vector;
  static constexpr int64_t width = ShortRows<Adds, T, 0>::width;
  /// How many rows of n elements are taken at once; one is better off alone.
  static int64_t together(int64_t n) { return n > 8 && n >= width && n <= 512 ? width : 1; }

  static Vector all(T value) {
    Vector v;
    for (int64_t j = 0; j < width; ++j) v[j] = value;
    return v;
  }
  /// `count` elements of a row of at least `width`: its last ones stand at a vector's end, behind missing ones.
  static Vector load(const T* from, int64_t count, T missing) {
    Vector v;
    __builtin_memcpy(&v, from - (width - count), sizeof v);
    return count < width ? last_of(v, count, missing) : v;
  }
  /// sums[r] = the sum over row r of `rows` of `term(row, first element, how many)`, a vector whose missing elements
  /// add nothing.
  template <class Join = Adds, class Term>
  static void of(int64_t rows, int64_t n, T* sums, const Term& term) {
    const Vector found = folded<Join>([&](int r) {
      const int64_t row = std::min<int64_t>(r, rows - 1);
      Vector sum = term(row, int64_t(0), width);
      int64_t i = width;
      for (; i + width <= n; i += width) sum = Join::join(sum, term(row, i, width));
      return i < n ? Join::join(sum, term(row, i, n - i)) : sum;
    });
    __builtin_memcpy(sums, &found, sizeof found);
  }
  /// Two sums at once, of the two vectors that `term` gives.
  template <class Term>
  static void of_both(int64_t rows, int64_t n, T* sums, T* others, const Term& term) {
    Vector one[width], two[width];
    for (int64_t r = 0; r < width; ++r) {
      const int64_t row = std::min<int64_t>(r, rows - 1);
      auto both = term(row, int64_t(0), width);
      const auto add = [&](int64_t i, int64_t count) {
        const auto more = term(row, i, count);
        both.first += more.first;
        both.second += more.second;
      };
      int64_t i = width;
      for (; i + width <= n; i += width) add(i, width);
      if (i < n) add(i, n - i);
      one[r] = both.first;
      two[r] = both.second;
    }
    const Vector found = folded<Adds>([&](int r) { return one[r]; }),
                 other = folded<Adds>([&](int r) { return two[r]; });
    __builtin_memcpy(sums, &found, sizeof found);
    __builtin_memcpy(others, &other, sizeof other);
  }

 private:
  template <class Join, class Parts>
  static Vector folded(const Parts& parts) {
    return ShortRows<Join, T, 0>::template folded<int(width), 0>(parts);
  }
  static Vector last_of(Vector v, int64_t count, T missing) {
    using Number = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    using Numbers = typename Register<Number>::type;
    Numbers lane;
    for (int64_t j = 0; j < width; ++j) lane[j] = Number(j);
    return lane >= Number(width - count) ? v : all(missing);
  }
};

}  // namespace
}  // namespace taeda::loops::TAEDA_ISA
