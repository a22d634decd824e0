// The functions of `fft`, in terms of three transforms: of complex numbers, from real ones, and to real ones.
#include "taeda/ops/fft.h"

#include "infer/dtypes.h"
#include "infer/fft.h"
#include "taeda/arithmetic.h"
#include "taeda/checked.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/unary.h"

namespace taeda::impl {
namespace {

using Norm = std::optional<std::string_view>;
using Sizes = std::optional<IntSpan>;

/// The number by which the core operators know a normalization.
int64_t normalization(const char* op, const Norm& norm, bool forward) {
  if (!norm || *norm == "backward") return forward ? 0 : 2;
  if (*norm == "forward") return forward ? 2 : 0;
  check(*norm == "ortho", ErrorKind::Runtime, op, ": argument 'norm' is '", *norm,
        "', expected 'backward', 'ortho' or 'forward'");
  return 1;
}

/// float32, float64 or their complex numbers; integers become the default dtype.
Tensor inexact(const char* op, const Tensor& self) {
  check(self.dtype() != DType::Float16 && self.dtype() != DType::BFloat16, ErrorKind::Runtime, op,
        ": argument 'self' has dtype ", name(self.dtype()), ", expected float32, float64 or complex numbers");
  const DType d = infer::float_of(self.dtype());
  return d == self.dtype() ? self : ops::cast(self, d);
}
Tensor complex_numbers(const char* op, const Tensor& self) {
  const Tensor x = inexact(op, self);
  return is_complex(x.dtype()) ? x : ops::cast(x, complex_of(x.dtype()));
}
Tensor real_numbers(const char* op, const Tensor& self) {
  check(!is_complex(self.dtype()), ErrorKind::Runtime, op, ": argument 'self' has dtype ", name(self.dtype()),
        ", expected real numbers");
  return inexact(op, self);
}

/// The dimensions of a call and the points it wants in each.
struct Axes {
  Shape dim, points;
};

void check_points(const char* op, int64_t points) {
  check(points > 0, ErrorKind::Runtime, op, ": ", points, " points are asked for, expected at least 1");
}

Axes axes_of(const char* op, const Tensor& self, const Sizes& s, const Sizes& dim) {
  Axes axes;
  const int64_t ndim = self.dim();
  if (dim) {
    uint64_t seen = 0;
    for (const int64_t d : *dim) {
      const int64_t axis = infer::fft_dim(op, d, ndim);
      check(!(seen >> axis & 1), ErrorKind::Runtime, op, ": argument 'dim' names dimension ", axis, " twice");
      seen |= uint64_t(1) << axis;
      axes.dim.push_back(axis);
    }
    check(!s || s->size() == dim->size(), ErrorKind::Runtime, op, ": argument 's' has ", s ? s->size() : 0,
          " items, expected ", dim->size(), ", one for each of 'dim'");
  } else {
    const int64_t count = s ? int64_t(s->size()) : ndim;
    check(count <= ndim, ErrorKind::Runtime, op, ": argument 's' has ", count, " items, but argument 'self' has ", ndim,
          " dimensions");
    for (int64_t d = ndim - count; d < ndim; ++d) axes.dim.push_back(d);
  }
  for (size_t k = 0; k < axes.dim.size(); ++k) {
    const bool given = s && (*s)[k] != -1;
    axes.points.push_back(given ? (*s)[k] : self.size(axes.dim[k]));
    check_points(op, axes.points.back());
  }
  return axes;
}
/// Of transforms that treat the last dimension apart.
void expect_last(const char* op, const Axes& axes) {
  check(!axes.dim.empty(), ErrorKind::Runtime, op, ": at least one dimension must be transformed");
}

/// Cut, or padded with zeros, to the points that are wanted.
Tensor fitted(Tensor x, const Axes& axes) {
  Shape pad(size_t(2 * x.dim()));
  bool pads = false;
  for (size_t k = 0; k < axes.dim.size(); ++k) {
    const int64_t d = axes.dim[k], have = x.size(d), want = axes.points[k];
    if (have > want) x = ops::narrow(x, d, 0, want);
    if (have < want) pad[size_t(2 * (x.dim() - 1 - d) + 1)] = want - have;
    pads |= have < want;
  }
  return pads ? ops::constant_pad_nd(x, pad, 0) : x;
}

/// The one dimension of a call, as lists.
struct OneAxis {
  int64_t dim[1], points[1];
  Sizes s, d;
  OneAxis(int64_t axis, std::optional<int64_t> n) : dim{axis}, points{n.value_or(-1)}, d(IntSpan(dim, 1)) {
    if (n) s = IntSpan(points, 1);
  }
  OneAxis(const OneAxis&) = delete;
};

Tensor c2c(const char* op, const Tensor& self, const Sizes& s, const Sizes& dim, const Norm& norm, bool forward) {
  const int64_t factor = normalization(op, norm, forward);
  const Axes axes = axes_of(op, self, s, dim);
  if (is_complex(self.dtype()) || axes.dim.empty())
    return ops::_fft_c2c(fitted(complex_numbers(op, self), axes), axes.dim, factor, forward);
  // Of real numbers the backward transform is the conjugate of the forward one.
  const Tensor spectrum = ops::_fft_r2c(fitted(inexact(op, self), axes), axes.dim, factor, false);
  return forward ? spectrum : ops::conj(spectrum);
}

Tensor r2c(const char* op, const Tensor& self, const Sizes& s, const Sizes& dim, const Norm& norm, bool forward) {
  const int64_t factor = normalization(op, norm, forward);
  const Tensor x = real_numbers(op, self);
  const Axes axes = axes_of(op, self, s, dim);
  expect_last(op, axes);
  const Tensor spectrum = ops::_fft_r2c(fitted(x, axes), axes.dim, factor, true);
  return forward ? spectrum : ops::conj(spectrum);
}

Tensor c2r(const char* op, const Tensor& self, const Sizes& s, const Sizes& dim, const Norm& norm, bool forward) {
  const int64_t factor = normalization(op, norm, forward);
  const Tensor x = complex_numbers(op, self);
  Axes axes = axes_of(op, self, s, dim);
  expect_last(op, axes);
  const bool given = s && s->back() != -1;
  const int64_t last = given ? axes.points.back() : (2 * (Count(axes.points.back()) - 1)).of(op);
  check_points(op, last);
  axes.points.back() = last / 2 + 1;
  const Tensor half = fitted(x, axes);
  return ops::_fft_c2r(forward ? ops::conj(half) : half, axes.dim, factor, last);
}

Tensor turned(const char* op, const Tensor& self, const Sizes& dim, int64_t extra) {
  Shape dims, shifts;
  if (dim)
    for (const int64_t d : *dim) dims.push_back(infer::fft_dim(op, d, self.dim()));
  else
    for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  for (const int64_t d : dims) shifts.push_back((self.size(d) + extra) / 2);
  return dims.empty() ? ops::clone(self) : ops::roll(self, shifts, dims);
}

/// Numbers 0, 1, ... over n d; those from `negative` on are n less.
Tensor frequencies(const char* op, int64_t n, int64_t count, int64_t negative, double d, std::optional<DType> dtype,
                   std::optional<Device> device, bool requires_grad) {
  const DType type = dtype.value_or(default_dtype());
  check(is_differentiable(type), ErrorKind::Runtime, op, ": argument 'dtype' is ", name(type),
        ", expected a floating-point or complex one");
  check(n >= 0, ErrorKind::Runtime, op, ": argument 'n' must not be negative, got ", n);
  const Tensor steps = ops::arange(0, Scalar(count), 1, DType::Float64, device);
  if (negative < count) ops::sub_(ops::narrow(steps, 0, negative, count - negative), Tensor(n));
  const Tensor out = ops::empty(steps.sizes(), type, device, requires_grad);
  ops::copy_(ops::detach(out), ops::mul(steps, Tensor(1 / (double(n) * d))));
  return out;
}

}  // namespace

Tensor fft_fft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  const OneAxis one(dim, n);
  return c2c("fft", self, one.s, one.d, norm, true);
}
Tensor fft_fft2(const Tensor& self, Sizes s, IntSpan dim, Norm norm) { return c2c("fft2", self, s, dim, norm, true); }
Tensor fft_fftn(const Tensor& self, Sizes s, Sizes dim, Norm norm) { return c2c("fftn", self, s, dim, norm, true); }

Tensor fft_hfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  const OneAxis one(dim, n);
  return c2r("hfft", self, one.s, one.d, norm, true);
}
Tensor fft_hfft2(const Tensor& self, Sizes s, IntSpan dim, Norm norm) { return c2r("hfft2", self, s, dim, norm, true); }
Tensor fft_hfftn(const Tensor& self, Sizes s, Sizes dim, Norm norm) { return c2r("hfftn", self, s, dim, norm, true); }

Tensor fft_ifft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  const OneAxis one(dim, n);
  return c2c("ifft", self, one.s, one.d, norm, false);
}
Tensor fft_ifft2(const Tensor& self, Sizes s, IntSpan dim, Norm norm) {
  return c2c("ifft2", self, s, dim, norm, false);
}
Tensor fft_ifftn(const Tensor& self, Sizes s, Sizes dim, Norm norm) { return c2c("ifftn", self, s, dim, norm, false); }

Tensor fft_ihfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  const OneAxis one(dim, n);
  return r2c("ihfft", self, one.s, one.d, norm, false);
}
Tensor fft_ihfft2(const Tensor& self, Sizes s, IntSpan dim, Norm norm) {
  return r2c("ihfft2", self, s, dim, norm, false);
}
Tensor fft_ihfftn(const Tensor& self, Sizes s, Sizes dim, Norm norm) {
  return r2c("ihfftn", self, s, dim, norm, false);
}

Tensor fft_irfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  const OneAxis one(dim, n);
  return c2r("irfft", self, one.s, one.d, norm, false);
}
Tensor fft_irfft2(const Tensor& self, Sizes s, IntSpan dim, Norm norm) {
  return c2r("irfft2", self, s, dim, norm, false);
}
Tensor fft_irfftn(const Tensor& self, Sizes s, Sizes dim, Norm norm) {
  return c2r("irfftn", self, s, dim, norm, false);
}

Tensor fft_rfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  const OneAxis one(dim, n);
  return r2c("rfft", self, one.s, one.d, norm, true);
}
Tensor fft_rfft2(const Tensor& self, Sizes s, IntSpan dim, Norm norm) { return r2c("rfft2", self, s, dim, norm, true); }
Tensor fft_rfftn(const Tensor& self, Sizes s, Sizes dim, Norm norm) { return r2c("rfftn", self, s, dim, norm, true); }

Tensor fft_fftfreq(int64_t n, double d, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
  return frequencies("fftfreq", n, n, (n + 1) / 2, d, dtype, device, requires_grad);
}
Tensor fft_rfftfreq(int64_t n, double d, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
  const int64_t count = n / 2 + 1;
  return frequencies("rfftfreq", n, count, count, d, dtype, device, requires_grad);
}
Tensor fft_fftshift(const Tensor& self, Sizes dim) { return turned("fftshift", self, dim, 0); }
Tensor fft_ifftshift(const Tensor& self, Sizes dim) { return turned("ifftshift", self, dim, 1); }

}  // namespace taeda::impl
