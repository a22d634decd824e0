// CPU kernels of the embedding family.
#include "taeda/ops/embedding.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "cpu/indexing.h"
#include "cpu/loops/bags.h"
#include "cpu/loops/total.h"
#include "cpu/prepare.h"
#include "taeda/elementwise.h"
#include "taeda/ops/cast.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::row_major;

/// Row-major int64 indices, each within the table.
Tensor checked_indices(const char* op, const Tensor& indices, int64_t rows) {
  const Tensor out = row_major(indices, DType::Int64);
  const int64_t* const at = out.data<int64_t>();
  const int64_t count = out.numel();
  bool fit = true;
  for (int64_t i = 0; i < count; ++i) fit &= uint64_t(at[i]) < uint64_t(rows);
  for (int64_t i = 0; !fit && i < count; ++i)
    check(at[i] >= 0 && at[i] < rows, ErrorKind::Index, op, ": argument 'indices' has ", at[i], " at position ", i,
          ", expected 0 to ", rows - 1, ": index out of range in self");
  return out;
}

void embedding_kernel(const Tensor& out, const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  const Tensor places = checked_indices("embedding", indices, weight.size(0));
  const cpu::Target target(out);
  const bool whole_rows = weight.size(1) <= 1 || weight.stride(1) == 1;
  if (!whole_rows && places.numel() < weight.size(0)) {
    const Tensor rows = alias(target.tensor(), Shape{places.numel(), weight.size(1)}, Shape{weight.size(1), 1}, 0);
    cpu::select_slices("embedding", rows, weight, 0, alias(places, Shape{places.numel()}, Shape{1}, 0));
    return target.finish();
  }
  const Tensor table = whole_rows ? weight : row_major(weight);
  const size_t bytes = size_t(weight.size(1) * weight.item_bytes()),
               step = size_t(table.stride(0) * table.item_bytes());
  const Unlocked unlocked(out.numel() > 32768);
  parallel_for(places.numel(), std::max<int64_t>(1, 65536 / std::max<int64_t>(1, int64_t(bytes))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   std::memcpy(target.tensor().bytes() + size_t(i) * bytes,
                               table.bytes() + size_t(places.data<int64_t>()[i]) * step, bytes);
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

/// Writes numbers that were computed with in another dtype.
template <class T, class S>
void convert_line(T* to, const S* from, int64_t n) {
  char* const places[] = {reinterpret_cast<char*>(to), reinterpret_cast<char*>(const_cast<S*>(from))};
  const int64_t strides[] = {sizeof(T), sizeof(S)};
  convert_elements(dtype_of<T>, dtype_of<S>, places, strides, n);
}

constexpr int64_t kFew = 8;  // addends whose rounding stays small; more are summed in double

/// Numbers of T are summed as ones of S, its own type or a wider one, and rounded once.
template <class T, class S>
void sum_rows(const Tensor& out, const Tensor& grad, const Grouped& groups, bool by_freq) {
  constexpr bool converts = !std::is_same_v<T, S>;
  const int64_t rows = out.size(0), width = out.size(1);
  parallel_for(rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, width)), [&](int64_t begin, int64_t end) {
    std::vector<Total<S>> totals;
    std::vector<S> line(size_t(converts ? width : 0)), addend(line.size());
    for (int64_t r = begin; r < end; ++r) {
      T* const to = out.data<T>() + r * width;
      const int64_t first = groups.start[size_t(r)], last = groups.start[size_t(r + 1)];
      const auto row = [&](int64_t p) { return grad.data<T>() + groups.positions[size_t(p)] * width; };
      if (last - first < 2) {
        if (first == last) std::memset(static_cast<void*>(to), 0, size_t(width) * sizeof(T));
        else std::memcpy(static_cast<void*>(to), row(first), size_t(width) * sizeof(T));
        continue;
      }
      S* sums;
      if constexpr (converts) sums = line.data();
      else sums = to;
      const auto add_to = [&]<class R>(R* to) {
        std::fill_n(to, width, R(0));
        for (int64_t p = first; p < last; ++p) {
          const S* from;
          if constexpr (converts) convert_line(addend.data(), row(p), width), from = addend.data();
          else from = row(p);
          for (int64_t j = 0; j < width; ++j) to[j] += R(from[j]);
        }
      };
      if (last - first > kFew) {
        totals.resize(size_t(width));
        add_to(totals.data());
        for (int64_t j = 0; j < width; ++j) sums[j] = S(totals[size_t(j)]);
      } else {
        add_to(sums);
      }
      if (by_freq)
        for (int64_t j = 0; j < width; ++j) sums[j] /= S(last - first);
      if constexpr (converts) convert_line(to, sums, width);
    }
  });
}

void embedding_backward_kernel(const Tensor& out, const Tensor& grad, const Tensor& indices, int64_t num_weights,
                               int64_t padding_idx, bool by_freq) {
  const Tensor places = checked_indices("embedding_backward", indices, num_weights), g = row_major(grad, out.dtype());
  const Grouped groups(places.data<int64_t>(), places.numel(), num_weights, padding_idx);
  const cpu::Target target(out);
  const Unlocked unlocked(out.numel() > 32768);
  const auto run = [&]<class T, class S>() { sum_rows<T, S>(target.tensor(), g, groups, by_freq); };
  switch (out.dtype()) {
    case DType::Float16: run.operator()<Half, float>(); break;
    case DType::BFloat16: run.operator()<BFloat16, float>(); break;
    case DType::Float32: run.operator()<float, float>(); break;
    case DType::Float64: run.operator()<double, double>(); break;
    case DType::Complex64: run.operator()<Complex64, Complex64>(); break;
    case DType::Complex128: run.operator()<Complex128, Complex128>(); break;
    default: fail(ErrorKind::NotImplemented, "embedding_backward: not implemented for dtype ", name(out.dtype()));
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

/// The rows of a bag, but for those that are left out: kept from bag to bag.
template <class S>
struct Left {
  std::vector<int64_t> indices;
  std::vector<S> factors;
  template <class T>
  void leave_out(loops::Bag<T>& bag, int64_t padding) {
    indices.clear();
    factors.clear();
    for (int64_t k = 0; k < bag.count; ++k) {
      if (bag.indices[k] == padding) continue;
      indices.push_back(bag.indices[k]);
      if (bag.factors) factors.push_back(bag.factors[k]);
    }
    bag.indices = indices.data(), bag.count = int64_t(indices.size()), bag.end = bag.indices + bag.count;
    if (bag.factors) bag.factors = factors.data();
  }
};

/// Sums of bags in turn: where they are wanted, or, of another dtype, in a place from which many are converted at once.
template <class T, class Sum>
class SumsOfBags {
 public:
  SumsOfBags(T* results, int64_t width, int64_t begin, int64_t end)
      : results_(results), width_(width), first_(begin), end_(end) {
    if constexpr (converts) place_.resize(size_t(width * std::min(end - begin, together())));
  }
  /// Where those of bag `b` are to be put before the next one's are asked for.
  Sum* of(int64_t b) {
    if constexpr (converts) return place_.data() + (b - first_) * width_;
    else return results_ + b * width_;
  }
  void done(int64_t b) {
    if constexpr (converts) {
      if (b + 1 - first_ < together() && b + 1 < end_) return;
      convert_line(results_ + first_ * width_, place_.data(), (b + 1 - first_) * width_);
      first_ = b + 1;
    }
  }

 private:
  static constexpr bool converts = !std::is_same_v<T, Sum>;
  int64_t together() const { return std::max<int64_t>(1, 4096 / std::max<int64_t>(1, width_)); }

  T* results_;
  int64_t width_, first_, end_;
  std::vector<Sum> place_;
};
/// Of one row without a factor: the row itself, but that a sum is never -0.
template <class T, class Sum>
void sum_of_one(const loops::Bag<T>& bag, Sum* __restrict out) {
  constexpr int64_t ahead = 16, line = 64;
  const T* const row = bag.table + bag.indices[0] * bag.width;
  if (bag.indices + ahead < bag.end)
    for (int64_t i = 0; i < bag.width * int64_t(sizeof(T)); i += line)
      __builtin_prefetch(reinterpret_cast<const char*>(bag.table + bag.indices[ahead] * bag.width) + i);
  for (int64_t j = 0; j < bag.width; ++j) out[j] = row[j] + Sum(0);
}

struct BagResults {
  const Tensor &sums, &owners, &sizes, &places;  // places: of maxima alone
};
template <class T>
void fill_bags(const BagResults& to, const Tensor& table, const Tensor& indices, const std::vector<int64_t>& borders,
               int64_t mode, const Tensor& factors, int64_t padding) {
  using Sum = typename loops::Bag<T>::Sum;
  const loops::BagLoops<T>& loops = loops::bag_loops<T>();
  const int64_t bags = to.sizes.numel(), width = table.size(1), mean = indices.numel() / std::max<int64_t>(1, bags) + 1;
  const T* const rows = table.data<T>();
  const int64_t *const all = indices.data<int64_t>(), *const end_of_all = all + indices.numel();
  const Sum* const all_factors = factors.defined() ? factors.data<Sum>() : nullptr;
  int64_t *const owners = to.owners.data<int64_t>(), *const sizes = to.sizes.data<int64_t>();
  int64_t* const places = mode == 2 ? to.places.data<int64_t>() : nullptr;
  T* const results = to.sums.data<T>();
  parallel_for(bags, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, mean * width)), [&](int64_t begin, int64_t end) {
    Left<Sum> left;
    SumsOfBags<T, Sum> all_sums(results, width, begin, end);
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = borders[size_t(b)], last = borders[size_t(b + 1)];
      std::fill(owners + first, owners + last, b);
      loops::Bag<T> bag{rows, width, all + first, last - first, end_of_all, nullptr, Sum(1)};
      if (all_factors) bag.factors = all_factors + first;
      if (padding >= 0) left.leave_out(bag, padding);
      sizes[b] = bag.count;
      if (mode == 1 && bag.count) bag.divisor = Sum(bag.count);
      Sum* const sums = all_sums.of(b);
      int64_t* const at = places ? places + b * width : nullptr;
      if (!bag.count) {
        std::fill_n(sums, width, Sum(0));
        if (at) std::fill_n(at, width, int64_t(0));
      } else if (at) {
        loops.most(bag, sums, at);
      } else if (std::is_same_v<T, Sum> && bag.count == 1 && !bag.factors) {
        if constexpr (std::is_same_v<T, Sum>) sum_of_one(bag, sums);
      } else {
        loops.sum(bag, sums);
      }
      all_sums.done(b);
    }
  });
}

void embedding_bag_kernel(const Tensor& result, const Tensor& offset2bag, const Tensor& bag_size,
                          const Tensor& max_indices, const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                          bool, int64_t mode, bool, const Tensor& per_sample_weights, bool include_last,
                          std::optional<int64_t> padding_idx) {
  const DType dtype = compute_dtype(weight.dtype());
  const Tensor table = row_major(weight), factors = cpu::row_major_or_none(per_sample_weights, dtype);
  const Tensor rows = checked_indices("embedding_bag", indices, weight.size(0));
  const std::vector<int64_t> borders = bag_borders(offsets, rows.numel(), include_last);
  int64_t padding = padding_idx.value_or(-1);
  if (padding_idx && padding < 0) padding += weight.size(0);
  const cpu::Target sums(result), owners(offset2bag), sizes(bag_size), places(max_indices);
  if (borders.size() < 2) ops::zero_(owners.tensor());  // of indices in no bag
  {
    const Unlocked unlocked(rows.numel() * weight.size(1) > 32768);
    const BagResults to{sums.tensor(), owners.tensor(), sizes.tensor(), places.tensor()};
    const auto run = [&]<class T>() { fill_bags<T>(to, table, rows, borders, mode, factors, padding); };
    switch (weight.dtype()) {
      case DType::Float64: run.operator()<double>(); break;
      case DType::Float16: run.operator()<Half>(); break;
      case DType::BFloat16: run.operator()<BFloat16>(); break;
      default: run.operator()<float>();
    }
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
