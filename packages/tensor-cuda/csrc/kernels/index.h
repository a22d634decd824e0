// Picking and placing elements. What adds up does so in the order of the elements.
#pragma once
#include "kernels/items.h"

namespace taeda::cuda {

/// out[i] = self[..., index[i], ...]: row-major index and output, `self` as it lies.
struct Gather {
  Walk others;          // over the index: strides of self, 0 along the dimension
  int64_t step, limit;  // along it
  Array self, index, out;
  int32_t item, reserved;
  Report report;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t place = load<int64_t>(index, i);
    if (within(report, place, limit)) copy_item(item, out.data, i, self.data, others.offset(i) + place * step);
  }
};
/// Rows of a row-major tensor (outer, limit, inner) by an index over the middle; inner counts units of bytes.
struct Select {
  int64_t inner, count, limit;
  Array self, index, out;
  int32_t unit, wraps;  // negative indices count from the end
  Report report;
  TAEDA_HD void operator()(int64_t i) const {
    // Divisions are most of the work: without something to divide there are none.
    const int64_t row = inner == 1 ? i : quotient(i, inner), rest = i - row * inner;
    const int64_t outer = row < count ? 0 : quotient(row, count);
    int64_t place = load<int64_t>(index, row - outer * count);
    if (wraps && place < 0) place += limit;
    if (within(report, place, limit)) copy_unit(unit, out.data, i, self.data, (outer * limit + place) * inner + rest);
  }
};

/// What comes to the places that an index names, along lines of it.
struct Scatter {
  Walk lines_index, lines_source, lines_out;  // where lines begin; that of the index over lines alone
  int64_t length, step_index, step_source, step_out, limit;
  Array index, source, out;
  Address order;  // places along each line in the order of their targets; none: as they are
  int32_t item, reserved;
  Report report;
  TAEDA_HD int64_t target(int64_t line, int64_t i) const {
    return load<int64_t>(index, lines_index.offset(line) + i * step_index);
  }
  TAEDA_HD int64_t source_place(int64_t line, int64_t i) const { return lines_source.offset(line) + i * step_source; }
  TAEDA_HD int64_t out_place(int64_t line, int64_t t) const { return lines_out.offset(line) + t * step_out; }
};
struct Assign {
  TAEDA_HD static void add(const Scatter& s, int64_t line, int64_t i, int64_t target) {
    copy_item(s.item, s.out.data, s.out_place(line, target), s.source.data, s.source_place(line, i));
  }
  /// The last of a run stays.
  template <class Places>
  TAEDA_HD static void add_run(const Scatter& s, int64_t line, const Places& at_run, int64_t count, int64_t target) {
    add(s, line, at_run(count - 1), target);
  }
};
template <class C>
struct Accumulate {
  TAEDA_HD static void add(const Scatter& s, int64_t line, int64_t i, int64_t target) {
    const int64_t place = s.out_place(line, target);
    store<C>(s.out, place, C(load<C>(s.out, place) + load<C>(s.source, s.source_place(line, i))));
  }
  template <class Places>
  TAEDA_HD static void add_run(const Scatter& s, int64_t line, const Places& at_run, int64_t count, int64_t target) {
    const int64_t place = s.out_place(line, target);
    C sum = load<C>(s.out, place);
    for (int64_t k = 0; k < count; ++k) sum = C(sum + load<C>(s.source, s.source_place(line, at_run(k))));
    store<C>(s.out, place, sum);
  }
};
/// A thread for each line, in order.
template <class Do>
struct ScatterLines {
  Scatter s;
  TAEDA_HD void operator()(int64_t line) const {
    for (int64_t i = 0; i < s.length; ++i) {
      const int64_t target = s.target(line, i);
      if (within(s.report, target, s.limit)) Do::add(s, line, i, target);
    }
  }
};
/// A thread for each run of equal targets, which are in order.
template <class Do>
struct ScatterRuns {
  Scatter s;
  TAEDA_HD void operator()(int64_t at_order) const {
    const int64_t line = quotient(at_order, s.length), k = at_order - line * s.length;
    const int64_t* const order = at<const int64_t>(s.order) + line * s.length;
    const int64_t target = s.target(line, order[k]);
    if (k > 0 && s.target(line, order[k - 1]) == target) return;
    if (!within(s.report, target, s.limit)) return;
    int64_t count = 1;
    while (k + count < s.length && s.target(line, order[k + count]) == target) ++count;
    Do::add_run(s, line, [&](int64_t r) { return order[k + r]; }, count, target);
  }
};

enum class Reduce : int32_t { Sum, Product, Mean, Largest, Smallest };
TAEDA_HD inline double divided(double x, double n) { return x / n; }
TAEDA_HD inline Complex128 divided(Complex128 x, double n) { return {x.re / n, x.im / n}; }
template <class C>
TAEDA_HD inline C divided_by(C x, int64_t n) {
  if constexpr (is_float<C> || is_complex<C>) {
    return divided(x, double(n));
  } else if constexpr (is_same<C, bool>) {
    return x;
  } else {
    const C down = C(x / C(n));
    return C(down - (C(down * C(n)) > x));  // rounded down
  }
}
/// What comes to a place that an index names, from all that are named there, and with `with_self` what stands there. A
/// thread for each element of the index, of which the first of a place does it; long lines are in the order of their
/// targets.
template <class C>
struct ScatterReduce {
  Scatter s;
  Reduce reduce;
  int32_t with_self;
  TAEDA_HD C joined(C a, C b) const {
    if (reduce == Reduce::Product) return C(a * b);
    if constexpr (!is_complex<C>) {
      if (reduce == Reduce::Largest) return a != a || a > b ? a : b;
      if (reduce == Reduce::Smallest) return a != a || a < b ? a : b;
    }
    return C(a + b);
  }
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t line = quotient(i, s.length), k = i - line * s.length;
    const int64_t* const order = s.order ? at<const int64_t>(s.order) + line * s.length : nullptr;
    const int64_t first = order ? order[k] : k, target = s.target(line, first);
    if (order) {
      if (k > 0 && s.target(line, order[k - 1]) == target) return;
    } else {
      for (int64_t j = 0; j < k; ++j)
        if (s.target(line, j) == target) return;
    }
    if (!within(s.report, target, s.limit)) return;
    const int64_t place = s.out_place(line, target);
    C value = load<C>(s.source, s.source_place(line, first));
    int64_t count = 1;
    for (int64_t j = k + 1; j < s.length; ++j) {
      const int64_t next = order ? order[j] : j;
      const bool same = s.target(line, next) == target;
      if (same) value = joined(value, load<C>(s.source, s.source_place(line, next))), ++count;
      else if (order) break;
    }
    if (with_self) value = joined(load<C>(s.out, place), value), ++count;
    store<C>(s.out, place, value);
    if (reduce != Reduce::Mean) return;
    if constexpr (!is_float<C> && !is_complex<C>) value = load<C>(s.out, place);  // what the sum is in the dtype
    store<C>(s.out, place, divided_by(value, count));
  }
};
/// Sums of rows of a gradient (n, inner) by an index with its order, a thread for each run and column.
template <class C>
struct EmbeddingBackward {
  int64_t n, inner, limit, padding;
  Array grad, index, out;
  Address order;
  int32_t by_count, reserved;
  Report report;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t k = quotient(i, inner), column = i - k * inner;
    const int64_t* const places = at<const int64_t>(order);
    const int64_t target = load<int64_t>(index, places[k]);
    if (k > 0 && load<int64_t>(index, places[k - 1]) == target) return;
    if (!within(report, target, limit) || target == padding) return;
    C sum(0);
    int64_t count = 0;
    for (; k + count < n && load<int64_t>(index, places[k + count]) == target; ++count)
      sum = C(sum + load<C>(grad, places[k + count] * inner + column));
    if (by_count) sum = divided(sum, double(count));
    store<C>(out, target * inner + column, sum);
  }
};

/// Row-major matrices of elements of others, as far as these stand in a triangle, and zeros.
struct Triangle {
  Walk from;
  int64_t rows, columns, diagonal;
  Array in, out;
  int32_t item, upper;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t line = quotient(i, columns), off = i - line * columns - (line - quotient(line, rows) * rows);
    if (upper ? off >= diagonal : off <= diagonal) copy_item(item, out.data, i, in.data, from.offset(i));
    else clear_item(item, out.data, i);
  }
};

// --- elements that are not zero ---

struct Nonzero {
  static constexpr int64_t kChunk = 64;
  int64_t n;
  int32_t ndim, reserved;
  int64_t sizes[kDims];
  Array in, counts, out;  // counts: running numbers of the chunks; out: rows of `ndim` places
};
struct CountNonzero {
  Nonzero z;
  TAEDA_HD void operator()(int64_t chunk) const {
    int64_t count = 0;
    for (int64_t i = chunk * z.kChunk; i < (chunk + 1) * z.kChunk && i < z.n; ++i) count += load<bool>(z.in, i);
    store<int64_t>(z.counts, chunk, count);
  }
};
struct WriteNonzero {
  Nonzero z;
  TAEDA_HD void operator()(int64_t chunk) const {
    int64_t row = chunk ? load<int64_t>(z.counts, chunk - 1) : 0;
    for (int64_t i = chunk * z.kChunk; i < (chunk + 1) * z.kChunk && i < z.n; ++i) {
      if (!load<bool>(z.in, i)) continue;
      int64_t rest = i;
      for (int d = z.ndim - 1; d >= 0; --d) {
        store<int64_t>(z.out, row * z.ndim + d, rest % z.sizes[d]);
        rest /= z.sizes[d];
      }
      ++row;
    }
  }
};

}  // namespace taeda::cuda
