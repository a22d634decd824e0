// Connectionist temporal classification.
#include "kernels/ctc.h"

#include "ops/read.h"

namespace taeda::cuda {
namespace {

/// Operands of sequences as rows, from the argument `first` on: log_probs, targets, input_lengths, target_lengths.
class Given {
 public:
  Given(const Call& call, int first, int blank)
      : log_probs_(call, call.tensor(first)),
        targets_(call, call.tensor(first + 1)),
        inputs_(call, call.tensor(first + 2)),
        lengths_(call, call.tensor(first + 3)) {
    const Tensor &x = log_probs_.rows(), &labels = targets_.rows();
    sequences_ = {log_probs_.array(), targets_.array(), inputs_.array(), lengths_.array(),    x.size(0),
                  x.size(1),          x.size(2),        labels.size(1),  call.integer(blank), call.report()};
  }
  const Sequences& sequences() const { return sequences_; }
  int dtype() const { return log_probs_.rows().dtype(); }

 private:
  Read log_probs_, targets_, inputs_, lengths_;
  Sequences sequences_{};
};

void ctc_loss_forward(const Call& call) {
  const Given given(call, 0, 4);
  const Tensor losses = call.output(0), alpha = call.output(1);
  const Target to_losses(call, losses), to_alpha(call, alpha);
  launch_in<CtcForward>(call, given.dtype(), given.sequences().count, given.sequences(), to_alpha.array(),
                        to_losses.array());
  to_losses.done(), to_alpha.done();
}
void ctc_loss_backward(const Call& call) {
  const Given given(call, 1, 7);
  const Sequences& of = given.sequences();
  const Read grad(call, call.tensor(0)), losses(call, call.tensor(5)), alpha(call, call.tensor(6));
  const Tensor out = call.output(0), beta = call.empty({of.count, of.steps, of.states()}, given.dtype()),
               chains = call.empty({of.count, of.longest}, TAEDA_INT64);
  const Target to(call, out);
  launch_in<CtcBackward>(call, given.dtype(), of.count, of, beta.array());
  call.launch(CtcChains{of, chains.array()}, of.count * of.longest);
  launch_in<CtcGradient>(call, given.dtype(), of.steps * of.count, of, alpha.array(), beta.array(), chains.array(),
                         losses.array(), grad.array(), to.array(), int32_t(call.flag(8)), 0);
  to.done();
}

}  // namespace

const std::vector<Operation>& ctc_operations() {
  static const std::vector<Operation> operations{
      {"ctc_loss_backward", ctc_loss_backward},
      {"ctc_loss_forward", ctc_loss_forward},
  };
  return operations;
}

}  // namespace taeda::cuda
