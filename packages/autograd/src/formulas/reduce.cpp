// Gradients of reductions and scans.
#include <algorithm>
#include <cmath>

#include "taeda/autograd/formulas.h"

namespace taeda::formulas {
namespace {

/// Product of all elements before each one along `dim` (1 for the first).
Tensor products_before(const Tensor& t, int64_t dim) {
  Shape one(t.sizes());
  one[size_t(dim)] = 1;
  const Tensor parts[] = {ones_of(one, t), ops::slice(t, dim, 0, t.size(dim) - 1)};
  return ops::cumprod(ops::cat(parts, dim), dim);
}

Tensor reversed(const Tensor& t, int64_t dim) { return ops::flip(t, Shape{dim}); }

/// Sum of all elements from each one on along `dim`.
Tensor sums_from(const Tensor& t, int64_t dim) { return reversed(ops::cumsum(reversed(t, dim), dim), dim); }

/// Moves the reduced dimensions to the end and joins them.
struct Joined {
  Shape order, inverse, kept, moved;
  Joined(IntSpan sizes, IntSpan dim) {
    uint64_t bits = 0;
    for (int64_t d : dim) bits |= uint64_t(1) << wrap_dim(d, int64_t(sizes.size()), "prod");
    for (const bool last : {false, true})
      for (size_t d = 0; d < sizes.size(); ++d)
        if (bool(bits >> d & 1) == last) order.push_back(int64_t(d));
    inverse = inverse_permutation(order);
    int64_t count = 1;
    for (int64_t d : order) {
      moved.push_back(sizes[size_t(d)]);
      if (bits >> d & 1) count *= sizes[size_t(d)];
      else kept.push_back(sizes[size_t(d)]);
    }
    kept.push_back(count);
  }
  Tensor join(const Tensor& t) const { return ops::reshape(ops::permute(t, order), kept); }
  Tensor split(const Tensor& t) const { return ops::permute(ops::reshape(t, moved), inverse); }
};

}  // namespace

Tensor sum_grad(const Tensor& grad, IntSpan sizes, const Dims& dim, bool keepdim) {
  return ops::expand(restore_dims(grad, sizes.size(), dim, keepdim), sizes);
}

Tensor mean_grad(const Tensor& grad, IntSpan sizes, const Dims& dim, bool keepdim) {
  return sum_grad(grad / double(count_of(sizes, dim)), sizes, dim, keepdim);
}

Tensor chosen(const Tensor& x, const Tensor& result, DType dtype) {
  const Tensor both_nan = ops::logical_and(ops::isnan(x), ops::isnan(result));
  return ops::to_dtype(ops::logical_or(ops::eq(x, result), both_nan), dtype);
}

Tensor extremum_grad(const Tensor& grad, const Tensor& self, const Tensor& result, const Dims& dim, bool keepdim) {
  const size_t n = size_t(self.dim());
  // NaN equals nothing, so that the gradient of one along dimensions is NaN; of all elements NaN is the one chosen.
  const Tensor found = restore_dims(result, n, dim, keepdim);
  const Tensor hits = dim ? ops::to_dtype(ops::eq(self, found), grad.dtype()) : chosen(self, found, grad.dtype());
  return restore_dims(grad, n, dim, keepdim) * hits / ops::sum(hits, dim, true);
}

Tensor median_grad(const Tensor& grad, const Tensor& self, const Tensor& result) {
  const Tensor hits = chosen(self, result, grad.dtype());
  return grad * (hits / ops::sum(hits));
}

Tensor choice_grad(const Tensor& grad, int64_t dim, const Tensor& indices, IntSpan sizes, bool keepdim) {
  const Tensor zeros = zeros_of(sizes, grad);
  if (sizes.empty()) return grad;
  if (keepdim) return ops::scatter(zeros, dim, indices, grad);
  return ops::scatter(zeros, dim, ops::unsqueeze(indices, dim), ops::unsqueeze(grad, dim));
}

Tensor cumsum_grad(const Tensor& grad, int64_t dim) { return grad.dim() == 0 ? grad : sums_from(grad, dim); }

Tensor cumprod_grad(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim) {
  if (self.dim() == 0 || self.numel() == 0) return grad;
  const int64_t d = wrap_dim(dim, self.dim(), "cumprod");
  if (!truth_of(ops::any(ops::eq(self, 0)))) return sums_from(grad * conj_of(result), d) / conj_of(self);
  // With a zero among the factors: element by element, the products without it.
  std::vector<Tensor> slopes;
  Shape one(self.sizes());
  one[size_t(d)] = 1;
  for (int64_t k = 0; k < self.size(d); ++k) {
    const Tensor parts[] = {ops::slice(self, d, 0, k), ones_of(one, self), ops::slice(self, d, k + 1)};
    const Tensor without = conj_of(ops::cumprod(ops::cat(parts, d), d));
    slopes.push_back(ops::sum(ops::slice(grad * without, d, k), IntSpan(&d, 1), true));
  }
  return ops::cat(slopes, d);
}

Tensor logcumsumexp_grad(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim) {
  if (self.dim() == 0 || self.numel() == 0) return grad;
  const int64_t d = wrap_dim(dim, self.dim(), "logcumsumexp"), n = self.size(d);
  // Each sum is of grad[j] exp(result[i] - result[j]) over j >= i, twice as many in each turn. As results never fall,
  // nothing overflows. (Of complex numbers the real parts of results hardly ever fall.)
  Tensor sums = grad;
  for (int64_t reach = 1; reach < n; reach *= 2) {
    const Tensor near = ops::slice(result, d, 0, n - reach), far = ops::slice(result, d, reach, n);
    const Tensor level = ops::logical_and(ops::isinf(near), ops::eq(near, far));
    const Tensor weight = ops::exp(ops::where(level, Tensor(0), near - far));
    const Tensor parts[] = {ops::slice(sums, d, 0, n - reach) + conj_of(weight) * ops::slice(sums, d, reach, n),
                            ops::slice(sums, d, n - reach, n)};
    sums = ops::cat(parts, d);
  }
  return conj_of(ops::exp(self - result)) * sums;
}

Tensor logsumexp_grad(const Tensor& grad, const Tensor& self, const Tensor& result, IntSpan dim, bool keepdim) {
  const size_t n = size_t(self.dim());
  return restore_dims(grad, n, dim, keepdim) * conj_of(ops::exp(self - restore_dims(result, n, dim, keepdim)));
}

Tensor prod_grad(const Tensor& grad, const Tensor& self, const Tensor& result, const Dims& dim, bool keepdim) {
  if (self.dim() == 0) return grad;
  if (self.numel() == 0) return zeros_of(self.sizes(), grad);
  const size_t n = size_t(self.dim());
  const Tensor wide = restore_dims(grad, n, dim, keepdim);
  if (!truth_of(ops::any(ops::eq(self, 0)))) return wide * conj_of(restore_dims(result, n, dim, keepdim) / self);
  Shape all;
  for (int64_t d = 0; d < self.dim(); ++d) all.push_back(d);
  const Joined joined(self.sizes(), !dim || dim->empty() ? IntSpan(all) : *dim);
  const Tensor flat = joined.join(self);
  const int64_t last = flat.dim() - 1;
  const Tensor others = products_before(flat, last) * reversed(products_before(reversed(flat, last), last), last);
  return wide * conj_of(joined.split(others));
}

Tensor var_grad(const Tensor& grad, const Tensor& self, const Dims& dim, bool unbiased, bool keepdim,
                const std::optional<Scalar>& correction) {
  const double count = double(count_of(self.sizes(), dim));
  const double divisor = std::max(0.0, count - (correction ? correction->to_double() : unbiased ? 1.0 : 0.0));
  const Tensor centred = self - ops::mean(self, dim, true);
  return restore_dims(grad, size_t(self.dim()), dim, keepdim) * (2.0 / divisor) * centred;
}

Tensor vector_norm_grad(const Tensor& grad, const Tensor& self, const Tensor& result, const Scalar& ord,
                        const Dims& dim, bool keepdim) {
  const double p = ord.to_double();
  const size_t n = size_t(self.dim());
  const Tensor g = restore_dims(grad, n, dim, keepdim), norm = restore_dims(result, n, dim, keepdim);
  if (p == 0) return ops::zeros_like(self);
  if (p == 1) return g * ops::sgn(self);
  if (std::isinf(p)) {
    const Tensor size = ops::abs(self), chosen = ops::to_dtype(ops::eq(size, norm), norm.dtype());
    return g * ops::sgn(self) * chosen / ops::sum(chosen, dim, true);
  }
  // The norm has a corner at 0: the gradient there is taken as 0.
  const Tensor corner = ops::eq(norm, 0), safe = ops::where(corner, Tensor(1), norm);
  if (p == 2) return ops::where(corner, Tensor(0), self * (g / safe));
  const Tensor size = ops::abs(self), flat = ops::eq(size, 0);
  const Tensor powers = ops::where(flat, Tensor(0), ops::pow(ops::where(flat, Tensor(1), size), Tensor(p - 1)));
  return ops::where(corner, Tensor(0), g * ops::sgn(self) * powers / ops::pow(safe, Tensor(p - 1)));
}

}  // namespace taeda::formulas
