// Products by their definition, element by element.
#include "driver/simulated_product.h"

#include <algorithm>

#include "driver/simulated_epilogue.h"
#include "kernels/base.h"
#include "taeda/abi.h"

namespace taeda::cuda {
namespace {

template <class C>
void multiply(const BlasProduct& p) {
  const auto of = [&](const BlasProduct::Matrix& matrix, int64_t batch, int64_t row, int64_t column) {
    const int64_t place = matrix.turned ? column + row * matrix.ld : row + column * matrix.ld;
    return load<C>(Array{matrix.data, p.dtype, 0}, batch * matrix.step + place);
  };
  const C alpha = Number{p.alpha[0], p.alpha[1], 0}.as<C>(), beta = Number{p.beta[0], p.beta[1], 0}.as<C>();
  const Array to{p.c.data, p.result, 0};
  for (int64_t batch = 0; batch < p.batch; ++batch)
    for (int64_t j = 0; j < p.n; ++j)
      for (int64_t i = 0; i < p.m; ++i) {
        C sum = C(0);
        for (int64_t l = 0; l < p.k; ++l) sum = C(sum + of(p.a, batch, i, l) * of(p.b, batch, l, j));
        const int64_t place = batch * p.c.step + i + j * p.c.ld;
        sum = C(alpha * sum);
        if (beta != C(0)) sum = C(sum + beta * load<C>(to, place));  // else it is not read, as the library says
        if constexpr (is_same<C, double>)
          if (p.epilogue) sum = finished(p, i, j, sum);
        store<C>(to, place, sum);
      }
  sum_on_host(p);
}

}  // namespace

bool multiplies_on_host(const BlasProduct& product) {
  return product.dtype >= TAEDA_FLOAT16 && product.dtype <= TAEDA_COMPLEX128;
}
bool is_valid(const BlasProduct& p) {
  const auto reaches = [](const BlasProduct::Matrix& matrix, int64_t rows, int64_t columns) {
    return matrix.ld >= std::max<int64_t>(1, matrix.turned ? columns : rows) && matrix.step >= 0;
  };
  const bool halves = p.dtype == TAEDA_FLOAT16 || p.dtype == TAEDA_BFLOAT16;
  if (p.result != p.dtype && !(halves && p.result == TAEDA_FLOAT32)) return false;
  return p.m >= 0 && p.n >= 0 && p.k >= 0 && p.batch >= 0 && reaches(p.a, p.m, p.k) && reaches(p.b, p.k, p.n) &&
         !p.c.turned && reaches(p.c, p.m, p.n) && is_valid_epilogue(p);
}
void multiply_on_host(const BlasProduct& product, uint64_t shift) {
  simulated_shift = shift;
  if (product.dtype == TAEDA_COMPLEX64 || product.dtype == TAEDA_COMPLEX128) multiply<Complex128>(product);
  else multiply<double>(product);
  simulated_shift = 0;
}

}  // namespace taeda::cuda
