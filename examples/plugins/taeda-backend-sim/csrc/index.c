/* Picking and placing elements along a dimension, and finding those that are not zero. */
#include <stdatomic.h>

#include "sim.h"

static int32_t check_places(Call* call, Array places, int64_t size) {
  for (int64_t j = 0; j < places.n; ++j)
    if (places.i[j] >= size || places.i[j] < 0)
      return fail(&call->job, TAEDA_E_INDEX, "%s: index %lld is out of range for size %lld", call->kernel->name,
                  (long long)places.i[j], (long long)size);
  return TAEDA_OK;
}

/* --- lines along a dimension: those of a tensor narrowed to the sizes of the index elsewhere --- */

typedef struct Lines {
  View view;
  int64_t length;
} Lines;
static Lines lines_like(const View* self, const View* index, int64_t dim) {
  View out = *self;
  dim = wrap_dim(dim, self->ndim);
  for (int d = 0; d < self->ndim; ++d)
    if (d != dim) out = sliced(&out, d, 0, index->sizes[d]);
  out = with_last(&out, (uint64_t)1 << dim);
  return (Lines){out, out.sizes[out.ndim - 1]};
}
static int32_t gather(Call* call) {
  const Argument* in = call->a + 1; /* self, dim, index */
  const Lines from = lines_like(in[0].view, in[2].view, in[1].i), where = lines_like(in[2].view, in[2].view, in[1].i);
  const Lines to = lines_like(call->a[0].view, in[2].view, in[1].i);
  const Array elements = load(call, &from.view, from.view.dtype), places = load(call, &where.view, TAEDA_INT64);
  const int32_t status = check_places(call, places, from.length);
  if (status != TAEDA_OK) return status;
  const Array found = array(call, elements.real, places.n);
  for (int64_t j = 0; j < places.n; ++j) found.i[j] = elements.i[j / where.length * from.length + places.i[j]];
  return store(&to.view, found), TAEDA_OK;
}
const char kAdds[] = "adds";
static int32_t scatter(Call* call) { /* a copy of self with elements of src written or, with a table, added */
  const Argument* in = call->a + 1;  /* self, dim, index, src */
  const View* out = call->a[0].view;
  const Lines to = lines_like(out, in[2].view, in[1].i), where = lines_like(in[2].view, in[2].view, in[1].i);
  const Array places = load(call, &where.view, TAEDA_INT64);
  const int32_t status = check_places(call, places, to.length);
  if (status != TAEDA_OK) return status;
  store(out, load(call, in[0].view, out->dtype));
  const Lines source = lines_like(in[3].view, in[2].view, in[1].i);
  const View narrow = sliced(&source.view, source.view.ndim - 1, 0, where.length);
  const Array from = load(call, &narrow, out->dtype), all = load(call, &to.view, out->dtype);
  static atomic_uint turn;
  const bool backwards = call->table && sim_races() && atomic_fetch_add(&turn, 1) % 2;
  for (int64_t k = 0; k < places.n; ++k) {
    const int64_t j = backwards ? places.n - 1 - k : k;
    const int64_t at = j / where.length * to.length + places.i[j];
    if (!call->table) all.i[at] = from.i[j];
    else if (all.real) all.f[at] += from.f[j];
    else all.i[at] += from.i[j];
  }
  return store(&to.view, all), TAEDA_OK;
}

/* Row-major places of the elements that are not zero: `ndim` numbers each. */
static int32_t nonzero(Call* call) {
  const View* view = call->a[0].view;
  const Array in = load(call, view, TAEDA_BOOL);
  int64_t sizes[2] = {0, view->ndim}, row = 0;
  for (int64_t j = 0; j < in.n; ++j) sizes[0] += in.i[j];
  const Array out = array(call, false, sizes[0] * sizes[1]);
  for (int64_t j = 0; j < in.n; row += in.i[j++])
    for (int64_t d = view->ndim - 1, rest = j; in.i[j] && d >= 0; rest /= view->sizes[d--])
      out.i[row * view->ndim + d] = rest % view->sizes[d];
  call->results[0] = made(call, TAEDA_INT64, 2, sizes);
  return store(call->results, out), TAEDA_OK;
}

const Kernel kIndexKernels[] = {
    {"gather", gather, NULL}, {"scatter", scatter, NULL}, {"scatter_add", scatter, kAdds}, {"nonzero", nonzero, NULL}, {0}};
