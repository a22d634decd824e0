/* Operators along dimensions: reductions, scans and order. Each is a function of one line of elements. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "special.h"

/* One line: elements in and out, and the call's arguments behind the dimensions. */
typedef struct Line {
  Array in, out, places;
  const Argument* rest;
} Line;
typedef enum { AS_OUTPUT, AS_INPUT, AS_BOOL } Reading;
typedef struct LineOp {
  void (*run)(const Line*);
  Reading reading;
  bool reduces; /* to one element */
} LineOp;

static uint64_t dims_of(const Argument* a, int ndim) {
  uint64_t mask = 0;
  if (a->kind == TAEDA_VALUE_INT) return (uint64_t)1 << wrap_dim(a->i, ndim);
  for (int64_t i = 0; i < a->count; ++i) mask |= (uint64_t)1 << wrap_dim(a->ints[i], ndim);
  return mask ? mask : ((uint64_t)1 << ndim) - 1;
}
static int32_t run_lines(Call* call) {
  const LineOp* op = call->table;
  const Argument* inputs = call->a + call->outputs;
  const View* first = inputs[0].view;
  const uint64_t mask = dims_of(inputs + 1, first->ndim);
  const View lines = with_last(first, mask);
  const int dtype = op->reading == AS_BOOL ? TAEDA_BOOL : op->reading == AS_OUTPUT ? call->a[0].view->dtype : first->dtype;
  const Array in = load(call, &lines, dtype);
  Array out[2] = {{0}};
  View to[2];
  int64_t length = 1;
  for (int d = 0; d < first->ndim; ++d) length *= mask >> d & 1 ? first->sizes[d] : 1;
  for (uint32_t i = 0; i < call->outputs; ++i) {
    to[i] = op->reduces ? *call->a[i].view : with_last(call->a[i].view, mask);
    out[i] = array(call, i == 0 && is_real(to[i].dtype) && in.real, to[i].n);
  }
  const int64_t out_length = op->reduces ? 1 : length, count = out_length ? to[0].n / out_length : 0;
  for (int64_t j = 0; j < count; ++j) {
    Line line = {part(in, j * length, length), part(out[0], j * out_length, out_length), out[1], inputs + 2};
    if (out[1].i) line.places = part(out[1], j * out_length, out_length);
    op->run(&line);
  }
  for (uint32_t i = 0; i < call->outputs; ++i) store(to + i, out[i]);
  return TAEDA_OK;
}

#define EACH(l) for (int64_t j = 0; j < (l)->in.n; ++j)
/* Folds a line; a scan keeps what its beginnings give. */
#define FOLD_AS(T, x, start, step)       \
  {                                      \
    T s = start;                         \
    if (!scan) *l->out.x = s;            \
    EACH(l) {                            \
      const T v = l->in.x[j];            \
      l->out.x[scan ? j : 0] = s = step; \
    }                                    \
  }
#define FOLD(name, start, step)                     \
  static void name##_line(const Line* l) {          \
    const bool scan = l->out.n == l->in.n;          \
    if (l->in.real) FOLD_AS(double, f, start, step) \
    else FOLD_AS(int64_t, i, start, step)           \
  }
FOLD(sum, 0, s + v)
FOLD(prod, 1, s* v)
FOLD(any, 0, s != 0 || v != 0)
static void logcumsumexp_line(const Line* l) {
  double sum = -INFINITY;
  EACH(l) l->out.f[j] = sum = isnan(sum) || isnan(l->in.f[j]) ? NAN : log_add(sum, l->in.f[j]);
}

/* --- order --- */

bool less(Array a, int64_t j, int64_t k) { return a.real ? (isnan(a.f[k]) ? !isnan(a.f[j]) : a.f[j] < a.f[k]) : a.i[j] < a.i[k]; }
int64_t extreme(Array a, bool largest) { /* the first one */
  int64_t best = 0;
  for (int64_t j = 0; j < a.n; ++j) {
    if (a.real && isnan(a.f[j])) return j;
    if (largest ? less(a, best, j) : less(a, j, best)) best = j;
  }
  return best;
}
static void argmax_line(const Line* l) { *l->out.i = extreme(l->in, true); }
static void argmin_line(const Line* l) { *l->out.i = extreme(l->in, false); }
static void amax_line(const Line* l) { *l->out.i = l->in.i[extreme(l->in, true)]; }
static void amin_line(const Line* l) { *l->out.i = l->in.i[extreme(l->in, false)]; }
static void running_line(const Line* l, bool largest) { /* the last of equal ones; a NaN stays */
  int64_t best = 0;
  EACH(l) {
    const bool nan = l->in.real && isnan(l->in.f[j]), stuck = l->in.real && isnan(l->in.f[best]);
    if (nan || (!stuck && !(largest ? less(l->in, j, best) : less(l->in, best, j)))) best = j;
    l->out.i[j] = l->in.i[best];
    l->places.i[j] = best;
  }
}
static void cummax_line(const Line* l) { running_line(l, true); }
static void cummin_line(const Line* l) { running_line(l, false); }
void sort_places(Array a, bool descending, int64_t* places) { /* merges from the bottom */
  int64_t *from = places, *to = malloc((size_t)a.n * 8 + 8), *spare = to;
  for (int64_t j = 0; j < a.n; ++j) from[j] = j;
  for (int64_t width = 1; width < a.n; width *= 2) {
    for (int64_t low = 0; low < a.n; low += 2 * width) {
      const int64_t middle = low + width < a.n ? low + width : a.n, high = middle + width < a.n ? middle + width : a.n;
      for (int64_t i = low, k = middle, o = low; o < high; ++o) {
        const bool in_order = k >= high || (i < middle && !(descending ? less(a, from[i], from[k]) : less(a, from[k], from[i])));
        to[o] = from[in_order ? i++ : k++];
      }
    }
    int64_t* swap = from;
    from = to, to = swap;
  }
  if (from != places) memcpy(places, from, (size_t)a.n * 8);
  free(spare);
}
static void sort_line(const Line* l) {
  sort_places(l->in, l->rest[0].i, l->places.i);
  EACH(l) l->out.i[j] = l->in.i[l->places.i[j]];
}

/* clang-format off */
#define LINES(op, name, reading, reduces) {#op, run_lines, &(const LineOp){name##_line, reading, reduces}}
const Kernel kLineKernels[] = {
    LINES(sum, sum, AS_OUTPUT, true), LINES(prod, prod, AS_OUTPUT, true), LINES(any, any, AS_BOOL, true),
    LINES(amax, amax, AS_INPUT, true), LINES(amin, amin, AS_INPUT, true), LINES(argmax, argmax, AS_INPUT, true),
    LINES(argmin, argmin, AS_INPUT, true), LINES(cumsum, sum, AS_OUTPUT, false), LINES(cumprod, prod, AS_OUTPUT, false),
    LINES(cummax, cummax, AS_INPUT, false), LINES(cummin, cummin, AS_INPUT, false),
    LINES(logcumsumexp, logcumsumexp, AS_OUTPUT, false), LINES(sort, sort, AS_INPUT, false), {0}};
/* clang-format on */
