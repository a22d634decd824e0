/* What the test plug-ins share: the table, passing errors on, and describing themselves. */
#ifndef SUPPORT_H
#define SUPPORT_H
#include <stdlib.h>
#include <string.h>
#include <taeda/abi.h>

static const taeda_api* api;

#ifndef STATED_MINOR
#define STATED_MINOR TAEDA_ABI_MINOR
#endif

/* Leaves the function with the status of `expression` unless that is TAEDA_OK. */
#define TRY(expression)                      \
  do {                                       \
    const int32_t status_ = (expression);    \
    if (status_ != TAEDA_OK) return status_; \
  } while (0)

static inline taeda_value tensor_value(taeda_tensor tensor) {
  taeda_value out = {.kind = TAEDA_VALUE_TENSOR};
  out.as.tensor = tensor;
  return out;
}
static inline taeda_value int_value(int64_t number) {
  taeda_value out = {.kind = TAEDA_VALUE_INT};
  out.as.integer = number;
  return out;
}
static inline taeda_value float_value(double number) {
  taeda_value out = {.kind = TAEDA_VALUE_FLOAT};
  out.as.real = number;
  return out;
}

static inline int32_t read_tensor(taeda_tensor tensor, taeda_tensor_info* info) {
  memset(info, 0, sizeof *info);
  info->size = sizeof *info;
  return api->tensor_read(tensor, info);
}

/* Calls an operator by name for its first result. */
static inline int32_t call1(const char* name, const taeda_value* arguments, uint32_t count, taeda_value* result) {
  taeda_op op;
  TRY(api->op_find(name, &op));
  return api->op_call(op, arguments, count, result, 1);
}

#define DESCRIBE(plugin_name)                                                         \
  static const taeda_plugin description = {.size = sizeof(taeda_plugin),              \
                                           .abi_major = TAEDA_ABI_MAJOR,              \
                                           .abi_minor = STATED_MINOR,                 \
                                           .name = plugin_name,                       \
                                           .distribution = "taeda-test-" plugin_name, \
                                           .start = start};                           \
  TAEDA_PLUGIN_EXPORT const taeda_plugin* taeda_plugin_describe(void);                \
  TAEDA_PLUGIN_EXPORT const taeda_plugin* taeda_plugin_describe(void) { return &description; }

#endif
