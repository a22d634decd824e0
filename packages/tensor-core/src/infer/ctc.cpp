// Inference of connectionist temporal classification.
#include <algorithm>

#include "taeda/checked.h"
#include "taeda/ops/loss.h"

namespace taeda::infer {
namespace {

/// log_probs (T, N, C), targets (N, S), lengths (N,).
void expect_ctc(const char* op, const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank) {
  check(log_probs.dim() == 3, ErrorKind::Runtime, op, ": argument 'log_probs' has shape ",
        shape_text(log_probs.sizes()), ", expected (T, N, C)");
  check(log_probs.dtype() == DType::Float32 || log_probs.dtype() == DType::Float64, ErrorKind::NotImplemented, op,
        ": not implemented for dtype ", name(log_probs.dtype()));
  check(log_probs.size(0) > 0, ErrorKind::Runtime, op, ": argument 'log_probs' has shape ",
        shape_text(log_probs.sizes()), ", expected at least one step");
  const int64_t n = log_probs.size(1), classes = log_probs.size(2);
  check(targets.dim() == 2 && targets.size(0) == n, ErrorKind::Runtime, op, ": argument 'targets' has shape ",
        shape_text(targets.sizes()), ", expected (", n, ", S)");
  check(targets.dtype() == DType::Int64 || targets.dtype() == DType::Int32, ErrorKind::Runtime, op,
        ": argument 'targets' has dtype ", name(targets.dtype()), ", expected int32 or int64");
  check(blank >= 0 && blank < classes, ErrorKind::Runtime, op, ": argument 'blank' is ", blank,
        ", expected one of the classes, 0 to ", classes - 1);
  for (const auto& [argument, t] :
       {std::pair<const char*, const Tensor&>{"input_lengths", input_lengths}, {"target_lengths", target_lengths}}) {
    check(t.dim() == 1 && t.size(0) == n, ErrorKind::Runtime, op, ": argument '", argument, "' has shape ",
          shape_text(t.sizes()), ", expected (", n, ",), one for each of the batch");
    check(is_integral(t.dtype()) && t.dtype() != DType::Bool, ErrorKind::Runtime, op, ": argument '", argument,
          "' has dtype ", name(t.dtype()), ", expected an integer dtype");
  }
}
Spec alphas(const Tensor& log_probs, const Tensor& targets) {
  const int64_t states = (Count(targets.size(1)) * 2 + 1).of("ctc_loss_forward", "the states of argument 'targets'");
  return spec(Shape{log_probs.size(1), log_probs.size(0), states}, log_probs.dtype());
}

}  // namespace

std::array<Spec, 2> ctc_loss_forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                                     const Tensor& target_lengths, int64_t blank, bool) {
  expect_ctc("ctc_loss_forward", log_probs, targets, input_lengths, target_lengths, blank);
  return {spec(Shape{log_probs.size(1)}, log_probs.dtype()), alphas(log_probs, targets)};
}
Spec ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                       const Tensor& target_lengths, const Tensor& losses, const Tensor& log_alpha, int64_t blank,
                       bool) {
  const char* const op = "ctc_loss_backward";
  expect_ctc(op, log_probs, targets, input_lengths, target_lengths, blank);
  const Shape each{log_probs.size(1)}, states = alphas(log_probs, targets).sizes;
  const auto expect = [&](const char* argument, const Tensor& t, const Shape& sizes) {
    check(std::ranges::equal(t.sizes(), IntSpan(sizes)), ErrorKind::Runtime, op, ": argument '", argument,
          "' has shape ", shape_text(t.sizes()), ", expected ", shape_text(sizes));
  };
  expect("grad", grad, each);
  expect("losses", losses, each);
  expect("log_alpha", log_alpha, states);
  return spec(log_probs.sizes(), log_probs.dtype());
}

}  // namespace taeda::infer
