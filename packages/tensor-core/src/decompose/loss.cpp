// Losses with their gradients, and embeddings.
#include "decompose/common.h"
#include "taeda/wrappers.h"

namespace taeda::decompose {
namespace {

enum { kNone, kMean, kSum };
Tensor reduced(const Tensor& loss, int64_t how) {
  return how == kNone ? loss : how == kMean ? ops::mean(loss) : ops::sum(loss);
}
/// Gradient of a loss: the slope of each element times what comes from above, shared out for a mean.
Tensor shared(const Tensor& grad, const Tensor& slope, int64_t how) {
  return how == kMean ? grad * slope * Tensor(1.0 / double(std::max<int64_t>(slope.numel(), 1))) : grad * slope;
}

Tensor mse_loss(const Tensor& x, const Tensor& t, int64_t how) { return reduced((x - t) * (x - t), how); }
Tensor mse_loss_backward(const Tensor& grad, const Tensor& x, const Tensor& t, int64_t how) {
  return shared(grad, (x - t) * Tensor(2), how);
}
Tensor l1_loss(const Tensor& x, const Tensor& t, int64_t how) { return reduced(ops::abs(x - t), how); }
Tensor l1_loss_backward(const Tensor& grad, const Tensor& x, const Tensor& t, int64_t how) {
  return shared(grad, ops::sign(x - t), how);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& t, int64_t how, double beta) {
  const Tensor d = ops::abs(x - t);
  if (beta == 0) return reduced(d, how);
  return reduced(ops::where(ops::lt(d, Tensor(beta)), d * d * Tensor(0.5 / beta), d - Tensor(0.5 * beta)), how);
}
Tensor smooth_l1_loss_backward(const Tensor& grad, const Tensor& x, const Tensor& t, int64_t how, double beta) {
  const Tensor d = x - t;
  return shared(
      grad, beta == 0 ? ops::sign(d) : ops::where(ops::ge(ops::abs(d), Tensor(beta)), ops::sign(d), d / Tensor(beta)),
      how);
}
Tensor huber_loss(const Tensor& x, const Tensor& t, int64_t how, double delta) {
  const Tensor d = ops::abs(x - t);
  return reduced(ops::where(ops::le(d, Tensor(delta)), d * d * Tensor(0.5), (d - Tensor(0.5 * delta)) * Tensor(delta)),
                 how);
}
Tensor huber_loss_backward(const Tensor& grad, const Tensor& x, const Tensor& t, int64_t how, double delta) {
  const Tensor d = x - t;
  return shared(grad, ops::where(ops::ge(ops::abs(d), Tensor(delta)), ops::sign(d) * Tensor(delta), d), how);
}
Tensor bce_loss(const Tensor& x, const Tensor& t, int64_t how) {
  const Tensor yes = ops::clamp_min(ops::log(x), Tensor(-100.0)), no = ops::clamp_min(ops::log1p(-x), Tensor(-100.0));
  return reduced(-(t * yes + (Tensor(1) - t) * no), how);
}
Tensor bce_loss_backward(const Tensor& grad, const Tensor& x, const Tensor& t, int64_t how) {
  return shared(grad, (x - t) / ops::clamp_min(x * (Tensor(1) - x), Tensor(1e-12)), how);
}
Tensor bce_with_logits_loss(const Tensor& x, const Tensor& t, int64_t how) {
  const Tensor factor = ops::where(ops::gt(x, Tensor(0)), Tensor(1) - t, -t);
  return reduced(factor * x + ops::log1p(ops::exp(-ops::abs(x))), how);
}
Tensor bce_with_logits_loss_backward(const Tensor& grad, const Tensor& x, const Tensor& t, int64_t how) {
  return shared(grad, ops::sigmoid(x) - t, how);
}

/// Class indices that can be looked up, and the weight of each target: 0 for those that are left out.
struct Targets {
  int64_t dim;  // of the classes
  Tensor places, kept, weight;
  Targets(const Tensor& input, const Tensor& target, const Tensor& class_weight, int64_t ignore)
      : dim(input.dim() == 1 ? 0 : 1), kept(ops::ne(target, Tensor(ignore))) {
    const Tensor safe = masked(target, kept);
    places = ops::unsqueeze(safe, dim);
    const Tensor each =
        class_weight.defined()
            ? ops::reshape(ops::index_select(class_weight, 0, ops::reshape(safe, Shape{-1})), safe.sizes())
            : ops::ones(safe.sizes(), input.dtype(), stated_device(input));
    weight = masked(each, kept);
  }
  Tensor picked(const Tensor& from) const { return ops::squeeze_dims(ops::gather(from, dim, places), Shape{dim}); }
  /// A gradient for the elements of the targets, 0 elsewhere.
  Tensor spread(const Tensor& like, const Tensor& values) const {
    return ops::scatter(ops::zeros_like(like), dim, places, ops::unsqueeze(values, dim));
  }
};
Tensor class_reduced(const Tensor& loss, const Tensor& total, int64_t how) {
  return how == kNone ? loss : how == kMean ? ops::sum(loss) / total : ops::sum(loss);
}
/// What comes from above to each target; nothing to those that are left out, even where none is kept and the total is
/// 0.
Tensor class_shared(const Targets& t, const Tensor& grad, const Tensor& total, int64_t how) {
  return masked(how == kMean ? grad / total : grad, t.kept);
}

Two nll_loss_forward(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t how, int64_t ignore) {
  const Targets t(input, target, weight, ignore);
  const Tensor total = ops::sum(t.weight);
  return {class_reduced(-(t.weight * t.picked(input)), total, how), total};
}
Tensor nll_loss_backward(const Tensor& grad, const Tensor& input, const Tensor& target, const Tensor& weight,
                         int64_t how, int64_t ignore, const Tensor& total) {
  const Targets t(input, target, weight, ignore);
  return t.spread(input, -(t.weight * class_shared(t, grad, total, how)));
}

Tensor class_weights(const Tensor& input, const Tensor& weight, int64_t dim) {
  if (!weight.defined()) return ops::ones(Shape(size_t(input.dim()), 1), input.dtype(), stated_device(input));
  return dim ? by_channel(weight, input.dim()) : weight;
}
Three cross_entropy_forward(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t how,
                            int64_t ignore, double smooth) {
  const Targets t(input, target, weight, ignore);
  const Tensor sums = ops::logsumexp(input, Shape{t.dim}), total = ops::sum(t.weight);
  const Tensor lse = sums + (sums - sums);  // of infinite scores no number, and so are the losses
  Tensor loss = t.weight * (lse - t.picked(input)) * Tensor(1 - smooth);
  if (smooth > 0) {
    const Tensor all = class_weights(input, weight, t.dim) * (ops::unsqueeze(lse, t.dim) - input);
    loss = loss + masked(ops::sum(all, Shape{t.dim}) * Tensor(smooth / double(input.size(t.dim))), t.kept);
  }
  return {class_reduced(loss, total, how), lse, total};
}
Tensor cross_entropy_backward(const Tensor& grad, const Tensor& input, const Tensor& target, const Tensor& weight,
                              int64_t how, int64_t ignore, double smooth, const Tensor& lse, const Tensor& total) {
  const Targets t(input, target, weight, ignore);
  const Tensor p = ops::exp(input - ops::unsqueeze(lse, t.dim));
  Tensor slope = (p * ops::unsqueeze(t.weight, t.dim) - t.spread(input, t.weight)) * Tensor(1 - smooth);
  if (smooth > 0) {
    const double classes = double(input.size(t.dim));
    const Tensor sum = weight.defined() ? ops::sum(weight) : Tensor(classes);
    const Tensor all = (p * sum - class_weights(input, weight, t.dim)) * Tensor(smooth / classes);
    slope = slope + all;
  }
  return masked(slope * ops::unsqueeze(class_shared(t, grad, total, how), t.dim), ops::unsqueeze(t.kept, t.dim));
}

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  Shape sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  return ops::reshape(ops::index_select(weight, 0, ops::reshape(indices, Shape{-1})), sizes);
}
Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t rows, int64_t padding, bool by_frequency) {
  const Tensor at = ops::reshape(indices, Shape{-1});
  Tensor each = ops::reshape(grad, Shape{at.numel(), grad.size(-1)});
  if (by_frequency) {
    const Tensor ones = ops::ones(Shape{at.numel()}, grad.dtype(), stated_device(grad));
    const Tensor often = ops::index_add(ops::zeros(Shape{rows}, grad.dtype(), stated_device(grad)), 0, at, ones);
    each = each / ops::unsqueeze(ops::index_select(often, 0, at), 1);
  }
  each = masked(each, ops::unsqueeze(ops::ne(at, Tensor(padding)), 1));
  return ops::index_add(ops::zeros(Shape{rows, grad.size(-1)}, grad.dtype(), stated_device(grad)), 0, at, each);
}

DECOMPOSE(mse_loss)
DECOMPOSE(mse_loss_backward)
DECOMPOSE(l1_loss)
DECOMPOSE(l1_loss_backward)
DECOMPOSE(smooth_l1_loss)
DECOMPOSE(smooth_l1_loss_backward)
DECOMPOSE(huber_loss)
DECOMPOSE(huber_loss_backward)
DECOMPOSE(bce_loss)
DECOMPOSE(bce_loss_backward)
DECOMPOSE(bce_with_logits_loss)
DECOMPOSE(bce_with_logits_loss_backward)
DECOMPOSE(nll_loss_forward)
DECOMPOSE(nll_loss_backward)
DECOMPOSE(cross_entropy_forward)
DECOMPOSE(cross_entropy_backward)
DECOMPOSE(embedding)
DECOMPOSE(embedding_backward)

}  // namespace
}  // namespace taeda::decompose
