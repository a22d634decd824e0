/* Kernels: of an operator that is there already, put in place of the cpu's own and taken away again. */
#include <math.h>

#include "support.h"

static int64_t calls;
static uint64_t registration;

/* exp of every element, plus 100 so that it can be told from the cpu's own; any strides, float32 and float64. */
static int32_t exp_plus(void* context, const taeda_call* call) {
  taeda_tensor_info out, in;
  (void)context;
  ++calls;
  if (call->output_count != 1 || call->argument_count != 2 || call->result_count != 0)
    return api->set_error(TAEDA_E_RUNTIME, "exp_plus: expected one output and one input");
  TRY(read_tensor(call->arguments[0].as.tensor, &out));
  TRY(read_tensor(call->arguments[1].as.tensor, &in));
  if (out.dtype != in.dtype || (out.dtype != TAEDA_FLOAT32 && out.dtype != TAEDA_FLOAT64))
    return api->set_error(TAEDA_E_NOT_IMPLEMENTED, "exp_plus: float32 and float64 only");
  if (out.ndim != in.ndim) return api->set_error(TAEDA_E_RUNTIME, "exp_plus: output and input differ in dimensions");
  int64_t at[TAEDA_MAX_DIMS] = {0};
  for (int64_t n = 0; n < out.numel; ++n) {
    int64_t to = 0, from = 0;
    for (int32_t d = 0; d < out.ndim; ++d) to += at[d] * out.strides[d], from += at[d] * in.strides[d];
    if (out.dtype == TAEDA_FLOAT64) ((double*)out.data)[to] = exp(((const double*)in.data)[from]) + 100;
    else ((float*)out.data)[to] = expf(((const float*)in.data)[from]) + 100;
    for (int32_t d = out.ndim - 1; d >= 0; --d) {
      if (++at[d] < out.sizes[d]) break;
      at[d] = 0;
    }
  }
  return TAEDA_OK;
}

static int32_t failing(void* context, const taeda_call* call) {
  (void)call;
  return api->set_error(*(const int32_t*)context, "the device is on fire");
}
static int32_t silent(void* context, const taeda_call* call) {
  (void)call;
  return *(const int32_t*)context;
}

/* A direct kernel: makes its result. Without an argument of its own it stores none. */
static int32_t forgetful(void* context, const taeda_call* call) {
  (void)context, (void)call;
  return TAEDA_OK;
}

/* Adds up in any order, which the user may not want; or has a choice, and says what it chose. */
static int32_t unordered(void* context, const taeda_call* call) {
  TRY(api->alert_not_deterministic("exp_plus"));
  return exp_plus(context, call);
}
static int64_t chosen;
static int32_t choosing(void* context, const taeda_call* call) {
  chosen = api->deterministic();
  return exp_plus(context, call);
}
TAEDA_PLUGIN_EXPORT int64_t last_choice(void);
TAEDA_PLUGIN_EXPORT int64_t last_choice(void) { return chosen; }

/* Fails on the way in a function of the table, and goes on all the same. */
static int32_t probing(void* context, const taeda_call* call) {
  taeda_op op;
  api->op_find("nobody_has_this", &op);
  return exp_plus(context, call);
}
/* Says one status with its text and gives another one back. */
static int32_t crossed(void* context, const taeda_call* call) {
  (void)call;
  api->set_error(TAEDA_E_VALUE, "the text that is meant");
  return *(const int32_t*)context;
}
static int32_t latin(void* context, const taeda_call* call) {
  (void)call;
  return api->set_error(*(const int32_t*)context,
                        "the k\xfc"
                        "che is on fire");
}

/* Direct kernels that answer wrongly: with their argument, retained or not, a null handle, or other elements. */
static int32_t borrowing(void* context, const taeda_call* call) {
  (void)context;
  call->results[0] = call->arguments[0];
  return TAEDA_OK;
}
static int32_t sharing(void* context, const taeda_call* call) {
  TRY(borrowing(context, call));
  api->tensor_retain(call->results[0].as.tensor);
  return TAEDA_OK;
}
static int32_t null_handle(void* context, const taeda_call* call) {
  (void)context;
  call->results[0] = tensor_value(NULL);
  return TAEDA_OK;
}
static int32_t fresh(const taeda_call* call, int32_t ndim, int32_t dtype) {
  const int64_t sizes[] = {2, 3, 4};
  taeda_tensor made;
  TRY(api->tensor_empty(ndim, sizes, NULL, dtype, call->device, &made));
  call->results[0] = tensor_value(made);
  return TAEDA_OK;
}
static int32_t cube(void* context, const taeda_call* call) {
  (void)context;
  return fresh(call, 3, TAEDA_INT64);
}
static int32_t halves(void* context, const taeda_call* call) {
  (void)context;
  return fresh(call, 2, TAEDA_FLOAT16);
}
static int32_t elsewhere(void* context, const taeda_call* call) {
  const int64_t sizes[] = {2, 2};
  const taeda_device meta = {1, 0};
  taeda_tensor made;
  (void)context;
  TRY(api->tensor_empty(2, sizes, NULL, TAEDA_INT64, meta, &made));
  call->results[0] = tensor_value(made);
  return TAEDA_OK;
}

static int32_t status;
static const struct {
  const char* name;
  taeda_call_fn function;
  void* context;
} choices[] = {{"exp_plus", exp_plus, NULL},       {"failing", failing, &status},  {"silent", silent, &status},
               {"forgetful", forgetful, NULL},     {"probing", probing, NULL},     {"crossed", crossed, &status},
               {"latin", latin, &status},          {"borrowing", borrowing, NULL}, {"sharing", sharing, NULL},
               {"null_handle", null_handle, NULL}, {"cube", cube, NULL},           {"halves", halves, NULL},
               {"elsewhere", elsewhere, NULL},     {"unordered", unordered, NULL}, {"choosing", choosing, NULL}};

/* Controls of the test; each gives the status of the table's function. */
TAEDA_PLUGIN_EXPORT int32_t put(const char* op, const char* kernel, int32_t replace, int32_t with_status);
TAEDA_PLUGIN_EXPORT int32_t put(const char* op, const char* kernel, int32_t replace, int32_t with_status) {
  status = with_status;
  for (size_t i = 0; i < sizeof choices / sizeof *choices; ++i)
    if (strcmp(choices[i].name, kernel) == 0)
      return (replace ? api->kernel_replace : api->kernel_register)(op, 0, choices[i].function, choices[i].context,
                                                                    "the kernels of the test", &registration);
  return -1;
}
TAEDA_PLUGIN_EXPORT int32_t take(void);
TAEDA_PLUGIN_EXPORT int32_t take(void) { return api->registration_remove(registration); }
TAEDA_PLUGIN_EXPORT int64_t count_calls(void);
TAEDA_PLUGIN_EXPORT int64_t count_calls(void) { return calls; }
TAEDA_PLUGIN_EXPORT const char* error_text(void);
TAEDA_PLUGIN_EXPORT const char* error_text(void) { return api->last_error(); }

static int32_t start(const taeda_api* given) {
  api = given;
  return TAEDA_OK;
}
DESCRIBE("kernels")
