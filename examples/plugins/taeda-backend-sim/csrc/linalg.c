/* Products of matrices, and convolutions, which are products of unfolded images. */
#include "sim.h"

/* c (n, p) += a (n, m) @ b (m, p); `a` may be given as (m, n). */
static void multiply(Array a, Array b, Array c, int64_t n, int64_t m, int64_t p, bool a_turned) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < m; ++k) {
      const int64_t at = a_turned ? k * n + i : i * m + k;
      const Array row = part(b, k * p, p), to = part(c, i * p, p);
      for (int64_t j = 0; c.real && j < p; ++j) to.f[j] += a.f[at] * row.f[j];
      for (int64_t j = 0; !c.real && j < p; ++j) to.i[j] += a.i[at] * row.i[j];
    }
}
static int32_t bmm(Call* call) {
  const View *out = call->a[0].view, *a = call->a[1].view, *b = call->a[2].view;
  const int64_t n = a->sizes[1], m = a->sizes[2], p = b->sizes[2];
  const Array x = load(call, a, out->dtype), y = load(call, b, out->dtype), to = array(call, x.real, out->n);
  for (int64_t i = 0; i < a->sizes[0]; ++i)
    multiply(part(x, i * n * m, n * m), part(y, i * m * p, m * p), part(to, i * n * p, n * p), n, m, p, false);
  return store(out, to), TAEDA_OK;
}

/* --- convolution --- */

typedef struct Geometry {
  int64_t size[2], kernel[2], out[2], stride[2], padding[2], dilation[2];
  int64_t groups, channels, filters; /* the latter two of a group */
  int64_t images, image, depth, places;
} Geometry;
static Geometry geometry(const View* input, const View* weight, const View* result, const Argument* stride) {
  const int first = input->ndim - 3;
  Geometry g = {.groups = stride[3].i};
  g.channels = input->sizes[first] / g.groups;
  g.filters = weight->sizes[0] / g.groups;
  for (int d = 0; d < 2; ++d) {
    g.size[d] = input->sizes[first + 1 + d];
    g.kernel[d] = weight->sizes[2 + d];
    g.out[d] = result->sizes[first + 1 + d];
    g.stride[d] = stride[0].ints[stride[0].count > 1 ? d : 0];
    g.padding[d] = stride[1].ints[stride[1].count > 1 ? d : 0];
    g.dilation[d] = stride[2].ints[stride[2].count > 1 ? d : 0];
  }
  g.images = (first ? input->sizes[0] : 1) * g.groups;
  g.image = g.channels * g.size[0] * g.size[1];
  g.depth = g.channels * g.kernel[0] * g.kernel[1];
  g.places = g.out[0] * g.out[1];
  return g;
}
/* A row for each place of the result, with the elements (channel, kernel place) under it; or added up again. */
static void unfold(const Geometry* g, Array image, Array rows, bool back) {
  for (int64_t at = 0; at < g->depth * g->places; ++at) {
    const int64_t j = at % g->kernel[1], i = at / g->kernel[1] % g->kernel[0], c = at % g->depth / (g->kernel[0] * g->kernel[1]);
    const int64_t h = at / g->depth / g->out[1] * g->stride[0] - g->padding[0] + i * g->dilation[0];
    const int64_t w = at / g->depth % g->out[1] * g->stride[1] - g->padding[1] + j * g->dilation[1];
    const bool inside = h >= 0 && h < g->size[0] && w >= 0 && w < g->size[1];
    const int64_t from = (c * g->size[0] + h) * g->size[1] + w;
    if (back && inside) image.f[from] += rows.f[at];
    if (!back) rows.f[at] = inside ? image.f[from] : 0;
  }
}
static void turn(Array a, Array to, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < a.n; ++i) to.i[i % columns * rows + i / columns] = a.i[i];
}
static int32_t conv2d(Call* call) {
  const View *out = call->a[0].view, *input = call->a[1].view, *weight = call->a[2].view;
  const Geometry g = geometry(input, weight, out, &call->a[4]);
  const Array x = load(call, input, TAEDA_FLOAT64), w = load(call, weight, TAEDA_FLOAT64), to = array(call, true, out->n);
  const Array rows = array(call, true, g.depth * g.places), columns = array(call, true, rows.n);
  for (int64_t n = 0; n < g.images; ++n) {
    unfold(&g, part(x, n * g.image, g.image), rows, false);
    turn(rows, columns, g.places, g.depth);
    multiply(part(w, n % g.groups * g.filters * g.depth, 0), columns, part(to, n * g.filters * g.places, 0), g.filters, g.depth,
             g.places, false);
  }
  if (call->a[3].kind == TAEDA_VALUE_TENSOR) {
    const Array bias = load(call, call->a[3].view, TAEDA_FLOAT64);
    for (int64_t j = 0; j < to.n; ++j) to.f[j] += bias.f[j / g.places % bias.n];
  }
  return store(out, to), TAEDA_OK;
}
static int32_t conv2d_backward(Call* call) {
  const Argument* in = call->a; /* grad, input, weight, the geometry, and which results are asked for */
  const View *grad = in[0].view, *input = in[1].view, *weight = in[2].view;
  const Geometry g = geometry(input, weight, grad, &in[3]);
  const Array up = load(call, grad, TAEDA_FLOAT64), gb = array(call, true, g.filters * g.groups);
  const Array gx = array(call, true, input->n), gw = array(call, true, weight->n), rows = array(call, true, g.depth * g.places);
  const bool wants_x = in[7].i & 1, wants_w = in[7].i & 2;
  const Array x = wants_w ? load(call, input, TAEDA_FLOAT64) : gx; /* only what is asked for may be read */
  const Array w = wants_x ? load(call, weight, TAEDA_FLOAT64) : gw;
  for (int64_t n = 0; n < g.images; ++n) {
    const int64_t group = n % g.groups * g.filters * g.depth;
    const Array slope = part(up, n * g.filters * g.places, g.filters * g.places);
    if (wants_w) {
      unfold(&g, part(x, n * g.image, g.image), rows, false);
      multiply(slope, rows, part(gw, group, 0), g.filters, g.places, g.depth, false);
    }
    for (int64_t j = 0; j < rows.n; ++j) rows.f[j] = 0;
    if (wants_x) {
      multiply(slope, part(w, group, 0), rows, g.places, g.filters, g.depth, true);
      unfold(&g, part(gx, n * g.image, g.image), rows, true);
    }
  }
  for (int64_t j = 0; j < up.n; ++j) gb.f[j / g.places % gb.n] += up.f[j];
  call->results[0] = wants_x ? made(call, input->dtype, input->ndim, input->sizes) : (View){0};
  call->results[1] = wants_w ? made(call, weight->dtype, weight->ndim, weight->sizes) : (View){0};
  call->results[2] = in[7].i & 4 ? made(call, grad->dtype, 1, &gb.n) : (View){0};
  const Array found[] = {gx, gw, gb};
  for (int i = 0; i < 3; ++i) store(call->results + i, found[i]);
  return TAEDA_OK;
}

const Kernel kProductKernels[] = {{"bmm", bmm, NULL}, {"conv2d", conv2d, NULL}, {"conv2d_backward", conv2d_backward, NULL}, {0}};
