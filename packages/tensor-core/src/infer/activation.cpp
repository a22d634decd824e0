// Inference of activations that take more than tensors, and of softmax's gradient.
#include "taeda/ops/activation.h"

#include <algorithm>

#include "infer/dtypes.h"
#include "taeda/infer.h"

namespace taeda::infer {
namespace {

void expect_approximation(const char* op, std::string_view approximate) {
  check(approximate == "none" || approximate == "tanh", ErrorKind::Runtime, op, ": argument 'approximate' is '",
        approximate, "', expected 'none' or 'tanh'");
}
bool is_unsigned(DType d) {
  return d == DType::UInt8 || d == DType::UInt16 || d == DType::UInt32 || d == DType::UInt64;
}
void refuse_bool(const char* op, DType dtype) {
  check(dtype != DType::Bool, ErrorKind::NotImplemented, op, ": not implemented for dtype bool");
}
Spec gradient_along(const char* op, const Tensor& grad, const Tensor& output, int64_t dim) {
  wrap_dim(dim, output.dim(), op);
  check(std::ranges::equal(grad.sizes(), output.sizes()), ErrorKind::Runtime, op, ": argument 'grad' has shape ",
        shape_text(grad.sizes()), ", expected that of 'output', ", shape_text(output.sizes()));
  for (const Tensor* t : {&grad, &output})
    check(is_floating(t->dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(t->dtype()));
  return binary(op, grad, output);
}

}  // namespace

Spec gelu(const Tensor& self, std::string_view approximate) {
  expect_approximation("gelu", approximate);
  return activation("gelu", self);
}
Spec gelu_backward(const Tensor& grad, const Tensor& self, std::string_view approximate) {
  expect_approximation("gelu_backward", approximate);
  return binary("gelu_backward", grad, self);
}
namespace {
void expect_inexact(const char* op, DType dtype) {
  check(is_floating(dtype) || is_complex(dtype), ErrorKind::NotImplemented, op, ": not implemented for dtype ",
        name(dtype));
}
/// The sizes of glu's result, of an argument whose first half along `dim` goes through gates made of the second one.
Shape halved(const char* op, const Tensor& self, int64_t dim) {
  check(self.dim() > 0, ErrorKind::Runtime, op, ": argument 'self' is 0-dimensional");
  dim = wrap_dim(dim, self.dim(), op);
  check(self.size(dim) % 2 == 0, ErrorKind::Runtime, op, ": dimension ", dim, " has size ", self.size(dim),
        ", expected an even size");
  Shape sizes = self.sizes();
  sizes[size_t(dim)] /= 2;
  return sizes;
}
}  // namespace
Spec glu(const Tensor& self, int64_t dim) {
  const Shape sizes = halved("glu", self, dim);
  expect_inexact("glu", self.dtype());
  return spec_like(sizes, self.dtype(), self);
}
Spec glu_backward(const Tensor& grad, const Tensor& self, int64_t dim) {
  const Shape sizes = halved("glu_backward", self, dim);
  check(std::ranges::equal(grad.sizes(), IntSpan(sizes)), ErrorKind::Runtime,
        "glu_backward: argument 'grad' has shape ", shape_text(grad.sizes()), ", expected that of the result, ",
        shape_text(sizes));
  const DType dtype = common_dtype(grad, self);
  expect_inexact("glu_backward", dtype);
  return spec_like(self.sizes(), dtype, self);
}
Spec hardtanh(const Tensor& self, const Scalar& min_val, const Scalar& max_val) {
  const double low = min_val.to_double(), high = max_val.to_double();
  refuse_bool("hardtanh", self.dtype());
  check(low <= high, ErrorKind::Value, "hardtanh: argument 'min_val' (", low, ") must not exceed 'max_val' (", high,
        ")");
  check(!is_unsigned(self.dtype()) || low >= 0, ErrorKind::Runtime, "hardtanh: argument 'min_val' is ", low,
        ", expected at least 0 for dtype ", name(self.dtype()), ", which has no negative numbers");
  return unary_ordered("hardtanh", self);
}
Spec threshold(const Tensor& self, const Scalar&, const Scalar&) {
  refuse_bool("threshold", self.dtype());
  return unary_ordered("threshold", self);
}
Spec native_dropout_backward(const Tensor& grad, const Tensor& mask, double) {
  check(same_shape(grad, mask), ErrorKind::Runtime, "native_dropout_backward: argument 'mask' of shape ",
        shape_text(mask.sizes()), " must have the shape of 'grad', ", shape_text(grad.sizes()));
  check(mask.dtype() == DType::Bool, ErrorKind::Runtime, "native_dropout_backward: argument 'mask' has dtype ",
        name(mask.dtype()), ", expected bool");
  Spec out = binary("native_dropout_backward", grad, grad);
  out.dtype = float_of(out.dtype);
  return out;
}
Spec softmax_backward(const Tensor& grad, const Tensor& output, int64_t dim) {
  return gradient_along("softmax_backward", grad, output, dim);
}
Spec log_softmax_backward(const Tensor& grad, const Tensor& output, int64_t dim) {
  return gradient_along("log_softmax_backward", grad, output, dim);
}

}  // namespace taeda::infer
