/* Tensors of any element type and strides as rows of int64, uint64, double or double complex, and back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

size_t size_of(int dtype) {
  static const unsigned char sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return sizes[dtype];
}
Class class_of(int dtype) {
  return dtype >= TAEDA_COMPLEX64  ? CLASS_COMPLEX
         : dtype >= TAEDA_FLOAT16  ? CLASS_REAL
         : dtype == TAEDA_UINT64 ? CLASS_UINT
                                   : CLASS_INT;
}
bool is_real(int dtype) { return class_of(dtype) == CLASS_REAL; }

void* take(Call* call, size_t nbytes) {
  void** block = calloc(1, nbytes + 16);
  if (!block) abort(); /* the simulated processor is out of scratch memory */
  *block = call->blocks;
  call->blocks = block;
  return block + 2;
}
void give_up(Call* call) {
  for (void** block = call->blocks; block;) {
    void** next = *block;
    free(block);
    block = next;
  }
}
Array array(Call* call, Class kind, int64_t n) {
  return (Array){kind, n, {.p = take(call, (size_t)n * (kind == CLASS_COMPLEX ? 16 : 8))}};
}

/* --- halves --- */

static double from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                 : exponent == 0 ? ldexp(fraction, -24)
                                 : ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -value : value;
}
static uint16_t to_half(double value) {
  const uint16_t sign = signbit(value) ? 0x8000 : 0;
  value = fabs(value);
  if (isnan(value)) return sign | 0x7e00;
  if (value >= 65520) return sign | 0x7c00;
  int exponent;
  frexp(value, &exponent);
  if (exponent < -13) return sign | (uint16_t)nearbyint(ldexp(value, 24)); /* subnormal, or rounds up to the first normal */
  const uint16_t fraction = (uint16_t)nearbyint(ldexp(value, 11 - exponent)); /* 1024 to 2048 */
  return sign | (uint16_t)(((exponent + 13) << 10) + fraction);
}
static double from_brain(uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, 4);
  return value;
}
static uint16_t to_brain(double value) {
  const float narrow = (float)value;
  uint32_t bits;
  memcpy(&bits, &narrow, 4);
  return isnan(value) ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* --- one element --- */

static int64_t to_int(double v) { return v >= 0x1p63 ? (v < 0x1p64 ? (int64_t)(uint64_t)v : INT64_MIN) : v >= -0x1p63 ? (int64_t)v : INT64_MIN; }
static uint64_t to_uint(double v) { return v >= 0x1p63 && v < 0x1p64 ? (uint64_t)v : (uint64_t)to_int(v); }

/* The element types: number, type of C, and how it is read and written. */
#define NUMBERS(X)                                                                                       \
  X(TAEDA_BOOL, uint8_t, *p, v != 0) X(TAEDA_INT8, int8_t, *p, (int8_t)v) X(TAEDA_INT16, int16_t, *p, (int16_t)v) \
  X(TAEDA_INT32, int32_t, *p, (int32_t)v) X(TAEDA_INT64, int64_t, *p, v) X(TAEDA_UINT8, uint8_t, *p, (uint8_t)v)  \
  X(TAEDA_UINT16, uint16_t, *p, (uint16_t)v) X(TAEDA_UINT32, uint32_t, *p, (uint32_t)v)
#define REALS(X)                                                                                                  \
  X(TAEDA_FLOAT16, uint16_t, from_half(*p), to_half(v)) X(TAEDA_BFLOAT16, uint16_t, from_brain(*p), to_brain(v)) \
  X(TAEDA_FLOAT32, float, *p, (float)v) X(TAEDA_FLOAT64, double, *p, v)

/* Reads n elements that lie `step` elements apart, in the class of their own type. */
static void read_row(int dtype, const void* from, int64_t step, int64_t n, void* to) {
#define READ(number, T, get, put)                                                                              \
  case number:                                                                                                 \
    for (const T* p = from; n--; p += step) *out++ = get;                                                      \
    return;
  if (class_of(dtype) == CLASS_REAL) {
    double* out = to;
    switch (dtype) { REALS(READ) }
  } else if (class_of(dtype) == CLASS_COMPLEX) {
    Complex* out = to;
    if (dtype == TAEDA_COMPLEX64)
      for (const float complex* p = from; n--; p += step) *out++ = *p;
    else
      for (const double complex* p = from; n--; p += step) *out++ = *p;
  } else {
    int64_t* out = to;
    switch (dtype == TAEDA_UINT64 ? TAEDA_INT64 : dtype) { NUMBERS(READ) }
  }
}
static void write_row(int dtype, const void* from, int64_t n, void* to, int64_t step) {
#define WRITE(number, T, get, put)                           \
  case number:                                               \
    for (T* p = to; n--; p += step) v = *in++, *p = (T)(put); \
    return;
  if (class_of(dtype) == CLASS_REAL) {
    const double* in = from;
    double v;
    switch (dtype) { REALS(WRITE) }
  } else if (class_of(dtype) == CLASS_COMPLEX) {
    const Complex* in = from;
    if (dtype == TAEDA_COMPLEX64)
      for (float complex* p = to; n--; p += step) *p = (float complex)*in++;
    else
      for (double complex* p = to; n--; p += step) *p = *in++;
  } else {
    const int64_t* in = from;
    int64_t v;
    switch (dtype == TAEDA_UINT64 ? TAEDA_INT64 : dtype) { NUMBERS(WRITE) }
  }
}

/* In place between classes; rows have room for the larger one. Complex rows are read from the front, written to from the
 * back. */
static void convert(void* row, int64_t n, Class from, Class to, bool to_bool) {
  int64_t* i = row;
  uint64_t* u = row;
  double* f = row;
  Complex* c = row;
#define EACH(expression) for (int64_t k = 0; k < n; ++k) expression
#define BACK(expression) for (int64_t k = n; k-- > 0;) expression
  if (to_bool && from == CLASS_REAL) EACH(i[k] = f[k] != 0);
  else if (to_bool && from == CLASS_COMPLEX) EACH(i[k] = c[k] != 0);
  else if (from == CLASS_COMPLEX && to == CLASS_REAL) EACH(f[k] = creal(c[k]));
  else if (from == CLASS_COMPLEX && to == CLASS_INT) EACH(i[k] = to_int(creal(c[k])));
  else if (from == CLASS_COMPLEX && to == CLASS_UINT) EACH(u[k] = to_uint(creal(c[k])));
  else if (from == CLASS_REAL && to == CLASS_INT) EACH(i[k] = to_int(f[k]));
  else if (from == CLASS_REAL && to == CLASS_UINT) EACH(u[k] = to_uint(f[k]));
  else if (from == CLASS_REAL && to == CLASS_COMPLEX) BACK(c[k] = f[k]);
  else if (from == CLASS_INT && to == CLASS_REAL) EACH(f[k] = (double)i[k]);
  else if (from == CLASS_INT && to == CLASS_COMPLEX) BACK(c[k] = (double)i[k]);
  else if (from == CLASS_UINT && to == CLASS_REAL) EACH(f[k] = (double)u[k]);
  else if (from == CLASS_UINT && to == CLASS_COMPLEX) BACK(c[k] = (double)u[k]);
}

/* Calls read_row or write_row along the last dimension, for all places of the others. */
static void each_row(const View* view, char* row, bool writes) {
  const int last = view->ndim - 1;
  const int64_t n = view->ndim ? view->sizes[last] : 1, step = view->ndim ? view->strides[last] : 1;
  const size_t item = size_of(view->dtype), width = class_of(view->dtype) == CLASS_COMPLEX ? 16 : 8;
  int64_t at[TAEDA_MAX_DIMS] = {0};
  char* p = view->data;
  for (int64_t rows = n ? view->n / n : 0; rows-- > 0; row += (size_t)n * width) {
    if (writes)
      write_row(view->dtype, row, n, p, step);
    else
      read_row(view->dtype, p, step, n, row);
    for (int d = last - 1; d >= 0; --d) {
      p += view->strides[d] * (int64_t)item;
      if (++at[d] < view->sizes[d]) break;
      p -= view->sizes[d] * view->strides[d] * (int64_t)item;
      at[d] = 0;
    }
  }
}

Array load(Call* call, const View* view, int dtype) {
  const Class own = class_of(view->dtype), kind = class_of(dtype);
  Array out = array(call, own == CLASS_COMPLEX ? own : kind, view->n);
  each_row(view, out.p, false);
  convert(out.p, view->n, own, kind, dtype == TAEDA_BOOL);
  out.kind = kind;
  if (dtype != view->dtype && size_of(dtype) < (kind == CLASS_COMPLEX ? 16 : 8)) { /* what it would be in that type */
    void* rounded = take(call, (size_t)view->n * size_of(dtype));
    write_row(dtype, out.p, view->n, rounded, 1);
    read_row(dtype, rounded, 1, view->n, out.p);
  }
  return out;
}
Array load_as(Call* call, const View* view, Class kind) {
  static const int widest[] = {TAEDA_INT64, TAEDA_UINT64, TAEDA_FLOAT64, TAEDA_COMPLEX128};
  return load(call, view, widest[kind]);
}
void load_into(Array to, const View* view) { each_row(view, to.p, false); }
void store(const View* view, Array from) {
  const Class kind = class_of(view->dtype);
  if (from.n == 0 || view->n == 0) return;
  char* row = malloc((size_t)view->n * 16);
  if (!row) abort();
  const size_t width = from.kind == CLASS_COMPLEX ? 16 : 8;
  for (int64_t k = 0; k < view->n; k += from.n) memcpy(row + (size_t)k * width, from.p, (size_t)from.n * width);
  convert(row, view->n, from.kind, kind, view->dtype == TAEDA_BOOL);
  each_row(view, row, true);
  free(row);
}
double real_at(const View* view, int64_t n) {
  Complex row[64] = {0};
  View first = *view;
  if (n >= 0) first.ndim = 1, first.n = first.sizes[0] = 1, first.strides[0] = 1, first.data += n * (int64_t)size_of(view->dtype);
  each_row(&first, (char*)row, false);
  convert(row, 1, class_of(view->dtype), CLASS_REAL, false);
  return creal(row[0]);
}

/* --- views of views --- */

View permuted(const View* view, int64_t dim) {
  View out = *view;
  if (view->ndim == 0) { /* a row of one */
    out.ndim = 1;
    out.sizes[0] = out.strides[0] = 1;
    return out;
  }
  int to = 0;
  for (int d = 0; d <= view->ndim; ++d) {
    const int from = d == view->ndim ? (int)dim : d;
    if (d == dim) continue;
    out.sizes[to] = view->sizes[from];
    out.strides[to++] = view->strides[from];
  }
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
  for (int d = ndim - 1; d >= 0; --d) {
    out.sizes[d] = sizes[d];
    out.strides[d] = out.n;
    out.n *= sizes[d];
  }
  out.data = take(call, (size_t)out.n * size_of(dtype));
  return out;
}
