/* Fused forms: steps of recurrent layers and of optimizers. */
#include <math.h>

#include "sim.h"
#include "special.h"

static Array real(Call* call, const Argument* a) {
  return a->kind == TAEDA_VALUE_TENSOR ? load_as(call, a->views, CLASS_REAL) : (Array){CLASS_REAL, 0, {0}};
}
#define OR_ZERO(a, j) ((a).n ? (a).f[j] : 0)

/* One step for one element: z are the four gates before, and `gates` after, activation. */
static void lstm_cell(const double z[4], double* c, double* h, double gates[4]) {
  for (int k = 0; k < 4; ++k) gates[k] = k == 2 ? tanh(z[k]) : sigmoid(z[k]);
  *c = gates[1] * *c + gates[0] * gates[2];
  *h = gates[3] * tanh(*c);
}
static void lstm_cell_slope(double gh, double* gc, const double g[4], double c, double c_out, double gz[4]) {
  const double t = tanh(c_out), dc = *gc + gh * g[3] * (1 - t * t);
  gz[0] = dc * g[2] * g[0] * (1 - g[0]);
  gz[1] = dc * c * g[1] * (1 - g[1]);
  gz[2] = dc * g[0] * (1 - g[2] * g[2]);
  gz[3] = gh * t * g[3] * (1 - g[3]);
  *gc = dc * g[1];
}
#define GATES(from, row, j, width) \
  {from[(row)*4 * (width) + (j)], from[((row)*4 + 1) * (width) + (j)], from[((row)*4 + 2) * (width) + (j)], from[((row)*4 + 3) * (width) + (j)]}

static int32_t lstm_gates(Call* call) {
  const Array a = real(call, &call->a[3]), b = real(call, &call->a[4]), c = real(call, &call->a[5]);
  const int64_t width = call->a[5].views->sizes[1];
  const Array h = array(call, CLASS_REAL, c.n);
  for (int64_t j = 0; j < a.n; ++j) a.f[j] += b.f[j];
  for (int64_t e = 0; e < c.n; ++e) {
    const double z[4] = GATES(a.f, e / width, e % width, width);
    double g[4];
    lstm_cell(z, c.f + e, h.f + e, g);
    for (int k = 0; k < 4; ++k) a.f[(e / width * 4 + k) * width + e % width] = g[k];
  }
  const Array found[] = {h, c, a};
  for (int i = 0; i < 3; ++i) store(call->a[i].views, found[i]);
  return TAEDA_OK;
}
static int32_t lstm_gates_backward(Call* call) {
  const Array gh = real(call, &call->a[2]), gc_in = real(call, &call->a[3]), gates = real(call, &call->a[4]);
  const Array c = real(call, &call->a[5]), c_out = real(call, &call->a[6]);
  const int64_t width = call->a[5].views->sizes[1];
  const Array gz = array(call, CLASS_REAL, gates.n), gc = array(call, CLASS_REAL, c.n);
  for (int64_t e = 0; e < c.n; ++e) {
    const double g[4] = GATES(gates.f, e / width, e % width, width);
    double z[4];
    gc.f[e] = OR_ZERO(gc_in, e);
    lstm_cell_slope(OR_ZERO(gh, e), gc.f + e, g, c.f[e], c_out.f[e], z);
    for (int k = 0; k < 4; ++k) gz.f[(e / width * 4 + k) * width + e % width] = z[k];
  }
  store(call->a[0].views, gz);
  store(call->a[1].views, gc);
  return TAEDA_OK;
}

/* out: output, h, c, gates, cells; in: gates of the input (T, N, 4H), h, c, w_hh (4H, H), b_hh, reverse. */
static int32_t lstm_sequence(Call* call) {
  const Argument* in = call->a + 5;
  const int64_t steps = in[0].views->sizes[0], rows = in[0].views->sizes[1], width = in[1].views->sizes[1], all = rows * width;
  const Array gates = real(call, &in[0]), h = real(call, &in[1]), c = real(call, &in[2]), w = real(call, &in[3]), b = real(call, &in[4]);
  const Array output = array(call, CLASS_REAL, steps * all), cells = array(call, CLASS_REAL, steps * all), next = array(call, CLASS_REAL, all);
  for (int64_t n = 0; n < steps; ++n) {
    const int64_t t = in[5].i ? steps - 1 - n : n;
    double* z = gates.f + t * all * 4;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t k = 0; k < 4 * width; ++k) {
        z[r * 4 * width + k] += OR_ZERO(b, k);
        for (int64_t j = 0; j < width; ++j) z[r * 4 * width + k] += h.f[r * width + j] * w.f[k * width + j];
      }
    for (int64_t e = 0; e < all; ++e) {
      const double before[4] = GATES(z, e / width, e % width, width);
      double g[4];
      lstm_cell(before, c.f + e, next.f + e, g);
      for (int k = 0; k < 4; ++k) z[(e / width * 4 + k) * width + e % width] = g[k];
      cells.f[t * all + e] = c.f[e];
    }
    for (int64_t e = 0; e < all; ++e) output.f[t * all + e] = h.f[e] = next.f[e];
  }
  const Array found[] = {output, h, c, gates, cells};
  for (int i = 0; i < 5; ++i) store(call->a[i].views, found[i]);
  return TAEDA_OK;
}
/* out: gradients of the input's gates, h, c, w_hh, b_hh; in: grads of output, h, c; h, c, w_hh, output, gates, cells. */
static int32_t lstm_sequence_backward(Call* call) {
  const Argument* in = call->a + 5;
  const Array go = real(call, &in[0]), gh_in = real(call, &in[1]), gc_in = real(call, &in[2]), h = real(call, &in[3]), c = real(call, &in[4]);
  const Array w = real(call, &in[5]), output = real(call, &in[6]), gates = real(call, &in[7]), cells = real(call, &in[8]);
  const int64_t rows = in[3].views->sizes[0], width = in[3].views->sizes[1], all = rows * width, steps = in[6].views->sizes[0];
  const Array gx = array(call, CLASS_REAL, gates.n), gh = array(call, CLASS_REAL, all), gc = array(call, CLASS_REAL, all);
  const Array gw = array(call, CLASS_REAL, w.n), gb = array(call, CLASS_REAL, 4 * width);
  for (int64_t e = 0; e < all; ++e) gh.f[e] = OR_ZERO(gh_in, e), gc.f[e] = OR_ZERO(gc_in, e);
  for (int64_t n = steps; n-- > 0;) {
    const int64_t t = in[9].i ? steps - 1 - n : n, back = in[9].i ? t + 1 : t - 1;
    const double *h_before = n ? output.f + back * all : h.f, *c_before = n ? cells.f + back * all : c.f;
    double* gz = gx.f + t * all * 4;
    for (int64_t e = 0; e < all; ++e) {
      const double g[4] = GATES(gates.f, t * rows + e / width, e % width, width);
      double z[4];
      lstm_cell_slope(gh.f[e] + OR_ZERO(go, t * all + e), gc.f + e, g, c_before[e], cells.f[t * all + e], z);
      for (int k = 0; k < 4; ++k) gz[(e / width * 4 + k) * width + e % width] = z[k];
    }
    for (int64_t e = 0; e < all; ++e) gh.f[e] = 0;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t k = 0; k < 4 * width; ++k) {
        const double z = gz[r * 4 * width + k];
        gb.f[k] += z;
        for (int64_t j = 0; j < width; ++j) {
          gw.f[k * width + j] += z * h_before[r * width + j];
          gh.f[r * width + j] += z * w.f[k * width + j];
        }
      }
  }
  const Array found[] = {gx, gh, gc, gw, gb};
  for (int i = 0; i < 5; ++i) store(call->a[i].views, found[i]);
  return TAEDA_OK;
}

static int32_t gru_gates(Call* call) {
  const Array a = real(call, &call->a[2]), b = real(call, &call->a[3]), h = real(call, &call->a[4]);
  const int64_t width = call->a[4].views->sizes[1];
  const Array gates = array(call, CLASS_REAL, h.n * 4);
  for (int64_t e = 0; e < h.n; ++e) {
    const int64_t at = e / width * 3 * width + e % width, to = e / width * 4 * width + e % width;
    const double r = sigmoid(a.f[at] + b.f[at]), z = sigmoid(a.f[at + width] + b.f[at + width]), hn = b.f[at + 2 * width];
    const double n = tanh(a.f[at + 2 * width] + r * hn);
    h.f[e] = (1 - z) * n + z * h.f[e];
    gates.f[to] = r, gates.f[to + width] = z, gates.f[to + 2 * width] = n, gates.f[to + 3 * width] = hn;
  }
  store(call->a[0].views, h);
  store(call->a[1].views, gates);
  return TAEDA_OK;
}
static int32_t gru_gates_backward(Call* call) {
  const Array grad = real(call, &call->a[3]), gates = real(call, &call->a[4]), h = real(call, &call->a[5]);
  const int64_t width = call->a[5].views->sizes[1];
  const Array ga = array(call, CLASS_REAL, h.n * 3), gb = array(call, CLASS_REAL, h.n * 3);
  for (int64_t e = 0; e < h.n; ++e) {
    const int64_t to = e / width * 3 * width + e % width;
    const double g[4] = GATES(gates.f, e / width, e % width, width), r = g[0], z = g[1], n = g[2], hn = g[3];
    const double dn = grad.f[e] * (1 - z) * (1 - n * n), dz = grad.f[e] * (h.f[e] - n) * z * (1 - z), dr = dn * hn * r * (1 - r);
    ga.f[to] = gb.f[to] = dr, ga.f[to + width] = gb.f[to + width] = dz;
    ga.f[to + 2 * width] = dn, gb.f[to + 2 * width] = dn * r;
    grad.f[e] *= z;
  }
  const Array found[] = {ga, gb, grad};
  for (int i = 0; i < 3; ++i) store(call->a[i].views, found[i]);
  return TAEDA_OK;
}

/* params, grads, buffers, lr, momentum, dampening, decay, nesterov, maximize, first */
static int32_t sgd(Call* call) {
  const Argument* a = call->a;
  const double lr = a[3].f, momentum = a[4].f, damped = 1 - a[5].f, decay = a[6].f;
  for (int64_t i = 0; i < a[0].count; ++i) {
    const Array p = load_as(call, a[0].views + i, CLASS_REAL), g = load_as(call, a[1].views + i, CLASS_REAL);
    const Array b = momentum != 0 ? load_as(call, a[2].views + i, CLASS_REAL) : p;
    for (int64_t j = 0; j < p.n; ++j) {
      double step = (a[8].i ? -g.f[j] : g.f[j]) + decay * p.f[j];
      if (momentum != 0) {
        b.f[j] = a[9].i ? step : momentum * b.f[j] + damped * step;
        step = a[7].i ? step + momentum * b.f[j] : b.f[j];
      }
      p.f[j] -= lr * step;
    }
    if (momentum != 0) store(a[2].views + i, b);
    store(a[0].views + i, p);
  }
  return TAEDA_OK;
}
/* params, grads, firsts, seconds, largest, steps, lr, beta1, beta2, eps, decay, amsgrad, maximize, decoupled */
static int32_t adam(Call* call) {
  const Argument* a = call->a;
  const double lr = a[6].f, b1 = a[7].f, b2 = a[8].f, eps = a[9].f, decay = a[10].f;
  for (int64_t i = 0; i < a[0].count; ++i) {
    const double t = (double)a[5].ints[i];
    const Array p = load_as(call, a[0].views + i, CLASS_REAL), g = load_as(call, a[1].views + i, CLASS_REAL);
    const Array m = load_as(call, a[2].views + i, CLASS_REAL), v = load_as(call, a[3].views + i, CLASS_REAL);
    const Array top = a[11].i ? load_as(call, a[4].views + i, CLASS_REAL) : v;
    for (int64_t j = 0; j < p.n; ++j) {
      double slope = a[12].i ? -g.f[j] : g.f[j];
      if (a[13].i) p.f[j] *= 1 - lr * decay;
      else slope += decay * p.f[j];
      m.f[j] = b1 * m.f[j] + (1 - b1) * slope;
      v.f[j] = b2 * v.f[j] + (1 - b2) * slope * slope;
      top.f[j] = fmax(top.f[j], v.f[j]);
      p.f[j] -= lr / (1 - pow(b1, t)) * m.f[j] / (sqrt(top.f[j] / (1 - pow(b2, t))) + eps);
    }
    if (a[11].i) store(a[4].views + i, top);
    store(a[0].views + i, p);
    store(a[2].views + i, m);
    store(a[3].views + i, v);
  }
  return TAEDA_OK;
}

static const Kernel kSteps[] = {
    {"lstm_gates", lstm_gates}, {"lstm_gates_backward", lstm_gates_backward},
    {"lstm_sequence", lstm_sequence}, {"lstm_sequence_backward", lstm_sequence_backward},
    {"gru_gates", gru_gates}, {"gru_gates_backward", gru_gates_backward},
    {"_fused_sgd_", sgd}, {"_fused_adam_", adam},
};
int32_t sim_register_step(void) { return sim_register(kSteps, sizeof kSteps / sizeof *kSteps); }
