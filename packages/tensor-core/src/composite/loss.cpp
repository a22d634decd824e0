// Losses written in terms of others.
#include "taeda/ops/loss.h"

#include <algorithm>
#include <limits>
#include <numbers>

#include "taeda/arithmetic.h"
#include "taeda/half.h"
#include "taeda/ops.h"

namespace taeda::impl {
namespace {

Tensor reduced(const char* op, const Tensor& loss, int64_t reduction) {
  check(reduction >= 0 && reduction <= 2, ErrorKind::Value, op,
        ": argument 'reduction' must be 0 (none), 1 (mean) or 2 (sum), got ", reduction);
  return reduction == 0 ? loss : reduction == 1 ? ops::mean(loss) : ops::sum(loss);
}

/// Target of class probabilities: -sum over classes of target * log_softmax(input) * weight.
Tensor soft_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                          int64_t ignore_index, double label_smoothing) {
  check(is_floating(target.dtype()), ErrorKind::Runtime, "cross_entropy_loss: argument 'target' has dtype ",
        name(target.dtype()), ", expected a floating dtype for class probabilities of the shape of 'input'");
  check(ignore_index < 0, ErrorKind::Runtime, "cross_entropy_loss: argument 'ignore_index' is ", ignore_index,
        ", which is not supported for class probabilities, expected a negative one");
  check(label_smoothing >= 0 && label_smoothing <= 1, ErrorKind::Runtime,
        "cross_entropy_loss: argument 'label_smoothing' must be between 0 and 1, got ", label_smoothing);
  if (any_half(input, target, weight)) {
    const Tensor operands[] = {input, target, weight};
    const Tensor loss = soft_cross_entropy(in_float32(input), in_float32(target), in_float32(weight), reduction,
                                           ignore_index, label_smoothing);
    return from_float32(loss, joint_dtype({operands}));
  }
  const int64_t dim = input.dim() > 1 ? 1 : 0;
  Tensor wanted = target;
  if (label_smoothing > 0)
    wanted = ops::add(ops::mul(target, Tensor(1.0 - label_smoothing)),
                      Tensor(label_smoothing / double(std::max<int64_t>(1, input.size(dim)))));
  Tensor terms = ops::mul(ops::log_softmax(input, dim), wanted);
  if (weight.defined()) {
    check(weight.dim() == 1 && weight.size(0) == input.size(dim), ErrorKind::Runtime,
          "cross_entropy_loss: argument 'weight' has shape ", shape_text(weight.sizes()), ", expected (",
          input.size(dim), ",), one for each class");
    Shape sizes(size_t(input.dim()), 1);
    sizes[size_t(dim)] = weight.size(0);
    terms = ops::mul(terms, ops::reshape(weight, sizes));
  }
  const Tensor losses = ops::neg(ops::sum(terms, Shape{dim}));
  if (reduction != 1) return reduced("cross_entropy_loss", losses, reduction);
  return ops::div(ops::sum(losses), Tensor(double(input.numel()) / double(std::max<int64_t>(1, input.size(dim)))));
}

}  // namespace

Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                int64_t ignore_index) {
  return std::get<0>(ops::nll_loss_forward(input, target, weight, reduction, ignore_index));
}

Tensor cross_entropy_loss(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                          int64_t ignore_index, double label_smoothing) {
  if (input.dim() > 0 && std::ranges::equal(input.sizes(), target.sizes()))
    return soft_cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing);
  return std::get<0>(ops::cross_entropy_forward(input, target, weight, reduction, ignore_index, label_smoothing));
}

namespace {
/// Weights of any floating-point dtype leave the losses theirs.
Tensor in_dtype_of(const Tensor& losses, const Tensor& weight) {
  return is_floating(weight.dtype()) ? ops::to_dtype(weight, losses.dtype()) : weight;
}
Tensor weighted(const Tensor& loss, const Tensor& weight) { return ops::mul(loss, in_dtype_of(loss, weight)); }
}  // namespace

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction) {
  if (!weight.defined()) return ops::bce_loss(input, target, reduction);
  return reduced("binary_cross_entropy", weighted(ops::bce_loss(input, target, 0), weight), reduction);
}

namespace {
Tensor logits_loss(const Tensor& self, const Tensor& target, const Tensor& weight, const Tensor& pos_weight,
                   int64_t reduction) {
  if (!weight.defined() && !pos_weight.defined()) return ops::bce_with_logits_loss(self, target, reduction);
  Tensor loss;
  if (pos_weight.defined()) {
    check(std::ranges::equal(self.sizes(), target.sizes()), ErrorKind::Value,
          "binary_cross_entropy_with_logits: argument 'target' has shape ", shape_text(target.sizes()),
          ", expected that of 'self', ", shape_text(self.sizes()));
    // (1 - t) * x - (1 + (p - 1) * t) * logsigmoid(x)
    const Tensor factor = ops::add(ops::mul(ops::sub(in_dtype_of(target, pos_weight), Tensor(1)), target), Tensor(1));
    loss = ops::sub(ops::mul(ops::rsub(target, Tensor(1)), self), ops::mul(factor, ops::logsigmoid(self)));
  } else {
    loss = ops::bce_with_logits_loss(self, target, 0);
  }
  return reduced("binary_cross_entropy_with_logits", weight.defined() ? weighted(loss, weight) : loss, reduction);
}
}  // namespace

Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target, const Tensor& weight,
                                        const Tensor& pos_weight, int64_t reduction) {
  if (!weight.defined() && !pos_weight.defined() && self.dtype() == target.dtype())
    return ops::bce_with_logits_loss(self, target, reduction);
  // Computed in the wider dtype and rounded once, to that of the targets.
  const Tensor loss =
      logits_loss(in_float32(self), in_float32(target), in_float32(weight), in_float32(pos_weight), reduction);
  return is_floating(target.dtype()) ? ops::to_dtype(loss, target.dtype()) : loss;
}

Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  broadcast_shapes(self.sizes(), target.sizes(), "kl_div");
  for (const Tensor* t : {&self, &target})
    check(is_floating(t->dtype()), ErrorKind::Runtime, "kl_div: argument '", t == &self ? "self" : "target",
          "' has dtype ", name(t->dtype()), ", expected a floating-point dtype");
  const Tensor loss = log_target ? ops::mul(ops::exp(target), ops::sub(target, self))
                                 : ops::sub(ops::xlogy(target, target), ops::mul(target, self));
  return reduced("kl_div", loss, reduction);
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin, int64_t reduction) {
  const Tensor x = in_float32(input);
  const Tensor near = masked(x, ops::ne(target, Tensor(-1)));
  const Tensor far = masked(ops::clamp_min(Tensor(margin) - x, Tensor(0)), ops::ne(target, Tensor(1)));
  return like_operand(reduced("hinge_embedding_loss", near + far, reduction), input);
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                           int64_t reduction) {
  const Tensor loss = ops::clamp_min(-target * (input1 - input2) + Tensor(margin), Tensor(0));
  return reduced("margin_ranking_loss", loss, reduction);
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                             int64_t reduction) {
  const auto sum = [](const Tensor& t) { return ops::sum(t, Shape{-1}); };
  // Labels of more dimensions would be spread over pairs of other rows.
  check(input1.dim() == input2.dim() && target.dim() + 1 == input1.dim(), ErrorKind::Runtime,
        "cosine_embedding_loss: arguments 'input1', 'input2' and 'target' have shapes ", shape_text(input1.sizes()),
        ", ", shape_text(input2.sizes()), " and ", shape_text(target.sizes()),
        ", expected vectors in as many dimensions, and a label for each");
  constexpr double kLeast = 1e-12;
  const Tensor squares = (sum(input1 * input1) + Tensor(kLeast)) * (sum(input2 * input2) + Tensor(kLeast));
  const Tensor cosine = sum(input1 * input2) / ops::sqrt(squares);
  const Tensor near = masked(Tensor(1) - cosine, ops::eq(target, Tensor(1)));
  const Tensor far = masked(ops::clamp_min(cosine - Tensor(margin), Tensor(0)), ops::eq(target, Tensor(-1)));
  return reduced("cosine_embedding_loss", near + far, reduction);
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, int64_t reduction) {
  broadcast_shapes(input.sizes(), target.sizes(), "soft_margin_loss");
  const Tensor loss = ops::softplus(-in_float32(target) * in_float32(input));
  return like_operand(reduced("soft_margin_loss", loss, reduction), input);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                           double p, double eps, bool swap, int64_t reduction) {
  check(margin > 0, ErrorKind::Value, "triplet_margin_loss: argument 'margin' must be positive, got ", margin);
  check(anchor.dim() == positive.dim() && anchor.dim() == negative.dim(), ErrorKind::Runtime,
        "triplet_margin_loss: arguments 'anchor', 'positive' and 'negative' have shapes ", shape_text(anchor.sizes()),
        ", ", shape_text(positive.sizes()), " and ", shape_text(negative.sizes()), ", expected as many dimensions");
  const Tensor near = ops::pairwise_distance(anchor, positive, p, eps);
  Tensor far = ops::pairwise_distance(anchor, negative, p, eps);
  if (swap) far = ops::minimum(far, ops::pairwise_distance(positive, negative, p, eps));
  return reduced("triplet_margin_loss", ops::clamp_min(near - far + Tensor(margin), Tensor(0)), reduction);
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target, int64_t p, double margin, const Tensor& weight,
                         int64_t reduction) {
  check(p == 1 || p == 2, ErrorKind::Value, "multi_margin_loss: argument 'p' must be 1 or 2, got ", p);
  check(input.dim() <= 2 && (input.dim() < 1 || input.size(-1) > 0), ErrorKind::Runtime,
        "multi_margin_loss: argument 'input' has shape ", shape_text(input.sizes()),
        ", expected (N, C), (C,) or () with classes");
  const bool single = input.dim() < 2;
  const Tensor scores = single ? ops::reshape(input, Shape{1, input.numel()}) : input;
  const int64_t samples = scores.size(0), classes = scores.size(1);
  check(target.numel() == samples, ErrorKind::Runtime, "multi_margin_loss: argument 'target' has shape ",
        shape_text(target.sizes()), ", expected ", samples, " class indices for 'input' of shape ",
        shape_text(input.sizes()));
  check(!weight.defined() || weight.dim() == 1, ErrorKind::Value, "multi_margin_loss: argument 'weight' has shape ",
        shape_text(weight.defined() ? weight.sizes() : IntSpan()), ", expected 1 dimension");
  check(!weight.defined() || weight.numel() == classes, ErrorKind::Runtime,
        "multi_margin_loss: argument 'weight' has shape ", shape_text(weight.defined() ? weight.sizes() : IntSpan()),
        ", expected (", classes, ",), one for each class");
  check(target.dtype() == DType::Int64, ErrorKind::Runtime, "multi_margin_loss: argument 'target' has dtype ",
        name(target.dtype()), ", expected int64");
  const Tensor chosen = ops::reshape(target, Shape{samples, 1});
  // The chosen class has no gap to itself.
  const Tensor apart = scores + (Tensor(margin) - ops::gather(scores, 1, chosen));
  Tensor gaps = ops::relu(ops::scatter_value(apart, 1, chosen, Scalar(int64_t(0))));
  if (p == 2) gaps = gaps * gaps;
  if (weight.defined())
    gaps = gaps * ops::unsqueeze(ops::index_select(weight, 0, ops::reshape(chosen, Shape{samples})), 1);
  const Tensor loss = ops::sum(gaps, Shape{1}) / Tensor(double(std::max<int64_t>(1, classes)));
  return reduced("multi_margin_loss",
                 single && reduction == 0 && target.dim() == 0 ? ops::squeeze_dims(loss, Shape{0}) : loss, reduction);
}

namespace {
/// Of each row the sum of max(0, 1 - chosen[t] + scores[o]) over all wanted t and all others o. In ascending order of
/// -scores those above 0 come before 1 - chosen[t], so running sums give what all pairs would; in float64, since they
/// are sums of whole rows.
Tensor hinges(const Tensor& scores, const Tensor& chosen, const Tensor& wanted, const Tensor& others) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor wide = ops::to_dtype(scores, DType::Float64);
  const Tensor sorted = std::get<0>(ops::sort(ops::where(others, ops::neg(wide), Tensor(inf)), 1, false, false));
  const Tensor bound = Tensor(1) - ops::to_dtype(chosen, DType::Float64);
  const Tensor count = ops::searchsorted(sorted, ops::detach(bound), false);
  const Tensor before = ops::gather(ops::cumsum(sorted, 1), 1, ops::clamp_min(count - Tensor(1), Tensor(0)));
  const Tensor gaps = masked(ops::to_dtype(count, DType::Float64) * bound - before,
                             ops::logical_and(wanted, ops::gt(count, Tensor(0))));
  // A score that is no number lies behind all bounds, yet makes its row's loss one that is none.
  const Tensor nan =
      masked(wide, ops::logical_and(ops::logical_and(others, ops::isnan(wide)), ops::narrow(wanted, 1, 0, 1)));
  return ops::to_dtype(ops::sum(gaps + nan, Shape{1}), scores.dtype());
}
}  // namespace

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, int64_t reduction) {
  check(input.dim() <= 2 && (input.dim() == 0 || input.size(-1) > 0), ErrorKind::Runtime,
        "multilabel_margin_loss: argument 'input' has shape ", shape_text(input.sizes()),
        ", expected (N, C), (C,) or () with classes");
  check(std::ranges::equal(input.sizes(), target.sizes()) || (input.dim() == 0 && target.numel() == 1),
        ErrorKind::Runtime, "multilabel_margin_loss: argument 'target' has shape ", shape_text(target.sizes()),
        ", expected that of 'input', ", shape_text(input.sizes()));
  check(is_integral(target.dtype()) && target.dtype() != DType::Bool, ErrorKind::Runtime,
        "multilabel_margin_loss: argument 'target' has dtype ", name(target.dtype()), ", expected int64");
  check(is_floating(input.dtype()), ErrorKind::NotImplemented, "multilabel_margin_loss: not implemented for dtype ",
        name(input.dtype()));
  const bool single = input.dim() < 2;
  const int64_t classes = input.dim() ? input.size(-1) : 1;
  const Tensor scores = ops::reshape(input, Shape{single ? 1 : input.size(0), classes});
  const Tensor given = ops::reshape(target, scores.sizes());
  // Targets up to the first negative one.
  const Tensor counts = ops::cumprod(ops::to_dtype(ops::ge(given, Tensor(0)), DType::Int64), 1);
  const Tensor wanted = ops::to_dtype(counts, DType::Bool), safe = masked(given, wanted);
  const Tensor hits = ops::scatter_add(ops::zeros_like(given), 1, safe, counts);
  const Tensor loss =
      hinges(scores, ops::gather(scores, 1, safe), wanted, ops::eq(hits, Tensor(0))) / Tensor(double(classes));
  return reduced("multilabel_margin_loss", single && reduction == 0 ? ops::squeeze_dims(loss, Shape{0}) : loss,
                 reduction);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                        int64_t reduction) {
  Tensor loss = log_input ? ops::exp(input) - target * input : input - target * ops::log(input + Tensor(eps));
  if (full) {
    const Tensor safe = ops::clamp_min(target, Tensor(1));
    const Tensor stirling = safe * ops::log(safe) - safe + Tensor(0.5) * ops::log(Tensor(2 * std::numbers::pi) * safe);
    loss = loss + masked(stirling, ops::gt(target, Tensor(1)));
  }
  return reduced("poisson_nll_loss", loss, reduction);
}

}  // namespace taeda::impl
