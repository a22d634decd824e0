/* The plug-in: what taeda is told of the device, and copies between it and the host. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

const taeda_api* api;
int32_t sim_number;

static int32_t device_count(void* context, int32_t* count) {
  (void)context;
  *count = kDevices;
  return TAEDA_OK;
}

typedef struct Copy {
  Job job;
  void* to;
  const void* from;
  size_t nbytes;
} Copy;
static int32_t run_copy(Job* job) {
  const Copy* self = (Copy*)job;
  if (sim_must_fail(FAIL_COPY)) return fail(job, TAEDA_E_RUNTIME, "sim: a copy failed on request");
  memcpy(self->to, self->from, self->nbytes);
  return TAEDA_OK;
}
static void end_copy(Job* job) { free(job); }

static int32_t copy(int32_t index, void* to, const void* from, size_t nbytes, taeda_stream stream, bool blocking) {
  Copy* made = malloc(sizeof *made);
  if (!made) return api->set_error(TAEDA_E_MEMORY, "sim: out of host memory");
  *made = (Copy){{.run = run_copy, .end = end_copy}, to, from, nbytes};
  Stream* queue = sim_stream(index, stream);
  sim_submit(queue, &made->job);
  return blocking ? sim_wait(queue) : TAEDA_OK;
}
static int32_t copy_from_host(void* context, int32_t index, void* to, const void* from, size_t nbytes,
                              taeda_stream stream, int32_t blocking) {
  (void)context;
  return copy(index, worker_view(to), from, nbytes, stream, blocking);
}
static int32_t copy_to_host(void* context, int32_t index, void* to, const void* from, size_t nbytes,
                            taeda_stream stream, int32_t blocking) {
  (void)context;
  return copy(index, to, worker_view(from), nbytes, stream, blocking);
}
static int32_t copy_peer(void* context, int32_t to_index, void* to, int32_t from_index, const void* from, size_t nbytes,
                         taeda_stream stream) {
  /* The bytes must be there before they are fetched, and stay until they were. */
  Stream* source = sim_stream(from_index, api->stream_current((taeda_device){sim_number, from_index}));
  Stream* target = sim_stream(to_index, stream);
  sim_order(source, target);
  const int32_t status = copy(to_index, worker_view(to), worker_view(from), nbytes, stream, false);
  sim_order(target, source);
  (void)context;
  return status;
}

static const taeda_lack kLacks[] = {

    {"sharing", "its memory belongs to one process"},
};

static int32_t start(const taeda_api* given) {
  api = given;
  sim_read_failures();
  if (sim_map_memory() != 0) return api->set_error(TAEDA_E_MEMORY, "sim: cannot map the device's memory");
  const taeda_backend backend = {
      .size = sizeof backend,
      .name = "sim",
      .distribution = "taeda-backend-sim",
      .capabilities = TAEDA_CAN_STREAMS | TAEDA_CAN_EVENT_TIMING,
      .lacks = kLacks,
      .lack_count = sizeof kLacks / sizeof *kLacks,
      .device_count = device_count,
      .allocate = sim_allocate,
      .release = sim_release,
      .copy_from_host = copy_from_host,
      .copy_to_host = copy_to_host,
      .synchronize = sim_synchronize,
      .copy_peer = copy_peer,
      .stream_create = sim_stream_create,
      .stream_destroy = sim_stream_destroy,
      .stream_synchronize = sim_stream_synchronize,
      .stream_query = sim_stream_query,
      .stream_uses = sim_stream_uses,
      .event_create = sim_event_create,
      .event_destroy = sim_event_destroy,
      .event_record = sim_event_record,
      .event_wait = sim_event_wait,
      .event_synchronize = sim_event_synchronize,
      .event_query = sim_event_query,
      .event_elapsed = sim_event_elapsed,
      .pinned_allocate = sim_pinned_allocate,
      .pinned_release = sim_pinned_release,
      .properties = sim_properties,
  };
  const int32_t status = api->backend_register(&backend, &sim_number);
  return status == TAEDA_OK ? sim_register_kernels() : status;
}

static const taeda_plugin kPlugin = {
    .size = sizeof kPlugin,
    .abi_major = TAEDA_ABI_MAJOR,
    .abi_minor = TAEDA_ABI_MINOR,
    .name = "sim",
    .distribution = "taeda-backend-sim",
    .start = start,
};

TAEDA_PLUGIN_EXPORT const taeda_plugin* taeda_plugin_describe(void) { return &kPlugin; }
