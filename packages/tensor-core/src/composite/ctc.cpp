// Connectionist temporal classification of batches in any of the forms that targets come in.
#include <algorithm>

#include "composite/host.h"
#include "taeda/arithmetic.h"
#include "taeda/ops.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

/// Lengths as int64 in the process's memory, `count` of them; copied, since they are read again for the gradient.
Tensor lengths_of(const char* argument, const Tensor& given, int64_t count) {
  check(is_integral(given.dtype()) && given.dtype() != DType::Bool, ErrorKind::Runtime, "ctc_loss: argument '",
        argument, "' has dtype ", name(given.dtype()), ", expected an integer dtype");
  const Tensor flat = ops::reshape(given, Shape{-1});
  check(flat.size(0) == count, ErrorKind::Runtime, "ctc_loss: argument '", argument, "' has shape ",
        shape_text(given.sizes()), ", expected ", count, " lengths, one for each of the batch");
  return ops::clone(on_host(ops::to_dtype(flat, DType::Int64)));
}
Tensor listed(IntSpan values) {
  const Tensor out = empty(Shape{int64_t(values.size())}, DType::Int64);
  std::ranges::copy(values, out.data<int64_t>());
  return out;
}

/// Targets in a dtype that the kernels read: numbers of classes may come in any real dtype.
Tensor known_classes(const Tensor& targets) {
  check(!is_complex(targets.dtype()), ErrorKind::Runtime, "ctc_loss: argument 'targets' has dtype ",
        name(targets.dtype()), ", expected a real dtype");
  if (targets.dtype() == DType::Int32 || targets.dtype() == DType::Int64) return targets;
  return ops::to_dtype(targets, DType::Int64);
}

/// Targets one after the other as rows of one length; what lies behind a target is never read.
Tensor in_rows(const Tensor& targets, const Tensor& lengths) {
  const int64_t* const each = lengths.data<int64_t>();
  const int64_t count = lengths.numel();
  int64_t longest = 0, total = 0;
  for (int64_t n = 0; n < count; ++n) {
    check(each[n] >= 0 && each[n] <= targets.numel(), ErrorKind::Runtime, "ctc_loss: argument 'target_lengths' has ",
          each[n], ", expected 0 to ", targets.numel(), ", the number of targets");
    longest = std::max(longest, each[n]);
    total += each[n];
  }
  check(total <= targets.numel(), ErrorKind::Runtime, "ctc_loss: argument 'targets' has ", targets.numel(),
        " elements, expected ", total, ", the sum of 'target_lengths'");
  const Tensor places = empty(Shape{count, longest}, DType::Int64);
  for (int64_t n = 0, first = 0; n < count; first += each[n++])
    for (int64_t s = 0; s < longest; ++s)
      places.data<int64_t>()[n * longest + s] = std::min(first + s, targets.numel() - 1);
  const Tensor at = ops::to_device(ops::reshape(places, Shape{-1}), stated_device(targets));
  return ops::reshape(ops::index_select(targets, 0, at), places.sizes());
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  check(reduction >= 0 && reduction <= 2, ErrorKind::Value,
        "ctc_loss: argument 'reduction' must be 0 (none), 1 (mean) or 2 (sum), got ", reduction);
  check(log_probs.dim() == 2 || log_probs.dim() == 3, ErrorKind::Runtime, "ctc_loss: argument 'log_probs' has shape ",
        shape_text(log_probs.sizes()), ", expected (T, N, C) or (T, C)");
  check(targets.dim() == 1 || targets.dim() == 2, ErrorKind::Runtime, "ctc_loss: argument 'targets' has shape ",
        shape_text(targets.sizes()), ", expected (N, S) or 1 dimension");
  const bool single = log_probs.dim() == 2;
  const Tensor probs = single ? ops::unsqueeze(log_probs, 1) : log_probs;
  const Tensor inputs = lengths_of("input_lengths", input_lengths, probs.size(1)),
               lengths = lengths_of("target_lengths", target_lengths, probs.size(1));
  const Tensor classes = known_classes(targets);
  const Tensor rows = classes.dim() == 2 ? classes : in_rows(classes, lengths);
  const auto there = [&](const Tensor& t) { return ops::to_device(t, stated_device(probs)); };
  Tensor losses = std::get<0>(ops::ctc_loss_forward(probs, rows, there(inputs), there(lengths), blank, zero_infinity));
  if (zero_infinity) losses = ops::where(ops::isinf(losses), Tensor(0), losses);
  if (reduction == 1)
    return ops::mean(losses / ops::to_dtype(there(ops::clamp_min(lengths, Tensor(1))), losses.dtype()));
  if (reduction == 2) return ops::sum(losses);
  return single ? ops::squeeze_dims(losses, Shape{0}) : losses;
}
Tensor ctc_loss_lists(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths, IntSpan target_lengths,
                      int64_t blank, int64_t reduction, bool zero_infinity) {
  return ops::ctc_loss(log_probs, targets, listed(input_lengths), listed(target_lengths), blank, reduction,
                       zero_infinity);
}

}  // namespace taeda::impl
