/* Losses and embeddings. */
#include <math.h>

#include "sim.h"
#include "special.h"

static double sign(double x) { return (x > 0) - (x < 0); }
/* Value and slope for input x, target t and the number k among the arguments. */
#define LOSSES(X)                                                                                                 \
  X(mse_loss, (x - t) * (x - t), 2 * (x - t))                                                                     \
  X(l1_loss, fabs(x - t), sign(x - t))                                                                            \
  X(smooth_l1_loss, fabs(x - t) < k ? 0.5 * (x - t) * (x - t) / k : fabs(x - t) - 0.5 * k,                         \
    fabs(x - t) < k ? (x - t) / k : sign(x - t))                                                                  \
  X(huber_loss, fabs(x - t) <= k ? 0.5 * (x - t) * (x - t) : k * (fabs(x - t) - 0.5 * k), limited(x - t, -k, k))   \
  X(bce_loss, -(t * fmax(log(x), -100) + (1 - t) * fmax(log1p(-x), -100)), (x - t) / fmax(x * (1 - x), 1e-12))      \
  X(bce_with_logits_loss, fmax(x, 0) - x * t + log1p(exp(-fabs(x))), sigmoid(x) - t)
#define FUNCTIONS(name, value, slope)                                                              \
  static double name##_value(double x, double t, double k) { return (void)k, (value); }            \
  static double name##_slope(double x, double t, double k) { return (void)k, (slope); }
LOSSES(FUNCTIONS)
typedef struct Loss {
  double (*at)(double, double, double);
} Loss;

enum { NONE, MEAN, SUM };
static View shape_of(const View* a, const View* b) {
  View out = a->ndim >= b->ndim ? *a : *b;
  const View* other = a->ndim >= b->ndim ? b : a;
  for (int d = out.ndim - 1, o = other->ndim - 1; o >= 0; --d, --o)
    if (out.sizes[d] == 1) out.n *= out.sizes[d] = other->sizes[o];
  return out;
}
static int32_t loss(Call* call) {
  const View *x = call->a[1].views, *t = call->a[2].views, *out = call->a[0].views;
  const int reduction = (int)call->a[3].i;
  const View shape = shape_of(x, t), wide_x = broadcast(x, &shape), wide_t = broadcast(t, &shape);
  const Array a = load_as(call, &wide_x, CLASS_REAL), b = load_as(call, &wide_t, CLASS_REAL);
  double sum = 0;
  for (int64_t j = 0; j < a.n; ++j) sum += a.f[j] = ((const Loss*)call->table)->at(a.f[j], b.f[j], call->a[4].f);
  const Array total = {CLASS_REAL, 1, {.f = &sum}};
  if (reduction == MEAN) sum /= (double)a.n;
  store(out, reduction == NONE ? a : total);
  return TAEDA_OK;
}
static int32_t loss_backward(Call* call) {
  const View* out = call->a[0].views;
  const View grad = broadcast(call->a[1].views, out), x = broadcast(call->a[2].views, out), t = broadcast(call->a[3].views, out);
  const Array g = load_as(call, &grad, CLASS_REAL), a = load_as(call, &x, CLASS_REAL), b = load_as(call, &t, CLASS_REAL);
  const double share = call->a[4].i == MEAN ? 1 / (double)out->n : 1;
  for (int64_t j = 0; j < a.n; ++j) g.f[j] *= share * ((const Loss*)call->table)->at(a.f[j], b.f[j], call->a[5].f);
  store(out, g);
  return TAEDA_OK;
}

/* --- losses with class indices: input (N, C, ...) or (C), target without C --- */

typedef struct Classes {
  Array x, target, weight; /* x with the classes last, a row for each target; the weight of each class */
  View rows;
  int64_t classes;
} Classes;
static int32_t classes(Call* call, const View* input, const Argument* target, int64_t ignore, Classes* c) {
  c->rows = permuted(input, input->ndim == 1 ? 0 : 1);
  c->classes = c->rows.sizes[c->rows.ndim - 1];
  c->x = load_as(call, &c->rows, CLASS_REAL);
  c->target = load_as(call, target->views, CLASS_INT);
  c->weight = array(call, CLASS_REAL, c->classes);
  if (target[1].kind) c->weight = load_as(call, target[1].views, CLASS_REAL);
  for (int64_t k = 0; k < c->classes && !target[1].kind; ++k) c->weight.f[k] = 1;
  for (int64_t j = 0; j < c->target.n; ++j)
    if (c->target.i[j] != ignore && (c->target.i[j] < 0 || c->target.i[j] >= c->classes))
      return fail(&call->job, TAEDA_E_INDEX, "%s: target %lld is out of range for %lld classes", call->name,
                  (long long)c->target.i[j], (long long)c->classes);
  return TAEDA_OK;
}
/* `fused`: of scores instead of log-probabilities, with smoothing. */
static int32_t class_loss(Call* call) {
  const bool fused = call->table != NULL;
  const Argument* in = call->a + call->outputs; /* input, target, weight, reduction, ignore_index, label_smoothing */
  const int64_t ignore = in[4].i;
  Classes c;
  const int32_t status = classes(call, in[0].views, in + 1, ignore, &c);
  if (status != TAEDA_OK) return status;
  const double smooth = fused ? in[5].f : 0;
  Array losses = array(call, CLASS_REAL, c.target.n), lse = array(call, CLASS_REAL, c.target.n);
  double total = 0, sum = 0;
  for (int64_t j = 0; j < c.target.n; ++j) {
    const Array x = part(c.x, j * c.classes, c.classes);
    if (fused) {
      const double top = x.f[extreme(x, true)];
      for (int64_t k = 0; k < c.classes; ++k) lse.f[j] += exp(x.f[k] - top);
      lse.f[j] = top + log(lse.f[j]);
    }
    if (c.target.i[j] == ignore) continue;
    const double w = c.weight.f[c.target.i[j]];
    losses.f[j] = (1 - smooth) * w * (lse.f[j] - x.f[c.target.i[j]]);
    for (int64_t k = 0; k < c.classes && smooth > 0; ++k)
      losses.f[j] += smooth / (double)c.classes * c.weight.f[k] * (lse.f[j] - x.f[k]);
    total += w;
    sum += losses.f[j];
  }
  if (in[3].i == MEAN) sum /= total;
  const Array one = {CLASS_REAL, 1, {.f = &sum}}, weights = {CLASS_REAL, 1, {.f = &total}};
  store(call->a[0].views, in[3].i == NONE ? losses : one);
  if (fused) store(call->a[1].views, lse);
  store(call->a[1 + fused].views, weights);
  return TAEDA_OK;
}
static int32_t class_loss_backward(Call* call) {
  const bool fused = call->table != NULL;
  const Argument* in = call->a + 1; /* grad, input, target, weight, reduction, ignore_index, [smoothing, lse], total */
  const int64_t ignore = in[5].i;
  Classes c;
  const int32_t status = classes(call, in[1].views, in + 2, ignore, &c);
  if (status != TAEDA_OK) return status;
  const double smooth = fused ? in[6].f : 0;
  const Array grad = load_as(call, in[0].views, CLASS_REAL), total = load_as(call, call->a[call->count - 1].views, CLASS_REAL);
  double weights = 0;
  for (int64_t k = 0; k < c.classes; ++k) weights += c.weight.f[k];
  Array out = array(call, CLASS_REAL, c.x.n);
  for (int64_t j = 0; j < c.target.n; ++j) {
    const int64_t t = c.target.i[j];
    if (t == ignore) continue;
    const Array x = part(c.x, j * c.classes, c.classes), to = part(out, j * c.classes, c.classes);
    const double up = in[4].i == NONE ? grad.f[j] : in[4].i == MEAN ? *grad.f / *total.f : *grad.f;
    double top = fused ? x.f[extreme(x, true)] : 0, sum = 0;
    for (int64_t k = 0; k < c.classes && fused; ++k) sum += exp(x.f[k] - top);
    for (int64_t k = 0; k < c.classes && fused; ++k) {
      const double p = exp(x.f[k] - top) / sum;
      to.f[k] = up * ((1 - smooth) * c.weight.f[t] * p + smooth / (double)c.classes * (weights * p - c.weight.f[k]));
    }
    to.f[t] -= up * (1 - smooth) * c.weight.f[t];
  }
  const View rows = permuted(call->a[0].views, in[1].views->ndim == 1 ? 0 : 1);
  store(&rows, out);
  return TAEDA_OK;
}

/* --- embedding --- */

static int32_t embedding(Call* call) {
  const View *weight = call->a[1].views, *out = call->a[0].views;
  const Array w = load(call, weight, weight->dtype), at = load_as(call, call->a[2].views, CLASS_INT);
  const Array to = array(call, w.kind, out->n);
  const int64_t width = weight->sizes[1];
  for (int64_t j = 0; j < at.n; ++j) {
    if (at.i[j] < 0 || at.i[j] >= weight->sizes[0])
      return fail(&call->job, TAEDA_E_INDEX, "embedding: index %lld is out of range for size %lld", (long long)at.i[j],
                  (long long)weight->sizes[0]);
    for (int64_t k = 0; k < width; ++k) to.i[j * width + k] = w.i[at.i[j] * width + k];
  }
  store(out, to);
  return TAEDA_OK;
}
static int32_t embedding_backward(Call* call) { /* grad, indices, num_weights, padding_idx, scale_grad_by_freq */
  const View* out = call->a[0].views;
  const Array g = load_as(call, call->a[1].views, CLASS_REAL), at = load_as(call, call->a[2].views, CLASS_INT);
  const Array to = array(call, CLASS_REAL, out->n), often = array(call, CLASS_REAL, out->sizes[0]);
  const int64_t width = out->sizes[1];
  for (int64_t j = 0; j < at.n; ++j) ++often.f[at.i[j]];
  for (int64_t j = 0; j < at.n; ++j)
    for (int64_t k = 0; k < width && at.i[j] != call->a[4].i; ++k)
      to.f[at.i[j] * width + k] += g.f[j * width + k] / (call->a[5].i ? often.f[at.i[j]] : 1);
  store(out, to);
  return TAEDA_OK;
}

#define ROWS(name, value, slope)                        \
  {#name, loss, &(const Loss){name##_value}}, {#name "_backward", loss_backward, &(const Loss){name##_slope}},
static const bool kFused = true;
static const Kernel kLosses[] = {
    LOSSES(ROWS){"nll_loss_forward", class_loss}, {"nll_loss_backward", class_loss_backward},
    {"cross_entropy_forward", class_loss, &kFused}, {"cross_entropy_backward", class_loss_backward, &kFused},
    {"embedding", embedding}, {"embedding_backward", embedding_backward},
};
int32_t sim_register_loss(void) { return sim_register(kLosses, sizeof kLosses / sizeof *kLosses); }
