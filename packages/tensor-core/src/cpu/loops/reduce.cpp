// Inner loops of reductions: rows, columns and partial results.
#include <limits>

#include "cpu/loops/lanes.h"
#include "cpu/loops/types.h"
#include "scalar/math.h"
#include "cpu/loops/reduce.h"
#include "cpu/loops/total.h"
#include "cpu/loops/short_rows.h"
#include "cpu/loops/truth.h"
#include "cpu/scratch.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

// Each kind of reduction: the accumulator's type, its neutral element, how an element enters, how two parts join.

template <class T>
using Wide =
    std::conditional_t<std::is_same_v<T, uint64_t>, uint64_t, std::conditional_t<std::is_integral_v<T>, int64_t, T>>;
template <class T> struct RealOf {
  using type = T;
};
template <class T> struct RealOf<std::complex<T>> {
  using type = T;
};

template <class T>
struct Sum {
  using Acc = Wide<T>;
  static Acc neutral() { return Acc(0); }
  static Acc map(T x) { return Acc(x); }
  static Acc join(Acc a, Acc b) { return Acc(a + b); }
  template <class V> static V map(V x) { return x; }
  template <class V> static V join(V a, V b) { return a + b; }
};
// Each factor's rounding stays in the product, whatever the order.
template <class T>
struct Prod {
  using Acc = std::conditional_t<std::is_same_v<T, float>, Total<T>, Wide<T>>;
  static Acc neutral() { return Acc(1); }
  static Acc map(T x) { return Acc(x); }
  static Acc join(Acc a, Acc b) { return times(a, b); }
};
template <class T>
struct Max {
  using Acc = T;
  static Acc neutral() {
    return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  }
  static Acc map(T x) { return x; }
  static Acc join(Acc a, Acc b) {
    if constexpr (std::is_floating_point_v<T>) return (a > b) | (a != a) ? a : b;
    else return a > b ? a : b;
  }
  template <class V> static V map(V x) { return x; }
  template <class V> static V join(V a, V b) { return (a > b) | (a != a) ? a : b; }
};
template <class T>
struct Min {
  using Acc = T;
  static Acc neutral() {
    return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
  static Acc map(T x) { return x; }
  static Acc join(Acc a, Acc b) {
    if constexpr (std::is_floating_point_v<T>) return (a < b) | (a != a) ? a : b;
    else return a < b ? a : b;
  }
  template <class V> static V map(V x) { return x; }
  template <class V> static V join(V a, V b) { return (a < b) | (a != a) ? a : b; }
};
template <class T>
struct AbsSum {
  using Acc = typename RealOf<T>::type;
  static Acc neutral() { return 0; }
  static Acc map(T x) {
    if constexpr (is_complex_v<T>) return std::sqrt(x.real() * x.real() + x.imag() * x.imag());
    else return magnitude(x);
  }
  static Acc join(Acc a, Acc b) { return a + b; }
};
template <class T>
struct SquareSum {
  using Acc = typename RealOf<T>::type;
  static Acc neutral() { return 0; }
  static Acc map(T x) {
    if constexpr (is_complex_v<T>) return x.real() * x.real() + x.imag() * x.imag();
    else return x * x;
  }
  static Acc join(Acc a, Acc b) { return a + b; }
  template <class V> static V map(V x) { return x * x; }
  template <class V> static V join(V a, V b) { return a + b; }
};

constexpr int64_t kBlock = 2048;
template <class Acc> inline constexpr int kLanes = int(sizeof(Acc) >= 16        ? 16
                                                       : 256 / sizeof(Acc) > 64 ? 64
                                                                                : 256 / sizeof(Acc));

/// L lanes over as many whole groups as fit, from `i` on; their fold joins `total`.
template <class F, int L, class T>
inline void lanes_of(const T* x, int64_t n, int64_t& i, typename F::Acc& total) {
  using Acc = typename F::Acc;
  if (n - i < L) return;
  Acc lanes[L];
  for (int j = 0; j < L; ++j) lanes[j] = F::map(x[i + j]);
  for (i += L; i + L <= n; i += L)
    for (int j = 0; j < L; ++j) lanes[j] = F::join(lanes[j], F::map(x[i + j]));
  for (int step = L / 2; step; step /= 2)
    for (int j = 0; j < step; ++j) lanes[j] = F::join(lanes[j], lanes[j + step]);
  total = F::join(total, lanes[0]);
}
/// For what ShortRows is compiled: reductions that models make of rows.
template <class F, class T>
inline constexpr bool folds_together = std::is_floating_point_v<T> && std::is_same_v<typename F::Acc, T>
                                           ? std::is_same_v<F, Sum<T>> || std::is_same_v<F, SquareSum<T>> ||
                                                 std::is_same_v<F, Max<T>> || std::is_same_v<F, Min<T>>
                                           : std::is_same_v<F, Sum<int64_t>>;
/// Fewer than L elements, joined in the order of whole groups: what is not there would be neutral.
template <class F, int L, class T>
inline T rest_of(const T* x, int64_t n) {
  T lanes[L];
  for (int64_t j = 0; j < n; ++j) lanes[j] = F::map(x[j]);
  for (int64_t step = L / 2; step; step /= 2) {
    if (n <= step) continue;
    for (int64_t j = 0; j + step < n; ++j) lanes[j] = F::join(lanes[j], lanes[j + step]);
    n = step;
  }
  return lanes[0];
}
/// Narrow integers are summed in 32 bits within a block, where they cannot overflow; truth values in lanes of bytes.
template <class T>
int64_t narrow_sum(const T* x, int64_t n) {
  int32_t total = 0;
  if constexpr (std::is_same_v<T, bool>) {
    constexpr int64_t lanes = 64;
    static_assert(kBlock / lanes < 256);
    const uint8_t* const bytes = reinterpret_cast<const uint8_t*>(x);
    uint8_t sums[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
      for (int64_t j = 0; j < lanes; ++j) sums[j] = uint8_t(sums[j] + (bytes[i + j] != 0));
    for (int64_t j = 0; j < lanes; ++j) total += sums[j];
    for (; i < n; ++i) total += bytes[i] != 0;
    return total;
  }
  for (int64_t i = 0; i < n; ++i) total += int32_t(x[i]);
  return total;
}
/// At most kBlock contiguous elements, in a fixed number of lanes joined by a fixed tree.
template <class F, class T>
typename F::Acc block_of(const T* x, int64_t n) {
  if constexpr (std::is_same_v<F, Sum<T>> && std::is_integral_v<T> && sizeof(T) <= 2) return narrow_sum(x, n);
  constexpr int L = kLanes<typename F::Acc>;
  typename F::Acc total = F::neutral();
  int64_t i = 0;
  lanes_of<F, L>(x, n, i, total);
  lanes_of<F, L / 4>(x, n, i, total);
  if constexpr (folds_together<F, T>) {
    if (i < n) total = F::join(total, rest_of<F, L / 4>(x + i, n - i));
  } else {
    for (; i < n; ++i) total = F::join(total, F::map(x[i]));
  }
  return total;
}
template <class F, class T>
typename F::Acc block_of_strided(const char* x, int64_t stride, int64_t n) {
  using Acc = typename F::Acc;
  const auto at = [&](int64_t i) { return F::map(*reinterpret_cast<const T*>(x + i * stride)); };
  Acc a = F::neutral(), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    a = F::join(a, at(i));
    b = F::join(b, at(i + 1));
    c = F::join(c, at(i + 2));
    d = F::join(d, at(i + 3));
  }
  for (; i < n; ++i) a = F::join(a, at(i));
  return F::join(F::join(a, b), F::join(c, d));
}

/// Blocks joined pairwise, so that the rounding error of a sum grows with the logarithm of n.
template <class F, class T>
void row(void* acc_, const char* in, int64_t stride, int64_t n) {
  using Acc = typename F::Acc;
  Acc& acc = *static_cast<Acc*>(acc_);
  const bool contiguous = stride == sizeof(T);
  const auto block = [&](int64_t i) {
    const int64_t m = n - i < kBlock ? n - i : kBlock;
    return contiguous ? block_of<F, T>(reinterpret_cast<const T*>(in) + i, m)
                      : block_of_strided<F, T>(in + i * stride, stride, m);
  };
  if (n <= kBlock) {
    acc = F::join(acc, block(0));
    return;
  }
  Acc stack[48];
  int depth = 0;
  int64_t taken = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    Acc s = block(i);
    for (int64_t k = taken++; k & 1; k >>= 1) s = F::join(stack[--depth], s);
    stack[depth++] = s;
  }
  Acc total = stack[--depth];
  while (depth) total = F::join(stack[--depth], total);
  acc = F::join(acc, total);
}

/// Of `there` rows that can be read the first `count`.
template <class F, class T>
void first_rows(typename F::Acc* acc, int64_t acc_step, const char* in, int64_t row_stride, int64_t count,
                int64_t there, int64_t n) {
  int64_t r = 0;
  if constexpr (folds_together<F, T>) {
    using Short = ShortRows<F, T, kLanes<T>>;
    constexpr int64_t longest = 1024;
    const int64_t readable = n <= longest ? std::min(count, Short::readable(row_stride, there, n)) : 0;
    for (; r + Short::width <= readable; r += Short::width)
      Short::block(acc + r * acc_step, acc_step, in + r * row_stride, row_stride, n);
  }
  for (; r < count; ++r) row<F, T>(acc + r * acc_step, in + r * row_stride, sizeof(T), n);
}
template <class F, class T>
void rows(void* acc, int64_t acc_step, const char* in, int64_t row_stride, int64_t count, int64_t n) {
  first_rows<F, T>(static_cast<typename F::Acc*>(acc), acc_step, in, row_stride, count, count, n);
}

template <class F>
void start(void* acc, int64_t n) {
  for (int64_t i = 0; i < n; ++i) static_cast<typename F::Acc*>(acc)[i] = F::neutral();
}
/// Out of line, as `columns` needs it three times.
template <class F>
[[gnu::noinline]] void join(void* acc_, const void* other_, int64_t n) {
  auto* acc = static_cast<typename F::Acc*>(acc_);
  const auto* other = static_cast<const typename F::Acc*>(other_);
  for (int64_t i = 0; i < n; ++i) acc[i] = F::join(acc[i], other[i]);
}

/// Joins `Rows` rows with each other and the result into `acc`: what is read and written again for each step is `acc`.
template <class F, int Rows, class T>
inline void join_rows(typename F::Acc* acc, const char* in, int64_t row_stride, int64_t count) {
  const auto row = [=](int r) { return reinterpret_cast<const T*>(in + r * row_stride); };
  if constexpr (Rows == 4) {
    const T *const a = row(0), *const b = row(1), *const c = row(2), *const d = row(3);
#pragma GCC ivdep
    for (int64_t j = 0; j < count; ++j)
      acc[j] = F::join(acc[j], F::join(F::join(F::map(a[j]), F::map(b[j])), F::join(F::map(c[j]), F::map(d[j]))));
  } else {
    static_assert(Rows == 1);
    const T* const a = row(0);
#pragma GCC ivdep
    for (int64_t j = 0; j < count; ++j) acc[j] = F::join(acc[j], F::map(a[j]));
  }
}
/// Extremes of few columns, which stay in registers for all rows. False where there are no vectors of T.
template <class F, class T>
bool narrow_extremes(T* acc, const char* in, int64_t row_stride, int64_t rows, int64_t count) {
  const auto chunk = [=]<size_t... J>(int64_t first, std::index_sequence<J...>) {
    typename Register<T, int(sizeof...(J) * sizeof(T))>::type best, value;
    std::memcpy(&best, acc + first, sizeof best);
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(&value, in + r * row_stride + first * int64_t(sizeof(T)), sizeof value);
      best = F::join(best, value);
    }
    std::memcpy(acc + first, &best, sizeof best);
  };
  if (in_registers<T>(count, chunk)) return true;
  if constexpr (sizeof(T) == 4) return in_registers<T, 8>(count, chunk);
  else return false;
}
template <class F, class T>
void columns(void* acc_, const char* in, int64_t row_stride, int64_t rows, int64_t count) {
  using Acc = typename F::Acc;
  Acc* acc = static_cast<Acc*>(acc_);
  // Bands of rows, joined pairwise: level by level of a binary counter.
  constexpr int64_t tile = 256, band = 64;
  // Nested choices between extremes would not vectorise.
  constexpr bool chooses = std::is_same_v<F, Max<T>> || std::is_same_v<F, Min<T>>;
  constexpr int together = std::is_floating_point_v<T> && !chooses ? 4 : 1;
  constexpr int64_t narrow = 64;
  if constexpr (chooses && std::is_floating_point_v<T>)
    if (count <= narrow && narrow_extremes<F>(acc, in, row_stride, rows, count)) return;
  // As many levels as these rows make, and the last one's working place.
  int64_t levels = 2;
  for (int64_t bands = (rows - 1) / band; bands > 0; bands >>= 1) ++levels;
  const cpu::Scratch room(levels * tile * int64_t(sizeof(Acc)));
  Acc* const parts = room.as<Acc>();
  for (int64_t c = 0; c < count; c += tile) {
    const int64_t m = count - c < tile ? count - c : tile;
    int64_t taken = 0, depth = 0;
    for (int64_t r0 = 0; r0 < rows; r0 += band) {
      const int64_t last = rows - r0 < band ? rows : r0 + band;
      Acc* const local = parts + depth * tile;
      const auto at = [&](int64_t r) { return in + r * row_stride + c * int64_t(sizeof(T)); };
      const T* const x = reinterpret_cast<const T*>(at(r0));
      for (int64_t j = 0; j < m; ++j) local[j] = F::map(x[j]);
      int64_t r = r0 + 1;
      for (; together > 1 && r + together <= last; r += together)
        join_rows<F, together, T>(local, at(r), row_stride, m);
      for (; r < last; ++r) join_rows<F, 1, T>(local, at(r), row_stride, m);
      for (int64_t k = taken++; k & 1; k >>= 1, --depth) join<F>(parts + (depth - 1) * tile, parts + depth * tile, m);
      ++depth;
    }
    for (; depth > 1; --depth) join<F>(parts + (depth - 2) * tile, parts + (depth - 1) * tile, m);
    if (depth) join<F>(acc + c, parts, m);
  }
}
template <template <class> class F, class... Ts>
constexpr void fill(Reducer (&row_of)[kDTypeCount], Types<Ts...>) {
  ((row_of[int(dtype_of<Ts>)] = Reducer{dtype_of<typename F<Ts>::Acc>, start<F<Ts>>, row<F<Ts>, Ts>, columns<F<Ts>, Ts>,
                                        join<F<Ts>>, rows<F<Ts>, Ts>}),
   ...);
}

/// Whether `a` takes the place of `b`: larger (or smaller), NaN before numbers.
template <class T, bool Largest>
inline bool beats(T a, T b) {
  const bool better = Largest ? a > b : a < b;
  if constexpr (std::is_floating_point_v<T>) return (better | (a != a)) & (b == b);
  else return better;
}
/// The first of n > 0 elements that is `best`, or NaN, as nothing but NaN is the best beside it. Blocks are looked
/// through to their ends, without a branch that each row takes elsewhere.
template <class T>
int64_t place_of(T best, const T* x, int64_t n) {
  using Index = std::conditional_t<
      sizeof(T) == 8, int64_t,
      std::conditional_t<sizeof(T) == 4, int32_t, std::conditional_t<sizeof(T) == 2, int16_t, int8_t>>>;
  constexpr Index block = sizeof(T) == 1 ? 64 : 256;
  for (int64_t i = 0; i < n; i += block) {
    const Index m = Index(n - i < block ? n - i : block);
    Index first = block;
    for (Index j = 0; j < m; ++j) {
      const bool found = (x[i + j] == best) | (x[i + j] != x[i + j]);
      const Index at = found ? j : block;
      first = at < first ? at : first;
    }
    if (first < block) return i + first;
  }
  return 0;
}
template <class T, bool Largest>
int64_t arg_row(const char* in, int64_t stride, int64_t n) {
  const auto at = [&](int64_t i) { return *reinterpret_cast<const T*>(in + i * stride); };
  T best = at(0);
  int64_t index = 0;
  for (int64_t i = 1; i < n; ++i) {
    const T x = at(i);
    const bool wins = beats<T, Largest>(x, best);
    best = wins ? x : best;
    index = wins ? i : index;
  }
  return index;
}
template <class T, bool Largest>
void arg_rows(int64_t* index, int64_t index_step, const char* in, int64_t row_stride, int64_t count, int64_t stride,
              int64_t n) {
  using F = std::conditional_t<Largest, Max<T>, Min<T>>;
  if (stride != sizeof(T) || (n < 16 && !folds_together<F, T>)) {
    for (int64_t r = 0; r < count; ++r) index[r * index_step] = arg_row<T, Largest>(in + r * row_stride, stride, n);
    return;
  }
  // The extrema first, by vectors, of as many rows as stay in the cache; then their places.
  constexpr int64_t most = 64;
  const int64_t together = n <= 512 ? most : 1;
  T best[most];
  for (int64_t first = 0; first < count; first += together) {
    const int64_t m = count - first < together ? count - first : together;
    const char* const from = in + first * row_stride;
    for (int64_t r = 0; r < m; ++r) best[r] = F::neutral();
    first_rows<F, T>(best, 1, from, row_stride, m, count - first, n);
    for (int64_t r = 0; r < m; ++r)
      index[(first + r) * index_step] = place_of(best[r], reinterpret_cast<const T*>(from + r * row_stride), n);
  }
}
template <class T, bool Largest>
void arg_columns(void* best_, int64_t* index, const char* in, int64_t row_stride, int64_t rows, int64_t count) {
  T* best = static_cast<T*>(best_);
  std::memcpy(best, in, size_t(count) * sizeof(T));
  for (int64_t j = 0; j < count; ++j) index[j] = 0;
  for (int64_t r = 1; r < rows; ++r) {
    const T* x = reinterpret_cast<const T*>(in + r * row_stride);
#pragma GCC ivdep
    for (int64_t j = 0; j < count; ++j) {
      const bool wins = beats<T, Largest>(x[j], best[j]);
      best[j] = wins ? x[j] : best[j];
      index[j] = wins ? r : index[j];
    }
  }
}
template <class... Ts>
constexpr void fill_extremum(ReduceTable& t, Types<Ts...>) {
  ((t.extremum[0][int(dtype_of<Ts>)] = ArgReducer{arg_rows<Ts, true>, arg_columns<Ts, true>}), ...);
  ((t.extremum[1][int(dtype_of<Ts>)] = ArgReducer{arg_rows<Ts, false>, arg_columns<Ts, false>}), ...);
}

constexpr ReduceTable make() {
  ReduceTable t{};
  fill<Sum>(t.by_dtype[kReduceSum], All{});
  fill<Prod>(t.by_dtype[kReduceProd], All{});
  fill<Max>(t.by_dtype[kReduceMax], BoolOrdered{});
  fill<Min>(t.by_dtype[kReduceMin], BoolOrdered{});
  fill_truth<false>(t.by_dtype[kReduceAny]);
  fill_truth<true>(t.by_dtype[kReduceAll]);
  fill<AbsSum>(t.by_dtype[kReduceAbsSum], Inexact{});
  fill<SquareSum>(t.by_dtype[kReduceSquareSum], Inexact{});
  fill_extremum(t, BoolOrdered{});
  return t;
}

}  // namespace

constinit const ReduceTable reduce = make();

}  // namespace taeda::loops::TAEDA_ISA
