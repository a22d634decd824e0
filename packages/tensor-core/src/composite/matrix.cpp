// Norms, chains of products, covariances and matrices of powers.
#include "taeda/ops/matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "composite/host.h"
#include "infer/matrices.h"
#include "taeda/arithmetic.h"
#include "taeda/ops.h"
#include "taeda/warn.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

using infer::Dims;

/// The two dimensions of matrices, counted from the front.
struct Plane {
  int64_t rows, columns;
  Plane(const char* op, const Tensor& self, IntSpan dim) {
    check(self.dim() >= 2, ErrorKind::Runtime, op, ": argument 'self' has shape ", shape_text(self.sizes()),
          ", expected at least 2 dimensions");
    check(dim.size() == 2, ErrorKind::Runtime, op, ": argument 'dim' is ", shape_text(dim),
          ", expected two dimensions");
    rows = wrap_dim(dim[0], self.dim(), op);
    columns = wrap_dim(dim[1], self.dim(), op);
    check(rows != columns, ErrorKind::Runtime, op, ": argument 'dim' is ", shape_text(dim),
          ", expected two different dimensions");
  }
};

/// `self` in the dtype that is asked for, which may be no narrower in kind.
Tensor in_dtype(const char* op, const Tensor& self, std::optional<DType> dtype) {
  const DType found = self.dtype();
  check(!is_integral(found), ErrorKind::Runtime, op, ": argument 'self' has dtype ", name(found),
        ", expected a floating-point or complex dtype");
  if (!dtype || *dtype == found) return self;
  check(!is_integral(*dtype), ErrorKind::Runtime, op, ": argument 'dtype' is ", name(*dtype),
        ", expected a floating-point or complex dtype");
  check(is_complex(*dtype) == is_complex(found), ErrorKind::Runtime, op, ": argument 'dtype' is ", name(*dtype),
        ", expected a ", is_complex(found) ? "complex" : "real", " dtype for 'self' of dtype ", name(found));
  check(promote(found, *dtype) == *dtype, ErrorKind::Runtime, op, ": argument 'dtype' is ", name(*dtype),
        ", to which 'self' of dtype ", name(found), " cannot be converted without narrowing");
  return ops::to_dtype(self, *dtype);
}

/// The largest of numbers that are not negative; 0 of none.
Tensor largest_of(const Tensor& t, int64_t dim, bool keepdim) {
  const int64_t d = wrap_dim(dim, t.dim(), "linalg_matrix_norm");
  return t.size(d) == 0 ? ops::sum(t, Shape{d}, keepdim) : ops::amax(t, Shape{d}, keepdim);
}

/// Norms by singular values: `reduce` makes one number of them along the last dimension.
template <class Reduce>
Tensor spectral(const Tensor& self, const Plane& plane, bool keepdim, const Reduce& reduce) {
  const Tensor moved = ops::movedim(self, Shape{plane.rows, plane.columns}, Shape{-2, -1});
  const Tensor norm = reduce(ops::linalg_svdvals(moved));
  if (!keepdim) return norm;
  const auto [first, second] = std::minmax(plane.rows, plane.columns);
  return ops::unsqueeze(ops::unsqueeze(norm, first), second);
}
/// Sums of sizes along one dimension, and of these the largest or smallest.
Tensor of_sums(const Tensor& self, int64_t summed, int64_t other, bool largest, bool keepdim) {
  const Tensor sums = ops::sum(ops::abs(self), Shape{summed}, true);
  const Tensor chosen = largest ? largest_of(sums, other, true) : ops::amin(sums, Shape{other}, true);
  return keepdim ? chosen : ops::squeeze_dims(chosen, Shape{summed, other});
}

}  // namespace

Tensor linalg_matrix_norm(const Tensor& self, const Scalar& ord, IntSpan dim, bool keepdim,
                          std::optional<DType> dtype) {
  const char* const op = "linalg_matrix_norm";
  const Plane plane(op, self, dim);
  const Tensor A = in_dtype(op, self, dtype);
  const double order = ord.to_double(), size = std::abs(order);
  check(!ord.is_complex() && (size == 1 || size == 2 || std::isinf(size)), ErrorKind::Runtime, op,
        ": argument 'ord' is ", order, ", expected 2, -2, 1, -1, inf, -inf, 'fro' or 'nuc'");
  if (size == 1) return of_sums(A, plane.rows, plane.columns, order > 0, keepdim);
  if (std::isinf(size)) return of_sums(A, plane.columns, plane.rows, order > 0, keepdim);
  return spectral(A, plane, keepdim, [&](const Tensor& values) {
    return order > 0 ? largest_of(values, -1, false) : ops::amin(values, Shape{-1});
  });
}
Tensor linalg_matrix_norm_name(const Tensor& self, std::string_view ord, IntSpan dim, bool keepdim,
                               std::optional<DType> dtype) {
  const char* const op = "linalg_matrix_norm";
  const Plane plane(op, self, dim);
  const Tensor A = in_dtype(op, self, dtype);
  check(ord == "fro" || ord == "nuc", ErrorKind::Runtime, op, ": argument 'ord' is '", ord,
        "', expected 2, -2, 1, -1, inf, -inf, 'fro' or 'nuc'");
  if (ord == "fro") return ops::vector_norm(A, Scalar(2), Shape{plane.rows, plane.columns}, keepdim);
  return spectral(A, plane, keepdim, [](const Tensor& values) { return ops::sum(values, Shape{-1}); });
}

Tensor linalg_norm(const Tensor& self, const std::optional<Scalar>& ord, Dims dim, bool keepdim,
                   std::optional<DType> dtype) {
  const char* const op = "linalg_norm";
  if (dim)
    check(dim->size() == 1 || dim->size() == 2, ErrorKind::Runtime, op, ": argument 'dim' is ", shape_text(*dim),
          ", expected one dimension or two");
  else if (ord)
    check(self.dim() == 1 || self.dim() == 2, ErrorKind::Runtime, op, ": argument 'self' has shape ",
          shape_text(self.sizes()), ", expected 1 or 2 dimensions where 'ord' is given and 'dim' is not");
  if (ord && (dim ? dim->size() == 2 : self.dim() == 2))
    return ops::linalg_matrix_norm(self, *ord, dim ? Shape(*dim) : Shape{0, 1}, keepdim, dtype);
  return ops::vector_norm(self, ord.value_or(Scalar(2)), dim, keepdim, dtype);
}
Tensor linalg_norm_name(const Tensor& self, std::string_view ord, Dims dim, bool keepdim, std::optional<DType> dtype) {
  if (!dim)
    check(self.dim() == 2, ErrorKind::Runtime, "linalg_norm: argument 'self' has shape ", shape_text(self.sizes()),
          ", expected 2 dimensions where 'ord' is a name and 'dim' is not given");
  return ops::linalg_matrix_norm_name(self, ord, dim ? Shape(*dim) : Shape{0, 1}, keepdim, dtype);
}

Tensor linalg_diagonal(const Tensor& A, int64_t offset, int64_t dim1, int64_t dim2) {
  return ops::diagonal(A, offset, dim1, dim2);
}
Tensor matrix_exp(const Tensor& self) { return ops::linalg_matrix_exp(self); }

namespace {

/// The order of products that takes the fewest multiplications: cut[i][j] is where the chain from i to j is cut last.
std::vector<std::vector<size_t>> best_cuts(const std::vector<Tensor>& chain) {
  const size_t n = chain.size();
  const auto rows = [&](size_t i) { return double(i < n ? chain[i].size(0) : chain[n - 1].size(1)); };
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> cut(n, std::vector<size_t>(n, 0));
  for (size_t length = 1; length < n; ++length)
    for (size_t i = 0; i + length < n; ++i) {
      const size_t j = i + length;
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (size_t k = i; k < j; ++k) {
        const double total = cost[i][k] + cost[k + 1][j] + rows(i) * rows(k + 1) * rows(j + 1);
        if (total < cost[i][j]) {
          cost[i][j] = total;
          cut[i][j] = k;
        }
      }
    }
  return cut;
}
Tensor chained(const std::vector<Tensor>& chain, const std::vector<std::vector<size_t>>& cut, size_t i, size_t j) {
  if (i == j) return chain[i];
  return ops::mm(chained(chain, cut, i, cut[i][j]), chained(chain, cut, cut[i][j] + 1, j));
}

}  // namespace

Tensor linalg_multi_dot(TensorList tensors) {
  const char* const op = "linalg_multi_dot";
  const size_t n = tensors.size();
  check(n >= 2, ErrorKind::Runtime, op, ": argument 'tensors' has ", n, " tensors, expected at least 2");
  std::vector<Tensor> chain(tensors.begin(), tensors.end());
  for (size_t i = 0; i < n; ++i) {
    const bool end = i == 0 || i == n - 1;
    check(chain[i].dim() == 2 || (end && chain[i].dim() == 1), ErrorKind::Runtime, op, ": item ", i,
          " of 'tensors' has shape ", shape_text(chain[i].sizes()), ", expected ", end ? "1 or 2" : "2", " dimensions");
    check(chain[i].dtype() == chain[0].dtype(), ErrorKind::Runtime, op, ": item ", i, " of 'tensors' has dtype ",
          name(chain[i].dtype()), ", expected ", name(chain[0].dtype()), ", the dtype of the first");
  }
  const bool row = chain[0].dim() == 1, column = chain[n - 1].dim() == 1;
  if (row) chain[0] = ops::unsqueeze(chain[0], 0);
  if (column) chain[n - 1] = ops::unsqueeze(chain[n - 1], 1);
  for (size_t i = 1; i < n; ++i)
    check(chain[i - 1].size(1) == chain[i].size(0), ErrorKind::Runtime, op, ": item ", i, " of 'tensors' has shape ",
          shape_text(tensors[i].sizes()), ", which does not fit the one before of shape ",
          shape_text(tensors[i - 1].sizes()));
  const Tensor result = chained(chain, best_cuts(chain), 0, n - 1);
  Shape sizes;
  if (!row) sizes.push_back(result.size(0));
  if (!column) sizes.push_back(result.size(1));
  return ops::reshape(result, sizes);
}

Tensor linalg_vecdot(const Tensor& x, const Tensor& y, int64_t dim) { return ops::vecdot(x, y, dim); }

Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  if (dim) return ops::linalg_cross(self, other, *dim);
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.size(d) == 3) return ops::linalg_cross(self, other, d);
  fail(ErrorKind::Runtime, "cross: argument 'self' has shape ", shape_text(self.sizes()),
       ", expected a dimension of size 3");
}

namespace {
/// Powers 0 ... n - 1 of every element along a new last dimension.
Tensor powers_of(const char* op, const Tensor& x, int64_t n) {
  check(n >= 0, ErrorKind::Runtime, op, ": argument 'N' is ", n, ", expected a number that is not negative");
  const Tensor base = is_integral(x.dtype()) ? ops::to_dtype(x, DType::Int64) : x;
  Shape sizes(x.sizes());
  sizes.push_back(n);
  if (n == 0) return ops::empty(sizes, base.dtype(), x.device());
  sizes.back() = 1;
  const Tensor first = ops::ones(sizes, base.dtype(), stated_device(x));
  sizes.back() = n - 1;
  const Tensor parts[] = {first, ops::cumprod(ops::expand(ops::unsqueeze(base, -1), sizes), -1)};
  return ops::cat(parts, -1);
}
}  // namespace

Tensor linalg_vander(const Tensor& x, std::optional<int64_t> N) {
  check(x.dim() >= 1 || N, ErrorKind::Runtime,
        "linalg_vander: argument 'x' has no dimension, expected at least 1 where 'N' is not given");
  check(x.dtype() != DType::Bool, ErrorKind::Runtime, "linalg_vander: argument 'x' has dtype bool, expected numbers");
  check(!N || *N > 1, ErrorKind::Runtime, "linalg_vander: argument 'N' is ", N.value_or(0), ", expected at least 2");
  return powers_of("linalg_vander", x.dim() ? x : ops::unsqueeze(x, 0), N ? *N : x.size(-1));
}
Tensor vander(const Tensor& x, std::optional<int64_t> N, bool increasing) {
  check(x.dim() == 1, ErrorKind::Runtime, "vander: argument 'x' has shape ", shape_text(x.sizes()),
        ", expected 1 dimension");
  const Tensor powers = powers_of("vander", x, N.value_or(x.size(0)));
  return increasing ? powers : ops::flip(powers, Shape{1});
}

namespace {

/// The weights of observations, `count` of them; what is asked of their kind and values is checked.
void expect_weights(const char* argument, const Tensor& weights, int64_t count, bool whole) {
  check(weights.dim() <= 1, ErrorKind::Runtime, "cov: argument '", argument, "' has shape ",
        shape_text(weights.sizes()), ", expected at most 1 dimension");
  check(whole ? is_integral(weights.dtype()) && weights.dtype() != DType::Bool : is_floating(weights.dtype()),
        ErrorKind::Runtime, "cov: argument '", argument, "' has dtype ", name(weights.dtype()), ", expected ",
        whole ? "an integer dtype" : "a floating-point dtype");
  check(weights.numel() == count, ErrorKind::Runtime, "cov: argument '", argument, "' has ", weights.numel(),
        " weights, expected ", count, ", the number of observations");
  if (at_hand(weights)) {
    check(!(number_of(ops::amin(weights)) < 0), ErrorKind::Runtime, "cov: argument '", argument,
          "' has negative weights, expected none");
  }
}

}  // namespace

Tensor cov(const Tensor& self, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  check(self.dim() <= 2, ErrorKind::Runtime, "cov: argument 'self' has shape ", shape_text(self.sizes()),
        ", expected at most 2 dimensions");
  check(self.dtype() != DType::Bool, ErrorKind::Runtime, "cov: argument 'self' has dtype bool, expected numbers");
  const Tensor x = self.dim() < 2 ? ops::reshape(self, Shape{1, -1}) : self;
  const int64_t count = x.size(1);
  Tensor weights;
  if (fweights.defined()) {
    expect_weights("fweights", fweights, count, true);
    weights = fweights;
  }
  if (aweights.defined()) {
    expect_weights("aweights", aweights, count, false);
    weights = weights.defined() ? weights * aweights : aweights;
  }
  const Tensor total = weights.defined() ? ops::sum(weights) : Tensor(count);
  if (count <= correction)
    warn("cov: degrees of freedom is <= 0: ", count, " observations, of which the correction takes off ", correction);
  Tensor divisor;  // weights that are reliabilities take off their mean
  if (!weights.defined()) divisor = Tensor(std::max<int64_t>(0, count - correction));
  else if (!aweights.defined() || correction == 0) divisor = ops::clamp_min(total - Tensor(correction), Tensor(0));
  else divisor = ops::clamp_min(total - Tensor(correction) * ops::sum(weights * aweights) / total, Tensor(0));
  const Tensor mean = ops::sum(weights.defined() ? x * weights : x, Shape{1}, true) / total;
  const Tensor centred = x - mean, weighted = weights.defined() ? centred * weights : centred;
  return ops::squeeze(ops::matmul(centred, ops::adjoint(weighted)) / divisor);
}

Tensor corrcoef(const Tensor& self) {
  check(self.dim() <= 2, ErrorKind::Runtime, "corrcoef: argument 'self' has shape ", shape_text(self.sizes()),
        ", expected at most 2 dimensions");
  const Tensor c = ops::cov(self);
  if (c.dim() == 0) return c / c;
  const Tensor diagonal = ops::diagonal(c),
               deviations = ops::sqrt(is_complex(c.dtype()) ? ops::real(diagonal) : diagonal);
  const Tensor r = c / ops::unsqueeze(deviations, 1) / ops::unsqueeze(deviations, 0);
  const auto within = [](const Tensor& t) { return ops::clamp(t, Scalar(-1), Scalar(1)); };
  return is_complex(r.dtype()) ? ops::complex(within(ops::real(r)), within(ops::imag(r))) : within(r);
}

}  // namespace taeda::impl
