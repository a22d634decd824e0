/* The plug-in: what taeda is told of the device, and copies between it and the host. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

const taeda_api* api;
int32_t sim_number;

/* --- failures on request: "allocate:3" makes the third allocation from now on fail --- */

static const char* const kNames[FAIL_KINDS] = {"allocate", "copy", "launch", "kernel", "synchronize"};
static atomic_llong countdown[FAIL_KINDS]; /* 0: never */
static atomic_bool races;

bool sim_must_fail(int what) { return atomic_load(&countdown[what]) > 0 && atomic_fetch_sub(&countdown[what], 1) == 1; }

/* The `nth` event of a kind fails, counted from 1; 0 takes the request back. Gives 0, or -1 for an unknown kind. */
TAEDA_PLUGIN_EXPORT int32_t sim_fail(const char* what, int64_t nth) {
  for (int i = 0; i < FAIL_KINDS; ++i)
    if (strcmp(what, kNames[i]) == 0) return atomic_store(&countdown[i], nth), 0;
  return -1;
}
bool sim_races(void) { return atomic_load(&races); }
TAEDA_PLUGIN_EXPORT void sim_race(int32_t on) { atomic_store(&races, on != 0); }

/* From the environment: TAEDA_SIM_FAIL="kernel:5". */
static void read_failures(void) {
  const char* text = getenv("TAEDA_SIM_FAIL");
  char what[16];
  long long nth;
  if (text && sscanf(text, "%15[a-z]:%lld", what, &nth) == 2) sim_fail(what, nth);
}

/* --- the device --- */

static int32_t device_count(void* context, int32_t* count) {
  *count = kDevices;
  return TAEDA_OK;
}

typedef struct Copy {
  Job job;
  void* to;
  const void* from;
} Copy;
static int32_t run_copy(Job* job) {
  const Copy* self = (Copy*)job;
  if (sim_must_fail(FAIL_COPY)) return fail(job, TAEDA_E_RUNTIME, "a copy failed on request");
  memcpy(self->to, self->from, self->job.nbytes);
  return TAEDA_OK;
}
static int32_t copy(const char* name, int32_t index, void* to, const void* from, size_t nbytes, taeda_stream stream,
                    int32_t blocking) {
  Copy* made = malloc(sizeof *made);
  if (!made) return api->set_error(TAEDA_E_MEMORY, "out of host memory");
  *made = (Copy){{.run = run_copy, .end = sim_free_job, .name = name, .nbytes = nbytes}, to, from};
  Stream* queue = sim_stream(index, stream);
  sim_submit(queue, &made->job);
  return blocking ? sim_wait(queue) : TAEDA_OK;
}
static int32_t copy_from_host(void* context, int32_t index, void* to, const void* from, size_t nbytes, taeda_stream stream,
                              int32_t blocking) {
  return copy("copy from host", index, worker_view(to), from, nbytes, stream, blocking);
}
static int32_t copy_to_host(void* context, int32_t index, void* to, const void* from, size_t nbytes, taeda_stream stream,
                            int32_t blocking) {
  return copy("copy to host", index, to, worker_view(from), nbytes, stream, blocking);
}
static int32_t copy_peer(void* context, int32_t to_index, void* to, int32_t from_index, const void* from, size_t nbytes,
                         taeda_stream stream) {
  Stream* source = sim_stream(from_index, api->stream_current((taeda_device){sim_number, from_index}));
  Stream* target = sim_stream(to_index, stream);
  sim_order(source, target); /* the bytes must be there before they are fetched, ... */
  const int32_t status = copy("copy between devices", to_index, worker_view(to), worker_view(from), nbytes, stream, false);
  sim_order(target, source); /* ... and stay until they were */
  return status;
}

/* Products of matrices make whole rows of images; all else goes from element to element of what it is given. */
static int32_t image_layout(void* context, int32_t index, const taeda_image_result* result, int32_t* layout) {
  const bool rows = strncmp(result->op, "conv", 4) == 0 || result->input_layout != TAEDA_IMAGE_CHANNELS_LAST;
  *layout = rows ? TAEDA_IMAGE_ROW_MAJOR : TAEDA_IMAGE_CHANNELS_LAST;
  return TAEDA_OK;
}

static const taeda_lack kLacks[] = {
    {"complex", "the simulated processor has no complex numbers"},
    {"bfloat16", "the simulated processor has no such numbers"},
    {"uint64", "the simulated processor has no such numbers"},
    {"sharing", "its memory belongs to one process"},
};

static int32_t start(const taeda_api* given) {
  api = given;
  read_failures();
  taeda_backend backend = {
      .size = sizeof backend,
      .name = "sim",
      .distribution = "taeda-backend-sim",
      .capabilities = TAEDA_CAN_STREAMS | TAEDA_CAN_EVENT_TIMING,
      .lacks = kLacks,
      .lack_count = sizeof kLacks / sizeof *kLacks,
      .device_count = device_count,
      .copy_from_host = copy_from_host,
      .copy_to_host = copy_to_host,
      .copy_peer = copy_peer,
      .image_layout = image_layout,
  };
  sim_offer_streams(&backend);
  sim_offer_more(&backend);
  int32_t status = sim_offer_memory(&backend);
  if (status == TAEDA_OK) status = api->backend_register(&backend, &sim_number);
  if (status == TAEDA_OK) status = sim_register_elementwise();
  const Kernel* const families[] = {kLineKernels, kIndexKernels, kProductKernels, kPoolKernels, kRandomKernels};
  for (size_t i = 0; i < sizeof families / sizeof *families && status == TAEDA_OK; ++i) status = sim_register(families[i]);
  return status == TAEDA_OK ? sim_register_more() : status;
}

static const taeda_plugin kPlugin = {
    .size = sizeof kPlugin,
    .abi_major = TAEDA_ABI_MAJOR,
    .abi_minor = 1, /* what it needs; of newer members it asks whether they are there */
    .name = "sim",
    .distribution = "taeda-backend-sim",
    .start = start,
};
TAEDA_PLUGIN_EXPORT const taeda_plugin* taeda_plugin_describe(void) { return &kPlugin; }
