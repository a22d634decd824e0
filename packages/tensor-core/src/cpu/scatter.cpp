// CPU kernels that gather from and scatter to one place for each element.
#include <algorithm>
#include <array>
#include <cmath>
#include <atomic>
#include <span>
#include <utility>
#include <vector>

#include "cpu/arith.h"
#include "cpu/indexing.h"
#include "cpu/prepare.h"
#include "infer/dims.h"
#include "taeda/elementwise.h"
#include "taeda/interrupt.h"
#include "taeda/ops/arith.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/index.h"
#include "taeda/ops/shape.h"
#include "taeda/parallel.h"
#include "taeda/texts.h"

namespace taeda::cpu {
namespace {

/// One row of index elements: where its places in the target and its elements of the other tensor lie.
struct IndexRow {
  const int64_t* index;
  int64_t length, index_step, place, place_step, other, other_step;
};

/// Calls `body(place, element of the other tensor)` along a row; `step` is the target's stride along the indexed
/// dimension of `size`.
template <class Body>
void visit_row(const char* op, const IndexRow& row, bool checked, int64_t dim, int64_t size, int64_t step,
               const Body& body) {
  if (checked || plain_indices(row.index, row.length, size, row.index_step)) {
    // Copies of the members stay in registers, whatever `body` writes to.
    const auto [index, length, index_step, place, place_step, other, other_step] = row;
    if (step == 1 && place_step == 0 && other_step == 1 && index_step == 1) {
#pragma GCC unroll 8
      for (int64_t j = 0; j < length; ++j) body(place + index[j], other + j);
    } else {
#pragma GCC unroll 4
      for (int64_t j = 0; j < length; ++j)
        body(place + j * place_step + index[j * index_step] * step, other + j * other_step);
    }
    return;
  }
  for (int64_t j = 0; j < row.length; ++j) {
    const int64_t v = row.index[j * row.index_step];
    if (v < 0 || v >= size) fail(ErrorKind::Index, op, ": argument 'index': ", out_of_bounds(v, dim, size));
    body(row.place + j * row.place_step + v * step, row.other + j * row.other_step);
  }
}

/// The dimensions of an index as they are walked: steps in the index, in the target's slices and in the other tensor.
struct Walk {
  Shape sizes;
  std::array<Shape, 3> steps;
  size_t shared = 0;  // the dimension that threads share out: not the indexed one
  bool shares = false;

  Walk(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& other) {
    const auto steps_of = [&](int64_t d) {
      return std::array<int64_t, 3>{index.stride(d), d == dim ? 0 : target.stride(d), other.stride(d)};
    };
    size_t indexed = size_t(index.dim());
    for (int64_t d = 0; d < index.dim(); ++d) {
      if (index.size(d) == 1) continue;
      const std::array<int64_t, 3> step = steps_of(d);
      if (d != dim && joins(step, index.size(d), indexed)) continue;
      if (d == dim) indexed = sizes.size();
      add(index.size(d), step);
    }
    if (sizes.empty()) add(1, steps_of(0));
    lengthen_rows(indexed);
    for (shared = 0; shared < sizes.size() && shared == indexed;) ++shared;
    shares = shared < sizes.size();
  }

 private:
  void add(int64_t size, const std::array<int64_t, 3>& step) {
    sizes.push_back(size);
    for (size_t k = 0; k < 3; ++k) steps[k].push_back(step[k]);
  }
  /// Whether a dimension goes on where the one before it, if that is not the indexed one, takes its steps.
  bool joins(const std::array<int64_t, 3>& step, int64_t size, size_t indexed) {
    if (sizes.empty() || sizes.size() - 1 == indexed) return false;
    const size_t last = sizes.size() - 1;
    for (size_t k = 0; k < 3; ++k)
      if (steps[k][last] != step[k] * size) return false;
    sizes[last] *= size;
    for (size_t k = 0; k < 3; ++k) steps[k][last] = step[k];
    return true;
  }
  /// Rows of few elements change places with a dimension that is long enough, whose elements lie nearest to each other;
  /// with the longest where none is. What meets in a place keeps its order: it differs in the indexed dimension alone.
  void lengthen_rows(size_t& indexed) {
    constexpr int64_t few = 16;
    const size_t last = sizes.size() - 1;
    if (sizes[last] >= few) return;
    size_t best = last;
    for (size_t d = 0; d < last; ++d) {
      const bool nearer = std::abs(steps[0][d]) < std::abs(steps[0][best]);
      if (sizes[best] < few ? sizes[d] > sizes[best] : sizes[d] >= few && nearer) best = d;
    }
    if (best == last) return;
    std::swap(sizes[best], sizes[last]);
    for (Shape& step : steps) std::swap(step[best], step[last]);
    if (indexed == last) indexed = best;
    else if (indexed == best) indexed = last;
  }
};

/// Visits index elements: `body(offset of the place in `target`, offset in `other`)`.
/// `checked`: what check_all returned. `split`: in several threads, each with slices of its own along another
/// dimension, so that places do not meet.
template <class Body>
void along(const char* op, const Tensor& target, int64_t dim, const Tensor& index_, const Tensor& other,
           const Body& body, bool split = false, bool checked = false) {
  const Tensor index = index_.dtype() == DType::Int64 ? index_ : ops::to_dtype(index_, DType::Int64);
  if (index.numel() == 0) return;
  const int64_t size = target.size(dim), step = target.stride(dim);
  const Walk walk(target, dim, index, other);
  const size_t last = walk.sizes.size() - 1;
  const auto& steps = walk.steps;
  const std::array<IntSpan, 3> rows{IntSpan(steps[0]).first(last), IntSpan(steps[1]).first(last),
                                    IntSpan(steps[2]).first(last)};
  const int64_t* const values = index.data<int64_t>();
  const auto visit = [&](IntSpan sizes, const std::array<int64_t, 3>& from) {
    // Parts of long rows, so that what lies between their elements is still near when the next row takes it.
    constexpr int64_t part = 4096;
    for (int64_t begin = 0; begin < sizes[last]; begin += part) {
      const int64_t length = std::min(part, sizes[last] - begin);
      for_each_offset<3>(
          sizes.first(last), rows,
          [&](const auto& o, const auto&) {
            const IndexRow row{values + o[0], length, steps[0][last], o[1], steps[1][last], o[2], steps[2][last]};
            visit_row(op, row, checked, dim, size, step, body);
          },
          {from[0] + begin * steps[0][last], from[1] + begin * steps[1][last], from[2] + begin * steps[2][last]});
    }
  };
  if (!split || index.numel() <= kLoopGrain || !walk.shares) return visit(walk.sizes, {});
  const size_t cut = walk.shared;
  const int64_t slices = walk.sizes[cut], grain = std::max<int64_t>(1, kLoopGrain * slices / index.numel());
  parallel_for(slices, grain, [&](int64_t begin, int64_t end) {
    Shape sizes(walk.sizes);
    sizes[cut] = end - begin;
    visit(sizes, {begin * steps[0][cut], begin * steps[1][cut], begin * steps[2][cut]});
  });
}

/// The first of the index's lines along `dim`.
Tensor line(const Tensor& index, int64_t dim) {
  Shape sizes(size_t(index.dim()), 1);
  sizes[size_t(dim)] = index.size(dim);
  return alias(index, sizes, index.strides(), 0);
}
/// Whether `index` says the same place for whole slices of many elements, of `to` and of `source`: as sums over the
/// neighbours in a graph are written.
bool spread(const Tensor& index, const Tensor& to, const Tensor& source, int64_t dim) {
  constexpr int64_t many = 8;
  if (index.numel() < many * index.size(dim) || index.dtype() != DType::Int64) return false;
  for (int64_t d = 0; d < index.dim(); ++d) {
    if (index.size(d) != source.size(d)) return false;
    if (d != dim && ((index.stride(d) != 0 && index.size(d) > 1) || index.size(d) != to.size(d))) return false;
  }
  return true;
}
void gather_kernel(const Tensor& out_, const Tensor& self_, int64_t dim, const Tensor& index_, bool) {
  const Tensor out = at_least_1d(out_), self = at_least_1d(self_), index = at_least_1d(index_);
  const int64_t d = infer::axis_of(dim, self.dim());
  if (spread(index, self, out, d)) return select_slices("gather", out, self, d, line(index, d));
  const Unlocked unlocked(index.numel() > 32768);
  visit_width(self.dtype(), [&]<class T>() {
    along(
        "gather", self, d, index, out,
        [to = out.data<T>(), from = self.data<T>()](int64_t place, int64_t at) { to[at] = from[place]; }, true);
  });
}

/// Indices are all checked before the first write, so that a bad one leaves `self` as it was.
/// True when they are dense.
bool check_all(const char* op, const Tensor& target, int64_t dim, const Tensor& index) {
  if (index.contiguous() && index.dtype() == DType::Int64) {
    std::atomic<bool> plain = true;
    parallel_for(index.numel(), kLoopGrain, [&](int64_t begin, int64_t end) {
      if (!plain_indices(index.data<int64_t>() + begin, end - begin, target.size(dim))) plain = false;
    });
    if (plain) return true;
  }
  along(op, target, dim, index, index, [](int64_t, int64_t) {}, true);
  return false;
}

/// `Sums`: the places may be wider than the values; otherwise it only moves them.
template <bool Sums = false, class Combine>
void scatter_with(const char* op, const Tensor& out_, const Tensor& self, int64_t dim, const Tensor& index_,
                  const Tensor& src_, const Combine& combine) {
  const Tensor out = at_least_1d(out_), index = at_least_1d(index_);
  if (index.numel() == 0) return start_from(out_, self);
  const int64_t d = infer::axis_of(dim, out.dim());
  const Tensor src = at_least_1d(src_);
  if (spread(index, out, src, d)) {
    const Tensor places = line(index, d);
    check_all(op, out, d, places);
    start_from(out_, self);
    return Sums ? add_slices(op, out, d, places, src) : assign_slices(op, out, d, places, src);
  }
  const bool checked = check_all(op, out, d, index);
  start_from(out_, self);
  const auto visit = [&]<class T, class V>() {
    along(
        op, out, d, index, src,
        [&combine, to = out.data<T>(), from = src.data<V>()](int64_t place, int64_t at) {
          combine(to[place], from[at]);
        },
        true, checked);
  };
  if constexpr (Sums) visit_sum(out.dtype(), src.dtype(), visit);
  else visit_width(out.dtype(), [&]<class T>() { visit.template operator()<T, T>(); });
}

void scatter_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_with("scatter", out, self, dim, index, src, Assign{});
}
void scatter_value_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                          const Scalar& value) {
  const bool real = value.is_complex() && !is_complex(out.dtype());  // inference has looked at its imaginary part
  const Tensor one = ops::to_dtype(Tensor(real ? Scalar(value.to_double()) : value), out.dtype());
  const Tensor places = at_least_1d(index);
  scatter_with("scatter", out, self, dim, places, alias(one, places.sizes(), Shape(size_t(places.dim()), 0), 0),
               Assign{});
}
void scatter_add_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  const Tensor src = addends(source);
  if (sums_apart(out, index.numel()))
    return summed_apart(out, [&](const Tensor& sums) { scatter_add_kernel(sums, self, dim, index, src); });
  scatter_with<true>("scatter_add", out, self, dim, index, src,
                     []<class T, class V>(T& place, V value) { place = plus(place, T(value)); });
}

/// Order of real numbers with NaN above everything, as amax and amin propagate it.
template <class T>
bool exceeds(T a, T b) {
  if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>)
    return false;  // inference has refused it
  else if constexpr (std::is_integral_v<T>) return a > b;
  else if constexpr (std::is_floating_point_v<T>) return (a != a) | (a > b);
  else return exceeds(float(a), float(b));
}

/// Places of a result and its counts, and the elements of the source that meet there.
struct Visit {
  int64_t place, at;
};
struct ScatterReduction {
  bool mean, sum, prod, largest;
  char* target;
  const char* values;
  int64_t* seen;  // null where nothing is counted
};
/// Calls `body` with the function that joins two elements of a dtype.
template <class Body>
void visit_joined(const ScatterReduction& how, const Body& body) {
  if (how.sum) body([](auto a, auto b) { return plus(a, b); });
  else if (how.prod) body([](auto a, auto b) { return times(a, b); });
  else if (how.largest) body([](auto a, auto b) { return exceeds(b, a) ? b : a; });
  else body([](auto a, auto b) { return (b != b) | ((a == a) & exceeds(a, b)) ? b : a; });
}
template <class T, class V>
void reduce_visits(const ScatterReduction& how, std::span<const Visit> visits) {
  visit_joined(how, [&](const auto& joined) {
    for (const auto [place, at] : visits) {
      T& into = reinterpret_cast<T*>(how.target)[place];
      const T value = T(reinterpret_cast<const V*>(how.values)[at]);
      into = how.seen && how.seen[place]++ == 0 ? value : joined(into, value);
    }
  });
}
/// Each of n sums as a mean; integers are rounded down.
template <class T>
void divide_by_count(T* sums, int64_t n, int64_t count) {
  if (count <= 1) return;
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_unsigned_v<T>) {
      sums[i] = T(uint64_t(sums[i]) / uint64_t(count));
    } else if constexpr (std::is_integral_v<T>) {
      const int64_t sum = sums[i];
      sums[i] = T(sum / count - int64_t(sum < 0 && sum % count != 0));
    } else {
      sums[i] = sums[i] / T(count);
    }
  }
}
/// The same for an index that is spread from one dimension to the others: whole slices meet. The result and the source
/// are row-major: `outer` blocks of `size` and of `count` slices of `inner` elements.
struct Slices {
  int64_t outer, size, count, inner;
  std::vector<int64_t> first, order;  // place p takes the slices order[first[p]], ... in the order of the index
  Slices(int64_t blocks, int64_t places, int64_t slices, int64_t elements, const int64_t* index, int64_t step)
      : outer(blocks), size(places), count(slices), inner(elements), first(size_t(places + 1)), order(size_t(slices)) {
    const auto place = [=](int64_t i) {
      return size_t(index[i * step] < 0 ? index[i * step] + places : index[i * step]);
    };
    for (int64_t i = 0; i < count; ++i) ++first[place(i) + 1];
    for (size_t p = 1; p < first.size(); ++p) first[p] += first[p - 1];
    std::vector<int64_t> next(first.begin(), first.end() - 1);
    for (int64_t i = 0; i < count; ++i) order[size_t(next[place(i)]++)] = i;
  }
};
template <class T, class V>
void reduce_slices(const ScatterReduction& how, const Slices& s, bool include_self) {
  const SharedLine line = how.sum       ? SharedLine::add
                          : how.prod    ? SharedLine::mul
                          : how.largest ? SharedLine::maximum
                                        : SharedLine::minimum;
  const Loop join = std::is_same_v<T, V> ? row(line).fn[int(dtype_of<T>)] : nullptr;
  const auto add = [&](T* into, const V* from, const auto& joined) {
    if (join) {
      char* const place = reinterpret_cast<char*>(into);
      char* const pointers[] = {place, place, reinterpret_cast<char*>(const_cast<V*>(from))};
      constexpr int64_t steps[] = {sizeof(T), sizeof(T), sizeof(T)};
      return join(pointers, steps, s.inner, nullptr);
    }
#pragma GCC ivdep
    for (int64_t j = 0; j < s.inner; ++j) into[j] = joined(into[j], T(from[j]));
  };
  const int64_t places = s.outer * s.size, work = std::max<int64_t>(1, s.outer * s.count * s.inner);
  visit_joined(how, [&](const auto& joined) {
    parallel_for(places, std::max<int64_t>(1, kLoopGrain * places / work), [&](int64_t begin, int64_t end) {
      poll_signals();
      for (int64_t p = begin; p < end; ++p) {
        T* const into = reinterpret_cast<T*>(how.target) + p * s.inner;
        const V* const source = reinterpret_cast<const V*>(how.values) + p / s.size * s.count * s.inner;
        const size_t at = size_t(p % s.size);
        int64_t i = s.first[at];
        const int64_t last = s.first[at + 1], count = last - i + int64_t(include_self);
        if (i < last && !include_self) {
          const V* const from = source + s.order[size_t(i++)] * s.inner;
          for (int64_t j = 0; j < s.inner; ++j) into[j] = T(from[j]);
        }
        for (; i < last; ++i) add(into, source + s.order[size_t(i)] * s.inner, joined);
        if (how.mean) divide_by_count(into, s.inner, count);
      }
    });
  });
}
void scatter_reduce_kernel(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                           std::string_view reduce, bool include_self) {
  const bool mean = reduce == "mean", sum = reduce == "sum" || mean, prod = reduce == "prod",
             largest = reduce == "amax" || reduce == "max";
  if (is_half(out) && !sum && !prod) {  // all that is compared is in float32
    const Tensor wide = empty(out.sizes(), DType::Float32);
    scatter_reduce_kernel(wide, self, dim, index, ops::to_dtype(src, DType::Float32), reduce, include_self);
    return ops::copy_(out, wide);
  }
  if ((sum || prod) && total_dtype(out.dtype()) != out.dtype())
    return summed_apart(out, [&](const Tensor& sums) {
      scatter_reduce_kernel(sums, self, dim, index, addends(src), reduce, include_self);
    });
  // One number tells a place of the result and of the counts.
  if (!out.contiguous()) {
    const Tensor plain = empty(out.sizes(), out.dtype());
    scatter_reduce_kernel(plain, self, dim, index, src, reduce, include_self);
    return ops::copy_(out, plain);
  }
  const Tensor to = at_least_1d(out), index1 = at_least_1d(index), source = at_least_1d(src);
  const int64_t d = infer::axis_of(dim, to.dim());
  if (index1.numel() == 0) return start_from(out, self);
  const bool slices = to.dtype() != DType::Bool && spread(index1, to, source, d);
  const bool checked = check_all("scatter_reduce", to, d, slices ? line(index1, d) : index1);
  start_from(out, self);
  const bool counted = mean || !include_self;
  const Tensor counts = empty(Shape{counted && !slices ? out.numel() : 0}, DType::Int64);
  std::fill_n(counts.data<int64_t>(), counts.numel(), int64_t(include_self));
  const ScatterReduction how{
      mean, sum, prod, largest, to.bytes(), source.bytes(), counted ? counts.data<int64_t>() : nullptr};
  if (slices) {
    const Tensor values = row_major(source);
    const Slices sizes(product(to.sizes().first(size_t(d))), to.size(d), index1.size(d),
                       product(to.sizes().subspan(size_t(d) + 1)), index1.data<int64_t>(), index1.stride(d));
    const Unlocked unlocked(index1.numel() > 32768);
    const ScatterReduction by{mean, sum, prod, largest, to.bytes(), values.bytes(), nullptr};
    return visit_sum(out.dtype(), source.dtype(),
                     [&]<class T, class V>() { reduce_slices<T, V>(by, sizes, include_self); });
  }
  const Unlocked unlocked(index1.numel() > 32768);
  // The walk is the same for all dtypes.
  void (*reduce_some)(const ScatterReduction&, std::span<const Visit>) = nullptr;
  visit_sum(out.dtype(), source.dtype(), [&]<class T, class V>() { reduce_some = &reduce_visits<T, V>; });
  std::array<Visit, 512> visits;
  size_t waiting = 0;
  const auto flush = [&] { reduce_some(how, std::span(visits).first(std::exchange(waiting, 0))); };
  along(
      "scatter_reduce", to, d, index1, source,
      [&](int64_t place, int64_t at) {
        visits[waiting++] = {place, at};
        if (waiting == visits.size()) flush();
      },
      false, checked);
  flush();
  if (mean)
    visit_sum(out.dtype(), out.dtype(), [&]<class T, class>() {
      for (int64_t i = 0; i < out.numel(); ++i) divide_by_count(to.data<T>() + i, 1, how.seen[i]);
    });
}

const bool registered = [] {
  kernel<op::gather>(kCPU, gather_kernel);
  kernel<op::scatter>(kCPU, scatter_kernel);
  kernel<op::scatter_add>(kCPU, scatter_add_kernel);
  kernel<op::scatter_reduce>(kCPU, scatter_reduce_kernel);
  kernel<op::scatter_value>(kCPU, scatter_value_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
