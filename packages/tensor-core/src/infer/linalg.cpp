// Inference of the linalg family.
#include "infer/dtypes.h"
#include "infer/linalg.h"

#include <algorithm>

#include "infer/gradients.h"
#include "taeda/ops/linalg.h"
#include "taeda/ops/shape.h"

namespace taeda::infer {
namespace {

void expect_dims(const char* op, const char* argument, const Tensor& t, int64_t dims) {
  if (t.dim() != dims) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": argument '", argument, "' has shape ", shape_text(t.sizes()), ", expected ", dims,
         " dimension", dims == 1 ? "" : "s");
}
void refuse_bool(const char* op, DType dtype) {
  check(dtype != DType::Bool, ErrorKind::NotImplemented, op, ": not implemented for dtype bool");
}
/// What programs look for where two matrices do not fit; nothing for other operands.
std::string multiplied(const Tensor& a, const Tensor& b, bool transposed = false) {
  if (a.dim() < 1 || b.dim() != 2) return {};
  return detail::concat(": mat1 and mat2 shapes cannot be multiplied (", a.size(-1) ? a.numel() / a.size(-1) : 0, "x",
                        a.size(-1), " and ", b.size(transposed ? 1 : 0), "x", b.size(transposed ? 0 : 1), ")");
}
/// The inner dimension of a product.
void expect_inner(const char* op, const char* a_name, const Tensor& a, const char* b_name, const Tensor& b,
                  int64_t b_dim) {
  if (a.size(-1) != b.size(b_dim)) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": argument '", b_name, "' has shape ", shape_text(b.sizes()), ", expected ",
         a.size(-1), " in dimension ", b_dim < 0 ? b_dim + b.dim() : b_dim, " to fit '", a_name, "' of shape ",
         shape_text(a.sizes()), multiplied(a, b));
}
void expect_batch(const char* op, const char* a_name, const Tensor& a, const char* b_name, const Tensor& b) {
  if (a.size(0) != b.size(0)) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": argument '", b_name, "' has shape ", shape_text(b.sizes()), ", expected ",
         a.size(0), " in dimension 0, the batch of '", a_name, "' of shape ", shape_text(a.sizes()));
}
/// `self` of addmm and its like broadcasts to the product's shape.
void expect_expandable(const char* op, const Tensor& self, IntSpan sizes) {
  bool fits = self.dim() <= int64_t(sizes.size());
  for (int64_t d = 1; fits && d <= self.dim(); ++d)
    fits = self.size(-d) == 1 || self.size(-d) == sizes[sizes.size() - size_t(d)];
  if (!fits) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": argument 'self' has shape ", shape_text(self.sizes()),
         ", expected one that broadcasts to the product's ", shape_text(sizes));
}
void expect_factor(const char* op, const char* argument, const Scalar& value, DType dtype) {
  check(is_complex(dtype) || !value.is_complex(), ErrorKind::Runtime, op, ": argument '", argument,
        "' must be real for dtype ", name(dtype));
}

}  // namespace

Spec mm(const Tensor& self, const Tensor& mat2) {
  expect_dims("mm", "self", self, 2);
  expect_dims("mm", "mat2", mat2, 2);
  expect_inner("mm", "self", self, "mat2", mat2, 0);
  expect_dtype("mm", "mat2", mat2, self.dtype(), "self");
  refuse_bool("mm", self.dtype());
  return spec(Shape{self.size(0), mat2.size(1)}, self.dtype());
}
Spec bmm(const Tensor& self, const Tensor& mat2) {
  expect_dims("bmm", "self", self, 3);
  expect_dims("bmm", "mat2", mat2, 3);
  expect_batch("bmm", "self", self, "mat2", mat2);
  expect_inner("bmm", "self", self, "mat2", mat2, 1);
  expect_dtype("bmm", "mat2", mat2, self.dtype(), "self");
  refuse_bool("bmm", self.dtype());
  return spec(Shape{self.size(0), self.size(1), mat2.size(2)}, self.dtype());
}
Spec mv(const Tensor& self, const Tensor& vec) {
  expect_dims("mv", "self", self, 2);
  expect_dims("mv", "vec", vec, 1);
  expect_inner("mv", "self", self, "vec", vec, 0);
  expect_dtype("mv", "vec", vec, self.dtype(), "self");
  refuse_bool("mv", self.dtype());
  return spec(Shape{self.size(0)}, self.dtype());
}
Spec dot(const Tensor& self, const Tensor& tensor) {
  expect_dims("dot", "self", self, 1);
  expect_dims("dot", "tensor", tensor, 1);
  expect_inner("dot", "self", self, "tensor", tensor, 0);
  expect_dtype("dot", "tensor", tensor, self.dtype(), "self");
  refuse_bool("dot", self.dtype());
  return spec(Shape{}, self.dtype());
}
Spec addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  expect_dims("addmm", "mat1", mat1, 2);
  expect_dims("addmm", "mat2", mat2, 2);
  expect_inner("addmm", "mat1", mat1, "mat2", mat2, 0);
  expect_dtype("addmm", "mat1", mat1, self.dtype(), "self");
  expect_dtype("addmm", "mat2", mat2, self.dtype(), "self");
  refuse_bool("addmm", self.dtype());
  expect_factor("addmm", "beta", beta, self.dtype());
  expect_factor("addmm", "alpha", alpha, self.dtype());
  const Shape sizes{mat1.size(0), mat2.size(1)};
  expect_expandable("addmm", self, sizes);
  return spec(sizes, self.dtype());
}
Spec addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha) {
  expect_dims("addmv", "mat", mat, 2);
  expect_dims("addmv", "vec", vec, 1);
  expect_inner("addmv", "mat", mat, "vec", vec, 0);
  expect_dtype("addmv", "mat", mat, self.dtype(), "self");
  expect_dtype("addmv", "vec", vec, self.dtype(), "self");
  refuse_bool("addmv", self.dtype());
  expect_factor("addmv", "beta", beta, self.dtype());
  expect_factor("addmv", "alpha", alpha, self.dtype());
  const Shape sizes{mat.size(0)};
  expect_expandable("addmv", self, sizes);
  return spec(sizes, self.dtype());
}
Spec baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) {
  expect_dims("baddbmm", "batch1", batch1, 3);
  expect_dims("baddbmm", "batch2", batch2, 3);
  expect_batch("baddbmm", "batch1", batch1, "batch2", batch2);
  expect_inner("baddbmm", "batch1", batch1, "batch2", batch2, 1);
  expect_dtype("baddbmm", "batch1", batch1, self.dtype(), "self");
  expect_dtype("baddbmm", "batch2", batch2, self.dtype(), "self");
  refuse_bool("baddbmm", self.dtype());
  expect_factor("baddbmm", "beta", beta, self.dtype());
  expect_factor("baddbmm", "alpha", alpha, self.dtype());
  const Shape sizes{batch1.size(0), batch1.size(1), batch2.size(2)};
  expect_expandable("baddbmm", self, sizes);
  return spec(sizes, self.dtype());
}

namespace {
/// The operands of a layer: (..., in) with (out, in) or (in).
void expect_layer(const char* op, const Tensor& input, const Tensor& weight) {
  check(input.dim() >= 1, ErrorKind::Runtime, op, ": argument 'input' has no dimension, expected (..., ",
        weight.dim() ? weight.size(-1) : 1, ")");
  if (weight.dim() != 1 && weight.dim() != 2) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": argument 'weight' has shape ", shape_text(weight.sizes()),
         ", expected (out_features, in_features)");
  if (input.size(-1) != weight.size(-1)) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": argument 'input' has shape ", shape_text(input.sizes()), ", expected (..., ",
         weight.size(-1), ") to fit 'weight' of shape ", shape_text(weight.sizes()), multiplied(input, weight, true));
  expect_dtype(op, "weight", weight, input.dtype(), "input");
  refuse_bool(op, input.dtype());
}
Shape layer_sizes(const Tensor& input, const Tensor& weight) {
  Shape sizes(input.sizes());
  if (weight.dim() == 2) sizes.back() = weight.size(0);
  else sizes.pop_back();
  return sizes;
}
}  // namespace

void linear_backward(const Tensor& grad, const Tensor& input, const Tensor& weight) {
  const char* const op = "linear_backward";
  expect_layer(op, input, weight);
  const Shape expected = layer_sizes(input, weight);
  if (!std::ranges::equal(grad.sizes(), IntSpan(expected))) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": argument 'grad' has shape ", shape_text(grad.sizes()), ", expected ",
         shape_text(expected), " to fit 'input' of shape ", shape_text(input.sizes()), " and 'weight' of shape ",
         shape_text(weight.sizes()));
  expect_dtype(op, "grad", grad, input.dtype(), "input");
}

const Tensor& layer_bias_slow(const Tensor& bias, const Tensor& weight, Tensor& room) {
  if (weight.dim() != 2) return bias;
  const int64_t outputs = weight.size(0), given = bias.dim() ? bias.size(-1) : 1;
  if (bias.numel() != given || (given != 1 && given != outputs)) return bias;
  return room = ops::expand(ops::reshape(bias, Shape{given}), Shape{outputs});
}

Spec linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  expect_layer("linear", input, weight);
  if (bias.defined()) {
    const bool fits = weight.dim() == 2 ? bias.dim() == 1 && bias.size(0) == weight.size(0) : bias.dim() == 0;
    if (!fits) [[unlikely]]
      fail(ErrorKind::Runtime, "linear: argument 'bias' has shape ", shape_text(bias.sizes()), ", expected ",
           shape_text(weight.sizes().first(size_t(weight.dim() - 1))), " to fit 'weight' of shape ",
           shape_text(weight.sizes()));
    expect_dtype("linear", "bias", bias, input.dtype(), "input");
  }
  return spec(layer_sizes(input, weight), input.dtype());
}

namespace {

std::tuple<Tensor, Tensor, Tensor> backward_meta(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                                 int64_t output_mask) {
  return {gradient_meta(grad, input.sizes(), output_mask, 1), gradient_meta(grad, weight.sizes(), output_mask, 2),
          gradient_meta(grad, weight.sizes().first(size_t(weight.dim() - 1)), output_mask, 4)};
}
const bool registered = [] {
  kernel<op::linear_backward>(kMeta, backward_meta);
  return true;
}();

}  // namespace

}  // namespace taeda::infer
