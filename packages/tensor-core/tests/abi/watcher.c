/* Observers: one writes down what it sees, others call operators, take themselves away, or go wrong. */
#include <stdio.h>

#include "support.h"

static uint64_t registrations[4];
static char journal[1 << 14];
static size_t written;
static int32_t last_status;
static taeda_observed kept;

static void note(const char* text) {
  const size_t length = strlen(text);
  if (written + length + 1 > sizeof journal) return;
  memcpy(journal + written, text, length + 1);
  written += length;
}

static int32_t note_tensor(void* context, taeda_tensor tensor) {
  taeda_tensor_info info;
  char line[32];
  (void)context;
  TRY(read_tensor(tensor, &info));
  snprintf(line, sizeof line, " %d", (int)info.numel);
  note(line);
  return TAEDA_OK;
}
static void note_call(const char* how, const taeda_observed* call) {
  taeda_op_info info = {.size = sizeof info};
  api->op_read(call->op, &info);
  note(how);
  note(info.name);
  last_status = api->observed_tensors(call, note_tensor, NULL);
  note(call->failed ? " failed\n" : "\n");
}
static void begin(void* context, const taeda_observed* call) {
  (void)context;
  kept = *call;
  note_call("+", call);
}
static void end(void* context, const taeda_observed* call) {
  (void)context;
  note_call("-", call);
}

/* Writes down what is told beside calls: spans, memory, the numbers of recorded calls and whole arguments. */
static void note_span(const char* how, const taeda_span* span) {
  char line[128];
  snprintf(line, sizeof line, "%s%s %d %d\n", how, span->name, (int)span->kind, span->sequence != 0);
  note(line);
}
static void span_begin(void* context, const taeda_span* span) {
  (void)context;
  note_span("(", span);
}
static void span_end(void* context, const taeda_span* span) {
  (void)context;
  note_span(")", span);
}
static void memory(void* context, const taeda_memory_use* use) {
  char line[64];
  (void)context;
  snprintf(line, sizeof line, "memory %d\n", (int)use->bytes);
  note(line);
}
static int32_t note_kinds(void* context, const taeda_value* arguments, uint32_t count) {
  char line[32];
  uint32_t i;
  (void)context;
  for (i = 0; i < count; ++i) {
    snprintf(line, sizeof line, " %d", (int)arguments[i].kind);
    note(line);
  }
  return TAEDA_OK;
}
static void wide_end(void* context, const taeda_observed* call) {
  taeda_op_info info = {.size = sizeof info};
  (void)context;
  api->op_read(call->op, &info);
  note(info.name);
  last_status = api->observed_arguments(call, note_kinds, NULL);
  note(call->sequence ? " recorded\n" : "\n");
}

/* Calls an operator of its own for each call, and one that fails. */
static void busy(void* context, const taeda_observed* call) {
  taeda_op op;
  taeda_value numbers[] = {int_value(2), int_value(3)}, sum;
  (void)context, (void)call;
  if (call1("add", numbers, 2, &sum) == TAEDA_OK) api->value_release(&sum);
  api->op_find("nobody_has_this", &op);
  note("busy\n");
}
/* Takes itself away at the first call. */
static void once(void* context, const taeda_observed* call) {
  (void)call;
  note("once\n");
  last_status = api->observer_remove(*(uint64_t*)context);
}
static int32_t stop(void* context, taeda_tensor tensor) {
  (void)context, (void)tensor;
  note("stop\n");
  return 4321;
}
static void stopping(void* context, const taeda_observed* call) {
  (void)context;
  last_status = api->observed_tensors(call, stop, NULL);
}

TAEDA_PLUGIN_EXPORT int32_t put(const char* name);
TAEDA_PLUGIN_EXPORT int32_t put(const char* name) {
  taeda_observer observer = {.size = sizeof observer};
  int which = 0;
  if (strcmp(name, "journal") == 0) {
    observer.begin = begin, observer.end = end;
  } else if (strcmp(name, "wide") == 0) {
    observer.end = wide_end, observer.span_begin = span_begin, observer.span_end = span_end, observer.memory = memory;
  } else if (strcmp(name, "busy") == 0) {
    which = 1;
    observer.begin = observer.end = busy;
  } else if (strcmp(name, "once") == 0) {
    which = 2;
    observer.begin = observer.end = once;
    observer.context = &registrations[2];
  } else {
    which = 3;
    observer.begin = stopping;
  }
  return api->observer_add(&observer, &registrations[which]);
}
TAEDA_PLUGIN_EXPORT int32_t take(int32_t which);
TAEDA_PLUGIN_EXPORT int32_t take(int32_t which) { return api->observer_remove(registrations[which]); }
TAEDA_PLUGIN_EXPORT int32_t get_status(void);
TAEDA_PLUGIN_EXPORT int32_t get_status(void) { return last_status; }
/* Asks for the tensors of a call that has ended, and of none. */
TAEDA_PLUGIN_EXPORT int32_t ask_late(void);
TAEDA_PLUGIN_EXPORT int32_t ask_late(void) {
  const int32_t status = api->observed_tensors(&kept, note_tensor, NULL);
  return status == api->observed_tensors(NULL, note_tensor, NULL) ? status : -1;
}
TAEDA_PLUGIN_EXPORT int32_t ask_late_for_all(void);
TAEDA_PLUGIN_EXPORT int32_t ask_late_for_all(void) { return api->observed_arguments(&kept, note_kinds, NULL); }
/* A span of this library's own; no name is none. */
TAEDA_PLUGIN_EXPORT int32_t tell_span(const char* name);
TAEDA_PLUGIN_EXPORT int32_t tell_span(const char* name) {
  const taeda_span span = {sizeof span, name, TAEDA_SPAN_WAIT, 0, 0};
  TRY(api->span_begin(&span));
  return api->span_end(&span);
}
TAEDA_PLUGIN_EXPORT const char* read_journal(void);
TAEDA_PLUGIN_EXPORT const char* read_journal(void) {
  static char out[sizeof journal];
  memcpy(out, journal, written + 1);
  journal[written = 0] = 0;
  return out;
}
TAEDA_PLUGIN_EXPORT const char* error_text(void);
TAEDA_PLUGIN_EXPORT const char* error_text(void) { return api->last_error(); }

static int32_t start(const taeda_api* given) {
  api = given;
  return TAEDA_OK;
}
DESCRIBE("watcher")
