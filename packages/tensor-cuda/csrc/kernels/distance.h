// Distances between rows of matrices, without their differences in memory.
#pragma once
#include "kernels/elementwise.h"
#include "scalar/power.h"

namespace taeda::cuda {

enum class Norm : int32_t { Zero, One, Two, Infinite, Any };

/// Norms of differences, term by term.
template <class C>
struct NormOf {
  Norm norm;
  int32_t reserved;
  double p;
  TAEDA_HD C term(C a, C b) const {
    const C d = loops::TAEDA_ISA::magnitude(a - b);
    switch (norm) {
      case Norm::Zero: return d == 0 ? C(0) : d != d ? d : C(1);
      case Norm::Two: return d * d;
      case Norm::Any: return loops::TAEDA_ISA::vpow(d, C(p));
      default: return d;
    }
  }
  TAEDA_HD C joined(C a, C b) const {
    if (norm == Norm::Infinite) return b > a || b != b ? b : a;
    return a + b;
  }
  TAEDA_HD C whole(C sum) const {
    if (norm == Norm::Two) return loops::TAEDA_ISA::sqrt(sum);
    return norm == Norm::Any ? loops::TAEDA_ISA::vpow(sum, C(1 / p)) : sum;
  }
  /// The derivative of a distance by a difference, times what comes from above; NaN has no direction.
  TAEDA_HD C slope(C grad, C difference, C distance) const {
    const C sign = difference > 0 ? C(1) : difference < 0 ? C(-1) : C(0);
    const C size = loops::TAEDA_ISA::magnitude(difference);
    switch (norm) {
      case Norm::Zero: return C(0);
      case Norm::One: return grad * sign;
      case Norm::Two: return distance == 0 ? C(0) : grad * difference / distance;
      case Norm::Infinite: return size == distance ? grad * sign : C(0);
      default:
        if (distance == 0 || difference == 0) return C(0);
        return grad * sign * loops::TAEDA_ISA::vpow(size, C(p - 1)) * loops::TAEDA_ISA::vpow(distance, C(1 - p));
    }
  }
};

/// Of rows (batch, left, width) from rows (batch, right, width): a block for kSide of each side, which loads its rows
/// piece by piece.
template <class C>
struct Distances {
  static constexpr int kSide = 16, kPiece = 16, kThreads = kSide * kSide;
  struct Shared {
    C left[kSide][kPiece + 1], right[kSide][kPiece + 1];  // one more: threads of a warp meet other banks
  };
  struct Own {
    C sum;
  };
  NormOf<C> norm;
  int64_t left, right, width;
  Array lefts, rights, result;  // row-major

  TAEDA_HD static int64_t tiles(int64_t rows) { return (rows + kSide - 1) / kSide; }
  TAEDA_HD int pieces() const { return int((width + kPiece - 1) / kPiece); }
  TAEDA_HD int phases() const { return 2 * pieces() + 1; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own& own) const {
    const int64_t tile = quotient(item, tiles(right)), n = quotient(tile, tiles(left));
    const int64_t i = (tile - n * tiles(left)) * kSide, j = (item - tile * tiles(right)) * kSide;
    const int row = thread / kSide, column = thread % kSide;
    if (phase == 0) own.sum = C(0);
    if (phase == phases() - 1) {
      if (i + row < left && j + column < right)
        store<C>(result, (n * left + i + row) * right + j + column, norm.whole(own.sum));
      return;
    }
    const int64_t first = int64_t(phase / 2) * kPiece, k = first + column;
    if (phase % 2 == 0) {
      const bool here = k < width;
      shared.left[row][column] = here && i + row < left ? load<C>(lefts, (n * left + i + row) * width + k) : C(0);
      shared.right[row][column] = here && j + row < right ? load<C>(rights, (n * right + j + row) * width + k) : C(0);
    } else {
      const int64_t rest = width - first;
      for (int e = 0; e < kPiece && e < rest; ++e)
        own.sum = norm.joined(own.sum, norm.term(shared.left[row][e], shared.right[column][e]));
    }
  }
};
/// Of every two rows of one matrix, in the order (0, 1), (0, 2), ...
template <class C>
struct PairDistances {
  NormOf<C> norm;
  int64_t rows, width;
  Array input, result;
  TAEDA_HD int64_t pairs_before(int64_t row) const { return row * (2 * rows - row - 1) / 2; }
  TAEDA_HD void operator()(int64_t pair) const {
    int64_t low = 0, high = rows - 1;  // the last row whose pairs do not begin behind this one
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      if (pairs_before(middle) <= pair) low = middle;
      else high = middle;
    }
    const int64_t other = low + 1 + pair - pairs_before(low);
    C sum(0);
    for (int64_t k = 0; k < width; ++k)
      sum = norm.joined(sum, norm.term(load<C>(input, low * width + k), load<C>(input, other * width + k)));
    store<C>(result, pair, norm.whole(sum));
  }
};
/// Gradient (batch, left, width) of the left rows: a thread for each element, over all right rows.
template <class C>
struct DistanceGradient {
  NormOf<C> norm;
  int64_t left, right, width;
  Array grad, lefts, rights, distances, result;  // row-major
  TAEDA_HD void operator()(int64_t item) const {
    const int64_t row = quotient(item, width), k = item - row * width, n = quotient(row, left);
    const C own = load<C>(lefts, item);
    C sum(0);
    for (int64_t j = 0; j < right; ++j)
      sum += norm.slope(load<C>(grad, row * right + j), own - load<C>(rights, (n * right + j) * width + k),
                        load<C>(distances, row * right + j));
    store<C>(result, item, sum);
  }
};

}  // namespace taeda::cuda
