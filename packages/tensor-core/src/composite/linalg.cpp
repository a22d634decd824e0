// Products written in terms of others: matmul with NumPy's rules, outer, kron, tensordot and their like.
#include "taeda/ops/linalg.h"

#include <limits>

#include "taeda/checked.h"
#include "taeda/ops.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

/// All but the last `tail` dimensions.
IntSpan leading(const Tensor& t, int64_t tail) { return t.sizes().first(size_t(t.dim() - tail)); }

void expect_matmul(bool fits, const Tensor& self, const Tensor& other) {
  check(fits, ErrorKind::Runtime, "matmul: argument 'other' has shape ", shape_text(other.sizes()),
        ", which does not fit 'self' of shape ", shape_text(self.sizes()), ": expected ", self.size(-1), " in its ",
        other.dim() == 1 ? "only" : "second last", " dimension");
}

/// (batch..., n, k) as (product of batch, n, k), the batch broadcast.
Tensor as_batch(const Tensor& t, const Shape& batch, int64_t count) {
  Shape wide = batch;
  wide.push_back(t.size(-2));
  wide.push_back(t.size(-1));
  return ops::reshape(ops::expand(t, wide), Shape{count, t.size(-2), t.size(-1)});
}

void expect_dims(const char* op, const char* argument, const Tensor& t, int64_t dims) {
  check(t.dim() == dims, ErrorKind::Runtime, op, ": argument '", argument, "' has shape ", shape_text(t.sizes()),
        ", expected ", dims, dims == 1 ? " dimension" : " dimensions");
}
void expect_real_factor(const char* op, const char* argument, const Scalar& value, DType dtype) {
  check(is_complex(dtype) || !value.is_complex(), ErrorKind::Runtime, op, ": argument '", argument,
        "' must be real for dtype ", name(dtype));
}
/// beta * self + alpha * product in the dtype of both: the whole part of factors for integers, and bool stays bool.
Tensor weighted(const char* op, const Tensor& self, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  const Tensor both[] = {self, product};
  const DType dtype = result_type(both);
  expect_real_factor(op, "beta", beta, dtype);
  expect_real_factor(op, "alpha", alpha, dtype);
  const auto scaled = [&](const Tensor& t, const Scalar& factor) {
    const Tensor typed = ops::to_dtype(t, dtype);
    if (factor.equal(1)) return typed;
    if (dtype == DType::Bool) return ops::mul(typed, Tensor(Scalar(!factor.equal(0))));
    const bool cut = is_integral(dtype) && !factor.is_integral();
    return ops::mul(typed, Tensor(cut ? Scalar(factor.to<int64_t>()) : factor));
  };
  const Tensor right = scaled(product, alpha);
  return beta.equal(0) ? right : ops::add(scaled(self, beta), right);  // with beta 0 self is not read
}

Tensor batched_matmul(const Tensor& self, const Tensor& other) {
  const Tensor a = self.dim() == 1 ? ops::unsqueeze(self, 0) : self;
  const Tensor b = other.dim() == 1 ? ops::unsqueeze(other, 1) : other;
  const Shape batch = broadcast_shapes(leading(a, 2), leading(b, 2), "matmul");
  const int64_t count = product(batch);
  const Tensor result = ops::bmm(as_batch(a, batch, count), as_batch(b, batch, count));
  Shape sizes = batch;
  if (self.dim() > 1) sizes.push_back(a.size(-2));
  if (other.dim() > 1) sizes.push_back(b.size(-1));
  return ops::reshape(result, sizes);
}

}  // namespace

Tensor matmul(const Tensor& self, const Tensor& other) {
  const int64_t a = self.dim(), b = other.dim();
  if (a == 2 && b == 2) [[likely]]
    return ops::mm(self, other);
  check(a > 0 && b > 0, ErrorKind::Runtime, "matmul: argument '", a > 0 ? "other" : "self",
        "' has no dimension, expected at least 1");
  expect_matmul(self.size(-1) == other.size(b == 1 ? -1 : -2), self, other);
  if (a == 1 && b == 1) return ops::dot(self, other);
  if (a == 2 && b == 1) return ops::mv(self, other);
  if (a == 1 && b == 2) return ops::mv(ops::t(other), self);
  if (b <= 2) {  // one matrix for the whole batch: a single product
    const Shape lead(leading(self, 1));
    const Tensor rows = ops::reshape(self, Shape{product(lead), self.size(-1)});
    Shape sizes = lead;
    if (b == 2) sizes.push_back(other.size(1));
    return ops::reshape(b == 2 ? ops::mm(rows, other) : ops::mv(rows, other), sizes);
  }
  return batched_matmul(self, other);
}

Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha) {
  expect_dims("addr", "vec1", vec1, 1);
  expect_dims("addr", "vec2", vec2, 1);
  const Tensor all[] = {self, vec1, vec2};
  const DType dtype = result_type(all);
  for (const auto& [argument, factor] : {std::pair("beta", &beta), std::pair("alpha", &alpha)}) {
    check(!factor->is_floating() || !is_integral(dtype), ErrorKind::Runtime, "addr: argument '", argument,
          "' must be an integer for dtype ", name(dtype));
    check(factor->kind() != Scalar::Kind::Bool || dtype == DType::Bool, ErrorKind::Runtime, "addr: argument '",
          argument, "' must not be bool for dtype ", name(dtype));
    expect_real_factor("addr", argument, *factor, dtype);
  }
  const bool alike = self.dtype() == vec1.dtype() && self.dtype() == vec2.dtype() && is_differentiable(self.dtype());
  if (alike && beta.equal(1) && !vec1.requires_grad() && !vec2.requires_grad())
    return ops::addcmul(self, ops::unsqueeze(vec1, 1), vec2, alpha);
  return weighted("addr", self, ops::outer(vec1, vec2), beta, alpha);
}
Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) {
  expect_dims("addbmm", "batch1", batch1, 3);
  expect_dims("addbmm", "batch2", batch2, 3);
  check(batch1.size(0) == batch2.size(0) && batch1.size(2) == batch2.size(1), ErrorKind::Runtime,
        "addbmm: argument 'batch2' has shape ", shape_text(batch2.sizes()), ", expected (", batch1.size(0), ", ",
        batch1.size(2), ", p) to fit 'batch1' of shape ", shape_text(batch1.sizes()));
  // One product of long rows and columns.
  const int64_t inner = batch1.size(0) * batch1.size(2);
  const Tensor rows = ops::reshape(ops::transpose(batch1, 0, 1), Shape{batch1.size(1), inner});
  return weighted("addbmm", self, ops::mm(rows, ops::reshape(batch2, Shape{inner, batch2.size(2)})), beta, alpha);
}

Tensor vdot(const Tensor& self, const Tensor& other) {
  expect_dims("vdot", "self", self, 1);
  expect_dims("vdot", "other", other, 1);
  check(self.numel() == other.numel(), ErrorKind::Runtime, "vdot: argument 'other' has ", other.numel(),
        " elements, expected ", self.numel(), " as 'self'");
  return ops::dot(is_complex(self.dtype()) ? ops::conj(self) : self, other);
}
Tensor vecdot(const Tensor& self, const Tensor& other, int64_t dim) {
  return ops::sum(ops::mul(is_complex(self.dtype()) ? ops::conj(self) : self, other), Shape{dim});
}
Tensor outer(const Tensor& self, const Tensor& vec2) {
  expect_dims("outer", "self", self, 1);
  expect_dims("outer", "vec2", vec2, 1);
  return ops::mul(ops::unsqueeze(self, 1), vec2);
}
Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return ops::mul(self, other);
  check(self.size(-1) == other.size(-1), ErrorKind::Runtime, "inner: argument 'other' has shape ",
        shape_text(other.sizes()), ", expected ", self.size(-1), " in the last dimension to fit 'self' of shape ",
        shape_text(self.sizes()));
  return ops::tensordot_axes(self, other, Shape{-1}, Shape{-1});
}
Tensor kron(const Tensor& self, const Tensor& other) {
  const int64_t dims = std::max(self.dim(), other.dim());
  Shape a, b, sizes;
  for (int64_t d = dims; d > 0; --d) {
    const int64_t x = d <= self.dim() ? self.size(-d) : 1, y = d <= other.dim() ? other.size(-d) : 1;
    a.push_back(x);
    a.push_back(1);
    b.push_back(1);
    b.push_back(y);
    sizes.push_back((Count(x) * y).of("kron", "the size of a dimension of the result"));
  }
  return ops::reshape(ops::mul(ops::reshape(self, a), ops::reshape(other, b)), sizes);
}

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
  check(weight.dim() == 3, ErrorKind::Runtime, "bilinear: argument 'weight' has shape ", shape_text(weight.sizes()),
        ", expected (out, in1, in2)");
  check(input1.dim() > 0 && input1.size(-1) == weight.size(1), ErrorKind::Runtime,
        "bilinear: argument 'input1' has shape ", shape_text(input1.sizes()), ", expected (..., ", weight.size(1),
        ") to fit 'weight' of shape ", shape_text(weight.sizes()));
  check(input2.dim() > 0 && input2.size(-1) == weight.size(2), ErrorKind::Runtime,
        "bilinear: argument 'input2' has shape ", shape_text(input2.sizes()), ", expected (..., ", weight.size(2),
        ") to fit 'weight' of shape ", shape_text(weight.sizes()));
  const bool together = input1.dim() == input2.dim() &&
                        std::equal(input1.sizes().begin(), input1.sizes().end() - 1, input2.sizes().begin());
  check(together, ErrorKind::Runtime, "bilinear: arguments 'input1' and 'input2' have shapes ",
        shape_text(input1.sizes()), " and ", shape_text(input2.sizes()), ", expected the same batch");
  const Tensor operands[] = {input1, weight, input2};
  const Tensor result = ops::einsum("...i,kij,...j->...k", operands);
  return bias.defined() ? ops::add(result, bias) : result;
}

Tensor tensordot(const Tensor& self, const Tensor& other, int64_t dims) {
  check(dims >= 0 && dims <= self.dim() && dims <= other.dim(), ErrorKind::Runtime, "tensordot: argument 'dims' is ",
        dims, ", expected at most the number of dimensions of 'self' ", shape_text(self.sizes()), " and 'other' ",
        shape_text(other.sizes()));
  Shape a, b;
  for (int64_t d = 0; d < dims; ++d) {
    a.push_back(self.dim() - dims + d);
    b.push_back(d);
  }
  return ops::tensordot_axes(self, other, a, b);
}

namespace {
/// Moves the named dimensions to the front (or the back) and multiplies the others out.
Tensor fold(const Tensor& t, const Shape& axes, bool axes_first, Shape& kept, int64_t& inner) {
  Shape order;
  uint64_t named = 0;
  inner = 1;
  for (int64_t d : axes) {
    check(!(named >> d & 1), ErrorKind::Runtime, "tensordot: dimension ", d, " is named twice");
    named |= uint64_t(1) << d;
    inner *= t.size(d);
  }
  for (int64_t d = 0; d < t.dim(); ++d)
    if (!(named >> d & 1)) {
      order.push_back(d);
      kept.push_back(t.size(d));
    }
  const int64_t outer = product(kept);
  Shape all;
  for (int64_t d : axes_first ? axes : order) all.push_back(d);
  for (int64_t d : axes_first ? order : axes) all.push_back(d);
  return ops::reshape(ops::permute(t, all), axes_first ? Shape{inner, outer} : Shape{outer, inner});
}
}  // namespace

Tensor tensordot_axes(const Tensor& self, const Tensor& other, IntSpan dims_self, IntSpan dims_other) {
  check(dims_self.size() == dims_other.size(), ErrorKind::Runtime, "tensordot: arguments 'dims_self' ",
        shape_text(dims_self), " and 'dims_other' ", shape_text(dims_other), " must have the same length");
  Shape a, b, sizes, rest, sum_a, sum_b;
  for (size_t i = 0; i < dims_self.size(); ++i) {
    a.push_back(wrap_dim(dims_self[i], self.dim(), "tensordot"));
    b.push_back(wrap_dim(dims_other[i], other.dim(), "tensordot"));
    const int64_t of_a = self.size(a.back()), of_b = other.size(b.back());
    check(of_a == of_b || of_a == 1 || of_b == 1, ErrorKind::Runtime, "tensordot: dimension ", b.back(), " of 'other' ",
          shape_text(other.sizes()), " does not fit dimension ", a.back(), " of 'self' ", shape_text(self.sizes()));
    // A size of 1 meets every element of the other tensor, which is their sum.
    if (of_a != of_b) (of_a == 1 ? sum_b : sum_a).push_back(of_a == 1 ? b.back() : a.back());
  }
  const auto summed = [](const Tensor& t, const Shape& dims) {
    return dims.empty() ? t : ops::sum(t, IntSpan(dims), true, t.dtype());
  };
  int64_t inner_a = 1, inner_b = 1;
  const Tensor left = fold(summed(self, sum_a), a, false, sizes, inner_a),
               right = fold(summed(other, sum_b), b, true, rest, inner_b);
  for (int64_t n : rest) sizes.push_back(n);
  // A matrix and a vector are no work for a product of matrices.
  if (right.size(1) == 1) return ops::reshape(ops::mv(left, ops::select(right, 1, 0)), sizes);
  return ops::reshape(ops::mm(left, right), sizes);
}

Tensor trace(const Tensor& self) {
  check(self.dim() == 2, ErrorKind::Runtime, "trace: argument 'self' has shape ", shape_text(self.sizes()),
        ", expected 2 dimensions");
  return ops::sum(ops::diagonal(self));
}
Tensor chain_matmul(TensorList matrices) {
  check(!matrices.empty(), ErrorKind::Runtime, "chain_matmul: argument 'matrices' is empty, expected at least one");
  for (size_t i = 0; i < matrices.size(); ++i)
    check(matrices[i].dim() == 2, ErrorKind::Runtime, "chain_matmul: item ", i, " of 'matrices' has shape ",
          shape_text(matrices[i].sizes()), ", expected 2 dimensions");
  Tensor result = matrices[0];
  for (const Tensor& next : matrices.subspan(1)) result = ops::mm(result, next);
  return result;
}
Tensor matrix_power(const Tensor& self, int64_t n) {
  check(self.dim() >= 2 && self.size(-1) == self.size(-2), ErrorKind::Runtime,
        "matrix_power: argument 'self' has shape ", shape_text(self.sizes()), ", expected square matrices");
  if (n < 0) {
    check(n != std::numeric_limits<int64_t>::min(), ErrorKind::Runtime, "matrix_power: argument 'n' is ", n,
          ", whose negative does not fit into 64 bits");
    return matrix_power(ops::linalg_inv(self), -n);
  }
  if (n == 0) {
    const Tensor identity = ops::eye(self.size(-1), std::nullopt, self.dtype(), stated_device(self));
    const Tensor never = ops::full(Shape{}, false, DType::Bool, stated_device(self));
    return ops::where(never, self, identity);  // of every power's history, this one's gradient is 0
  }
  Tensor power = self, result;
  for (int64_t rest = n; rest; rest >>= 1) {
    if (rest & 1) result = result.defined() ? ops::matmul(result, power) : power;
    if (rest > 1) power = ops::matmul(power, power);
  }
  return result.same(self) ? ops::clone(self) : result;
}

}  // namespace taeda::impl
