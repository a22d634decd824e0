// Sums, means and maxima of bags of a table's rows, a thread for each of their elements.
#pragma once
#include "kernels/elementwise.h"

namespace taeda::cuda {

enum class BagMode : int32_t { Sum, Mean, Most };

/// Bag b has the rows that the indices from offset b to the next one's name; the last one takes what is left.
struct Bags {
  int64_t bags, count, rows, width, padding;  // count: of indices; padding: the row that is left out, or -1
  Array indices, offsets;                     // row-major
  Report report;
  TAEDA_HD int64_t border(int64_t b) const {
    const int64_t at = b < bags ? load<int64_t>(offsets, b) : count;
    return at < 0 ? 0 : at > count ? count : at;
  }
  /// The row of an index; below 0 where it is none, or left out.
  TAEDA_HD int64_t row(int64_t i) const {
    const int64_t found = load<int64_t>(indices, i);
    return within(report, found, rows) && found != padding ? found : -1;
  }
};
struct FillBags {
  Bags of;
  Array table, factors, result, places;  // factors may be absent; places: the rows of maxima
  BagMode mode;
  int32_t reserved;
  TAEDA_HD void operator()(int64_t item) const {
    const int64_t b = quotient(item, of.width), j = item - b * of.width, end = of.border(b + 1);
    double found = 0;
    int64_t rows = 0, place = 0;
    for (int64_t i = of.border(b); i < end; ++i) {
      const int64_t row = of.row(i);
      if (row < 0) continue;
      double x = load<double>(table, row * of.width + j);
      if (factors.data) x *= load<double>(factors, i);
      if (mode != BagMode::Most) found += x;
      else if (rows == 0 || x > found) found = x, place = row;
      ++rows;
    }
    store<double>(result, item, mode == BagMode::Mean && rows > 0 ? found / double(rows) : found);
    if (mode == BagMode::Most) store<int64_t>(places, item, place);
  }
};
/// The bag of each index and the rows of each bag; what offsets are wrong is told.
struct DescribeBags {
  Bags of;
  Array owners, sizes;
  TAEDA_HD void operator()(int64_t i) const {
    if (i < of.count) store<int64_t>(owners, i, owner(i));
    if (i >= of.bags) return;
    const int64_t begin = load<int64_t>(of.offsets, i), least = i > 0 ? load<int64_t>(of.offsets, i - 1) : 0;
    if (begin < least || begin > of.count || (i == 0 && begin != 0)) of.report(Wrong::Offsets, begin, of.count);
    int64_t rows = 0;
    for (int64_t k = of.border(i), end = of.border(i + 1); k < end; ++k) rows += of.row(k) >= 0;
    store<int64_t>(sizes, i, rows);
  }

 private:
  TAEDA_HD int64_t owner(int64_t i) const {
    int64_t low = 0, high = of.bags;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (load<int64_t>(of.offsets, middle) <= i) low = middle + 1;
      else high = middle;
    }
    return low > 0 ? low - 1 : 0;
  }
};

}  // namespace taeda::cuda
