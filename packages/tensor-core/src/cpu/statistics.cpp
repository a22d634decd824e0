// CPU kernels of the statistics family.
#include "taeda/ops/statistics.h"

#include <cmath>

#include "taeda/backend.h"
#include "taeda/interrupt.h"
#include "taeda/ops/cast.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

/// The target itself, or memory of the wanted dtype that is copied to it afterwards.
Tensor plain(const Tensor& target, DType dtype) {
  return target.contiguous() && target.dtype() == dtype ? target : empty(target.sizes(), dtype);
}
void deliver(const Tensor& target, const Tensor& computed) {
  if (!computed.same(target)) ops::copy_(target, computed);
}

template <class T>
void split(const Tensor& mantissa, const Tensor& exponent, const Tensor& x) {
  T* const m = mantissa.data<T>();
  int32_t* const e = exponent.data<int32_t>();
  const T* const from = x.data<T>();
  parallel_for(x.numel(), 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int power = 0;
      m[i] = std::isfinite(from[i]) ? std::frexp(from[i], &power) : from[i];
      e[i] = power;
    }
  });
}

void frexp_kernel(const Tensor& mantissa, const Tensor& exponent, const Tensor& self) {
  const DType type = self.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  const Tensor x = ops::contiguous(ops::to_dtype(self, type));
  const Tensor m = plain(mantissa, type), e = plain(exponent, DType::Int32);
  if (type == DType::Float64) split<double>(m, e, x);
  else split<float>(m, e, x);
  deliver(mantissa, m);
  deliver(exponent, e);
}

const bool registered = [] {
  kernel<op::frexp>(kCPU, frexp_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
