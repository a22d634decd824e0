/* Pooling: windows over the last two dimensions, of a given step or as many as asked for. */
#include <math.h>

#include "sim.h"

enum { SUMS = 1, ADAPTIVE = 2, BACK = 4, OFFSETS = 8, PICKS = 16 };
typedef struct Windows {
  int64_t planes, size[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
  bool adaptive;
} Windows;

static Windows windows(const View* image, const View* result, const Argument* kernel, int kind) {
  Windows w = {.adaptive = kind & ADAPTIVE};
  for (int d = 0; d < 2; ++d) {
    w.size[d] = image->sizes[image->ndim - 2 + d];
    w.out[d] = result->sizes[result->ndim - 2 + d];
    w.kernel[d] = w.stride[d] = w.dilation[d] = 1;
    if (w.adaptive) continue;
    w.kernel[d] = kernel[0].ints[kernel[0].count > 1 ? d : 0];
    w.stride[d] = kernel[1].count ? kernel[1].ints[kernel[1].count > 1 ? d : 0] : w.kernel[d];
    w.padding[d] = kernel[2].ints[kernel[2].count > 1 ? d : 0];
    if (!(kind & SUMS)) w.dilation[d] = kernel[3].ints[kernel[3].count > 1 ? d : 0];
  }
  const int64_t plane = w.size[0] * w.size[1], places = w.out[0] * w.out[1];
  w.planes = plane ? image->n / plane : places ? result->n / places : 0;
  return w;
}
/* First place and end of window `i` in dimension d, before what lies outside is cut off. */
static void bounds(const Windows* w, int d, int64_t i, int64_t* begin, int64_t* end) {
  *begin = w->adaptive ? i * w->size[d] / w->out[d] : i * w->stride[d] - w->padding[d];
  *end = w->adaptive ? ((i + 1) * w->size[d] + w->out[d] - 1) / w->out[d] : *begin + (w->kernel[d] - 1) * w->dilation[d] + 1;
}
#define CUT(v, high) ((v) < 0 ? 0 : (v) > (high) ? (high) : (v))

/* Arguments of the operators: result(s); image, or gradient and image; the window; and for some, places. */
static int32_t pool(Call* call) {
  const int kind = (int)(intptr_t)call->table;
  const bool back = kind & BACK, sums = kind & SUMS;
  const Argument* in = call->a + call->outputs;
  const View *image = in[back].views, *result = back ? in[0].views : call->a[0].views;
  const Argument* kernel = in + back + 1;
  const Windows w = windows(image, result, kernel, kind);
  const Argument* last = call->a + call->count - 1;
  const bool reads_places = (back && !sums) || (kind & PICKS);
  const Array x = load(call, back ? result : image, back && sums ? call->a[0].views->dtype : (back ? result : image)->dtype);
  const Array places = reads_places ? load_as(call, last->views, CLASS_INT) : array(call, CLASS_INT, result->n);
  const Array to = array(call, sums || back ? CLASS_REAL : x.kind, call->a[0].views->n);
  const Array grad = back ? load_as(call, result, CLASS_REAL) : x;
  int64_t at = 0;
  for (int64_t plane = 0; plane < w.planes; ++plane)
    for (int64_t i = 0; i < w.out[0]; ++i)
      for (int64_t j = 0; j < w.out[1]; ++j, ++at) {
        int64_t h0, h1, w0, w1;
        bounds(&w, 0, i, &h0, &h1);
        bounds(&w, 1, j, &w0, &w1);
        const int64_t base = plane * w.size[0] * w.size[1];
        if (reads_places) {
          const int64_t p = places.i[at], h = h0 + p / w.kernel[1] * w.dilation[0], v = w0 + p % w.kernel[1] * w.dilation[1];
          const int64_t place = base + (kind & OFFSETS ? h * w.size[1] + v : p);
          if (back) to.f[place] += grad.f[at];
          else to.i[at] = x.i[place];
          continue;
        }
        const int64_t top = h0, left = w0;
        double count = (double)((CUT(h1, w.size[0] + w.padding[0]) - h0) * (CUT(w1, w.size[1] + w.padding[1]) - w0));
        const int64_t up = h0 < 0 ? (w.dilation[0] - 1 - h0) / w.dilation[0] : 0, over = w0 < 0 ? (w.dilation[1] - 1 - w0) / w.dilation[1] : 0;
        h0 += up * w.dilation[0], w0 += over * w.dilation[1];
        h1 = CUT(h1, w.size[0]), w1 = CUT(w1, w.size[1]);
        if (sums && !w.adaptive) { /* kernel[4]: padding counts, kernel[5]: the count itself */
          if (!kernel[4].i) count = (double)((h1 - h0) * (w1 - w0));
          if (kernel[5].kind) count = kernel[5].f;
        } else {
          count = (double)((h1 - h0) * (w1 - w0));
        }
        int64_t best = -1;
        for (int64_t h = h0; h < h1; h += w.dilation[0])
          for (int64_t v = w0; v < w1; v += w.dilation[1]) {
            const int64_t place = base + h * w.size[1] + v;
            if (sums && back) to.f[place] += grad.f[at] / count;
            else if (sums) to.f[at] += x.f[place] / count;
            else if (best < 0 || (less(x, best, place))) best = place;
          }
        if (sums || best < 0) continue;
        to.i[at] = x.i[best];
        const int64_t flat = best - base, row = flat / w.size[1], column = flat % w.size[1];
        places.i[at] = kind & OFFSETS ? (row - top) / w.dilation[0] * w.kernel[1] + (column - left) / w.dilation[1] : flat;
      }
  store(call->a[0].views, to);
  if (call->outputs > 1) store(call->a[1].views, places);
  return TAEDA_OK;
}

#define POOL(name, kind) {#name, pool, (const void*)(intptr_t)(kind)}
static const Kernel kPools[] = {
    POOL(avg_pool2d, SUMS), POOL(avg_pool2d_backward, SUMS | BACK),
    POOL(adaptive_avg_pool2d, SUMS | ADAPTIVE), POOL(adaptive_avg_pool2d_backward, SUMS | ADAPTIVE | BACK),
    POOL(adaptive_max_pool2d, ADAPTIVE), POOL(adaptive_max_pool2d_backward, ADAPTIVE | BACK),
    POOL(max_pool2d_with_indices, 0), POOL(max_pool2d_with_indices_backward, BACK),
    POOL(max_pool2d_with_offsets, OFFSETS), POOL(max_pool2d_backward, OFFSETS | BACK),
    POOL(max_pool2d_pick, OFFSETS | PICKS),
};
int32_t sim_register_window(void) { return sim_register(kPools, sizeof kPools / sizeof *kPools); }
