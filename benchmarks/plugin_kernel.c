/* Kernels of a third party that do what the cpu's own do, as plainly as possible: for measuring the way to them. */
#include <string.h>
#include <taeda/abi.h>

static const taeda_api* api;
static uint64_t registrations[8];
static int count;

static float* floats(const taeda_value* value, int64_t* numel) {
  taeda_tensor_info info;
  info.size = sizeof info;
  if (api->tensor_read(value->as.tensor, &info) != TAEDA_OK || info.dtype != TAEDA_FLOAT32) return NULL;
  *numel = info.numel;
  return info.data;
}

static int32_t neg(void* context, const taeda_call* call) {
  int64_t n = 0, m = 0;
  float *out = floats(&call->arguments[0], &n), *in = floats(&call->arguments[1], &m);
  (void)context;
  if (!out || !in || n != m) return api->set_error(TAEDA_E_NOT_IMPLEMENTED, "float32 of one shape only");
  for (int64_t i = 0; i < n; ++i) out[i] = -in[i];
  return TAEDA_OK;
}
static int32_t add(void* context, const taeda_call* call) {
  int64_t n = 0, m = 0, k = 0;
  float *out = floats(&call->arguments[0], &n), *a = floats(&call->arguments[1], &m),
        *b = floats(&call->arguments[2], &k);
  const float alpha = (float)call->arguments[3].as.integer;
  (void)context;
  if (!out || !a || !b || n != m || n != k) return api->set_error(TAEDA_E_NOT_IMPLEMENTED, "float32 of one shape only");
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + alpha * b[i];
  return TAEDA_OK;
}
static int32_t infer(void* context, const taeda_call* call, taeda_spec* result) {
  taeda_tensor_info info;
  (void)context;
  info.size = sizeof info;
  if (api->tensor_read(call->arguments[0].as.tensor, &info) != TAEDA_OK) return TAEDA_E_RUNTIME;
  result->ndim = info.ndim;
  result->dtype = info.dtype;
  memcpy(result->sizes, info.sizes, (size_t)info.ndim * sizeof *info.sizes);
  return TAEDA_OK;
}
static int32_t through(void* context, const taeda_call* call) {
  (void)context;
  return api->call_below(call);
}

/* Puts the kernels in the cpu's place, and takes them away again. */
TAEDA_PLUGIN_EXPORT int32_t put(void);
TAEDA_PLUGIN_EXPORT int32_t put(void) {
  int32_t status = api->kernel_replace("neg", 0, neg, NULL, "benchmark", &registrations[count++]);
  if (status == TAEDA_OK) status = api->kernel_replace("add", 0, add, NULL, "benchmark", &registrations[count++]);
  return status;
}
TAEDA_PLUGIN_EXPORT void take(void);
TAEDA_PLUGIN_EXPORT void take(void) {
  while (count) api->registration_remove(registrations[--count]);
}
TAEDA_PLUGIN_EXPORT int32_t watch(int32_t on);
TAEDA_PLUGIN_EXPORT int32_t watch(int32_t on) { return api->layer_switch(12, on, NULL); }

static int32_t start(const taeda_api* given) {
  static const taeda_operator own = {
      .size = sizeof own, .schema = "benchmark::neg(Tensor self) -> Tensor", .owner = "benchmark", .infer = infer};
  api = given;
  int32_t status = api->op_define(&own, NULL);
  if (status == TAEDA_OK) status = api->kernel_register("benchmark::neg", 0, neg, NULL, "benchmark", NULL);
  if (status == TAEDA_OK) status = api->layer_register("neg", 12, through, NULL, "benchmark", NULL);
  return status;
}

static const taeda_plugin plugin = {.size = sizeof plugin,
                                    .abi_major = TAEDA_ABI_MAJOR,
                                    .abi_minor = TAEDA_ABI_MINOR,
                                    .name = "benchmark",
                                    .distribution = "benchmark",
                                    .start = start};
TAEDA_PLUGIN_EXPORT const taeda_plugin* taeda_plugin_describe(void);
TAEDA_PLUGIN_EXPORT const taeda_plugin* taeda_plugin_describe(void) { return &plugin; }
