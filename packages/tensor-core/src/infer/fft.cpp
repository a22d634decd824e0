// Inference of the Fourier family's core operators.
#include "infer/fft.h"

#include "taeda/ops/fft.h"
#include "taeda/spec.h"

namespace taeda::infer {

int64_t fft_dim(const char* op, int64_t dim, int64_t ndim) {
  check(ndim > 0, ErrorKind::Index, op, ": argument 'dim' is ", dim, ", but argument 'self' has no dimension");
  return wrap_dim(dim, ndim, op);
}

namespace {

void check_transform(const char* op, const Tensor& self, IntSpan dim, int64_t normalization) {
  check(normalization >= 0 && normalization <= 2, ErrorKind::Runtime, op, ": argument 'normalization' is ",
        normalization, ", expected 0, 1 or 2");
  uint64_t seen = 0;
  for (const int64_t d : dim) {
    const int64_t axis = fft_dim(op, d, self.dim());
    check(!(seen >> axis & 1), ErrorKind::Runtime, op, ": argument 'dim' names dimension ", axis, " twice");
    seen |= uint64_t(1) << axis;
    check(self.size(axis) > 0, ErrorKind::Runtime, op, ": dimension ", axis, " has no points, expected at least 1");
  }
}
void expect_complex(const char* op, const Tensor& self) {
  check(is_complex(self.dtype()), ErrorKind::Runtime, op, ": argument 'self' has dtype ", name(self.dtype()),
        ", expected a complex one");
}
void expect_axis(const char* op, IntSpan dim) {
  check(!dim.empty(), ErrorKind::Runtime, op, ": argument 'dim' is empty, expected at least one dimension");
}

}  // namespace

Spec _fft_c2c(const Tensor& self, IntSpan dim, int64_t normalization, bool) {
  const char* const op = "_fft_c2c";
  expect_complex(op, self);
  check_transform(op, self, dim, normalization);
  return spec(self.sizes(), self.dtype());
}

Spec _fft_r2c(const Tensor& self, IntSpan dim, int64_t normalization, bool onesided) {
  const char* const op = "_fft_r2c";
  check(self.dtype() == DType::Float32 || self.dtype() == DType::Float64, ErrorKind::Runtime, op,
        ": argument 'self' has dtype ", name(self.dtype()), ", expected float32 or float64");
  expect_axis(op, dim);
  check_transform(op, self, dim, normalization);
  Shape sizes(self.sizes());
  int64_t& last = sizes[size_t(fft_dim(op, dim.back(), self.dim()))];
  if (onesided) last = last / 2 + 1;
  return spec(sizes, complex_of(self.dtype()));
}

Spec _fft_c2r(const Tensor& self, IntSpan dim, int64_t normalization, int64_t last_dim_size) {
  const char* const op = "_fft_c2r";
  expect_complex(op, self);
  expect_axis(op, dim);
  check_transform(op, self, dim, normalization);
  check(last_dim_size > 0, ErrorKind::Runtime, op, ": argument 'last_dim_size' is ", last_dim_size,
        ", expected at least 1");
  Shape sizes(self.sizes());
  int64_t& last = sizes[size_t(fft_dim(op, dim.back(), self.dim()))];
  check(last == last_dim_size / 2 + 1, ErrorKind::Runtime, op, ": the last dimension has ", last, " points, expected ",
        last_dim_size / 2 + 1, " for 'last_dim_size' ", last_dim_size);
  last = last_dim_size;
  return spec(sizes, real_of(self.dtype()));
}

}  // namespace taeda::infer
