/* Picking and placing elements: along a dimension, by several index tensors at once, by joining. */
#include <string.h>

#include "sim.h"

static int32_t check_places(Call* call, Array places, int64_t size, bool from_end) {
  for (int64_t j = 0; j < places.n; ++j) {
    if (places.i[j] >= size || places.i[j] < (from_end ? -size : 0))
      return fail(&call->job, TAEDA_E_INDEX, "%s: index %lld is out of range for size %lld", call->kernel->name,
                  (long long)places.i[j], (long long)size);
    if (places.i[j] < 0) places.i[j] += size;
  }
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
  const Lines from = lines_like(in[0].views, in[2].views, in[1].i), where = lines_like(in[2].views, in[2].views, in[1].i);
  const Lines to = lines_like(call->a[0].views, in[2].views, in[1].i);
  const Array elements = load(call, &from.view, from.view.dtype), places = load(call, &where.view, TAEDA_INT64);
  const int32_t status = check_places(call, places, from.length, false);
  if (status != TAEDA_OK) return status;
  const Array found = array(call, elements.real, places.n);
  for (int64_t j = 0; j < places.n; ++j) found.i[j] = elements.i[j / where.length * from.length + places.i[j]];
  return store(&to.view, found), TAEDA_OK;
}
static int32_t scatter(Call* call) { /* a copy of self with elements of src written or, with a table, added */
  const Argument* in = call->a + 1; /* self, dim, index, src */
  const View* out = call->a[0].views;
  const Lines to = lines_like(out, in[2].views, in[1].i), where = lines_like(in[2].views, in[2].views, in[1].i);
  const Array places = load(call, &where.view, TAEDA_INT64);
  const int32_t status = check_places(call, places, to.length, false);
  if (status != TAEDA_OK) return status;
  store(out, load(call, in[0].views, out->dtype));
  const Lines source = lines_like(in[3].views, in[2].views, in[1].i);
  const View narrow = sliced(&source.view, source.view.ndim - 1, 0, where.length);
  const Array from = load(call, &narrow, out->dtype), all = load(call, &to.view, out->dtype);
  for (int64_t j = 0; j < places.n; ++j) {
    const int64_t at = j / where.length * to.length + places.i[j];
    if (!call->table) all.i[at] = from.i[j];
    else if (all.real) all.f[at] += from.f[j];
    else all.i[at] += from.i[j];
  }
  return store(&to.view, all), TAEDA_OK;
}

/* Row-major places of the elements that are not zero: `ndim` numbers each. */
static Array nonzero_places(Call* call, const View* view, int64_t* count) {
  const Array in = load(call, view, TAEDA_BOOL);
  *count = 0;
  for (int64_t j = 0; j < in.n; ++j) *count += in.i[j];
  const Array out = array(call, false, *count * view->ndim);
  for (int64_t j = 0, row = 0; j < in.n; row += in.i[j++])
    for (int64_t d = view->ndim - 1, rest = j; in.i[j] && d >= 0; rest /= view->sizes[d--])
      out.i[row * view->ndim + d] = rest % view->sizes[d];
  return out;
}
static int32_t nonzero(Call* call) {
  int64_t sizes[2] = {0, call->a[0].views->ndim};
  const Array places = nonzero_places(call, call->a[0].views, sizes);
  call->results[0] = made(call, TAEDA_INT64, 2, sizes);
  return store(call->results, places), TAEDA_OK;
}

/* --- self[indices]: a slice of self for each of the indices' common places --- */

typedef struct Indexed {
  Array offsets;     /* of the slices, in elements */
  View common, rest; /* shape of the places; self without the indexed dimensions */
  int front;         /* where the common dimensions stand among those of the result */
} Indexed;

static View row_of(int64_t* data, int64_t n, int64_t step) {
  return (View){.data = (char*)data, .n = n, .dtype = TAEDA_INT64, .ndim = 1, .sizes = {n}, .strides = {step}};
}
/* Index tensors, masks as the places of their true elements, and the dimension of each. */
static int32_t list_indices(Call* call, const View* self, const Argument* indices, View* views, int* dims, int* count) {
  int dim = 0;
  for (int64_t i = 0; i < indices->count; ++i) {
    const View* index = indices->views + i;
    if (index->ndim >= 0 && index->dtype == TAEDA_BOOL) {
      int64_t n;
      const Array places = nonzero_places(call, index, &n);
      for (int d = 0; d < index->ndim; ++d, ++dim) {
        if (index->sizes[d] != self->sizes[dim])
          return fail(&call->job, TAEDA_E_INDEX, "%s: a mask of size %lld cannot index dimension %d of size %lld",
                      call->kernel->name, (long long)index->sizes[d], dim, (long long)self->sizes[dim]);
        views[*count] = row_of(places.i + d, n, index->ndim);
        dims[(*count)++] = dim;
      }
    } else {
      if (index->ndim >= 0) views[*count] = *index, dims[(*count)++] = dim;
      ++dim;
    }
  }
  return TAEDA_OK;
}
static View common_shape(const View* views, int count) {
  View out = {.n = 1};
  for (int i = 0; i < count; ++i)
    if (views[i].ndim > out.ndim) out.ndim = views[i].ndim;
  for (int d = 0; d < out.ndim; ++d) {
    out.sizes[d] = 1;
    for (int i = 0; i < count; ++i) {
      const int at = d - out.ndim + views[i].ndim;
      if (at >= 0 && views[i].sizes[at] != 1) out.sizes[d] = views[i].sizes[at];
    }
    out.n *= out.sizes[d];
  }
  return out;
}
static int32_t resolve(Call* call, const View* self, const Argument* indices, Indexed* out) {
  View views[TAEDA_MAX_DIMS];
  int dims[TAEDA_MAX_DIMS], count = 0;
  int32_t status = list_indices(call, self, indices, views, dims, &count);
  if (status != TAEDA_OK) return status;
  *out = (Indexed){.common = common_shape(views, count), .rest = *self, .front = dims[0]};
  out->offsets = array(call, false, out->common.n);
  for (int i = 0; i < count; ++i) {
    const View spread = broadcast(&views[i], &out->common);
    const Array places = load(call, &spread, TAEDA_INT64);
    status = check_places(call, places, self->sizes[dims[i]], true);
    if (status != TAEDA_OK) return status;
    for (int64_t j = 0; j < places.n; ++j) out->offsets.i[j] += places.i[j] * self->strides[dims[i]];
    out->rest.sizes[dims[i]] = -1;
    if (i && dims[i] != dims[i - 1] + 1) out->front = 0; /* not side by side: they come first */
  }
  View* rest = &out->rest;
  rest->n = 1, rest->ndim = 0;
  for (int d = 0; d < self->ndim; ++d) {
    if (rest->sizes[d] < 0) continue;
    rest->n *= rest->sizes[rest->ndim] = rest->sizes[d];
    rest->strides[rest->ndim++] = self->strides[d];
  }
  return TAEDA_OK;
}
/* The shape of the result, and the same memory with the common dimensions first. */
static View result_of(Call* call, const Indexed* at, int dtype, View* common_first) {
  const int c = at->common.ndim, r = at->rest.ndim;
  int64_t sizes[TAEDA_MAX_DIMS] = {0};
  uint64_t last = 0;
  for (int d = 0; d < c + r; ++d) {
    const bool common = d >= at->front && d < at->front + c;
    sizes[d] = common ? at->common.sizes[d - at->front] : at->rest.sizes[d < at->front ? d : d - c];
    last |= (uint64_t)!common << d;
  }
  const View out = made(call, dtype, c + r, sizes);
  *common_first = with_last(&out, last);
  return out;
}
static View slice_at(const Indexed* at, int64_t j) {
  View out = at->rest;
  out.data += at->offsets.i[j] * (int64_t)size_of(out.dtype);
  return out;
}
static int32_t index_get(Call* call) {
  Indexed at;
  View to;
  const int32_t status = resolve(call, call->a[0].views, &call->a[1], &at);
  if (status != TAEDA_OK) return status;
  call->results[0] = result_of(call, &at, at.rest.dtype, &to);
  const Array out = array(call, is_real(to.dtype), to.n);
  for (int64_t j = 0; j < at.common.n; ++j) {
    const View from = slice_at(&at, j);
    load_into(part(out, j * from.n, from.n), &from);
  }
  return store(&to, out), TAEDA_OK;
}
static int32_t index_put(Call* call) {
  Indexed at;
  View first;
  const int32_t status = resolve(call, call->a[0].views, &call->a[1], &at);
  if (status != TAEDA_OK) return status;
  const View shape = result_of(call, &at, at.rest.dtype, &first), values = broadcast(call->a[2].views, &shape);
  store(&shape, load(call, &values, shape.dtype));
  const Array in = load(call, &first, shape.dtype), old = array(call, in.real, at.rest.n);
  for (int64_t j = 0; j < at.common.n; ++j) {
    const View to = slice_at(&at, j);
    const Array row = part(in, j * to.n, to.n);
    if (call->a[3].i) load_into(old, &to); /* accumulates; else these are zeros */
    for (int64_t k = 0; k < to.n; ++k) {
      if (row.real) row.f[k] += old.f[k];
      else row.i[k] += old.i[k];
    }
    store(&to, row);
  }
  return TAEDA_OK;
}

static int32_t cat(Call* call) {
  const View* out = call->a[0].views;
  const int dim = wrap_dim(call->a[2].i, out->ndim);
  int64_t begin = 0;
  for (const View* from = call->a[1].views; from < call->a[1].views + call->a[1].count; ++from) {
    if (from->ndim != out->ndim) continue; /* an empty row among others */
    const View to = sliced(out, dim, begin, from->sizes[dim]);
    store(&to, load(call, from, out->dtype));
    begin += from->sizes[dim];
  }
  return TAEDA_OK;
}

/* Sorted distinct elements, the first place of each, for each element its place among them, and counts. */
static int32_t unique(Call* call) {
  const View* self = call->a[0].views;
  const Array in = load(call, self, self->dtype), order = array(call, false, in.n);
  Array found[4] = {array(call, in.real, in.n), array(call, false, in.n), array(call, false, in.n), array(call, false, in.n)};
  int64_t n = 0;
  sort_places(in, false, order.i);
  for (int64_t j = 0; j < in.n; ++j) {
    const int64_t at = order.i[j];
    if (j == 0 || less(in, order.i[j - 1], at) || (in.real && in.f[at] != in.f[at])) {
      found[0].i[n] = in.i[at];
      found[1].i[n++] = at;
    }
    found[2].i[at] = n - 1;
    ++found[3].i[n - 1];
  }
  for (int i = 0; i < 4; ++i) {
    call->results[i] = i == 2 ? made(call, TAEDA_INT64, self->ndim, self->sizes) : made(call, i ? TAEDA_INT64 : self->dtype, 1, &n);
    store(call->results + i, part(found[i], 0, call->results[i].n));
  }
  return TAEDA_OK;
}

const Kernel kIndexKernels[] = {
    {"gather", gather, NULL, NULL}, {"scatter", scatter, NULL, NULL}, {"scatter_add", scatter, "adds", NULL},
    {"index", index_get, NULL, NULL}, {"index_put_", index_put, NULL, NULL}, {"nonzero", nonzero, NULL, NULL},
    {"unique_all", unique, NULL, NULL}, {"cat", cat, NULL, NULL}, {0}};
