/* Tensors of any element type and strides as rows of int64 or double, and back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

size_t size_of(int dtype) {
  static const unsigned char sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1};
  return sizes[dtype];
}
bool is_real(int d) { return (d >= TAEDA_FLOAT16 && d <= TAEDA_FLOAT64) || d == TAEDA_FLOAT8_E4M3FN || d == TAEDA_FLOAT8_E5M2; }
bool is_offered(int dtype) { return is_real(dtype) ? dtype != TAEDA_BFLOAT16 : dtype < TAEDA_UINT64; }
Array array(Call* call, bool real, int64_t n) { return (Array){real, n, {take(call, (size_t)n * 8)}}; }

/* --- halves --- */

static double from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                       : exponent == 0 ? ldexp(fraction, -24)
                                       : ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -value : value;
}
static uint16_t to_half(double value) {
  const uint16_t sign = signbit(value) ? 0x8000 : 0;
  int exponent;
  value = fabs(value);
  if (isnan(value)) return sign | 0x7e00;
  if (value >= 65520) return sign | 0x7c00;
  frexp(value, &exponent);
  if (exponent < -13) return sign | (uint16_t)nearbyint(ldexp(value, 24)); /* subnormal, or rounded up to a normal one */
  return sign | (uint16_t)(((exponent + 13) << 10) + (int)nearbyint(ldexp(value, 11 - exponent))); /* carries right */
}
/* --- rows: each element type, its type in C, and how it is read and written --- */

/* clang-format off */
#define TYPES(WHOLE, REAL)                                                                        \
  WHOLE(TAEDA_BOOL, uint8_t, v != 0)                                                              \
  WHOLE(TAEDA_INT8, int8_t, v) WHOLE(TAEDA_INT16, int16_t, v) WHOLE(TAEDA_INT32, int32_t, v)      \
  WHOLE(TAEDA_INT64, int64_t, v) WHOLE(TAEDA_UINT8, uint8_t, v) WHOLE(TAEDA_UINT16, uint16_t, v)  \
  WHOLE(TAEDA_UINT32, uint32_t, v) REAL(TAEDA_FLOAT16, uint16_t, from_half(*p), to_half(v))       \
  REAL(TAEDA_FLOAT32, float, *p, v) REAL(TAEDA_FLOAT64, double, *p, v)                            \
  REAL(TAEDA_FLOAT8_E4M3FN, uint8_t, sim_from_float8(*p, TAEDA_FLOAT8_E4M3FN), sim_to_float8(v, TAEDA_FLOAT8_E4M3FN)) \
  REAL(TAEDA_FLOAT8_E5M2, uint8_t, sim_from_float8(*p, TAEDA_FLOAT8_E5M2), sim_to_float8(v, TAEDA_FLOAT8_E5M2))
#define READ_WHOLE(number, T, put) \
  case number:                     \
    for (const T* p = from; n--; p += step) *to.i++ = *p; \
    break;
#define READ_REAL(number, T, get, put) \
  case number:                         \
    for (const T* p = from; n--; p += step) *to.f++ = get; \
    break;
#define WRITE_WHOLE(number, T, put)                                                     \
  case number:                                                                          \
    for (T* p = to; n--; p += step, ++from.i) { const int64_t v = *from.i; *p = (T)(put); } \
    break;
#define WRITE_REAL(number, T, get, put)                                                \
  case number:                                                                         \
    for (T* p = to; n--; p += step, ++from.f) { const double v = *from.f; *p = (T)(put); } \
    break;
/* clang-format on */
static void read_row(int dtype, const void* from, int64_t step, int64_t n, Array to) {
  switch (dtype) { TYPES(READ_WHOLE, READ_REAL) }
}
static void write_row(int dtype, Array from, int64_t n, void* to, int64_t step) {
  switch (dtype) { TYPES(WRITE_WHOLE, WRITE_REAL) }
}

/* Calls read_row or write_row along the last dimension, for all places of the others. */
static void each_row(const View* view, Array rows, bool writes) {
  const int last = view->ndim - 1;
  const int64_t n = view->ndim ? view->sizes[last] : 1, step = view->ndim ? view->strides[last] : 1;
  const int64_t item = (int64_t)size_of(view->dtype);
  int64_t at[TAEDA_MAX_DIMS] = {0};
  char* p = view->data;
  for (int64_t begin = 0; begin < view->n; begin += n) {
    if (writes) write_row(view->dtype, part(rows, begin, n), n, p, step);
    else read_row(view->dtype, p, step, n, part(rows, begin, n));
    for (int d = last - 1; d >= 0; --d) {
      p += view->strides[d] * item;
      if (++at[d] < view->sizes[d]) break;
      p -= view->sizes[d] * view->strides[d] * item;
      at[d] = 0;
    }
  }
}

/* In place between int64 and double. */
static Array convert(Array a, bool real, bool to_bool) {
  for (int64_t j = 0; j < a.n && a.real != real; ++j) {
    if (real) a.f[j] = (double)a.i[j];
    else if (to_bool) a.i[j] = a.f[j] != 0;
    else a.i[j] = a.f[j] >= -0x1p63 && a.f[j] < 0x1p63 ? (int64_t)a.f[j] : INT64_MIN;
  }
  a.real = real;
  return a;
}
void load_into(Array to, const View* view) { each_row(view, to, false); }
Array load(Call* call, const View* view, int dtype) {
  Array out = array(call, is_real(view->dtype), view->n);
  load_into(out, view);
  out = convert(out, is_real(dtype), dtype == TAEDA_BOOL);
  if (dtype != view->dtype && (size_of(dtype) < 8)) { /* what it would be in that type */
    void* rounded = take(call, (size_t)view->n * size_of(dtype));
    write_row(dtype, out, out.n, rounded, 1);
    read_row(dtype, rounded, 1, out.n, out);
  }
  return out;
}
void store(const View* view, Array from) { /* fewer elements are repeated */
  if (from.n == 0 || view->n == 0) return;
  Call scratch = {.blocks = NULL};
  Array rows = array(&scratch, from.real, view->n);
  for (int64_t k = 0; k < view->n; k += from.n) memcpy(rows.i + k, from.i, (size_t)from.n * 8);
  each_row(view, convert(rows, is_real(view->dtype), view->dtype == TAEDA_BOOL), true);
  give_up(&scratch);
}

/* --- views of views --- */

View with_last(const View* view, uint64_t dims) {
  View out = *view;
  int to = 0;
  for (uint64_t chosen = 0; chosen < 2; ++chosen)
    for (int d = 0; d < view->ndim; ++d)
      if ((dims >> d & 1) == chosen) out.sizes[to] = view->sizes[d], out.strides[to++] = view->strides[d];
  if (view->ndim == 0) out.ndim = 1, out.sizes[0] = out.strides[0] = 1; /* a row of one */
  return out;
}
View broadcast(const View* view, const View* to) {
  View out = *view;
  out.ndim = to->ndim;
  out.n = to->n;
  for (int d = to->ndim - 1, from = view->ndim - 1; d >= 0; --d, --from) {
    out.sizes[d] = to->sizes[d];
    out.strides[d] = from < 0 || view->sizes[from] == 1 ? 0 : view->strides[from];
  }
  return out;
}
View sliced(const View* view, int dim, int64_t begin, int64_t n) {
  View out = *view;
  out.data += begin * view->strides[dim] * (int64_t)size_of(view->dtype);
  out.n = view->sizes[dim] ? view->n / view->sizes[dim] * n : 0;
  out.sizes[dim] = n;
  return out;
}
View made(Call* call, int dtype, int ndim, const int64_t* sizes) {
  View out = {.n = 1, .dtype = dtype, .ndim = ndim};
  for (int d = ndim - 1; d >= 0; out.n *= sizes[d--]) out.sizes[d] = sizes[d], out.strides[d] = out.n;
  out.data = take(call, (size_t)out.n * size_of(dtype));
  return out;
}
