// Views between complex and real tensors, and what follows from them.
#include "taeda/ops/unary.h"

#include <utility>

#include "taeda/ops/arith.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/shape.h"

namespace taeda::impl {

Tensor view_as_real(const Tensor& self) {
  check(is_complex(self.dtype()), ErrorKind::Runtime, "view_as_real: argument 'self' has dtype ", name(self.dtype()),
        ", expected a complex dtype");
  Shape sizes(self.sizes()), strides;
  for (int64_t s : self.strides()) strides.push_back(2 * s);
  sizes.push_back(2);
  strides.push_back(1);
  Tensor view = alias(self, sizes, strides, 0);
  view.impl()->dtype = real_of(self.dtype());
  return view;
}

Tensor view_as_complex(const Tensor& self) {
  check(self.dtype() == DType::Float32 || self.dtype() == DType::Float64, ErrorKind::Runtime,
        "view_as_complex: argument 'self' has dtype ", name(self.dtype()), ", expected float32 or float64");
  check(self.dim() > 0 && self.size(-1) == 2 && self.stride(-1) == 1, ErrorKind::Runtime,
        "view_as_complex: argument 'self' has shape ", shape_text(self.sizes()),
        ", expected a last dimension of size 2 and stride 1");
  Shape sizes(self.sizes()), strides;
  sizes.pop_back();
  for (int64_t s : self.strides()) {
    if (strides.size() == sizes.size()) break;
    check(s % 2 == 0, ErrorKind::Runtime, "view_as_complex: argument 'self' has odd strides ",
          shape_text(self.strides()));
    strides.push_back(s / 2);
  }
  Tensor view = alias(self, sizes, strides, 0);
  view.impl()->dtype = complex_of(self.dtype());
  return view;
}

Tensor real(const Tensor& self) {
  return is_complex(self.dtype()) ? ops::select(ops::view_as_real(self), -1, 0) : self;
}
Tensor imag(const Tensor& self) {
  check(is_complex(self.dtype()), ErrorKind::Runtime, "imag: argument 'self' has dtype ", name(self.dtype()),
        ", expected a complex dtype");
  return ops::select(ops::view_as_real(self), -1, 1);
}
Tensor conj_physical(const Tensor& self) { return is_complex(self.dtype()) ? ops::conj(self) : self; }
Tensor polar(const Tensor& abs, const Tensor& angle) {
  for (const auto& [argument, given] : {std::pair("abs", &abs), std::pair("angle", &angle)})
    check(is_floating(given->dtype()), ErrorKind::Runtime, "polar: argument '", argument, "' has dtype ",
          name(given->dtype()), ", expected a floating-point dtype");
  check(abs.dtype() == angle.dtype(), ErrorKind::Runtime, "polar: arguments 'abs' and 'angle' have dtypes ",
        name(abs.dtype()), " and ", name(angle.dtype()), ", expected one dtype");
  return ops::complex(ops::mul(abs, ops::cos(angle)), ops::mul(abs, ops::sin(angle)));
}

}  // namespace taeda::impl
