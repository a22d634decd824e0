// CPU kernels of the embedding family.
#include "taeda/ops/embedding.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "cpu/loops/total.h"
#include "cpu/loops/spatial.h"
#include "cpu/prepare.h"
#include "taeda/elementwise.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::row_major;

/// Row-major int64 indices, each within the table.
Tensor checked_indices(const char* op, const Tensor& indices, int64_t rows) {
  const Tensor out = row_major(indices, DType::Int64);
  const int64_t* const at = out.data<int64_t>();
  for (int64_t i = 0; i < out.numel(); ++i)
    check(at[i] >= 0 && at[i] < rows, ErrorKind::Index, op, ": argument 'indices' has ", at[i], " at position ", i,
          ", expected 0 to ", rows - 1, ": index out of range in self");
  return out;
}

void embedding_kernel(const Tensor& out, const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  const Tensor table = row_major(weight), places = checked_indices("embedding", indices, weight.size(0));
  const cpu::Target target(out);
  const size_t bytes = size_t(weight.size(1) * weight.item_bytes());
  const Unlocked unlocked(out.numel() > 32768);
  parallel_for(places.numel(), std::max<int64_t>(1, 65536 / std::max<int64_t>(1, int64_t(bytes))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   std::memcpy(target.tensor().bytes() + size_t(i) * bytes,
                               table.bytes() + size_t(places.data<int64_t>()[i]) * bytes, bytes);
               });
  target.finish();
}

/// Positions grouped by row (counting sort): each row is summed by one thread, in the order of positions.
struct Grouped {
  std::vector<int64_t> start, positions;
  Grouped(const int64_t* indices, int64_t count, int64_t rows, int64_t padding_idx)
      : start(static_cast<size_t>(rows + 1), 0) {
    for (int64_t i = 0; i < count; ++i)
      if (indices[i] != padding_idx) ++start[size_t(indices[i] + 1)];
    for (size_t r = 1; r < start.size(); ++r) start[r] += start[r - 1];
    positions.resize(size_t(start.back()));
    std::vector<int64_t> next(start.begin(), start.end() - 1);
    for (int64_t i = 0; i < count; ++i)
      if (indices[i] != padding_idx) positions[size_t(next[size_t(indices[i])]++)] = i;
  }
};

constexpr int64_t kFew = 8;  // addends whose rounding stays small; more are summed in double

template <class T>
void sum_rows(const Tensor& out, const Tensor& grad, const Grouped& groups, bool by_freq) {
  const int64_t rows = out.size(0), width = out.size(1);
  parallel_for(rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, width)), [&](int64_t begin, int64_t end) {
    std::vector<Total<T>> totals;
    for (int64_t r = begin; r < end; ++r) {
      T* const to = out.data<T>() + r * width;
      const int64_t first = groups.start[size_t(r)], last = groups.start[size_t(r + 1)];
      const auto add_to = [&]<class S>(S* sums) {
        std::fill_n(sums, width, S(0));
        for (int64_t p = first; p < last; ++p) {
          const T* const from = grad.data<T>() + groups.positions[size_t(p)] * width;
          for (int64_t j = 0; j < width; ++j) sums[j] += S(from[j]);
        }
      };
      if (last - first > kFew) {
        totals.resize(size_t(width));
        add_to(totals.data());
        for (int64_t j = 0; j < width; ++j) to[j] = T(totals[size_t(j)]);
      } else {
        add_to(to);
      }
      if (by_freq && last - first > 1)
        for (int64_t j = 0; j < width; ++j) to[j] /= T(last - first);
    }
  });
}

void embedding_backward_kernel(const Tensor& out, const Tensor& grad, const Tensor& indices, int64_t num_weights,
                               int64_t padding_idx, bool by_freq) {
  const DType dtype = compute_dtype(out.dtype());
  const Tensor places = checked_indices("embedding_backward", indices, num_weights), g = row_major(grad, dtype);
  const Grouped groups(places.data<int64_t>(), places.numel(), num_weights, padding_idx);
  const cpu::Target target(out, dtype);
  const Unlocked unlocked(out.numel() > 32768);
  switch (dtype) {
    case DType::Float32: sum_rows<float>(target.tensor(), g, groups, by_freq); break;
    case DType::Float64: sum_rows<double>(target.tensor(), g, groups, by_freq); break;
    case DType::Complex64: sum_rows<Complex64>(target.tensor(), g, groups, by_freq); break;
    case DType::Complex128: sum_rows<Complex128>(target.tensor(), g, groups, by_freq); break;
    default: fail(ErrorKind::NotImplemented, "embedding_backward: not implemented for dtype ", name(dtype));
  }
  target.finish();
}

/// Where each bag begins, and at the end where the last one ends.
std::vector<int64_t> bag_borders(const Tensor& offsets, int64_t count, bool include_last) {
  const Tensor given = row_major(offsets, DType::Int64);
  std::vector<int64_t> borders(given.data<int64_t>(), given.data<int64_t>() + given.numel());
  check(borders.empty() || borders[0] == 0, ErrorKind::Runtime, "embedding_bag: argument 'offsets' begins with ",
        borders.empty() ? 0 : borders[0], ", expected 0, the first bag's first index");
  if (!include_last) borders.push_back(count);
  else if (borders.size() > 1) borders.back() = count;  // the last bag takes what is left, whatever is said
  for (size_t b = 1; b < borders.size(); ++b)
    check(borders[b] >= borders[b - 1] && borders[b] <= count, ErrorKind::Runtime,
          "embedding_bag: argument 'offsets' has ", borders[b], " after ", borders[b - 1],
          ", expected numbers that do not fall and are at most ", count, ", the number of indices");
  return borders;
}

struct Bags {
  const int64_t* indices;
  std::vector<int64_t> borders;
  int64_t mode, width, padding;
};

/// The rows of one bag and their weights; kept from bag to bag.
template <class T>
struct Chosen {
  const T* table;
  std::vector<const T*> rows;
  std::vector<T> weights;
  size_t count = 0;
  void choose(const Bags& bags, int64_t bag, const T* factors) {
    const int64_t first = bags.borders[size_t(bag)], last = bags.borders[size_t(bag) + 1];
    if (rows.size() < size_t(last - first)) {
      rows.resize(size_t(last - first));
      weights.resize(size_t(last - first), T(1));
    }
    count = 0;
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = bags.indices[i];
      if (row == bags.padding) continue;
      rows[count] = table + row * bags.width;
      if (factors) weights[count] = factors[i];
      ++count;
    }
  }
};

template <class T>
void fill_maxima(const Chosen<T>& chosen, int64_t width, T* to, int64_t* places) {
  std::fill_n(places, width, int64_t(0));
  for (size_t k = 0; k < chosen.count; ++k) {
    const T* const from = chosen.rows[k];
    for (int64_t j = 0; j < width; ++j)
      if (k == 0 || from[j] > to[j]) to[j] = from[j], places[j] = (from - chosen.table) / width;
  }
}
/// One bag, of at least one row. `places` is null but for maxima.
template <class T>
void fill_bag(const Bags& bags, const Chosen<T>& chosen, T* to, int64_t* places) {
  const int64_t width = bags.width, count = int64_t(chosen.count);
  if (places) return fill_maxima(chosen, width, to, places);
  loops::spatial_loops<T>().blend(chosen.rows.data(), chosen.weights.data(), count, width, to);
  const T divisor = bags.mode == 1 ? T(count) : T(1);
  for (int64_t j = 0; j < width; ++j) to[j] = (T(0) + to[j]) / divisor;  // no sum is -0
}

void embedding_bag_kernel(const Tensor& result, const Tensor& offset2bag, const Tensor& bag_size,
                          const Tensor& max_indices, const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                          bool, int64_t mode, bool, const Tensor& per_sample_weights, bool include_last,
                          std::optional<int64_t> padding_idx) {
  const DType dtype = compute_dtype(weight.dtype());
  const Tensor table = row_major(weight, dtype), factors = cpu::row_major_or_none(per_sample_weights, dtype);
  const Tensor rows = checked_indices("embedding_bag", indices, weight.size(0));
  int64_t padding = padding_idx.value_or(-1);
  if (padding_idx && padding < 0) padding += weight.size(0);
  const Bags bags{rows.data<int64_t>(), bag_borders(offsets, rows.numel(), include_last), mode, weight.size(1),
                  padding};
  const cpu::Target sums(result, dtype), owners(offset2bag), sizes(bag_size), places(max_indices);
  {
    const Unlocked unlocked(rows.numel() * bags.width > 32768);
    const auto run = [&]<class T>() {
      const int64_t mean = rows.numel() / std::max<int64_t>(1, bag_size.numel()) + 1;
      parallel_for(bag_size.numel(), std::max<int64_t>(1, 32768 / std::max<int64_t>(1, mean * bags.width)),
                   [&](int64_t begin, int64_t end) {
                     Chosen<T> chosen{table.data<T>(), {}, {}};
                     for (int64_t b = begin; b < end; ++b) {
                       const int64_t first = bags.borders[size_t(b)], last = bags.borders[size_t(b + 1)];
                       std::fill(owners.data<int64_t>() + first, owners.data<int64_t>() + last, b);
                       chosen.choose(bags, b, factors.defined() ? factors.data<T>() : nullptr);
                       sizes.data<int64_t>()[b] = int64_t(chosen.count);
                       T* const to = sums.data<T>() + b * bags.width;
                       int64_t* const at = mode == 2 ? places.data<int64_t>() + b * bags.width : nullptr;
                       if (chosen.count) {
                         fill_bag(bags, chosen, to, at);
                         continue;
                       }
                       std::fill_n(to, bags.width, T(0));
                       if (at) std::fill_n(at, bags.width, int64_t(0));
                     }
                   });
    };
    if (dtype == DType::Float64) run.operator()<double>();
    else run.operator()<float>();
  }
  sums.finish();
  owners.finish();
  sizes.finish();
  places.finish();
}

const bool registered = [] {
  kernel<op::embedding_bag>(kCPU, embedding_bag_kernel);
  kernel<op::embedding>(kCPU, embedding_kernel);
  kernel<op::embedding_backward>(kCPU, embedding_backward_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
