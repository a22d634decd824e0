/* Matrix products and convolutions, which are products of unfolded images. */
#include <string.h>

#include "sim.h"

/* c (n, p) += a (n, m) @ b (m, p). */
static void multiply(Array a, Array b, Array c, int64_t n, int64_t m, int64_t p) {
#define PRODUCT(T, x)                                                          \
  for (int64_t i = 0; i < n; ++i)                                              \
    for (int64_t k = 0; k < m; ++k) {                                          \
      const T v = a.x[i * m + k], *row = b.x + k * p;                          \
      T* to = c.x + i * p;                                                     \
      for (int64_t j = 0; j < p; ++j) to[j] += v * row[j];                     \
    }
  if (c.kind == CLASS_REAL) {
    PRODUCT(double, f)
  } else if (c.kind == CLASS_COMPLEX) {
    PRODUCT(Complex, c)
  } else {
    PRODUCT(int64_t, i)
  }
}
static Array transposed(Call* call, Array a, int64_t rows, int64_t columns) {
  Array out = array(call, a.kind, a.n);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      if (a.kind == CLASS_COMPLEX) out.c[j * rows + i] = a.c[i * columns + j];
      else out.i[j * rows + i] = a.i[i * columns + j];
    }
  return out;
}

/* mm, bmm, mv, dot, linear; and with `added`, self * beta + product * alpha. */
typedef struct Product {
  bool added, linear;
} Product;
static int32_t product(Call* call) {
  const Product* how = call->table;
  const View *out = call->a[0].views, *a = call->a[1 + how->added].views, *b = call->a[2 + how->added].views;
  const int64_t m = a->ndim ? a->sizes[a->ndim - 1] : 1, n = a->ndim == 3 && !how->linear ? a->sizes[1] : m ? a->n / m : out->n / (b->ndim == 2 ? b->sizes[!how->linear] : 1);
  const int64_t batch = a->ndim == 3 && !how->linear ? a->sizes[0] : 1;
  const int64_t p = how->linear ? b->sizes[0] : b->ndim == 1 ? 1 : b->sizes[b->ndim - 1];
  Array x = load(call, a, out->dtype), y = load(call, b, out->dtype), to = array(call, x.kind, out->n);
  if (how->linear) y = transposed(call, y, p, m);
  for (int64_t i = 0; i < batch; ++i)
    multiply(part(x, i * n * m, n * m), part(y, i * m * p, m * p), part(to, i * n * p, n * p), n, m, p);
  const Argument* beta = &call->a[4];
  const bool biased = how->linear && call->a[3].kind == TAEDA_VALUE_TENSOR;
  if (biased || (how->added && beta->c != 0)) {
    const View self = broadcast(call->a[how->added ? 1 : 3].views, out);
    const Array s = load(call, &self, out->dtype);
    for (int64_t j = 0; j < out->n; ++j) {
      if (s.kind == CLASS_REAL) to.f[j] = biased ? to.f[j] + s.f[j] : beta->f * s.f[j] + beta[1].f * to.f[j];
      else if (s.kind == CLASS_COMPLEX) to.c[j] = biased ? to.c[j] + s.c[j] : beta->c * s.c[j] + beta[1].c * to.c[j];
      else to.i[j] = biased ? to.i[j] + s.i[j] : beta->i * s.i[j] + beta[1].i * to.i[j];
    }
  } else if (how->added) {
    for (int64_t j = 0; j < out->n; ++j) {
      if (to.kind == CLASS_REAL) to.f[j] *= beta[1].f;
      else if (to.kind == CLASS_COMPLEX) to.c[j] *= beta[1].c;
      else to.i[j] *= beta[1].i;
    }
  }
  store(out, to);
  return TAEDA_OK;
}

static void sum_rows(Array from, Array to, int64_t columns) {
  for (int64_t j = 0; j < from.n; ++j) {
    if (to.kind == CLASS_COMPLEX) to.c[j % columns] += from.c[j];
    else if (to.kind == CLASS_REAL) to.f[j % columns] += from.f[j];
    else to.i[j % columns] += from.i[j];
  }
}
static int32_t linear_backward(Call* call) {
  const Argument* in = call->a + call->outputs;
  const View *grad = in[0].views, *input = in[1].views, *weight = in[2].views;
  const int64_t columns = weight->sizes[1], width = weight->sizes[0], rows = width ? grad->n / width : 0;
  const Array g = load(call, grad, grad->dtype), x = load(call, input, grad->dtype), w = load(call, weight, grad->dtype);
  if (call->a[0].kind) {
    const Array to = array(call, g.kind, input->n);
    multiply(g, w, to, rows, width, columns);
    store(call->a[0].views, to);
  }
  if (call->a[1].kind) {
    const Array to = array(call, g.kind, weight->n);
    multiply(transposed(call, g, rows, width), x, to, width, rows, columns);
    store(call->a[1].views, to);
  }
  if (call->a[2].kind) {
    const Array to = array(call, g.kind, width);
    sum_rows(g, to, width);
    store(call->a[2].views, to);
  }
  return TAEDA_OK;
}

/* --- convolution --- */

typedef struct Geometry {
  int64_t images, channels, size[2], kernel[2], out[2], stride[2], padding[2], dilation[2], groups, filters;
} Geometry;
static Geometry geometry(const View* input, const View* weight, const View* result, const Argument* stride) {
  Geometry g = {.groups = stride[3].i, .filters = weight->sizes[0]};
  const int first = input->ndim - 3;
  g.images = first ? input->sizes[0] : 1;
  g.channels = input->sizes[first];
  for (int d = 0; d < 2; ++d) {
    g.size[d] = input->sizes[first + 1 + d];
    g.kernel[d] = weight->sizes[2 + d];
    g.out[d] = result->sizes[first + 1 + d];
    g.stride[d] = stride[0].ints[stride[0].count > 1 ? d : 0];
    g.padding[d] = stride[1].ints[stride[1].count > 1 ? d : 0];
    g.dilation[d] = stride[2].ints[stride[2].count > 1 ? d : 0];
  }
  return g;
}
/* Rows (channel, kernel place), columns (place of the result), of one group of one image. `back` adds them up again. */
static void unfold(const Geometry* g, Array image, Array columns, bool back) {
  int64_t at = 0;
  for (int64_t c = 0; c < g->channels / g->groups; ++c)
    for (int64_t i = 0; i < g->kernel[0]; ++i)
      for (int64_t j = 0; j < g->kernel[1]; ++j)
        for (int64_t y = 0; y < g->out[0]; ++y)
          for (int64_t x = 0; x < g->out[1]; ++x, ++at) {
            const int64_t h = y * g->stride[0] - g->padding[0] + i * g->dilation[0];
            const int64_t w = x * g->stride[1] - g->padding[1] + j * g->dilation[1];
            const bool inside = h >= 0 && h < g->size[0] && w >= 0 && w < g->size[1];
            const int64_t from = (c * g->size[0] + h) * g->size[1] + w;
            if (back && inside) image.f[from] += columns.f[at];
            else if (!back) columns.f[at] = inside ? image.f[from] : 0;
          }
}
static int32_t conv2d(Call* call) {
  const View *out = call->a[0].views, *input = call->a[1].views, *weight = call->a[2].views;
  const Geometry g = geometry(input, weight, out, &call->a[4]);
  const Array x = load_as(call, input, CLASS_REAL), w = load_as(call, weight, CLASS_REAL);
  const Array to = array(call, CLASS_REAL, out->n);
  const int64_t places = g.out[0] * g.out[1], depth = g.channels / g.groups * g.kernel[0] * g.kernel[1];
  const int64_t filters = g.filters / g.groups, image = g.channels / g.groups * g.size[0] * g.size[1];
  const Array columns = array(call, CLASS_REAL, depth * places);
  for (int64_t n = 0; n < g.images * g.groups; ++n) {
    unfold(&g, part(x, n * image, image), columns, false);
    multiply(part(w, n % g.groups * filters * depth, 0), columns, part(to, n * filters * places, 0), filters, depth, places);
  }
  if (call->a[3].kind == TAEDA_VALUE_TENSOR) {
    const Array bias = load_as(call, call->a[3].views, CLASS_REAL);
    for (int64_t j = 0; j < to.n; ++j) to.f[j] += bias.f[j / places % g.filters];
  }
  store(out, to);
  return TAEDA_OK;
}
static int32_t conv2d_backward(Call* call) {
  const Argument* in = call->a + call->outputs;
  const View *grad = in[0].views, *input = in[1].views, *weight = in[2].views;
  const Geometry g = geometry(input, weight, grad, &in[3]);
  const Array up = load_as(call, grad, CLASS_REAL);
  const int64_t places = g.out[0] * g.out[1], depth = g.channels / g.groups * g.kernel[0] * g.kernel[1];
  const int64_t filters = g.filters / g.groups, image = g.channels / g.groups * g.size[0] * g.size[1];
  const Array gx = array(call, CLASS_REAL, input->n), gw = array(call, CLASS_REAL, weight->n), gb = array(call, CLASS_REAL, g.filters);
  const Array x = call->a[1].kind ? load_as(call, input, CLASS_REAL) : gx, w = call->a[0].kind ? load_as(call, weight, CLASS_REAL) : gw;
  for (int64_t n = 0; n < g.images * g.groups; ++n) {
    const int64_t group = n % g.groups * filters * depth;
    const Array slope = part(up, n * filters * places, filters * places);
    Call scratch = {.blocks = NULL}; /* for one image */
    const Array columns = array(&scratch, CLASS_REAL, depth * places);
    if (call->a[0].kind) {
      multiply(transposed(&scratch, part(w, group, filters * depth), filters, depth), slope, columns, depth, filters, places);
      unfold(&g, part(gx, n * image, image), columns, true);
    }
    if (call->a[1].kind) {
      unfold(&g, part(x, n * image, image), columns, false);
      multiply(slope, transposed(&scratch, columns, depth, places), part(gw, group, 0), filters, places, depth);
    }
    give_up(&scratch);
  }
  for (int64_t j = 0; j < up.n && call->a[2].kind; ++j) gb.f[j / places % g.filters] += up.f[j];
  const Array found[] = {gx, gw, gb};
  for (int i = 0; i < 3; ++i)
    if (call->a[i].kind) store(call->a[i].views, found[i]);
  return TAEDA_OK;
}

static const Product kPlain = {false, false}, kAdded = {true, false}, kLinear = {false, true};
static const Kernel kLinalg[] = {
    {"mm", product, &kPlain}, {"bmm", product, &kPlain}, {"mv", product, &kPlain}, {"dot", product, &kPlain},
    {"addmm", product, &kAdded}, {"addmv", product, &kAdded}, {"baddbmm", product, &kAdded},
    {"linear", product, &kLinear}, {"linear_backward", linear_backward, NULL, "*12g"},
    {"conv2d", conv2d}, {"conv2d_backward", conv2d_backward, NULL, "*12n"},
};
int32_t sim_register_linalg(void) { return sim_register(kLinalg, sizeof kLinalg / sizeof *kLinalg); }
