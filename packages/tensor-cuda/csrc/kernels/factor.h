// What libraries of linear algebra are given beside matrices.
#pragma once
#include "kernels/launch.h"

namespace taeda::cuda {

/// Where each matrix of a batch lies.
struct Places {
  uint64_t places, first, step;  // addresses, bytes
  TAEDA_HD void operator()(int64_t item) const { at<uint64_t>(places)[item] = first + uint64_t(item) * step; }
};
/// Exchanges of rows, from 1 to `rows`; others are reported, and exchange nothing that lies outside.
struct Pivots {
  uint64_t to, from;
  int64_t rows;
  Report report;
  TAEDA_HD void operator()(int64_t item) const {
    const int64_t row = at<int32_t>(from)[item];
    at<int64_t>(to)[item] = within(report, row - 1, rows) ? row : 1;
  }
};

}  // namespace taeda::cuda
