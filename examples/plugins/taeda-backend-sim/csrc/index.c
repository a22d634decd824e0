/* Picking and placing elements: along a dimension by places, by several index tensors at once, joining, triangles. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* `self` narrowed to the sizes of `like` in all dimensions but one, which comes last. */
static View lines_like(const View* self, const View* like, int dim) {
  View out = *self;
  for (int d = 0; d < self->ndim; ++d)
    if (d != dim && like) out = sliced(&out, d, 0, like->sizes[d]);
  return permuted(&out, dim);
}
static int64_t line_length(const View* lines) { return lines->sizes[lines->ndim - 1]; }
static int32_t check_places(Call* call, Array places, int64_t size, bool from_end) {
  for (int64_t j = 0; j < places.n; ++j) {
    if (places.i[j] >= size || places.i[j] < (from_end ? -size : 0))
      return fail(&call->job, TAEDA_E_INDEX, "%s: index %lld is out of range for size %lld", call->name,
                  (long long)places.i[j], (long long)size);
    if (places.i[j] < 0) places.i[j] += size;
  }
  return TAEDA_OK;
}
static void put(Array to, int64_t at, Array from, int64_t j) {
  if (to.kind == CLASS_COMPLEX) to.c[at] = from.c[j];
  else to.i[at] = from.i[j];
}
static void add(Array to, int64_t at, Array from, int64_t j, const Argument* alpha) {
  if (to.kind == CLASS_COMPLEX) to.c[at] += alpha ? alpha->c * from.c[j] : from.c[j];
  else if (to.kind == CLASS_REAL) to.f[at] += alpha ? alpha->f * from.f[j] : from.f[j];
  else to.i[at] += alpha ? alpha->i * from.i[j] : from.i[j];
}

/* gather, index_select: out[j] = self[places[j]] in each line. */
static int32_t pick(Call* call) {
  const View *out = call->a[0].views, *self = call->a[1].views, *index = call->a[3].views;
  const int dim = wrap_dim(call->a[2].i, self->ndim);
  const bool per_line = call->table != NULL; /* index_select has the same places for all lines */
  const View to = permuted(out, dim), from = lines_like(self, per_line ? index : NULL, dim);
  const View where = per_line ? permuted(index, dim) : *index;
  const Array in = load(call, &from, from.dtype), places = load_as(call, &where, CLASS_INT);
  const int64_t size = line_length(&from), count = line_length(&to), lines = count ? to.n / count : 0;
  const int32_t status = check_places(call, places, size, false);
  if (status != TAEDA_OK) return status;
  const Array result = array(call, in.kind, to.n);
  for (int64_t l = 0; l < lines; ++l)
    for (int64_t j = 0; j < count; ++j) put(result, l * count + j, in, l * size + places.i[per_line ? l * count + j : j]);
  store(&to, result);
  return TAEDA_OK;
}

/* scatter, index_add and their kin: a copy of self with elements written or added at places of each line. */
typedef struct Placing {
  bool per_line, adds;
} Placing;
static int32_t place(Call* call) {
  const Placing* how = call->table;
  const View *out = call->a[0].views, *self = call->a[1].views, *index = call->a[3].views;
  const int dim = wrap_dim(call->a[2].i, self->ndim);
  const View to = lines_like(out, how->per_line ? index : NULL, dim);
  const View where = how->per_line ? permuted(index, dim) : *index;
  const Array places = load_as(call, &where, CLASS_INT);
  const int64_t size = line_length(&to), lines = size ? to.n / size : 0;
  const int64_t count = how->per_line ? line_length(&where) : where.n;
  const int32_t status = check_places(call, places, size, false);
  if (status != TAEDA_OK) return status;
  store(out, load(call, self, out->dtype));
  Array from = array(call, class_of(out->dtype), 1);
  const bool one = call->a[4].kind != TAEDA_VALUE_TENSOR || call->a[4].views->ndim < self->ndim;
  if (call->a[4].kind == TAEDA_VALUE_TENSOR) {
    const View source = one ? *call->a[4].views : lines_like(call->a[4].views, how->per_line ? index : NULL, dim);
    const View narrow = one || !how->per_line ? source : sliced(&source, source.ndim - 1, 0, count);
    from = load(call, &narrow, out->dtype);
  } else if (from.kind == CLASS_COMPLEX) {
    *from.c = call->a[4].c;
  } else if (from.kind == CLASS_REAL) {
    *from.f = call->a[4].f;
  } else {
    *from.i = call->a[4].i;
  }
  const Argument* alpha = call->count > 5 ? &call->a[5] : NULL;
  const Array result = load(call, &to, to.dtype);
  for (int64_t l = 0; l < lines; ++l)
    for (int64_t j = 0; j < count; ++j) {
      const int64_t at = l * size + places.i[how->per_line ? l * count + j : j], source = one ? 0 : l * count + j;
      if (how->adds) add(result, at, from, source, alpha);
      else put(result, at, from, source);
    }
  store(&to, result);
  return TAEDA_OK;
}

/* Row-major places of the elements that are not zero: `ndim` numbers each. */
static Array nonzero_places(Call* call, const View* view, int64_t* count) {
  const Array in = load(call, view, TAEDA_BOOL);
  *count = 0;
  for (int64_t j = 0; j < in.n; ++j) *count += in.i[j];
  const Array out = array(call, CLASS_INT, *count * view->ndim);
  for (int64_t j = 0, row = 0; j < in.n; ++j) {
    int64_t rest = j;
    for (int d = view->ndim - 1; in.i[j] && d >= 0; rest /= view->sizes[d--]) out.i[row * view->ndim + d] = rest % view->sizes[d];
    row += in.i[j];
  }
  return out;
}
static int32_t nonzero(Call* call) {
  const View* self = call->a[0].views;
  int64_t sizes[2] = {0, self->ndim};
  const Array places = nonzero_places(call, self, sizes);
  call->results[0] = made(call, TAEDA_INT64, 2, sizes);
  store(call->results, places);
  return TAEDA_OK;
}

/* self[indices]: the view of one element or slice for each of the indices' common places.
 * `offsets` are in elements; `rest` is self without the indexed dimensions; `front` says where the common ones stand. */
typedef struct Indexed {
  Array offsets;
  View common, rest;
  int front;
} Indexed;

static int32_t resolve(Call* call, const View* self, const Argument* indices, Indexed* out) {
  View views[TAEDA_MAX_DIMS];
  int dims[TAEDA_MAX_DIMS], count = 0, dim = 0;
  for (int64_t i = 0; i < indices->count; ++i) {
    const View* index = indices->views + i;
    if (index->ndim < 0) {
      ++dim;
    } else if (index->dtype == TAEDA_BOOL) { /* stands for the places of its true elements */
      int64_t n;
      const Array places = nonzero_places(call, index, &n);
      for (int d = 0; d < index->ndim; ++d)
        if (index->sizes[d] != self->sizes[dim + d])
          return fail(&call->job, TAEDA_E_INDEX, "%s: a mask of size %lld cannot index dimension %d of size %lld", call->name,
                      (long long)index->sizes[d], dim + d, (long long)self->sizes[dim + d]);
      for (int d = 0; d < index->ndim; ++d) {
        views[count] = (View){.data = (char*)(places.i + d), .n = n, .dtype = TAEDA_INT64, .ndim = 1, .sizes = {n}, .strides = {index->ndim}};
        dims[count++] = dim++;
      }
      if (index->ndim == 0) {
        views[count] = (View){.data = take(call, 8), .n = n, .dtype = TAEDA_INT64, .ndim = 1, .sizes = {n}, .strides = {0}};
        dims[count++] = -1;
      }
    } else {
      views[count] = *index;
      dims[count++] = dim++;
    }
  }
  View* common = &out->common;
  *common = (View){.n = 1};
  for (int i = 0; i < count; ++i) {
    if (views[i].ndim > common->ndim) {
      for (int d = common->ndim - 1, to = views[i].ndim - 1; to >= 0; --d, --to) common->sizes[to] = d >= 0 ? common->sizes[d] : 1;
      common->ndim = views[i].ndim;
    }
    for (int d = views[i].ndim - 1, to = common->ndim - 1; d >= 0; --d, --to)
      if (common->sizes[to] == 1 || common->sizes[to] == 0) common->sizes[to] = views[i].sizes[d];
  }
  for (int d = 0; d < common->ndim; ++d) common->n *= common->sizes[d];
  out->offsets = array(call, CLASS_INT, common->n);
  out->rest = *self;
  for (int i = 0; i < count; ++i) {
    const View spread = broadcast(&views[i], common);
    const Array places = load_as(call, &spread, CLASS_INT);
    if (dims[i] < 0) continue;
    const int32_t status = check_places(call, places, self->sizes[dims[i]], true);
    if (status != TAEDA_OK) return status;
    for (int64_t j = 0; j < common->n; ++j) out->offsets.i[j] += places.i[j] * self->strides[dims[i]];
    out->rest.sizes[dims[i]] = -1;
  }
  out->front = count ? (dims[0] < 0 ? 0 : dims[0]) : 0;
  for (int i = 1; i < count; ++i)
    if (dims[i] != dims[i - 1] + 1) out->front = 0; /* not side by side: they come first */
  View* rest = &out->rest;
  int to = 0;
  rest->n = 1;
  for (int d = 0; d < self->ndim; ++d)
    if (rest->sizes[d] >= 0) {
      rest->n *= rest->sizes[to] = rest->sizes[d];
      rest->strides[to++] = self->strides[d];
    }
  rest->ndim = to;
  return TAEDA_OK;
}
/* The shape of the result, and its strides seen with the common dimensions first. */
static View result_of(Call* call, const Indexed* at, int dtype, View* common_first) {
  const int c = at->common.ndim, r = at->rest.ndim;
  int64_t sizes[TAEDA_MAX_DIMS] = {0};
  for (int d = 0; d < c + r; ++d)
    sizes[d] = d < at->front ? at->rest.sizes[d] : d < at->front + c ? at->common.sizes[d - at->front] : at->rest.sizes[d - c];
  const View out = made(call, dtype, c + r, sizes);
  *common_first = out;
  for (int d = 0; d < c + r; ++d) {
    const int from = d < c ? at->front + d : d - c < at->front ? d - c : d;
    common_first->sizes[d] = out.sizes[from], common_first->strides[d] = out.strides[from];
  }
  return out;
}
static int32_t index_get(Call* call) {
  const View* self = call->a[0].views;
  Indexed at;
  const int32_t status = resolve(call, self, &call->a[1], &at);
  if (status != TAEDA_OK) return status;
  View to;
  call->results[0] = result_of(call, &at, self->dtype, &to);
  const Array out = array(call, class_of(self->dtype), to.n);
  for (int64_t j = 0; j < at.common.n; ++j) {
    View from = at.rest;
    from.data += at.offsets.i[j] * (int64_t)size_of(self->dtype);
    load_into(part(out, j * from.n, from.n), &from);
  }
  store(&to, out);
  return TAEDA_OK;
}
static int32_t index_put(Call* call) {
  const View* self = call->a[0].views;
  Indexed at;
  const int32_t status = resolve(call, self, &call->a[1], &at);
  if (status != TAEDA_OK) return status;
  View first;
  const View shape = result_of(call, &at, self->dtype, &first);
  const View values = broadcast(call->a[2].views, &shape);
  store(&shape, load(call, &values, self->dtype));
  const Array in = load(call, &first, self->dtype), old = array(call, in.kind, at.rest.n);
  for (int64_t j = 0; j < at.common.n; ++j) {
    View to = at.rest;
    to.data += at.offsets.i[j] * (int64_t)size_of(self->dtype);
    const Array row = part(in, j * to.n, to.n);
    if (call->a[3].i) {
      load_into(old, &to);
      for (int64_t k = 0; k < to.n; ++k) add(row, k, old, k, NULL);
    }
    store(&to, row);
  }
  return TAEDA_OK;
}

static int32_t cat(Call* call) {
  const View* out = call->a[0].views;
  const Argument* parts = &call->a[1];
  const int dim = wrap_dim(call->a[2].i, out->ndim);
  int64_t begin = 0;
  for (int64_t i = 0; i < parts->count; ++i) {
    const View* from = parts->views + i;
    if (from->ndim != out->ndim) continue; /* an empty row among others */
    const View to = sliced(out, dim, begin, from->sizes[dim]);
    store(&to, load(call, from, out->dtype));
    begin += from->sizes[dim];
  }
  return TAEDA_OK;
}

static int32_t triangle(Call* call) {
  const View* out = call->a[0].views;
  const bool lower = call->table != NULL;
  const Array in = load(call, call->a[1].views, out->dtype), zero = array(call, in.kind, 1);
  const int64_t columns = out->sizes[out->ndim - 1], rows = out->sizes[out->ndim - 2];
  for (int64_t j = 0; j < out->n; ++j) {
    const int64_t off = j % columns - j / columns % rows - call->a[2].i;
    if (lower ? off > 0 : off < 0) put(in, j, zero, 0);
  }
  store(out, in);
  return TAEDA_OK;
}

/* Sorted distinct elements, the first place of each, for each element its place among them, and counts. */
static int32_t unique(Call* call) {
  const View* self = call->a[0].views;
  const Array in = load(call, self, self->dtype);
  int64_t* order = take(call, (size_t)in.n * 8);
  sort_places(in, false, order);
  Array values = array(call, in.kind, in.n), first = array(call, CLASS_INT, in.n), inverse = array(call, CLASS_INT, in.n);
  Array counts = array(call, CLASS_INT, in.n);
  int64_t n = 0;
  for (int64_t j = 0; j < in.n; ++j) {
    if (j == 0 || less(in, order[j - 1], order[j]) || (in.kind == CLASS_REAL && in.f[order[j]] != in.f[order[j]])) {
      put(values, n, in, order[j]);
      first.i[n++] = order[j];
    }
    inverse.i[order[j]] = n - 1;
    ++counts.i[n - 1];
  }
  call->results[0] = made(call, self->dtype, 1, &n);
  call->results[1] = call->results[3] = made(call, TAEDA_INT64, 1, &n);
  call->results[3] = made(call, TAEDA_INT64, 1, &n);
  call->results[2] = made(call, TAEDA_INT64, self->ndim, self->sizes);
  const Array found[] = {part(values, 0, n), part(first, 0, n), inverse, part(counts, 0, n)};
  for (int i = 0; i < 4; ++i) store(call->results + i, found[i]);
  return TAEDA_OK;
}

static const Placing kSet = {false, false}, kAdd = {false, true}, kSetEach = {true, false}, kAddEach = {true, true};
static const Kernel kIndex[] = {
    {"gather", pick, &kSetEach}, {"index_select", pick},
    {"scatter", place, &kSetEach}, {"scatter.value", place, &kSetEach}, {"scatter_add", place, &kAddEach},
    {"index_add", place, &kAdd}, {"index_copy", place, &kSet}, {"index_fill", place, &kSet},
    {"index", index_get}, {"index_put_", index_put}, {"nonzero", nonzero}, {"unique_all", unique},
    {"cat", cat}, {"tril", triangle, &kSet}, {"triu", triangle},
};
int32_t sim_register_index(void) { return sim_register(kIndex, sizeof kIndex / sizeof *kIndex); }
