// Distances between rows of matrices: from calls to launches.
#include "kernels/distance.h"

#include <cmath>

#include "ops/read.h"

namespace taeda::cuda {
namespace {

template <class C>
NormOf<C> norm_of(double p) {
  const Norm norm = p == 0          ? Norm::Zero
                    : p == 1        ? Norm::One
                    : p == 2        ? Norm::Two
                    : std::isinf(p) ? Norm::Infinite
                                    : Norm::Any;
  return {norm, 0, p};
}
/// Calls `f.template operator()<C>()` with the type that kernels compute in.
template <class F>
void with_class(int dtype, const F& f) {
  if (dtype == TAEDA_FLOAT64) f.template operator()<double>();
  else f.template operator()<float>();
}

void distances(const Call& call, double p) {
  const Tensor out = call.output(0), left = call.rows(call.tensor(0)), right = call.rows(call.tensor(1));
  const Target to(call, out);
  const int64_t lefts = out.size(1), rights = out.size(2);
  with_class(out.dtype(), [&]<class C>() {
    using Body = Distances<C>;
    const int64_t blocks = out.numel() ? out.size(0) * Body::tiles(lefts) * Body::tiles(rights) : 0;
    call.launch(Body{norm_of<C>(p), lefts, rights, left.size(2), left.array(), right.array(), to.array()}, blocks);
  });
  to.done();
}
void cdist_forward(const Call& call) { distances(call, call.real(2)); }
void euclidean_dist(const Call& call) { distances(call, 2); }
void cdist_backward(const Call& call) {
  const Tensor out = call.output(0), grad = call.rows(call.tensor(0)), left = call.rows(call.tensor(1)),
               right = call.rows(call.tensor(2)), found = call.rows(call.tensor(4));
  const Target to(call, out);
  with_class(out.dtype(), [&]<class C>() {
    call.launch(DistanceGradient<C>{norm_of<C>(call.real(3)), left.size(1), right.size(1), left.size(2), grad.array(),
                                    left.array(), right.array(), found.array(), to.array()},
                out.numel());
  });
  to.done();
}
void pdist_forward(const Call& call) {
  const Tensor out = call.output(0), input = call.rows(call.tensor(0));
  const Target to(call, out);
  with_class(out.dtype(), [&]<class C>() {
    call.launch(PairDistances<C>{norm_of<C>(call.real(1)), input.size(0), input.size(1), input.array(), to.array()},
                out.numel());
  });
  to.done();
}

}  // namespace

const std::vector<Operation>& distance_operations() {
  static const std::vector<Operation> operations{
      {"cdist_backward", cdist_backward},
      {"cdist_forward", cdist_forward},
      {"euclidean_dist", euclidean_dist},
      {"pdist_forward", pdist_forward},
  };
  return operations;
}

}  // namespace taeda::cuda
