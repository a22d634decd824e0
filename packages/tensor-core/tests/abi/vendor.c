/* What makers of devices add: a format of numbers, an operator that writes to its argument, kernels of composites. */
#include <math.h>

#include "support.h"

#ifndef PACKAGE
#define PACKAGE "vendor"
#endif

/* --- "quarters": an int8 that counts quarters --- */

static void decode(void* context, const uint8_t* codes, float* numbers, size_t count) {
  (void)context;
  for (size_t i = 0; i < count; ++i) numbers[i] = (float)(int8_t)codes[i] / 4;
}
static void encode(void* context, const float* numbers, uint8_t* codes, size_t count) {
  (void)context;
  for (size_t i = 0; i < count; ++i) {
    const float quarters = isnan(numbers[i]) ? 0 : nearbyintf(fminf(fmaxf(numbers[i] * 4, -128), 127));
    codes[i] = (uint8_t)(int8_t)quarters;
  }
}
static int32_t code = -1;
TAEDA_PLUGIN_EXPORT int32_t define(const char* name, uint32_t bits);
TAEDA_PLUGIN_EXPORT int32_t define(const char* name, uint32_t bits) {
  const taeda_dtype quarters = {.size = sizeof quarters,
                                .name = name,
                                .owner = "the vendor's test",
                                .bits = bits,
                                .decode = decode,
                                .encode = encode};
  return api->dtype_define(&quarters, &code);
}
TAEDA_PLUGIN_EXPORT int32_t defined_code(const char* name);
TAEDA_PLUGIN_EXPORT int32_t defined_code(const char* name) {
  int32_t found = -1;
  return api->dtype_find(name, &found) == TAEDA_OK ? found : -1;
}

/* --- vendor::raise_(Tensor(a!) self, float by=1.0): float64 elements in a row --- */

static int32_t raise_kernel(void* context, const taeda_call* call) {
  taeda_tensor_info info;
  (void)context;
  TRY(read_tensor(call->arguments[0].as.tensor, &info));
  if (info.dtype != TAEDA_FLOAT64 || !(info.flags & TAEDA_TENSOR_CONTIGUOUS))
    return api->set_error(TAEDA_E_TYPE, "raise_: contiguous float64 only");
  for (int64_t i = 0; i < info.numel; ++i) ((double*)info.data)[i] += call->arguments[1].as.real;
  return TAEDA_OK;
}

/* --- softsign on the cpu: of one dimension it is three times its argument, else it has no way --- */

static int64_t asked;
static int32_t softsign(void* context, const taeda_call* call) {
  taeda_tensor_info info;
  (void)context;
  ++asked;
  TRY(read_tensor(call->arguments[0].as.tensor, &info));
  if (info.ndim != 1) return TAEDA_DECLINED;
  const taeda_value given[] = {call->arguments[0], float_value(3)};
  return call1("mul", given, 2, call->results);
}
static int32_t decline(void* context, const taeda_call* call) { return (void)context, (void)call, TAEDA_DECLINED; }

static uint64_t registration;
TAEDA_PLUGIN_EXPORT int32_t put(const char* op, uint32_t flags);
TAEDA_PLUGIN_EXPORT int32_t put(const char* op, uint32_t flags) {
  const int32_t composite = strcmp(op, "softsign") == 0;
  const taeda_kernel kernel = {.size = sizeof kernel,
                               .op = op,
                               .kind = composite ? TAEDA_KIND_DIRECT : TAEDA_KIND_STRUCTURED,
                               .flags = flags,
                               .function = composite ? softsign : decline,
                               .owner = "the vendor's test"};
  return api->kernel_add(&kernel, &registration);
}
TAEDA_PLUGIN_EXPORT int32_t take(void);
TAEDA_PLUGIN_EXPORT int32_t take(void) { return api->registration_remove(registration); }
TAEDA_PLUGIN_EXPORT int64_t times_asked(void);
TAEDA_PLUGIN_EXPORT int64_t times_asked(void) { return asked; }
TAEDA_PLUGIN_EXPORT int32_t current_device(int32_t backend);
TAEDA_PLUGIN_EXPORT int32_t current_device(int32_t backend) { return api->device_current(backend); }
TAEDA_PLUGIN_EXPORT const char* error_text(void);
TAEDA_PLUGIN_EXPORT const char* error_text(void) { return api->last_error(); }

static int32_t start(const taeda_api* given) {
  api = given;
  const taeda_operator raise = {.size = sizeof raise,
                                .schema = PACKAGE "::raise_(Tensor(a!) self, float by=1.0) -> ()",
                                .owner = "the vendor's test"};
  TRY(api->op_define(&raise, NULL));
  return api->kernel_register(PACKAGE "::raise_", 0, raise_kernel, NULL, "the vendor's test", NULL);
}
DESCRIBE("vendor")
