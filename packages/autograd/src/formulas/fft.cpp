// Gradients of Fourier transforms between real and complex numbers.
#include "taeda/autograd/formulas.h"
#include "taeda/wrappers.h"

namespace taeda::formulas {

namespace {

/// `factor` for the numbers of a half spectrum that stand for two, 1 for frequency 0 and, of even n, the highest.
Tensor doubles_times(double factor, const Tensor& spectrum, int64_t axis, int64_t n) {
  Shape sizes(size_t(spectrum.dim()), 1);
  sizes[size_t(axis)] = spectrum.size(axis);
  const Tensor weights = ops::ones(sizes, real_of(spectrum.dtype()), stated_device(spectrum));
  ops::fill_(ops::narrow(weights, axis, 1, (n - 1) / 2), Tensor(factor));
  return spectrum * weights;
}

}  // namespace

Tensor fft_r2c_grad(const Tensor& grad, IntSpan dim, int64_t normalization, bool onesided, IntSpan sizes) {
  if (!onesided) return ops::real(ops::_fft_c2c(grad, dim, normalization, false));
  const int64_t axis = wrap_dim(dim.back(), grad.dim(), "_fft_r2c"), n = sizes[size_t(axis)];
  // The real part of a backward transform of half a spectrum: that of one whose other half is its mirror image.
  return ops::_fft_c2r(doubles_times(0.5, grad, axis, n), dim, normalization, n);
}

Tensor fft_c2r_grad(const Tensor& grad, IntSpan dim, int64_t normalization) {
  const int64_t axis = wrap_dim(dim.back(), grad.dim(), "_fft_c2r");
  return doubles_times(2, ops::_fft_r2c(grad, dim, normalization, true), axis, grad.size(axis));
}

}  // namespace taeda::formulas
