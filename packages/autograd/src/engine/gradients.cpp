// What happens to gradients between nodes: fitted to the forward output, added up in place where nobody can see it.
#include "taeda/autograd/engine.h"
#include "taeda/arithmetic.h"
#include "taeda/autograd/formulas.h"
#include "taeda/autograd/streams.h"
#include "taeda/stub.h"

namespace taeda::autograd {
namespace {

bool same_sizes(IntSpan a, IntSpan b) noexcept {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

/// Whether `grad` could come from broadcasting a tensor of `sizes`.
bool broadcast_of(IntSpan grad, IntSpan sizes) noexcept {
  if (sizes.size() > grad.size()) return false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t have = grad[grad.size() - 1 - d], want = sizes[sizes.size() - 1 - d];
    if (want != have && want != 1) return false;
  }
  return true;
}

Tensor fit_slow(Tensor grad, const OutputInfo& info, const char* who, size_t index) {
  if (!same_sizes(grad.sizes(), info.sizes)) {
    check(broadcast_of(grad.sizes(), info.sizes), ErrorKind::Runtime, who, " returned an invalid gradient for input ",
          index, ": its shape is ", shape_text(grad.sizes()), ", expected ", shape_text(info.sizes),
          " or a shape that this broadcasts to");
    grad = formulas::sum_to(grad, info.sizes);
  }
  // The instance of a dispatching class says itself where it is; its memory is nowhere.
  const bool elsewhere = grad.device() != info.device && !is_wrapper(grad);
  if (elsewhere && grad.dim() != 0) [[unlikely]]
    fail(ErrorKind::Runtime, who, " returned an invalid gradient for input ", index, ": it is ", describe(grad),
         ", expected a tensor on ", to_string(info.device));
  // Of a number on the cpu that was combined with tensors elsewhere.
  if (elsewhere) grad = ops::to_device(grad, info.device);
  if (grad.dtype() == info.dtype) return grad;
  if (!is_differentiable(grad.dtype()) && is_complex(info.dtype)) [[unlikely]]
    fail(ErrorKind::Runtime, who, " returned an invalid gradient for input ", index, ": it is ", describe(grad),
         ", expected dtype ", name(info.dtype));
  if (is_complex(grad.dtype()) && !is_complex(info.dtype)) grad = ops::real(grad);
  return grad.dtype() == info.dtype ? grad : ops::to_dtype(grad, info.dtype);
}

}  // namespace

Tensor fit_gradient(Tensor grad, const OutputInfo& info, const char* who, size_t index) {
  if (!info.known ||
      (grad.dtype() == info.dtype && same_sizes(grad.sizes(), info.sizes) && grad.device() == info.device)) [[likely]]
    return grad;
  return fit_slow(std::move(grad), info, who, index);
}

bool own_alone(Tensor& t) noexcept {
  TensorImpl* impl = t.impl();
  if (impl->refs.load(std::memory_order_acquire) != 1 || impl->python || (impl->flags & kWrappedNumber)) return false;
  if (impl->base && !stub::drop_hidden_base(t)) return false;
  return impl->storage && impl->storage->use_count() == 1 && !impl->storage->readonly;
}

bool can_take(const Tensor& sum, IntSpan sizes, DType dtype) noexcept {
  return sum.dtype() == dtype && !on_device(sum.device()) && !is_wrapper(sum) && same_sizes(sum.sizes(), sizes);
}

Tensor accumulate(Tensor a, Tensor b, bool record) {
  if (!record && a.dtype() == b.dtype() && same_sizes(a.sizes(), b.sizes())) {
    if (own_alone(a) && a.dense()) {
      ops::add_(a, b);
      return a;
    }
    if (own_alone(b) && b.dense()) {
      ops::add_(b, a);
      return b;
    }
  }
  return ops::add(a, b);
}

}  // namespace taeda::autograd
