/* Operators along dimensions: reductions, scans, softmax, order. Each is a function of one line of elements. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "special.h"

/* One line: elements in, elements out, and the call's other arguments. */
typedef struct Line {
  Array in[2], out[2];
  const Argument* rest; /* what follows the dimensions */
} Line;
typedef void (*LineFn)(const Line*);
typedef enum { AS_OUTPUT, AS_INPUT, AS_BOOL } Reading;
typedef struct LineOp {
  LineFn run;
  Reading reading;
  int dim_place; /* of the dimensions among the inputs; tensors stand before */
  bool reduces;  /* to one element */
} LineOp;

/* The dimensions of a view in another order: those in `mask` last. */
static View moved(const View* view, uint64_t mask) {
  View out = *view;
  int to = 0;
  for (int chosen = 0; chosen < 2; ++chosen)
    for (int d = 0; d < view->ndim; ++d)
      if ((int)(mask >> d & 1) == chosen) {
        out.sizes[to] = view->sizes[d];
        out.strides[to++] = view->strides[d];
      }
  return out;
}

static uint64_t dims_of(const Argument* a, int ndim) {
  uint64_t mask = 0;
  if (a->kind == TAEDA_VALUE_NONE || (a->kind == TAEDA_VALUE_INTS && a->count == 0)) return ((uint64_t)1 << ndim) - 1;
  if (a->kind == TAEDA_VALUE_INT) return (uint64_t)1 << wrap_dim(a->i, ndim);
  for (int64_t i = 0; i < a->count; ++i) mask |= (uint64_t)1 << wrap_dim(a->ints[i], ndim);
  return mask;
}

static int32_t run_lines(Call* call) {
  const LineOp* op = call->table;
  const Argument* inputs = call->a + call->outputs;
  const View* first = inputs[0].views;
  const uint64_t mask = dims_of(inputs + op->dim_place, first->ndim);
  Array in[2] = {{0}}, out[2] = {{0}};
  const int dtype = op->reading == AS_BOOL ? TAEDA_BOOL : op->reading == AS_OUTPUT ? call->a[0].views->dtype : first->dtype;
  const int tensors = op->dim_place == 2 && inputs[1].kind == TAEDA_VALUE_TENSOR ? 2 : 1;
  for (int i = 0; i < tensors; ++i) {
    const View lines = moved(inputs[i].views, mask);
    in[i] = load(call, &lines, dtype);
  }
  int64_t length = 1;
  for (int d = 0; d < first->ndim; ++d) length *= mask >> d & 1 ? first->sizes[d] : 1;
  View to[2];
  for (uint32_t i = 0; i < call->outputs; ++i) {
    to[i] = op->reduces ? *call->a[i].views : moved(call->a[i].views, mask);
    const bool index = i == 1 || (op->reading == AS_INPUT && to[i].dtype == TAEDA_INT64 && op->reduces);
    out[i] = array(call, index ? CLASS_INT : op->reduces ? class_of(to[i].dtype) : in[0].kind, to[i].n);
  }
  const int64_t out_length = op->reduces ? 1 : to[0].ndim ? to[0].sizes[to[0].ndim - 1] : 1;
  const int64_t count = out_length ? to[0].n / out_length : 0;
  for (int64_t j = 0; j < count; ++j) {
    Line line = {.rest = inputs + op->dim_place + 1};
    for (int i = 0; i < tensors; ++i) line.in[i] = part(in[i], j * length, length);
    for (uint32_t i = 0; i < call->outputs; ++i) line.out[i] = part(out[i], j * out_length, out_length);
    op->run(&line);
  }
  for (uint32_t i = 0; i < call->outputs; ++i) store(to + i, out[i]);
  return TAEDA_OK;
}

/* --- reductions --- */

#define EACH(l) for (int64_t j = 0; j < (l)->in[0].n; ++j)
/* Folds a line, or its beginnings for a scan, in each class of numbers. */
#define FOLD(name, start, step)                                          \
  static void name##_line(const Line* l) {                               \
    const bool scan = l->out[0].n == l->in[0].n && l->in[0].n != 1;      \
    const Array o = l->out[0];                                           \
    FOLD_CLASS(CLASS_REAL, double, f, start, step)                       \
    FOLD_CLASS(CLASS_COMPLEX, Complex, c, start, step)                   \
    FOLD_CLASS(CLASS_INT, int64_t, i, start, step)                       \
    FOLD_CLASS(CLASS_UINT, uint64_t, u, start, step)                     \
  }
#define FOLD_CLASS(class, T, x, start, step)     \
  if (l->in[0].kind == class) {                  \
    T s = start;                                 \
    if (!scan) *o.x = s;                         \
    EACH(l) {                                    \
      const T v = l->in[0].x[j];                 \
      o.x[scan ? j : 0] = s = step;              \
    }                                            \
  }
FOLD(sum, 0, s + v)
FOLD(prod, 1, s* v)
FOLD(all, 1, s != 0 && v != 0)
FOLD(any, 0, s != 0 || v != 0)

static void mean_line(const Line* l) {
  sum_line(l);
  if (l->out[0].kind == CLASS_COMPLEX) *l->out[0].c /= (double)l->in[0].n;
  else *l->out[0].f /= (double)l->in[0].n;
}
static void var_line(const Line* l) { /* rest: unbiased, keepdim, correction */
  const bool pairs = l->in[0].kind == CLASS_COMPLEX;
  const double n = (double)l->in[0].n, less = l->rest[2].kind ? l->rest[2].f : l->rest[0].i ? 1 : 0;
  Complex mean = 0;
  double sum = 0;
  EACH(l) mean += (pairs ? l->in[0].c[j] : l->in[0].f[j]) / n;
  EACH(l) sum += pow(pairs ? cabs(l->in[0].c[j] - mean) : l->in[0].f[j] - creal(mean), 2);
  *l->out[0].f = sum / fmax(n - less, 0);
}
static void norm_line(const Line* l) {
  const double order = l->rest[-2].f;
  double s = order == -INFINITY ? INFINITY : 0;
  EACH(l) {
    const double v = l->in[0].kind == CLASS_COMPLEX ? cabs(l->in[0].c[j]) : fabs(l->in[0].f[j]);
    if (isinf(order)) s = isnan(v) || isnan(s) ? NAN : order > 0 ? fmax(s, v) : fmin(s, v);
    else s += order == 0 ? v != 0 : order == 2 ? v * v : pow(v, order);
  }
  *l->out[0].f = order == 0 || isinf(order) ? s : order == 2 ? sqrt(s) : pow(s, 1 / order);
}

/* --- order --- */

/* NaN is larger than everything. */
bool less(Array a, int64_t j, int64_t k) {
  if (a.kind == CLASS_REAL) return isnan(a.f[k]) ? !isnan(a.f[j]) : a.f[j] < a.f[k];
  return a.kind == CLASS_UINT ? a.u[j] < a.u[k] : a.i[j] < a.i[k];
}
/* Place of the first extreme; a NaN is one, of either kind. */
int64_t extreme(Array a, bool largest) {
  int64_t best = 0;
  for (int64_t j = 0; j < a.n; ++j) {
    if (a.kind == CLASS_REAL && isnan(a.f[j])) return j;
    if (largest ? less(a, best, j) : less(a, j, best)) best = j;
  }
  return best;
}
static void extreme_line(const Line* l, bool largest) {
  const int64_t at = extreme(l->in[0], largest);
  if (l->out[1].p) *l->out[1].i = at;
  *l->out[0].i = l->out[1].p ? l->in[0].i[at] : at;
}
static void max_line(const Line* l) { extreme_line(l, true); }
static void min_line(const Line* l) { extreme_line(l, false); }
static void amax_line(const Line* l) { *l->out[0].i = l->in[0].i[extreme(l->in[0], true)]; }
static void amin_line(const Line* l) { *l->out[0].i = l->in[0].i[extreme(l->in[0], false)]; }

static void running_line(const Line* l, bool largest) {
  const Array a = l->in[0];
  int64_t best = 0;
  EACH(l) {
    const bool stuck = a.kind == CLASS_REAL && isnan(a.f[best]) && !isnan(a.f[j]);
    const bool sets = a.kind == CLASS_REAL && isnan(a.f[j]);
    if (!stuck && (sets || !(largest ? less(a, j, best) : less(a, best, j)))) best = j;
    l->out[0].i[j] = a.i[best];
    l->out[1].i[j] = best;
  }
}
static void cummax_line(const Line* l) { running_line(l, true); }
static void cummin_line(const Line* l) { running_line(l, false); }

/* Places in order, equal elements as they stood: a merge sort from the bottom. */
void sort_places(Array a, bool descending, int64_t* places) {
  int64_t *from = places, *to = malloc((size_t)a.n * 8 + 8), *spare = to;
  for (int64_t j = 0; j < a.n; ++j) from[j] = j;
  for (int64_t width = 1; width < a.n; width *= 2) {
    for (int64_t low = 0; low < a.n; low += 2 * width) {
      const int64_t middle = low + width < a.n ? low + width : a.n, high = middle + width < a.n ? middle + width : a.n;
      for (int64_t i = low, k = middle, o = low; o < high; ++o) {
        const bool right = i >= middle || (k < high && (descending ? less(a, from[i], from[k]) : less(a, from[k], from[i])));
        to[o] = from[right ? k++ : i++];
      }
    }
    int64_t* swap = from;
    from = to, to = swap;
  }
  if (from != places) memcpy(places, from, (size_t)a.n * 8);
  free(spare);
}
static void ordered_line(const Line* l, bool descending) {
  int64_t* places = malloc((size_t)l->in[0].n * 8 + 8);
  sort_places(l->in[0], descending, places);
  for (int64_t j = 0; j < l->out[0].n; ++j) {
    l->out[1].i[j] = places[j];
    l->out[0].i[j] = l->in[0].i[places[j]];
  }
  free(places);
}
static void sort_line(const Line* l) { ordered_line(l, l->rest[0].i); }
static void topk_line(const Line* l) { ordered_line(l, l->rest[0].i); }

/* --- softmax, and scans with their own rules --- */

static void softmax_line(const Line* l) {
  const double top = l->in[0].n ? l->in[0].f[extreme(l->in[0], true)] : 0;
  double sum = 0;
  EACH(l) sum += l->out[0].f[j] = exp(l->in[0].f[j] - top);
  EACH(l) l->out[0].f[j] /= sum;
}
static void log_softmax_line(const Line* l) {
  const double top = l->in[0].n ? l->in[0].f[extreme(l->in[0], true)] : 0;
  double sum = 0;
  EACH(l) sum += exp(l->in[0].f[j] - top);
  EACH(l) l->out[0].f[j] = l->in[0].f[j] - top - log(sum);
}
static void softmax_backward_line(const Line* l) {
  double sum = 0;
  EACH(l) sum += l->in[0].f[j] * l->in[1].f[j];
  EACH(l) l->out[0].f[j] = l->in[1].f[j] * (l->in[0].f[j] - sum);
}
static void log_softmax_backward_line(const Line* l) {
  double sum = 0;
  EACH(l) sum += l->in[0].f[j];
  EACH(l) l->out[0].f[j] = l->in[0].f[j] - exp(l->in[1].f[j]) * sum;
}
static void logcumsumexp_line(const Line* l) {
  double sum = -INFINITY;
  EACH(l) l->out[0].f[j] = sum = isnan(sum) || isnan(l->in[0].f[j]) ? NAN : log_add(sum, l->in[0].f[j]);
}

#define LINES(name, place, reading, reduces) \
  { #name, run_lines, &(const LineOp) { name##_line, reading, place, reduces } }
#define NAMED(op, name, place, reading, reduces) \
  { op, run_lines, &(const LineOp) { name##_line, reading, place, reduces } }
static const Kernel kLines[] = {
    LINES(sum, 1, AS_OUTPUT, true), LINES(prod, 1, AS_OUTPUT, true), LINES(mean, 1, AS_OUTPUT, true),
    LINES(all, 1, AS_BOOL, true), LINES(any, 1, AS_BOOL, true), LINES(var, 1, AS_INPUT, true),
    LINES(amax, 1, AS_INPUT, true), LINES(amin, 1, AS_INPUT, true), NAMED("vector_norm", norm, 2, AS_INPUT, true),
    NAMED("max.dim", max, 1, AS_INPUT, true), NAMED("min.dim", min, 1, AS_INPUT, true),
    NAMED("argmax", max, 1, AS_INPUT, true), NAMED("argmin", min, 1, AS_INPUT, true),
    NAMED("cumsum", sum, 1, AS_OUTPUT, false), NAMED("cumprod", prod, 1, AS_OUTPUT, false),
    LINES(cummax, 1, AS_INPUT, false), LINES(cummin, 1, AS_INPUT, false), LINES(logcumsumexp, 1, AS_OUTPUT, false),
    LINES(sort, 1, AS_INPUT, false), LINES(topk, 2, AS_INPUT, false),
    LINES(softmax, 1, AS_OUTPUT, false), LINES(log_softmax, 1, AS_OUTPUT, false),
    LINES(softmax_backward, 2, AS_OUTPUT, false), LINES(log_softmax_backward, 2, AS_OUTPUT, false),
};
int32_t sim_register_lines(void) { return sim_register(kLines, sizeof kLines / sizeof *kLines); }
