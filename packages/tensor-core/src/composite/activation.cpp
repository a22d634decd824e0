// Activations written in terms of others.
#include "taeda/ops/activation.h"

#include "infer/random.h"
#include "taeda/ops/arith.h"
#include "taeda/ops/compare.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/random.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/unary.h"

namespace taeda::impl {

Tensor relu6(const Tensor& self) { return ops::hardtanh(self, 0, 6); }
Tensor selu(const Tensor& self) {
  infer::activation("selu", self);
  return ops::elu(self, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1);
}
Tensor celu(const Tensor& self, const Scalar& alpha) {
  check(alpha.to_double() != 0, ErrorKind::Runtime, "celu: argument 'alpha' must not be 0");
  infer::activation("celu", self);
  return ops::elu(self, alpha, 1, 1 / alpha.to_double());
}
Tensor softsign(const Tensor& self) { return ops::div(self, ops::add(ops::abs(self), Tensor(1))); }
Tensor tanhshrink(const Tensor& self) { return ops::sub(self, ops::tanh(self)); }
Tensor softmin(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return ops::softmax(ops::neg(self), dim, dtype);
}

Tensor prelu(const Tensor& self, const Tensor& weight) {
  Tensor slope = weight;
  if (weight.numel() != 1) {
    const int64_t channels = self.dim() > 1 ? self.size(1) : 1;
    check(weight.dim() == 1 && weight.numel() == channels, ErrorKind::Runtime, "prelu: argument 'weight' has shape ",
          shape_text(weight.sizes()), ", expected 1 or ", channels, " elements");
    Shape sizes(size_t(self.dim()), 1);
    sizes[1] = channels;
    slope = ops::reshape(weight, sizes);
  } else if (weight.dim() > self.dim()) {
    slope = ops::reshape(weight, Shape{});
  }
  return ops::prelu_forward(self, slope);
}

Tensor rrelu(const Tensor& self, double lower, double upper, bool training, const Generator& generator) {
  check(lower <= upper, ErrorKind::Runtime, "rrelu: argument 'lower' (", lower, ") must not exceed 'upper' (", upper,
        ")");
  if (!training) return ops::leaky_relu(self, (lower + upper) / 2);
  infer::uniform_bounds("rrelu", self, lower, upper, "lower", "upper");
  const Tensor slope = ops::empty_like(self);
  ops::uniform_(slope, lower, upper, generator);
  return ops::prelu_forward(self, slope);
}

Tensor dropout(const Tensor& self, double p, bool training) {
  check(p >= 0 && p <= 1, ErrorKind::Value, "dropout: argument 'p' must lie between 0 and 1, got ", p);
  if (!training || p == 0) return self;
  check(is_differentiable(self.dtype()), ErrorKind::NotImplemented, "dropout: not implemented for dtype ",
        name(self.dtype()));
  return std::get<0>(ops::native_dropout(self, p));
}

}  // namespace taeda::impl
