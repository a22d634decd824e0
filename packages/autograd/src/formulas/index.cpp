// Gradients of scatter_reduce and of table look-ups.
#include <algorithm>

#include "taeda/autograd/engine.h"
#include "taeda/autograd/formulas.h"
#include "taeda/wrappers.h"

namespace taeda::formulas {
namespace {

/// The part of `src` that an index of these sizes reads.
Tensor cut_to(Tensor src, IntSpan sizes) {
  for (int64_t d = 0; d < src.dim(); ++d) {
    const int64_t size = sizes.empty() ? 1 : sizes[size_t(d)];  // an index of no dimension meets a vector
    if (src.size(d) != size) src = ops::slice(src, d, 0, size, 1);
  }
  return src;
}

/// How many values met at each place of `self`.
Tensor counts_at(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, bool include_self) {
  const Tensor start = include_self ? ops::ones_like(self) : ops::zeros_like(self);
  const Tensor counts = ops::scatter_add(start, dim, index, ops::ones_like(src));
  return ops::where(ops::eq(counts, 0), Tensor(1), counts);
}

/// For prod: products of all factors but the zeros, and the number of these, at each place of `self`.
struct Factors {
  Tensor products, zeros;
  Factors(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, bool include_self) {
    const Tensor flat_self = ops::eq(self, 0), flat_src = ops::eq(src, 0);
    const Tensor base = include_self ? ops::where(flat_self, Tensor(1), self) : ops::ones_like(self);
    products = ops::scatter_reduce(base, dim, index, ops::where(flat_src, Tensor(1), src), "prod", true);
    const Tensor start = include_self ? ops::to_dtype(flat_self, self.dtype()) : ops::zeros_like(self);
    zeros = ops::scatter_add(start, dim, index, ops::to_dtype(flat_src, src.dtype()));
  }
  Factors gathered(int64_t dim, const Tensor& index) const {
    Factors f = *this;
    f.products = ops::gather(products, dim, index);
    f.zeros = ops::gather(zeros, dim, index);
    return f;
  }
  /// Conjugate of the product of the other factors at the place of each factor of `x`.
  Tensor others(const Tensor& x) const {
    const Tensor flat = ops::eq(x, 0), alone = ops::eq(zeros, ops::to_dtype(flat, zeros.dtype()));
    return conj_of(masked(products / ops::where(flat, Tensor(1), x), alone));
  }
};

bool any_zero(const Tensor& x) { return truth_of(ops::any(ops::eq(x, 0))); }

/// The same written to be differentiated, where factors are zero: each factor meets each other at its place.
/// First those of `self` (none without `include_self`), then those of `src`, in one row.
Tensor recorded_others(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, bool include_self) {
  const Tensor ids = ops::reshape(
      ops::arange(Scalar(int64_t(0)), Scalar(self.numel()), Scalar(int64_t(1)), DType::Int64, stated_device(self)),
      self.sizes());
  const Shape row{-1};
  std::vector<Tensor> factors{ops::reshape(cut_to(src, index.sizes()), row)};
  std::vector<Tensor> places{ops::reshape(ops::gather(ids, dim, index), row)};
  if (include_self) {
    factors.insert(factors.begin(), ops::reshape(self, row));
    places.insert(places.begin(), ops::reshape(ids, row));
  }
  const Tensor x = ops::cat(factors, 0), at = ops::cat(places, 0);
  constexpr int64_t kMost = 1 << 13;
  check(x.numel() <= kMost, ErrorKind::NotImplemented, "scatter_reduce: the second derivative with reduce='prod' of ",
        x.numel(), " factors, some of them zero, is not implemented; at most ", kMost, " can be");
  const Tensor numbers =
      ops::arange(Scalar(int64_t(0)), Scalar(x.numel()), Scalar(int64_t(1)), DType::Int64, stated_device(x));
  const Tensor met = ops::logical_and(ops::eq(ops::unsqueeze(at, 1), ops::unsqueeze(at, 0)),
                                      ops::ne(ops::unsqueeze(numbers, 1), ops::unsqueeze(numbers, 0)));
  return conj_of(ops::prod(ops::where(met, ops::unsqueeze(x, 0), Tensor(1)), Shape{1}));
}
/// Where all factors that meet are finite. Elsewhere the value is that of `Factors`, whether recorded or not.
Tensor all_finite(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, bool include_self) {
  const auto strange = [](const Tensor& x) { return ops::to_dtype(ops::logical_not(ops::isfinite(x)), DType::Int64); };
  const Tensor start = include_self ? strange(self) : ops::zeros_like(strange(self));
  return ops::eq(ops::scatter_add(start, dim, index, strange(src)), 0);
}
bool needs_recorded_others(const Tensor& self, const Tensor& src, bool include_self) {
  return recording() && ((include_self && any_zero(self)) || any_zero(src));
}

/// For amax/amin: gradient of one chosen element, ties share equally.
Tensor shared(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
              bool include_self, const Tensor& result) {
  const Tensor hits = chosen(cut_to(src, index.sizes()), ops::gather(result, dim, index), grad.dtype());
  const Tensor start = include_self ? chosen(self, result, grad.dtype()) : ops::zeros_like(self);
  return grad / ops::clamp_min(ops::scatter_add(start, dim, index, hits), 1);
}

}  // namespace

Tensor scatter_reduce_grad_self(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                                const Tensor& src, std::string_view reduce, bool include_self, const Tensor& result) {
  if (index.numel() == 0) return grad;
  Tensor g;
  if (reduce == "sum") g = grad;
  else if (reduce == "mean") g = grad / counts_at(self, dim, index, src, include_self);
  else if (reduce != "prod")
    g = shared(grad, self, dim, index, src, include_self, result) * chosen(self, result, grad.dtype());
  else if (!include_self) g = grad;
  else {
    Tensor others = Factors(self, dim, index, src, true).others(self);
    if (needs_recorded_others(self, src, true)) {
      const Tensor recorded = ops::slice(recorded_others(self, dim, index, src, true), 0, 0, self.numel(), 1);
      others = ops::where(all_finite(self, dim, index, src, true), ops::reshape(recorded, self.sizes()), others);
    }
    g = grad * others;
  }
  return include_self ? g : ops::scatter_value(g, dim, index, 0);
}

Tensor scatter_reduce_grad_src(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                               const Tensor& src, std::string_view reduce, bool include_self, const Tensor& result) {
  if (index.numel() == 0) return ops::new_zeros(grad, src.sizes());
  if (reduce == "sum") return scatter_src_backward(grad, dim, index, src.sizes());
  if (reduce == "mean")
    return scatter_src_backward(grad / counts_at(self, dim, index, src, include_self), dim, index, src.sizes());
  if (reduce == "prod") {
    const Factors f = Factors(self, dim, index, src, include_self).gathered(dim, index);
    Tensor others = f.others(cut_to(src, index.sizes()));
    if (needs_recorded_others(self, src, include_self)) {
      const Tensor all = recorded_others(self, dim, index, src, include_self);
      const Tensor of_src = ops::slice(all, 0, include_self ? self.numel() : 0, all.numel(), 1);
      const Tensor finite = ops::gather(all_finite(self, dim, index, src, include_self), dim, index);
      others = ops::where(finite, ops::reshape(of_src, index.sizes()), others);
    }
    return widen(ops::gather(grad, dim, index) * others, src.sizes());
  }
  const Tensor hits = chosen(cut_to(src, index.sizes()), ops::gather(result, dim, index), grad.dtype());
  return widen(ops::gather(shared(grad, self, dim, index, src, include_self, result), dim, index) * hits, src.sizes());
}

Tensor embedding_grad(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                      bool scale_grad_by_freq) {
  // Of a table with other uses (tied weights) only the rows that were read change.
  const auto add = [&](const Tensor& sum) {
    const auto [rows, firsts, places, counts] = ops::unique_all(indices);
    const int64_t* const numbers = rows.data<int64_t>();
    const int64_t* const left_out = std::find(numbers, numbers + rows.numel(), padding_idx);
    const int64_t skipped = left_out == numbers + rows.numel() ? -1 : left_out - numbers;
    ops::index_add_(sum, 0, rows, ops::embedding_backward(grad, places, rows.numel(), skipped, scale_grad_by_freq), 1);
  };
  if (indices.dtype() == DType::Int64 && indices.numel() * 4 <= num_weights && indices.numel() > 0 &&
      autograd::add_at_once("EmbeddingBackward0", Shape{num_weights, grad.size(-1)}, grad.dtype(), add))
    return {};
  return ops::embedding_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq);
}

Tensor embedding_grad_grad(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                           bool scale_grad_by_freq) {
  Tensor rows = ops::embedding(grad, indices);
  if (padding_idx >= 0) rows = masked(rows, ops::unsqueeze(ops::ne(indices, padding_idx), -1));
  if (!scale_grad_by_freq) return rows;
  const Tensor counts = ops::bincount(ops::reshape(indices, Shape{-1}), Tensor(), num_weights);
  return rows / ops::unsqueeze(ops::to_dtype(ops::index(counts, std::array{indices}), grad.dtype()), -1);
}

}  // namespace taeda::formulas
