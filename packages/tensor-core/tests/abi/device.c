/* A device with nothing but the required functions: memory that the core must not read, and no kernels. */
#include "support.h"

#ifndef DEVICE_NAME
#define DEVICE_NAME "bare"
#endif
#ifdef NEEDS_HELPER
int helper(void); /* in a library of its own, which may be missing */
#endif

static int64_t live;

static int32_t device_count(void* context, int32_t* count) {
  (void)context;
  *count = 2;
  return TAEDA_OK;
}
/* Addresses are handed out shifted, so that reading through one would not go unnoticed. */
#define SHIFT ((uintptr_t)1 << 60)
static void* shown(void* data) { return (void*)((uintptr_t)data + SHIFT); }
static void* hidden(const void* data) { return (void*)((uintptr_t)data - SHIFT); }

static int32_t allocate(void* context, int32_t index, size_t nbytes, taeda_stream stream, void** data) {
  (void)context, (void)index, (void)stream;
  void* made = malloc(nbytes);
  if (!made) return api->set_error(TAEDA_E_MEMORY, "bare: no memory");
  ++live;
  *data = shown(made);
  return TAEDA_OK;
}
static void release(void* context, int32_t index, void* data, size_t nbytes) {
  (void)context, (void)index, (void)nbytes;
  --live;
  free(hidden(data));
}
static int32_t copy_from_host(void* context, int32_t index, void* to, const void* from, size_t nbytes,
                              taeda_stream stream, int32_t blocking) {
  (void)context, (void)index, (void)stream, (void)blocking;
  memcpy(hidden(to), from, nbytes);
  return TAEDA_OK;
}
static int32_t copy_to_host(void* context, int32_t index, void* to, const void* from, size_t nbytes,
                            taeda_stream stream, int32_t blocking) {
  (void)context, (void)index, (void)stream, (void)blocking;
  memcpy(to, hidden(from), nbytes);
  return TAEDA_OK;
}
static int32_t synchronize(void* context, int32_t index) {
  (void)context, (void)index;
  return TAEDA_OK;
}

#ifdef BUILT_FOR_1_0
/* As a binary made with the header of 1.0: it knows nothing of what lies behind its struct. */
#define BACKEND_SIZE offsetof(taeda_backend, image_layout)
static int32_t image_layout(void* context, int32_t index, const taeda_image_result* result, int32_t* layout) {
  (void)context, (void)index, (void)result, (void)layout;
  abort();
}
#else
#define BACKEND_SIZE sizeof(taeda_backend)
#endif
#ifdef LAYOUT
/* What it wants is set by the test; a negative number is an error. Keeps the last question. */
static int32_t wanted;
static taeda_image_result asked;
static char asked_op[32];
TAEDA_PLUGIN_EXPORT void want_layout(int32_t layout);
TAEDA_PLUGIN_EXPORT void want_layout(int32_t layout) { wanted = layout; }
TAEDA_PLUGIN_EXPORT const taeda_image_result* last_question(void);
TAEDA_PLUGIN_EXPORT const taeda_image_result* last_question(void) {
  asked.op = asked_op;
  return &asked;
}
static int32_t image_layout(void* context, int32_t index, const taeda_image_result* result, int32_t* layout) {
  (void)context, (void)index;
  asked = *result;
  strncpy(asked_op, result->op, sizeof asked_op - 1);
  if (wanted < 0) return api->set_error(TAEDA_E_NOT_IMPLEMENTED, "no images today");
  *layout = wanted;
  return TAEDA_OK;
}
#endif

TAEDA_PLUGIN_EXPORT int64_t live_blocks(void);
TAEDA_PLUGIN_EXPORT int64_t live_blocks(void) { return live; }

static int32_t negate(void* context, const taeda_call* call) {
  taeda_tensor_info out, in;
  (void)context;
  TRY(read_tensor(call->arguments[0].as.tensor, &out));
  TRY(read_tensor(call->arguments[1].as.tensor, &in));
  if (out.dtype != TAEDA_FLOAT32 || !(out.flags & in.flags & TAEDA_TENSOR_CONTIGUOUS))
    return api->set_error(TAEDA_E_NOT_IMPLEMENTED, "neg: contiguous float32 only");
  for (int64_t i = 0; i < out.numel; ++i) ((float*)hidden(out.data))[i] = -((const float*)hidden(in.data))[i];
  return TAEDA_OK;
}

static int32_t cpu_only(void* context, const taeda_call* call) {
  const taeda_value both[] = {call->arguments[1], call->arguments[2]};
  taeda_value sum;
  taeda_tensor_info info;
  (void)context;
  TRY(call1("add", both, 2, &sum));
  TRY(read_tensor(sum.as.tensor, &info));
  const int32_t status =
      api->tensor_from_host(call->arguments[0].as.tensor, info.data, (size_t)info.numel * info.item_size);
  api->value_release(&sum);
  return status;
}
static int32_t like(void* context, const taeda_call* call, taeda_spec* result) {
  taeda_tensor_info info;
  (void)context;
  TRY(read_tensor(call->arguments[0].as.tensor, &info));
  result->ndim = info.ndim;
  result->dtype = info.dtype;
  memcpy(result->sizes, info.sizes, (size_t)info.ndim * sizeof *info.sizes);
  return TAEDA_OK;
}

#ifdef MORE
static int32_t properties(void* context, int32_t index, taeda_device_properties* found) {
  (void)context, (void)index;
  found->more = MORE;
  return TAEDA_OK;
}
#endif

static int32_t start(const taeda_api* given) {
  static const taeda_lack lacks[] = {{"streams", "one queue"}, {"complex", "reals only"}};
  static const taeda_backend backend = {.size = BACKEND_SIZE,
                                        .name = DEVICE_NAME,
                                        .distribution = "taeda-test-" DEVICE_NAME,
                                        .lacks = lacks,
                                        .lack_count = 2,
                                        .device_count = device_count,
                                        .allocate = allocate,
                                        .release = release,
                                        .copy_from_host = copy_from_host,
                                        .copy_to_host = copy_to_host,
#ifdef MORE
                                        .properties = properties,
#endif
#if defined(LAYOUT) || defined(BUILT_FOR_1_0)
                                        .image_layout = image_layout,
#endif
                                        .synchronize = synchronize};
  static const taeda_operator sum = {
      .size = sizeof sum, .schema = DEVICE_NAME "::sum(Tensor self, Tensor other) -> Tensor", .infer = like};
  static const taeda_operator made = {.size = sizeof made,
                                      .schema = DEVICE_NAME "::made(Tensor self, Tensor other) -> Tensor"};
  int32_t number;
  api = given;
#ifdef NEEDS_HELPER
  if (helper() != 42) return TAEDA_E_RUNTIME;
#endif
  TRY(api->backend_register(&backend, &number));
  TRY(api->kernel_register("neg", number, negate, NULL, DEVICE_NAME, NULL));
  TRY(api->op_define(&sum, NULL));
  TRY(api->op_define(&made, NULL));
  TRY(api->kernel_register(DEVICE_NAME "::sum", 0, cpu_only, NULL, DEVICE_NAME, NULL));
#ifdef FAILS
  return api->set_error(TAEDA_E_RUNTIME, "no licence for this machine");
#else
  return TAEDA_OK;
#endif
}
DESCRIBE(DEVICE_NAME)
