// Reductions and normalisations of the elements that a mask leaves, in terms of those of all elements: what is masked
// out is replaced by what changes nothing.
#include "taeda/ops/masked.h"

#include <limits>

#include "taeda/arithmetic.h"
#include "taeda/dims.h"
#include "taeda/ops/activation.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/index.h"
#include "taeda/ops/reduce.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/sort.h"
#include "taeda/ops/statistics.h"
#include "taeda/wrappers.h"
#include "infer/random.h"

namespace taeda::impl {
namespace {

using Dims = std::optional<IntSpan>;
using OptionalDType = std::optional<DType>;

constexpr double kInf = std::numeric_limits<double>::infinity();

/// `input` in the wanted dtype, and `other` where the mask does not hold.
Tensor replaced(const char* op, const Tensor& input, const Tensor& mask, OptionalDType dtype, const Tensor& other) {
  const Tensor x = dtype ? ops::to_dtype(input, *dtype) : input;
  if (!mask.defined()) return x;
  check(mask.dtype() == DType::Bool, ErrorKind::Type, op, ": argument 'mask' has dtype ", name(mask.dtype()),
        ", expected bool");
  const Shape sizes = broadcast_shapes(mask.sizes(), x.sizes(), op);
  check(std::ranges::equal(sizes, x.sizes()), ErrorKind::Index, op, ": argument 'mask' has shape ",
        shape_text(mask.sizes()), ", which is not broadcastable to that of 'input', ", shape_text(x.sizes()));
  return ops::where(mask, x, other);
}
/// The least (sign -1) or the largest number of a dtype.
Tensor extreme(DType dtype, int sign) {
  if (is_floating(dtype)) return Tensor(sign * kInf);
  if (dtype == DType::Bool) return Tensor(Scalar(sign > 0));
  if (sign > 0) return Tensor(Scalar(infer::largest_integer(dtype)));
  return Tensor(Scalar(!is_signed(dtype) ? int64_t(0) : -infer::largest_integer(dtype) - 1));
}
/// How many elements over `dim` the mask leaves.
Tensor count_of(const Tensor& input, const Tensor& mask, Dims dim, bool keepdim) {
  const Tensor all =
      ops::expand(mask.defined() ? mask : ops::ones(Shape{}, DType::Bool, stated_device(input)), input.sizes());
  return ops::sum(all, dim, keepdim);
}
/// The dtype that means and deviations are asked in.
DType inexact(const char* op, const Tensor& input, OptionalDType dtype) {
  const DType type = dtype.value_or(input.dtype());
  check(is_differentiable(type), ErrorKind::Value, op, ": argument 'input' has dtype ", name(type),
        ", expected a floating-point or complex dtype, or one given as 'dtype'");
  return type;
}

}  // namespace

Tensor masked_sum(const Tensor& input, Dims dim, std::optional<bool> keepdim, OptionalDType dtype, const Tensor& mask) {
  const Tensor x = replaced("sum", input, mask, std::nullopt, Tensor(0));
  return ops::sum(x, dim, keepdim.value_or(false), dtype);
}
Tensor masked_prod(const Tensor& input, Dims dim, std::optional<bool> keepdim, OptionalDType dtype,
                   const Tensor& mask) {
  const Tensor x = replaced("prod", input, mask, std::nullopt, Tensor(1));
  return ops::prod(x, dim, keepdim.value_or(false), dtype);
}
Tensor masked_cumsum(const Tensor& input, int64_t dim, OptionalDType dtype, const Tensor& mask) {
  return ops::cumsum(replaced("cumsum", input, mask, std::nullopt, Tensor(0)), dim, dtype.value_or(input.dtype()));
}
Tensor masked_cumprod(const Tensor& input, int64_t dim, OptionalDType dtype, const Tensor& mask) {
  return ops::cumprod(replaced("cumprod", input, mask, std::nullopt, Tensor(1)), dim, dtype.value_or(input.dtype()));
}
Tensor masked_amax(const Tensor& input, Dims dim, std::optional<bool> keepdim, OptionalDType dtype,
                   const Tensor& mask) {
  const DType type = dtype.value_or(input.dtype());
  return ops::amax(replaced("amax", input, mask, dtype, extreme(type, -1)), dim, keepdim.value_or(false));
}
Tensor masked_amin(const Tensor& input, Dims dim, std::optional<bool> keepdim, OptionalDType dtype,
                   const Tensor& mask) {
  const DType type = dtype.value_or(input.dtype());
  return ops::amin(replaced("amin", input, mask, dtype, extreme(type, 1)), dim, keepdim.value_or(false));
}
Tensor masked_argmax(const Tensor& input, std::optional<int64_t> dim, std::optional<bool> keepdim, OptionalDType dtype,
                     const Tensor& mask) {
  const DType type = dtype.value_or(input.dtype());
  const Tensor x = replaced("argmax", input, mask, dtype, extreme(type, -1));
  return ops::to_dtype(ops::argmax(x, dim, keepdim.value_or(false)), type);
}
Tensor masked_argmin(const Tensor& input, std::optional<int64_t> dim, std::optional<bool> keepdim, OptionalDType dtype,
                     const Tensor& mask) {
  const DType type = dtype.value_or(input.dtype());
  const Tensor x = replaced("argmin", input, mask, dtype, extreme(type, 1));
  return ops::to_dtype(ops::argmin(x, dim, keepdim.value_or(false)), type);
}

Tensor masked_mean(const Tensor& input, Dims dim, std::optional<bool> keepdim, OptionalDType dtype,
                   const Tensor& mask) {
  const DType type = inexact("mean", input, dtype);
  const bool keep = keepdim.value_or(false);
  if (!mask.defined()) return ops::mean(ops::to_dtype(input, type), dim, keep);
  const Tensor sum = ops::sum(replaced("mean", input, mask, type, Tensor(0)), dim, keep);
  return sum / count_of(input, mask, dim, keep);
}
Tensor masked_median(const Tensor& input, int64_t dim, std::optional<bool> keepdim, OptionalDType dtype,
                     const Tensor& mask) {
  const DType type = dtype.value_or(input.dtype());
  check(is_floating(type), ErrorKind::Value, "median: argument 'input' has dtype ", name(type),
        ", expected a floating-point dtype");
  const Tensor x = replaced("median", input, mask, dtype, Tensor(std::numeric_limits<double>::quiet_NaN()));
  return std::get<0>(ops::nanmedian_dim(x, dim, keepdim.value_or(false)));
}
Tensor masked_norm(const Tensor& input, const std::optional<Scalar>& ord, Dims dim, std::optional<bool> keepdim,
                   OptionalDType dtype, const Tensor& mask) {
  const Scalar power = ord.value_or(Scalar(2));
  const Tensor nothing = power.equal(-kInf) ? Tensor(kInf) : Tensor(0);
  return ops::vector_norm(replaced("norm", input, mask, dtype, nothing), power, dim, keepdim.value_or(false));
}
Tensor masked_normalize(const Tensor& input, const Scalar& ord, int64_t dim, double eps, OptionalDType dtype,
                        const Tensor& mask) {
  const int64_t d = wrap_dim(dim, input.dim(), "normalize");
  const Tensor norm = masked_norm(input, ord, Shape{d}, true, dtype, mask);
  return replaced("normalize", input, mask, dtype, Tensor(0)) / ops::clamp_min(norm, Tensor(eps));
}

Tensor masked_var(const Tensor& input, Dims dim, std::optional<bool> unbiased, const std::optional<Scalar>& correction,
                  std::optional<bool> keepdim, OptionalDType dtype, const Tensor& mask) {
  check(!unbiased || !correction, ErrorKind::Runtime, "var: arguments 'unbiased' and 'correction' exclude each other");
  const DType type = is_differentiable(dtype.value_or(input.dtype())) ? dtype.value_or(input.dtype()) : DType::Float32;
  const bool keep = keepdim.value_or(false);
  const Scalar lost = correction ? *correction : Scalar(int64_t(unbiased.value_or(true)));
  const Tensor x = ops::to_dtype(input, type);
  if (!mask.defined()) return ops::to_dtype(ops::var(x, dim, true, keep, lost), type);
  const Tensor count = count_of(input, mask, dim, true);
  const Tensor mean = ops::sum(replaced("var", x, mask, std::nullopt, Tensor(0)), dim, true) / count;
  const Tensor deviation = ops::where(mask, x - mean, Tensor(0));
  const Tensor squares = is_complex(type) ? ops::real(deviation * ops::conj(deviation)) : deviation * deviation;
  const Tensor sum = ops::sum(squares, dim, keep);
  const Tensor divisor = ops::clamp_min(count - Tensor(lost), Tensor(0));
  const Tensor variance = sum / ops::to_dtype(keep ? divisor : ops::reshape(divisor, sum.sizes()), sum.dtype());
  return ops::to_dtype(variance, type);
}
Tensor masked_std(const Tensor& input, Dims dim, std::optional<bool> unbiased, const std::optional<Scalar>& correction,
                  std::optional<bool> keepdim, OptionalDType dtype, const Tensor& mask) {
  return ops::sqrt(masked_var(input, dim, unbiased, correction, keepdim, dtype, mask));
}

Tensor masked_softmax(const Tensor& input, int64_t dim, OptionalDType dtype, const Tensor& mask) {
  return ops::softmax(replaced("softmax", input, mask, dtype, Tensor(-kInf)), dim);
}
Tensor masked_log_softmax(const Tensor& input, int64_t dim, OptionalDType dtype, const Tensor& mask) {
  return ops::log_softmax(replaced("log_softmax", input, mask, dtype, Tensor(-kInf)), dim);
}
Tensor masked_softmin(const Tensor& input, int64_t dim, OptionalDType dtype, const Tensor& mask) {
  return ops::softmax(-replaced("softmin", input, mask, dtype, Tensor(kInf)), dim);
}
Tensor masked_logsumexp(const Tensor& input, Dims dim, std::optional<bool> keepdim, OptionalDType dtype,
                        const Tensor& mask) {
  const Tensor x = replaced("logsumexp", input, mask, dtype, Tensor(-kInf));
  Shape all;
  for (int64_t d = 0; d < x.dim(); ++d) all.push_back(d);
  const Tensor sum = ops::logsumexp(x, dim ? *dim : IntSpan(all), keepdim.value_or(false));
  return ops::to_dtype(sum, dtype.value_or(input.dtype()));
}
Tensor masked_logaddexp(const Tensor& input, const Tensor& other, OptionalDType dtype, const Tensor& input_mask,
                        const Tensor& other_mask) {
  return ops::logaddexp(replaced("logaddexp", input, input_mask, dtype, Tensor(-kInf)),
                        replaced("logaddexp", other, other_mask, dtype, Tensor(-kInf)));
}

}  // namespace taeda::impl
