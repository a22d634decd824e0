/* Kernels that state the schema which they were written for: older, newer, and of an operator that has changed its
 * kind. */
#include "support.h"

static uint32_t arguments, outputs;
static double last_number;
static uint64_t registration;

/* Fills its outputs with the number of arguments that it was given, and remembers the last one. */
static int32_t counting(void* context, const taeda_call* call) {
  (void)context;
  arguments = call->argument_count, outputs = call->output_count;
  const taeda_value* last = call->arguments + arguments - 1;
  last_number = last->kind == TAEDA_VALUE_FLOAT                                   ? last->as.real
                : last->kind == TAEDA_VALUE_INT || last->kind == TAEDA_VALUE_BOOL ? (double)last->as.integer
                                                                                  : -1;
  for (uint32_t i = 0; i < outputs; ++i) {
    taeda_op fill;
    TRY(api->op_find("fill_", &fill));
    const taeda_value given[] = {call->arguments[i], float_value(arguments)};
    TRY(api->op_call(fill, given, 2, NULL, 0));
  }
  return TAEDA_OK;
}
/* Gives a result of the shape of its first argument, filled likewise. */
static int32_t giving(void* context, const taeda_call* call) {
  taeda_value made;
  (void)context;
  arguments = call->argument_count, outputs = call->output_count;
  const taeda_value given[] = {call->arguments[0], float_value(arguments)};
  TRY(call1("full_like", given, 2, &made));
  call->results[0] = made;
  return TAEDA_OK;
}

TAEDA_PLUGIN_EXPORT int32_t put(const char* op, const char* schema, int32_t direct, int32_t backend);
TAEDA_PLUGIN_EXPORT int32_t put(const char* op, const char* schema, int32_t direct, int32_t backend) {
  const taeda_kernel kernel = {.size = sizeof kernel,
                               .op = op,
                               .schema = schema,
                               .kind = direct ? TAEDA_KIND_DIRECT : TAEDA_KIND_STRUCTURED,
                               .backend = backend,
                               .flags = TAEDA_KERNEL_REPLACE,
                               .function = direct ? giving : counting,
                               .owner = "the contract's test"};
  registration = 0;
  return api->kernel_add(&kernel, &registration);
}
TAEDA_PLUGIN_EXPORT int32_t take(void);
TAEDA_PLUGIN_EXPORT int32_t take(void) { return api->registration_remove(registration); }
TAEDA_PLUGIN_EXPORT int32_t seen_arguments(void);
TAEDA_PLUGIN_EXPORT int32_t seen_arguments(void) { return (int32_t)arguments; }
TAEDA_PLUGIN_EXPORT int32_t seen_outputs(void);
TAEDA_PLUGIN_EXPORT int32_t seen_outputs(void) { return (int32_t)outputs; }
TAEDA_PLUGIN_EXPORT double seen_number(void);
TAEDA_PLUGIN_EXPORT double seen_number(void) { return last_number; }
TAEDA_PLUGIN_EXPORT const char* error_text(void);
TAEDA_PLUGIN_EXPORT const char* error_text(void) { return api->last_error(); }

static int32_t start(const taeda_api* given) {
  api = given;
  return TAEDA_OK;
}
DESCRIBE("contract")
