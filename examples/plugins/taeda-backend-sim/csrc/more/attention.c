/* Attention that keeps no scores, in the manner of "FlashAttention" (Dao et al., 2022): one pass over the keys with a
 * softmax that is mended as larger scores come, and a backward that makes the scores anew. The operators are the
 * device's own, with a derivative; the kernel of `scaled_dot_product_attention` calls them. */
#include <math.h>

#include "more.h"

/* --- on a worker: queries (n, L, E), keys (n, S, E), values (n, S, V) in a row --- */

typedef struct Sizes {
  int64_t n, queries, keys, features, width;
} Sizes;
static Sizes sizes_of(const View* query, const View* value) {
  const int64_t *q = query->sizes, *v = value->sizes;
  return (Sizes){q[0] * q[1], q[2], v[2], q[3], v[3]};
}
static double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
static void add_scaled(double* to, const double* from, double factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i] * factor;
}

/* out, sums; query, key, value, causal, scale. `sums` are the logarithms of the softmax's denominators. */
static int32_t forward(Call* call) {
  const Argument *out = call->a, *in = call->a + 2;
  const Sizes s = sizes_of(in[0].view, in[2].view);
  const Array q = load(call, in[0].view, in[0].view->dtype), k = load(call, in[1].view, in[1].view->dtype);
  const Array v = load(call, in[2].view, in[2].view->dtype);
  const Array to = array(call, true, out[0].view->n), sums = array(call, true, out[1].view->n);
  for (int64_t row = 0; row < s.n * s.queries; ++row) {
    const int64_t head = row / s.queries, last = in[3].i ? row % s.queries + 1 : s.keys;
    double largest = -INFINITY, sum = 0, *made = to.f + row * s.width;
    for (int64_t j = 0; j < last && j < s.keys; ++j) {
      const int64_t at = head * s.keys + j;
      const double score = in[4].f * dot(q.f + row * s.features, k.f + at * s.features, s.features);
      const double mend = score > largest ? exp(largest - score) : 1;
      if (score > largest) largest = score;
      const double weight = exp(score - largest);
      sum = sum * mend + weight;
      for (int64_t d = 0; d < s.width; ++d) made[d] = made[d] * mend + weight * v.f[at * s.width + d];
    }
    for (int64_t d = 0; d < s.width; ++d) made[d] /= sum;
    sums.f[row] = largest + log(sum);
  }
  return store(out[0].view, to), store(out[1].view, sums), TAEDA_OK;
}

/* gradients of query, key, value; gradient, query, key, value, out, sums, causal, scale. */
static int32_t backward(Call* call) {
  const Argument *out = call->a, *in = call->a + 3;
  const Sizes s = sizes_of(in[1].view, in[3].view);
  Array from[6], to[3];
  for (int i = 0; i < 6; ++i) from[i] = load(call, in[i].view, in[i].view->dtype);
  for (int i = 0; i < 3; ++i) to[i] = array(call, true, out[i].view->n);
  for (int64_t row = 0; row < s.n * s.queries; ++row) {
    const int64_t head = row / s.queries, last = in[6].i ? row % s.queries + 1 : s.keys;
    const double *gradient = from[0].f + row * s.width, *query = from[1].f + row * s.features;
    const double whole = dot(gradient, from[4].f + row * s.width, s.width);
    for (int64_t j = 0; j < last && j < s.keys; ++j) {
      const int64_t at = head * s.keys + j;
      const double *key = from[2].f + at * s.features, *value = from[3].f + at * s.width;
      const double weight = exp(in[7].f * dot(query, key, s.features) - from[5].f[row]);
      const double of_score = weight * (dot(gradient, value, s.width) - whole) * in[7].f;
      add_scaled(to[2].f + at * s.width, gradient, weight, s.width);
      add_scaled(to[0].f + row * s.features, key, of_score, s.features);
      add_scaled(to[1].f + at * s.features, query, of_score, s.features);
    }
  }
  for (int i = 0; i < 3; ++i) store(out[i].view, to[i]);
  return TAEDA_OK;
}

static const Kernel kKernels[] = {
    {"sim::attention", forward, NULL}, {"sim::attention_backward", backward, NULL}, {NULL, NULL, NULL}};

/* --- for taeda --- */

static taeda_tensor_info info_of(const taeda_value* value) {
  taeda_tensor_info info = {.size = sizeof info};
  api->tensor_read(value->as.tensor, &info);
  return info;
}
static void like(const taeda_value* value, taeda_spec* to) {
  const taeda_tensor_info info = info_of(value);
  to->ndim = info.ndim;
  to->dtype = info.dtype;
  for (int d = 0; d < info.ndim; ++d) to->sizes[d] = info.sizes[d];
}
static int32_t infer(void* context, const taeda_call* call, taeda_spec* results) {
  like(call->arguments, results);
  like(call->arguments, results + 1);
  results[0].sizes[3] = info_of(call->arguments + 2).sizes[3];
  results[1].ndim = 3;
  return TAEDA_OK;
}
static int32_t infer_backward(void* context, const taeda_call* call, taeda_spec* results) {
  for (int i = 0; i < 3; ++i) like(call->arguments + 1 + i, results + i);
  return TAEDA_OK;
}
static int32_t derivative(void* context, const taeda_call* call, const taeda_value* outputs, const taeda_value* gradients) {
  const taeda_value* a = call->arguments;
  const taeda_value given[] = {gradients[0], a[0], a[1], a[2], outputs[0], outputs[1], a[3], a[4]};
  taeda_op op;
  if (gradients[0].kind == TAEDA_VALUE_NONE) return TAEDA_OK;
  TRY(api->op_find("sim::attention_backward", &op));
  return api->op_call(op, given, 8, call->results, 3);
}

/* Batches and heads of one kind of numbers, without a mask, dropout and heads that are shared: else taeda computes it. */
static bool fits(const taeda_value* a) {
  for (int i = 0; i < 3; ++i) {
    const taeda_tensor_info info = info_of(a + i), first = info_of(a);
    if (info.ndim != 4 || info.dtype != first.dtype || !is_real(info.dtype) || info.numel == 0) return false;
    if (info.sizes[0] != first.sizes[0] || info.sizes[1] != first.sizes[1]) return false;
  }
  const taeda_tensor_info query = info_of(a), key = info_of(a + 1), value = info_of(a + 2);
  const bool plain = a[3].kind == TAEDA_VALUE_NONE && a[4].as.real == 0 && !a[7].as.integer;
  return plain && key.sizes[3] == query.sizes[3] && key.sizes[2] == value.sizes[2];
}
/* query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa */
static int32_t attend(void* context, const taeda_call* call) {
  const taeda_value* a = call->arguments;
  if (!fits(a)) return TAEDA_DECLINED;
  taeda_value scale = a[6], made[2];
  if (scale.kind == TAEDA_VALUE_NONE)
    scale = (taeda_value){.kind = TAEDA_VALUE_FLOAT, .as.real = 1 / sqrt((double)info_of(a).sizes[3])};
  const taeda_value given[] = {a[0], a[1], a[2], a[5], scale};
  taeda_op op;
  TRY(api->op_find("sim::attention", &op));
  TRY(api->op_call(op, given, 5, made, 2));
  call->results[0] = made[0];
  return api->value_release(made + 1), TAEDA_OK;
}

int32_t sim_register_attention(void) {
  const taeda_operator operators[] = {
      {.size = sizeof(taeda_operator),
       .schema = "sim::attention(Tensor query, Tensor key, Tensor value, bool causal, float scale) -> (Tensor out, Tensor sums)",
       .owner = "taeda-backend-sim",
       .infer = infer,
       .derivative = derivative},
      {.size = sizeof(taeda_operator),
       .schema = "sim::attention_backward(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor out, Tensor sums, "
                 "bool causal, float scale) -> (Tensor query_gradient, Tensor key_gradient, Tensor value_gradient)",
       .owner = "taeda-backend-sim",
       .infer = infer_backward},
  };
  for (int i = 0; i < 2; ++i) TRY(api->op_define(operators + i, NULL));
  TRY(sim_register(kKernels));
  const taeda_kernel kernel = {
      .size = sizeof kernel,
      .op = "scaled_dot_product_attention",
      .schema =
          "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, "
          "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
      .kind = TAEDA_KIND_DIRECT,
      .backend = sim_number,
      .flags = TAEDA_KERNEL_RECORDED,
      .function = attend,
      .owner = "taeda-backend-sim",
  };
  const int32_t status = api->kernel_add(&kernel, NULL);
  return status == TAEDA_ABSENT ? TAEDA_OK : status;
}
