/* Random numbers: Philox 4x32-10, counted by element, so that they do not depend on the order of the work. */
#include <math.h>
#include <string.h>

#include "sim.h"

/* 64 random bits for an element; `turn` tells those of one element apart. */
static uint64_t bits_at(const Call* call, int64_t element, uint32_t turn) {
  const uint64_t at = call->offset + (uint64_t)element;
  uint32_t x[4] = {(uint32_t)at, (uint32_t)(at >> 32), turn, 0};
  uint32_t key[2] = {(uint32_t)call->seed, (uint32_t)(call->seed >> 32)};
  for (int round = 0; round < 10; ++round, key[0] += 0x9e3779b9u, key[1] += 0xbb67ae85u) {
    const uint64_t a = 0xd2511f53ull * x[0], b = 0xcd9e8d57ull * x[2];
    const uint32_t next[] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b, (uint32_t)(a >> 32) ^ x[3] ^ key[1], (uint32_t)a};
    memcpy(x, next, sizeof x);
  }
  return (uint64_t)x[0] << 32 | x[1];
}
static double unit_at(const Call* call, int64_t element, uint32_t turn) { /* in [0, 1) */
  return (double)(bits_at(call, element, turn) >> 11) * 0x1p-53;
}
static int32_t uniform(Call* call) { /* with as many bits as the type keeps, so that rounding never gives the end */
  const View* to = call->a[0].view;
  const int bits = to->dtype == TAEDA_FLOAT64 ? 53 : to->dtype == TAEDA_FLOAT32 ? 24 : to->dtype == TAEDA_FLOAT16 ? 11 : 8;
  const Array out = array(call, true, to->n);
  for (int64_t j = 0; j < out.n; ++j)
    out.f[j] = call->a[1].f + (call->a[2].f - call->a[1].f) * ldexp(floor(ldexp(unit_at(call, j, 0), bits)), -bits);
  return store(to, out), TAEDA_OK;
}
static int32_t integers(Call* call) { /* low, high: on [low, high), on [0, low), or on all that the type represents */
  static const unsigned char bits[] = {1, 7, 15, 31, 63, 8, 16, 32, 64, 11, 8, 24, 53};
  const View* to = call->a[0].view;
  const bool bounded = call->a[1].kind != TAEDA_VALUE_NONE, both = bounded && call->a[2].kind != TAEDA_VALUE_NONE;
  const int64_t low = both ? call->a[1].i : 0;
  uint64_t range = ((uint64_t)1 << bits[to->dtype]) + is_real(to->dtype);
  if (bounded) range = (uint64_t)(both ? call->a[2].i : call->a[1].i) - (uint64_t)low;
  else if (call->a[2].kind != TAEDA_VALUE_NONE) range = (uint64_t)call->a[2].i;
  const Array out = array(call, false, to->n);
  for (int64_t j = 0; j < out.n; ++j) out.i[j] = low + (int64_t)(bits_at(call, j, 0) % range);
  return store(to, out), TAEDA_OK;
}
static int32_t poisson(Call* call) { /* Knuth's product of uniform numbers, in portions that do not underflow */
  const View* self = call->a[0].view;
  const Array rates = load(call, self, TAEDA_FLOAT64);
  for (int64_t j = 0; j < rates.n; ++j) {
    uint32_t turn = 0;
    double left = rates.f[j], count = 0;
    for (; left > 0; left -= 500) {
      const double least = exp(-fmin(left, 500));
      for (double p = unit_at(call, j, turn++); p > least; p *= unit_at(call, j, turn++)) ++count;
    }
    rates.f[j] = count;
  }
  call->results[0] = made(call, self->dtype, self->ndim, self->sizes);
  return store(call->results, rates), TAEDA_OK;
}
const Kernel kRandomKernels[] = {
    {"uniform_", uniform, kRandomKernels}, {"random_", integers, kRandomKernels}, {"poisson", poisson, kRandomKernels}, {0}};
