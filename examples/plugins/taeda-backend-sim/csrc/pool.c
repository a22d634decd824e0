/* Pooling: windows over the last two dimensions, of a given step or as many as asked for. */
#include "sim.h"

enum { SUMS = 1, ADAPTIVE = 2, BACK = 4 };
typedef struct Range {
  int64_t begin, end, step, reach; /* reach: up to the end of the padding */
} Range;

/* Window `i` in dimension d; `kernel` is followed by stride, padding and, for maxima, dilation. */
static Range window(int kind, const Argument* kernel, int d, int64_t i, int64_t size, int64_t count) {
  if (kind & ADAPTIVE) {
    const int64_t begin = i * size / count, end = ((i + 1) * size + count - 1) / count;
    return (Range){begin, end, 1, end - begin};
  }
#define PART(a) (a).ints[(a).count > 1 ? d : 0]
  const int64_t width = PART(kernel[0]), stride = kernel[1].count ? PART(kernel[1]) : width, padding = PART(kernel[2]);
  const int64_t step = kind & SUMS ? 1 : PART(kernel[3]);
  int64_t begin = i * stride - padding, end = begin + (width - 1) * step + 1;
  const int64_t reach = (end < size + padding ? end : size + padding) - begin;
  while (begin < 0) begin += step;
  return (Range){begin, end < size ? end : size, step, reach};
}

/* Result(s); image, or gradient and image; the window. */
static int32_t pool(Call* call) {
  const int kind = (int)(intptr_t)call->table;
  const bool back = kind & BACK, sums = kind & SUMS;
  const Argument *in = call->a + call->outputs, *kernel = in + back + 1;
  const View *image = in[back].view, *result = back ? in[0].view : call->a[0].view;
  const int64_t size[] = {image->sizes[image->ndim - 2], image->sizes[image->ndim - 1]};
  const int64_t count[] = {result->sizes[result->ndim - 2], result->sizes[result->ndim - 1]};
  const Array x = load(call, in[0].view, sums ? TAEDA_FLOAT64 : image->dtype);
  const Array to = array(call, x.real, call->a[0].view->n), places = array(call, false, result->n);
  for (int64_t at = 0; at < result->n; ++at) {
    const int64_t base = at / (count[0] * count[1]) * size[0] * size[1];
    const Range h = window(kind, kernel, 0, at / count[1] % count[0], size[0], count[0]);
    const Range w = window(kind, kernel, 1, at % count[1], size[1], count[1]);
    const bool padded = sums && !(kind & ADAPTIVE) && kernel[4].i;
    double share = (double)(padded ? h.reach * w.reach : (h.end - h.begin) * (w.end - w.begin));
    if (sums && !(kind & ADAPTIVE) && kernel[5].kind) share = kernel[5].f;
    int64_t best = -1;
    for (int64_t i = h.begin; i < h.end; i += h.step)
      for (int64_t j = w.begin; j < w.end; j += w.step) {
        const int64_t place = base + i * size[1] + j;
        if (sums && back) to.f[place] += x.f[at] / share;
        else if (sums) to.f[at] += x.f[place] / share;
        else if (best < 0 || less(x, best, place)) best = place;
      }
    if (sums || best < 0) continue;
    to.i[at] = x.i[best];
    places.i[at] = best - base;
  }
  store(call->a[0].view, to);
  if (call->outputs > 1) store(call->a[1].view, places);
  return TAEDA_OK;
}

/* clang-format off */
#define POOL(name, kind) {#name, pool, (const void*)(intptr_t)(kind)}
const Kernel kPoolKernels[] = {
    POOL(avg_pool2d, SUMS), POOL(avg_pool2d_backward, SUMS | BACK), POOL(max_pool2d_with_indices, 0),
    POOL(adaptive_avg_pool2d, SUMS | ADAPTIVE), POOL(adaptive_avg_pool2d_backward, SUMS | ADAPTIVE | BACK),
    POOL(adaptive_max_pool2d, ADAPTIVE), {0}};
/* clang-format on */
