// Derivative formulas that are too long for a line of derivatives/<family>.yaml.
//
// Note [Second derivatives]
// A formula is one whatever the order: differentiable operators, among them the fused `*_backward` ones. While
// gradients of gradients are recorded (create_graph), these become their decompositions (taeda/decompose.h), the
// formula that the kernels accelerate. `recording()` is for what a saved statistic depends on: it has no history of its
// own.
#pragma once
#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "taeda/arithmetic.h"
#include "taeda/autograd/formulas/matrices.h"
#include "taeda/autograd/formulas/shape.h"
#include "taeda/half.h"
#include "taeda/ops.h"
#include "taeda/wrappers.h"

namespace taeda::formulas {

using Dims = std::optional<IntSpan>;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

inline bool recording() noexcept { return thread_state.grad_enabled; }

// --- common (common.cpp) ---
inline Scalar conj_of(const Scalar& s) { return s.is_complex() ? Scalar(std::conj(s.to<std::complex<double>>())) : s; }
/// The gradient of `factor * x` for that of the result.
inline Tensor scaled(const Tensor& grad, const Scalar& factor) {
  return factor.equal(1) ? grad : grad * conj_of(factor);
}
inline Tensor zeros_of(IntSpan sizes, const Tensor& like) {
  return ops::zeros(sizes, like.dtype(), stated_device(like));
}
/// Memory in the order of an argument that is not kept, for operators that read no more than that of it.
Tensor memory_like(const Tensor& grad, IntSpan sizes, IntSpan strides, DType dtype);
inline Tensor ones_of(IntSpan sizes, const Tensor& like) { return ops::ones(sizes, like.dtype(), stated_device(like)); }
/// The value of a saved statistic with the derivatives of the same one computed again.
Tensor with_history(const Tensor& saved, const Tensor& computed);
/// a + b where either may be undefined.
inline Tensor plus(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : a + b; }
template <size_t N>
int64_t mask_bits(const std::array<bool, N>& wanted) {
  int64_t bits = 0;
  for (size_t i = 0; i < N; ++i) bits |= int64_t(wanted[i]) << i;
  return bits;
}
/// Sums over the dimensions in which `sizes` was broadcast.
Tensor sum_to(const Tensor& grad, IntSpan sizes);
/// Puts reduced dimensions back as size 1, so that a result broadcasts against its input.
Tensor restore_dims(const Tensor& t, size_t ndim, const Dims& dim, bool keepdim);
int64_t count_of(IntSpan sizes, const Dims& dim);
/// The single value of a host tensor.
bool truth_of(const Tensor& t);

// --- arith, compare ---
Tensor clamp_grad(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& min,
                  const std::optional<Scalar>& max);
Tensor copysign_grad(const Tensor& grad, const Tensor& self, const Tensor& result);
/// Gradient of maximum and minimum for one operand: nothing where it `loses`; ties share it equally.
Tensor winner_grad(const Tensor& grad, const Tensor& equal, const Tensor& loses);
Tensor pow_grad_self(const Tensor& grad, const Tensor& self, const Tensor& exponent);
Tensor pow_grad_exponent(const Tensor& grad, const Tensor& self, const Tensor& exponent, const Tensor& result);
Tensor xlogy_grad_self(const Tensor& grad, const Tensor& self, const Tensor& other);
Tensor sgn_grad(const Tensor& grad, const Tensor& self, const Tensor& result);

// --- unary ---
Tensor acosh_grad(const Tensor& grad, const Tensor& self);
Tensor angle_grad(const Tensor& grad, const Tensor& self);
Tensor atan2_grad(const Tensor& grad, const Tensor& factor, const Tensor& a, const Tensor& b);
Tensor i1_grad(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor i1e_grad(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor logit_grad(const Tensor& grad, const Tensor& self, std::optional<double> eps);
/// Derivative of digamma, in differentiable operators.
Tensor trigamma(const Tensor& x);
Tensor sinc_grad(const Tensor& grad, const Tensor& self);

// --- fft ---
Tensor fft_r2c_grad(const Tensor& grad, IntSpan dim, int64_t normalization, bool onesided, IntSpan sizes);
Tensor fft_c2r_grad(const Tensor& grad, IntSpan dim, int64_t normalization);

// --- special ---
/// value - above / below, and `at_zero` where `below` is 0.
Tensor minus_ratio(const Tensor& value, const Tensor& above, const Tensor& below, double at_zero);
/// Derivative of sin(x) / x.
Tensor spherical_slope(const Tensor& x, const Tensor& result);

// --- reduce ---
/// 1 where elements are the chosen one of theirs, which of several with NaN is NaN; else 0.
Tensor chosen(const Tensor& x, const Tensor& result, DType dtype);
Tensor sum_grad(const Tensor& grad, IntSpan sizes, const Dims& dim, bool keepdim);
Tensor mean_grad(const Tensor& grad, IntSpan sizes, const Dims& dim, bool keepdim);
Tensor extremum_grad(const Tensor& grad, const Tensor& self, const Tensor& result, const Dims& dim, bool keepdim);
/// Equal elements share the gradient equally.
Tensor median_grad(const Tensor& grad, const Tensor& self, const Tensor& result);
/// Places `grad` where `indices` chose along `dim`.
Tensor choice_grad(const Tensor& grad, int64_t dim, const Tensor& indices, IntSpan sizes, bool keepdim);
Tensor cumsum_grad(const Tensor& grad, int64_t dim);
Tensor cumprod_grad(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim);
Tensor logcumsumexp_grad(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim);
Tensor logsumexp_grad(const Tensor& grad, const Tensor& self, const Tensor& result, IntSpan dim, bool keepdim);
Tensor prod_grad(const Tensor& grad, const Tensor& self, const Tensor& result, const Dims& dim, bool keepdim);
Tensor var_grad(const Tensor& grad, const Tensor& self, const Dims& dim, bool unbiased, bool keepdim,
                const std::optional<Scalar>& correction);
Tensor vector_norm_grad(const Tensor& grad, const Tensor& self, const Tensor& result, const Scalar& ord,
                        const Dims& dim, bool keepdim);

// --- shape (more in formulas/shape.h) ---
Tensor as_strided_grad(const Tensor& grad, IntSpan sizes, IntSpan strides, int64_t offset, IntSpan view_sizes,
                       IntSpan view_strides, std::optional<int64_t> view_offset);
Shape negated(IntSpan values);

// --- index, embedding ---
Tensor scatter_reduce_grad_self(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                                const Tensor& src, std::string_view reduce, bool include_self, const Tensor& result);
Tensor scatter_reduce_grad_src(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                               const Tensor& src, std::string_view reduce, bool include_self, const Tensor& result);
Tensor embedding_grad(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                      bool scale_grad_by_freq);
Tensor embedding_grad_grad(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                           bool scale_grad_by_freq);

// --- linalg, conv, pool ---
Three linear_grad_grad(TensorList grads, const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                       const std::array<bool, 3>& wanted);
/// Of conv2d_backward and conv3d_backward, by the dimensions of `weight`.
Three conv_grad_grad(TensorList grads, const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                     IntSpan stride, IntSpan padding, IntSpan dilation, int64_t groups,
                     const std::array<bool, 3>& wanted);
/// Elements of the last two dimensions, taken together, at `indices`.
Tensor pick_in_planes(const Tensor& t, const Tensor& indices);
/// The gradient of an input (..., D, H, W) of whose volumes `indices` names the places that grad's elements belong to.
Tensor maxima_of_volumes_grad(const Tensor& grad, IntSpan sizes, DType dtype, const Tensor& indices);

// --- spatial (spatial.cpp) ---
/// All sizes behind batch and channels.
inline Shape spatial_sizes(IntSpan sizes) { return Shape(sizes.subspan(2)); }
Two euclidean_grads(const Tensor& grad, const Tensor& x1, const Tensor& x2, const Tensor& distances,
                    const std::array<bool, 2>& wanted);
Tensor embedding_bag_grad(const Tensor& grad, const Tensor& indices, const Tensor& offset2bag, const Tensor& bag_size,
                          const Tensor& max_indices, int64_t rows, bool scale_grad_by_freq, int64_t mode,
                          const Tensor& per_sample_weights, std::optional<int64_t> padding_idx);
Tensor embedding_bag_factor_grad(const Tensor& grad, const Tensor& weight, const Tensor& indices,
                                 const Tensor& offset2bag, std::optional<int64_t> padding_idx);

// --- norm ---
Three batch_norm_grads(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                       const Tensor& invstd, bool training, double eps, const std::array<bool, 3>& wanted);
Three layer_norm_grads(const Tensor& grad, const Tensor& input, IntSpan normalized_shape, const Tensor& mean,
                       const Tensor& rstd, const Tensor& weight, double eps, const std::array<bool, 3>& wanted);
Three group_norm_grads(const Tensor& grad, const Tensor& input, int64_t groups, const Tensor& mean, const Tensor& rstd,
                       const Tensor& weight, double eps, const std::array<bool, 3>& wanted);

// --- rnn ---
Three lstm_gates_grads(TensorList grads, const Tensor& gates, const Tensor& c, const Tensor& c_out);
Three gru_gates_grads(TensorList grads, const Tensor& gates, const Tensor& h);
Five lstm_sequence_grads(TensorList grads, const Tensor& h, const Tensor& c, const Tensor& w_hh, const Tensor& output,
                         const Tensor& gates, const Tensor& cells, bool reverse);

// --- loss ---
/// Gradients of input and target where the loss depends on their difference alone.
Two opposite(const Tensor& grad, const std::array<bool, 2>& wanted);
Tensor bce_target_grad(const Tensor& grad, const Tensor& input, int64_t reduction);
Tensor bce_logits_target_grad(const Tensor& grad, const Tensor& input, int64_t reduction);
Tensor cross_entropy_grad(const Tensor& grad, const Tensor& input, const Tensor& target, const Tensor& weight,
                          int64_t reduction, int64_t ignore_index, double label_smoothing, const Tensor& log_sum_exp,
                          const Tensor& total_weight);

}  // namespace taeda::formulas
