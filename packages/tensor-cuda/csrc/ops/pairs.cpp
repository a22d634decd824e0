// Losses of pairs of numbers: mse, l1, smooth l1, huber, binary cross entropy, with their gradients.
#include "kernels/pairs.h"

#include <algorithm>

#include "ops/read.h"

namespace taeda::cuda {
namespace {

enum { kNone, kMean, kSum };

/// A loss, and where its parameter stands behind `reduction`: 0, none.
template <PairLoss Kind>
double parameter(const Call& call, int place) {
  return Kind == PairLoss::Smooth || Kind == PairLoss::Huber ? call.real(place) : 0;
}
std::vector<int64_t> broadcast(const Tensor& a, const Tensor& b) {
  const Tensor &more = a.ndim() >= b.ndim() ? a : b, &less = a.ndim() >= b.ndim() ? b : a;
  std::vector<int64_t> sizes(more.sizes().begin(), more.sizes().end());
  for (int d = 1; d <= less.ndim(); ++d) {
    int64_t& size = sizes[sizes.size() - size_t(d)];
    if (size == 1) size = less.size(-d);
  }
  return sizes;
}
/// An operand as pairs have it: in rows of the common sizes, or alone.
class Side {
 public:
  Side(const Call& call, const Tensor& given, std::span<const int64_t> sizes, int64_t count) {
    if (given.numel() == 1 && !given.on_host()) {
      rows_ = call.rows(given);
    } else if (!given.on_host() && given.contiguous() && given.numel() == count) {
      rows_ = call.rows(given), step_ = 1;
    } else {
      const bool one = given.numel() == 1;
      rows_ = one ? call.empty({}, given.dtype()) : call.empty(sizes, given.dtype());
      call.copy(rows_, given);
      step_ = one ? 0 : 1;
    }
  }
  Array array() const { return rows_.array(); }
  int64_t step() const { return step_; }

 private:
  Tensor rows_;
  int64_t step_ = 0;
};

template <PairLoss Kind>
void loss(const Call& call) {
  const Tensor out = call.output(0), input = call.tensor(0), target = call.tensor(1);
  const int64_t reduction = call.integer(2);
  const auto sizes = broadcast(input, target);
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  const Side x(call, input, sizes, count), t(call, target, sizes, count);
  const Pairs pairs{x.array(), t.array(), x.step(), t.step(), count, parameter<Kind>(call, 3), Kind, 0, call.report()};
  const Target to(call, out);
  if (reduction == kNone) {
    launch_in<PairLosses>(call, out.dtype(), (count + 3) / 4, pairs, to.array());
  } else {
    const int64_t parts = (count + SumPairLosses<float>::kPart - 1) / SumPairLosses<float>::kPart;
    const Tensor sums = call.empty({std::max<int64_t>(parts, 1)}, TAEDA_FLOAT64);
    launch_in<SumPairLosses>(call, out.dtype(), parts, pairs, sums.address());
    call.launch(JoinPairLosses{sums.address(), parts, reduction == kMean ? double(count) : 1, to.array()}, 1);
  }
  to.done();
}
template <PairLoss Kind>
void loss_backward(const Call& call) {
  const Tensor out = call.output(0), given = call.tensor(0), input = call.tensor(1), target = call.tensor(2);
  const int64_t reduction = call.integer(3), count = out.numel();
  if (count == 0) return;
  const Side x(call, input, out.sizes(), count), t(call, target, out.sizes(), count),
      grad(call, given, out.sizes(), count);
  const Pairs pairs{x.array(), t.array(), x.step(), t.step(), count, parameter<Kind>(call, 4), Kind, 0, call.report()};
  const Target to(call, out);
  launch_in<PairSlopes>(call, out.dtype(), (count + 3) / 4, pairs, grad.array(), to.array(), grad.step(),
                        reduction == kMean ? 1 / double(count) : 1.0);
  to.done();
}

}  // namespace

const std::vector<Operation>& pair_operations() {
  using enum PairLoss;
  static const std::vector<Operation> operations{
      {"bce_loss", loss<Entropy>},
      {"bce_loss_backward", loss_backward<Entropy>},
      {"bce_with_logits_loss", loss<Logits>},
      {"bce_with_logits_loss_backward", loss_backward<Logits>},
      {"huber_loss", loss<Huber>},
      {"huber_loss_backward", loss_backward<Huber>},
      {"l1_loss", loss<Absolute>},
      {"l1_loss_backward", loss_backward<Absolute>},
      {"mse_loss", loss<Squared>},
      {"mse_loss_backward", loss_backward<Squared>},
      {"smooth_l1_loss", loss<Smooth>},
      {"smooth_l1_loss_backward", loss_backward<Smooth>},
  };
  return operations;
}

}  // namespace taeda::cuda
