// Operators of numbers that devices seldom have kernels for: computed on the host, between two copies.
#include "decompose/common.h"
#include "taeda/wrappers.h"

namespace taeda::decompose {
namespace {

Tensor here(const Tensor& t) { return t.device().backend == kCPU ? t : ops::to_device(t, Device{}); }

#define HOSTED_UNARY(NAME) \
  Tensor NAME(const Tensor& self) { return ops::to_device(ops::NAME(here(self)), stated_device(self)); }
#define HOSTED_BINARY(NAME)                                                    \
  Tensor NAME(const Tensor& a, const Tensor& b) {                              \
    const Device place = a.device().backend == kCPU ? b.device() : a.device(); \
    return ops::to_device(ops::NAME(here(a), here(b)), place);                 \
  }
HOSTED_UNARY(special_airy_ai)
HOSTED_UNARY(special_bessel_j0)
HOSTED_UNARY(special_bessel_j1)
HOSTED_UNARY(special_bessel_y0)
HOSTED_UNARY(special_bessel_y1)
HOSTED_UNARY(special_entr)
HOSTED_UNARY(special_erfcx)
HOSTED_UNARY(special_log_ndtr)
HOSTED_UNARY(special_modified_bessel_k0)
HOSTED_UNARY(special_modified_bessel_k1)
HOSTED_UNARY(special_ndtr)
HOSTED_UNARY(special_ndtri)
HOSTED_UNARY(special_scaled_modified_bessel_k0)
HOSTED_UNARY(special_scaled_modified_bessel_k1)
HOSTED_UNARY(special_spherical_bessel_j0)
HOSTED_BINARY(igamma)
HOSTED_BINARY(igammac)
HOSTED_BINARY(special_chebyshev_polynomial_t)
HOSTED_BINARY(special_chebyshev_polynomial_u)
HOSTED_BINARY(special_chebyshev_polynomial_v)
HOSTED_BINARY(special_chebyshev_polynomial_w)
HOSTED_BINARY(special_hermite_polynomial_h)
HOSTED_BINARY(special_hermite_polynomial_he)
HOSTED_BINARY(special_laguerre_polynomial_l)
HOSTED_BINARY(special_legendre_polynomial_p)
HOSTED_BINARY(special_shifted_chebyshev_polynomial_t)
HOSTED_BINARY(special_shifted_chebyshev_polynomial_u)
HOSTED_BINARY(special_shifted_chebyshev_polynomial_v)
HOSTED_BINARY(special_shifted_chebyshev_polynomial_w)
HOSTED_BINARY(special_xlog1py)
HOSTED_BINARY(special_zeta)

Tensor polygamma_method(const Tensor& self, int64_t n) {
  return ops::to_device(ops::polygamma_method(here(self), n), stated_device(self));
}
Tensor _fft_c2c(const Tensor& self, IntSpan dim, int64_t normalization, bool forward) {
  return ops::to_device(ops::_fft_c2c(here(self), dim, normalization, forward), stated_device(self));
}
Tensor _fft_c2r(const Tensor& self, IntSpan dim, int64_t normalization, int64_t last_dim_size) {
  return ops::to_device(ops::_fft_c2r(here(self), dim, normalization, last_dim_size), stated_device(self));
}
Tensor _fft_r2c(const Tensor& self, IntSpan dim, int64_t normalization, bool onesided) {
  return ops::to_device(ops::_fft_r2c(here(self), dim, normalization, onesided), stated_device(self));
}

DECOMPOSE(_fft_c2c)
DECOMPOSE(_fft_c2r)
DECOMPOSE(_fft_r2c)
DECOMPOSE(igamma)
DECOMPOSE(igammac)
DECOMPOSE(special_airy_ai)
DECOMPOSE(special_bessel_j0)
DECOMPOSE(special_bessel_j1)
DECOMPOSE(special_bessel_y0)
DECOMPOSE(special_bessel_y1)
DECOMPOSE(special_chebyshev_polynomial_t)
DECOMPOSE(special_chebyshev_polynomial_u)
DECOMPOSE(special_chebyshev_polynomial_v)
DECOMPOSE(special_chebyshev_polynomial_w)
DECOMPOSE(special_entr)
DECOMPOSE(special_erfcx)
DECOMPOSE(special_hermite_polynomial_h)
DECOMPOSE(special_hermite_polynomial_he)
DECOMPOSE(special_laguerre_polynomial_l)
DECOMPOSE(special_legendre_polynomial_p)
DECOMPOSE(special_log_ndtr)
DECOMPOSE(special_modified_bessel_k0)
DECOMPOSE(special_modified_bessel_k1)
DECOMPOSE(special_ndtr)
DECOMPOSE(special_ndtri)
DECOMPOSE(special_scaled_modified_bessel_k0)
DECOMPOSE(special_scaled_modified_bessel_k1)
DECOMPOSE(special_shifted_chebyshev_polynomial_t)
DECOMPOSE(special_shifted_chebyshev_polynomial_u)
DECOMPOSE(special_shifted_chebyshev_polynomial_v)
DECOMPOSE(special_shifted_chebyshev_polynomial_w)
DECOMPOSE(special_spherical_bessel_j0)
DECOMPOSE(special_xlog1py)
DECOMPOSE(special_zeta)
TAEDA_DECOMPOSE(polygamma_method, "polygamma.method", polygamma_method)

}  // namespace
}  // namespace taeda::decompose
