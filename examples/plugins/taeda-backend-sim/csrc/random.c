/* Random numbers: Philox 4x32-10, counted by element, so that they do not depend on the order of the work. */
#include <math.h>
#include <string.h>

#include "sim.h"
#include "special.h"

/* A number of 64 random bits for an element; `turn` tells those of one element apart. */
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
/* In [0, 1). */
static double unit_at(const Call* call, int64_t element, uint32_t turn) {
  return (double)(bits_at(call, element, turn) >> 11) * 0x1p-53;
}

static double draw_normal(const Call* call, int64_t j, double mean, double deviation) {
  return mean + deviation * sqrt(-2 * log1p(-unit_at(call, j, 0))) * cos(2 * kPi * unit_at(call, j, 1));
}
static double draw_uniform(const Call* call, int64_t j, double low, double high) {
  const View* to = call->a[0].views;
  const double u = unit_at(call, j, 0);
  const int bits = to->dtype == TAEDA_FLOAT64 ? 53 : to->dtype == TAEDA_FLOAT32 ? 24 : to->dtype == TAEDA_FLOAT16 ? 11 : 8;
  return low + (high - low) * (floor(ldexp(u, bits)) * ldexp(1, -bits)); /* so that rounding never gives `high` */
}
static double draw_bernoulli(const Call* call, int64_t j, double p, double unused) { return (void)unused, unit_at(call, j, 0) < p; }
static double draw_exponential(const Call* call, int64_t j, double rate, double unused) {
  return (void)unused, -log1p(-unit_at(call, j, 0)) / rate;
}
static double draw_geometric(const Call* call, int64_t j, double p, double unused) {
  return (void)unused, p >= 1 ? 1 : fmax(1, ceil(log1p(-unit_at(call, j, 0)) / log1p(-p)));
}
static double draw_cauchy(const Call* call, int64_t j, double median, double sigma) {
  return median + sigma * tan(kPi * (unit_at(call, j, 0) - 0.5));
}
typedef struct Draw {
  double (*draw)(const Call*, int64_t, double, double);
} Draw;
static int32_t draw(Call* call) {
  const Draw* how = call->table;
  const View* to = call->a[0].views;
  const Array out = array(call, CLASS_REAL, to->n);
  for (int64_t j = 0; j < to->n; ++j) out.f[j] = how->draw(call, j, call->a[1].f, call->a[2].f);
  store(to, out);
  return TAEDA_OK;
}

static int32_t random_integers(Call* call) {
  static const unsigned char bits[] = {1, 7, 15, 31, 63, 8, 16, 32, 64, 11, 8, 24, 53, 24, 53};
  const View* to = call->a[0].views;
  const bool real = is_real(to->dtype), bounded = call->a[1].kind != TAEDA_VALUE_NONE, both = call->a[2].kind != TAEDA_VALUE_NONE;
  const int64_t low = both && bounded ? call->a[1].i : 0;
  uint64_t range = bits[to->dtype] == 64 ? 0 : ((uint64_t)1 << bits[to->dtype]) + real; /* 0: all 64 bits */
  if (both) range = (uint64_t)call->a[2].i - (uint64_t)low;
  else if (bounded) range = (uint64_t)call->a[1].i;
  const Array out = array(call, CLASS_INT, to->n);
  for (int64_t j = 0; j < to->n; ++j) {
    const uint64_t word = bits_at(call, j, 0);
    out.u[j] = (uint64_t)low + (range ? word % range : word);
  }
  store(to, out);
  return TAEDA_OK;
}

static int32_t dropout(Call* call) {
  const View* to = call->a[0].views;
  const double p = call->a[3].f;
  const Array in = load(call, call->a[2].views, to->dtype), mask = array(call, CLASS_INT, to->n);
  for (int64_t j = 0; j < to->n; ++j) {
    mask.i[j] = unit_at(call, j, 0) >= p;
    in.f[j] = mask.i[j] ? in.f[j] / (1 - p) : 0;
  }
  store(to, in);
  store(call->a[1].views, mask);
  return TAEDA_OK;
}

/* Knuth's product of uniform numbers, in portions that do not underflow. */
static int32_t poisson(Call* call) {
  const View* to = call->a[0].views;
  const Array rates = load_as(call, call->a[1].views, CLASS_REAL);
  for (int64_t j = 0; j < to->n; ++j) {
    uint32_t turn = 0;
    double left = rates.f[j], count = 0;
    while (left > 0) {
      const double portion = fmin(left, 500), least = exp(-portion);
      double p = 1;
      while ((p *= unit_at(call, j, turn++)) > least) ++count;
      left -= portion;
    }
    rates.f[j] = count;
  }
  store(to, rates);
  return TAEDA_OK;
}

static int32_t multinomial(Call* call) {
  const View* self = call->a[0].views;
  const int64_t columns = self->sizes[self->ndim - 1], rows = columns ? self->n / columns : 0, count = call->a[1].i;
  const Array weights = load_as(call, self, CLASS_REAL);
  int64_t sizes[] = {rows, count};
  call->results[0] = made(call, TAEDA_INT64, self->ndim, self->ndim == 1 ? sizes + 1 : sizes);
  int64_t* to = (int64_t*)call->results[0].data;
  for (int64_t r = 0; r < rows; ++r) {
    double* w = weights.f + r * columns;
    for (int64_t n = 0; n < count; ++n) {
      double total = 0;
      for (int64_t j = 0; j < columns; ++j) total += w[j];
      double left = unit_at(call, r, (uint32_t)n) * total;
      int64_t at = 0;
      for (int64_t j = 0; j < columns; ++j)
        if (w[j] > 0) {
          at = j;
          if (left < w[j]) break;
          left -= w[j];
        }
      *to++ = at;
      if (!call->a[2].i) w[at] = 0;
    }
  }
  return TAEDA_OK;
}

#define DRAW(name) {#name "_", draw, &(const Draw){draw_##name}, NULL, true}
static const Kernel kRandom[] = {
    DRAW(normal), DRAW(uniform), DRAW(bernoulli), DRAW(exponential), DRAW(geometric), DRAW(cauchy),
    {"random_", random_integers, NULL, NULL, true}, {"native_dropout", dropout, NULL, NULL, true},
    {"poisson", poisson, NULL, "0", true}, {"multinomial", multinomial, NULL, NULL, true},
};
int32_t sim_register_random(void) { return sim_register(kRandom, sizeof kRandom / sizeof *kRandom); }
