/* Normalisation: elements belong to a group, whose statistics are taken, and to a channel, which has a weight. */
#include <math.h>
#include <string.h>

#include "sim.h"

typedef enum { BATCH, GROUP, LAYER } Kind;
/* Element e is of group e / per_group % groups and of channel e / inner % channels. */
typedef struct Plan {
  int64_t per_group, groups, inner, channels, count;
} Plan;
static Plan plan_of(Kind kind, const View* x, const Argument* how) {
  Plan p = {.inner = 1, .channels = 1, .groups = 1};
  if (kind == LAYER) {
    for (int64_t i = 0; i < how->count; ++i) p.channels *= how->ints[i];
    p.per_group = p.channels;
    p.groups = p.channels ? x->n / p.channels : 0;
  } else {
    for (int d = 2; d < x->ndim; ++d) p.inner *= x->sizes[d];
    p.channels = x->sizes[1];
    p.per_group = kind == BATCH ? p.inner : p.inner * (p.channels / how->i);
    p.groups = kind == BATCH ? p.channels : x->sizes[0] * how->i;
  }
  p.count = p.groups ? x->n / p.groups : 0;
  return p;
}
#define GROUP_OF(p, e) ((e) / (p).per_group % (p).groups)
#define CHANNEL_OF(p, e) ((e) / (p).inner % (p).channels)

static Array optional(Call* call, const Argument* a, int64_t n, double otherwise) {
  if (a->kind == TAEDA_VALUE_TENSOR) return load_as(call, a->views, CLASS_REAL);
  const Array out = array(call, CLASS_REAL, n);
  for (int64_t j = 0; j < n; ++j) out.f[j] = otherwise;
  return out;
}
static void blend(Call* call, const Argument* running, Array now, double momentum, double scale) {
  const Array old = load_as(call, running->views, CLASS_REAL);
  for (int64_t j = 0; j < old.n; ++j) old.f[j] = (1 - momentum) * old.f[j] + momentum * now.f[j] * scale;
  store(running->views, old);
}

/* batch: x, weight, bias, mean, var, training, momentum, eps; others: x, shape or groups, weight, bias, eps. */
static int32_t normalise(Call* call) {
  const Kind kind = (Kind)(intptr_t)call->table;
  const Argument* in = call->a + 3;
  const View* input = in[0].views;
  const Plan p = plan_of(kind, input, &in[1]);
  const Array x = load_as(call, input, CLASS_REAL);
  const Argument* weight = in + (kind == BATCH ? 1 : 2);
  const Array w = optional(call, weight, p.channels, 1), b = optional(call, weight + 1, p.channels, 0);
  const double eps = in[kind == BATCH ? 7 : 4].f;
  Array mean = array(call, CLASS_REAL, p.groups), inverse = array(call, CLASS_REAL, p.groups);
  if (kind == BATCH && !in[5].i) {
    mean = optional(call, &in[3], p.groups, 0), inverse = optional(call, &in[4], p.groups, 1);
  } else {
    for (int64_t e = 0; e < x.n; ++e) mean.f[GROUP_OF(p, e)] += x.f[e];
    for (int64_t g = 0; g < p.groups; ++g) mean.f[g] /= (double)p.count;
    for (int64_t e = 0; e < x.n; ++e) inverse.f[GROUP_OF(p, e)] += pow(x.f[e] - mean.f[GROUP_OF(p, e)], 2);
    for (int64_t g = 0; g < p.groups; ++g) inverse.f[g] /= (double)p.count;
    if (kind == BATCH && in[3].kind) blend(call, &in[3], mean, in[6].f, 1);
    if (kind == BATCH && in[4].kind) blend(call, &in[4], inverse, in[6].f, (double)p.count / (double)(p.count - 1));
  }
  for (int64_t g = 0; g < p.groups; ++g) inverse.f[g] = 1 / sqrt(inverse.f[g] + eps);
  for (int64_t e = 0; e < x.n; ++e) {
    const int64_t g = GROUP_OF(p, e), c = CHANNEL_OF(p, e);
    x.f[e] = (x.f[e] - mean.f[g]) * inverse.f[g] * w.f[c] + b.f[c];
  }
  const Array found[] = {x, mean, inverse};
  for (int i = 0; i < 3; ++i) store(call->a[i].views, found[i]);
  return TAEDA_OK;
}

/* batch: grad, x, weight, mean, inverse, training; others: grad, x, shape or groups, mean, inverse, weight. */
static int32_t normalise_backward(Call* call) {
  const Kind kind = (Kind)(intptr_t)call->table;
  const Argument* in = call->a + 3;
  const Plan p = plan_of(kind, in[1].views, &in[2]);
  const Array g = load_as(call, in[0].views, CLASS_REAL), x = load_as(call, in[1].views, CLASS_REAL);
  const Array mean = load_as(call, in[3].views, CLASS_REAL), inverse = load_as(call, in[4].views, CLASS_REAL);
  const Array w = optional(call, &in[kind == BATCH ? 2 : 5], p.channels, 1);
  const Array gw = array(call, CLASS_REAL, p.channels), gb = array(call, CLASS_REAL, p.channels);
  const Array sum = array(call, CLASS_REAL, p.groups), product = array(call, CLASS_REAL, p.groups);
  for (int64_t e = 0; e < x.n; ++e) {
    const int64_t k = GROUP_OF(p, e), c = CHANNEL_OF(p, e);
    x.f[e] = (x.f[e] - mean.f[k]) * inverse.f[k];
    gw.f[c] += g.f[e] * x.f[e];
    gb.f[c] += g.f[e];
    sum.f[k] += g.f[e] * w.f[c] / (double)p.count;
    product.f[k] += g.f[e] * w.f[c] * x.f[e] / (double)p.count;
  }
  const bool fixed = kind == BATCH && !in[5].i; /* statistics that do not depend on x */
  for (int64_t e = 0; e < x.n; ++e) {
    const int64_t k = GROUP_OF(p, e);
    g.f[e] = inverse.f[k] * (g.f[e] * w.f[CHANNEL_OF(p, e)] - (fixed ? 0 : sum.f[k] + x.f[e] * product.f[k]));
  }
  const Array found[] = {g, gw, gb};
  for (int i = 0; i < 3; ++i)
    if (call->a[i].kind) store(call->a[i].views, found[i]);
  return TAEDA_OK;
}

#define NORM(name, run, kind, like) {name, run, (const void*)(intptr_t)(kind), like}
static const Kernel kNorms[] = {
    NORM("native_batch_norm", normalise, BATCH, NULL), NORM("batch_norm_backward", normalise_backward, BATCH, "*133"),
    NORM("native_group_norm", normalise, GROUP, NULL), NORM("group_norm_backward", normalise_backward, GROUP, "*1nn"),
    NORM("native_layer_norm", normalise, LAYER, NULL), NORM("layer_norm_backward", normalise_backward, LAYER, "*1ss"),
};
int32_t sim_register_norm(void) { return sim_register(kNorms, sizeof kNorms / sizeof *kNorms); }
