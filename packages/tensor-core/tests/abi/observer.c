/* Layers: one that writes down every call and lets it go on, and ones that step in. */
#include <stdio.h>

#include "support.h"

#define POSITION 12

static uint64_t observing, stepping;
static char journal[1 << 16];
static size_t written;

static void note(const char* text) {
  const size_t length = strlen(text);
  if (written + length + 2 > sizeof journal) return;
  memcpy(journal + written, text, length);
  written += length;
  journal[written++] = '\n';
  journal[written] = 0;
}

static int32_t observe(void* context, const taeda_call* call) {
  taeda_op_info info = {.size = sizeof info};
  char line[256];
  (void)context;
  TRY(api->op_read(call->op, &info));
  const int32_t status = api->call_below(call);
  uint32_t results = 0;
  for (uint32_t i = 0; i < call->result_count; ++i)
    results += call->results[i].kind == TAEDA_VALUE_TENSORS ? (uint32_t)call->results[i].count
                                                            : call->results[i].kind != TAEDA_VALUE_NONE;
  snprintf(line, sizeof line, "%s %u->%u%s", info.name, (unsigned)call->argument_count, (unsigned)results,
           status ? " failed" : "");
  note(line);
  return status;
}

/* Doubles the first argument on its way down. */
static int32_t twice(void* context, const taeda_call* call) {
  taeda_value arguments[8], doubled;
  (void)context;
  if (call->argument_count > 8) return api->set_error(TAEDA_E_RUNTIME, "twice: too many arguments");
  memcpy(arguments, call->arguments, call->argument_count * sizeof *arguments);
  const taeda_value product[] = {arguments[0], float_value(2)};
  TRY(call1("mul", product, 2, &doubled));
  arguments[0] = doubled;
  taeda_call below = *call;
  below.arguments = arguments;
  const int32_t status = api->call_below(&below);
  api->value_release(&doubled);
  return status;
}
/* Answers itself: gives the first argument back. */
static int32_t same(void* context, const taeda_call* call) {
  (void)context;
  call->results[0] = call->arguments[0];
  api->tensor_retain(call->results[0].as.tensor);
  return TAEDA_OK;
}
static int32_t refuse(void* context, const taeda_call* call) {
  (void)context, (void)call;
  return api->set_error(TAEDA_E_INDEX, "no calls today");
}
static int32_t forget(void* context, const taeda_call* call) {
  (void)context, (void)call;
  return TAEDA_OK;
}
/* Stores the second of two results, and leaves the first out. */
static int32_t halfway(void* context, const taeda_call* call) {
  (void)context;
  TRY(api->call_below(call));
  api->value_release(&call->results[0]);
  return TAEDA_OK;
}
static int32_t elsewhere(void* context, const taeda_call* call) {
  const int64_t sizes[] = {4};
  const taeda_device meta = {1, 0};
  taeda_tensor made;
  (void)context;
  TRY(api->tensor_empty(1, sizes, NULL, TAEDA_FLOAT32, meta, &made));
  call->results[0] = tensor_value(made);
  return TAEDA_OK;
}
/* Gives a list of its own making where a list of taeda's is expected. */
static int32_t stack_list(void* context, const taeda_call* call) {
  static taeda_tensor items[1];
  (void)context;
  items[0] = call->arguments[0].as.tensor;
  call->results[0].kind = TAEDA_VALUE_TENSORS;
  call->results[0].count = 1;
  call->results[0].as.tensors = items;
  return TAEDA_OK;
}
/* Takes the list from below and gives its items in reverse. */
static int32_t reverse(void* context, const taeda_call* call) {
  (void)context;
  TRY(api->call_below(call));
  taeda_value* list = &call->results[0];
  if (list->kind != TAEDA_VALUE_TENSORS || list->count > 16) return api->set_error(TAEDA_E_RUNTIME, "reverse: no list");
  taeda_tensor turned[16];
  for (int64_t i = 0; i < list->count; ++i) {
    turned[i] = list->as.tensors[list->count - 1 - i];
    api->tensor_retain(turned[i]);
  }
  const int64_t count = list->count;
  api->value_release(list);
  return api->value_tensors(turned, count, list);
}

static const struct {
  const char* name;
  taeda_call_fn function;
} choices[] = {{"observe", observe}, {"twice", twice},     {"same", same},
               {"refuse", refuse},   {"forget", forget},   {"stack_list", stack_list},
               {"reverse", reverse}, {"halfway", halfway}, {"elsewhere", elsewhere}};

TAEDA_PLUGIN_EXPORT int32_t put(const char* op, const char* layer, int32_t position);
TAEDA_PLUGIN_EXPORT int32_t put(const char* op, const char* layer, int32_t position) {
  for (size_t i = 0; i < sizeof choices / sizeof *choices; ++i)
    if (strcmp(choices[i].name, layer) == 0)
      return api->layer_register(op, position, choices[i].function, NULL, "the layers of the test",
                                 choices[i].function == observe ? &observing : &stepping);
  return -1;
}
TAEDA_PLUGIN_EXPORT int32_t take(int32_t observer);
TAEDA_PLUGIN_EXPORT int32_t take(int32_t observer) { return api->registration_remove(observer ? observing : stepping); }
TAEDA_PLUGIN_EXPORT int32_t turn(int32_t position, int32_t on);
TAEDA_PLUGIN_EXPORT int32_t turn(int32_t position, int32_t on) {
  int32_t before = -1;
  const int32_t status = api->layer_switch(position, on, &before);
  return status == TAEDA_OK ? 100 + before : status;
}
/* Everything written down since the last time. */
TAEDA_PLUGIN_EXPORT const char* read_journal(void);
TAEDA_PLUGIN_EXPORT const char* read_journal(void) {
  static char out[sizeof journal];
  memcpy(out, journal, written);
  out[written] = 0;
  written = 0;
  return out;
}
TAEDA_PLUGIN_EXPORT const char* error_text(void);
TAEDA_PLUGIN_EXPORT const char* error_text(void) { return api->last_error(); }

static int32_t start(const taeda_api* given) {
  api = given;
  return TAEDA_OK;
}
DESCRIBE("observer")
