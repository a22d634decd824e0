// C functions by which tests ask a driver for products of matrices with all that it may do to them.
#include "driver/product.h"
#include "harness.h"

using namespace taeda::cuda;

namespace {

/// Its members one after the other: types, sizes, three matrices, and the epilogue. Factors are real.
BlasProduct product_of(const int64_t* given, const double* factors) {
  const auto next = [&] { return *given++; };
  BlasProduct p;
  p.dtype = int(next()), p.result = int(next());
  for (int64_t* size : {&p.m, &p.n, &p.k, &p.batch}) *size = next();
  for (BlasProduct::Matrix* matrix : {&p.a, &p.b, &p.c}) {
    matrix->data = uint64_t(next());
    matrix->ld = next(), matrix->step = next(), matrix->turned = next() != 0;
  }
  p.epilogue.activation = Epilogue::Activation(next());
  p.epilogue.backward = next() != 0;
  p.epilogue.role = Epilogue::Vector(next());
  p.epilogue.vector = uint64_t(next()), p.epilogue.kept = uint64_t(next()), p.epilogue.kept_ld = next();
  p.alpha[0] = factors[0], p.beta[0] = factors[1];
  return p;
}

}  // namespace

TAEDA_CUDA_EXPORT int taeda_cuda_multiply(void* m, int device, const int64_t* numbers, const double* factors,
                                          void* stream) {
  return on(m,
            [&](Machine& machine) { return machine.driver().multiply(device, product_of(numbers, factors), stream); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_can_finish(void* m, int device, const int64_t* numbers, const double* factors,
                                            int* found) {
  return on(m, [&](Machine& machine) {
    return *found = machine.driver().can_finish(device, product_of(numbers, factors)), Status::Ok;
  });
}
