/* A device with the optional functions: memory that other processes open, pinned memory with copies that wait, events,
 * a random state of its own. Tests make it misbehave. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

#ifndef DEVICE_NAME
#define DEVICE_NAME "optional"
#endif
enum { kDevices = 2, kBlocks = 256, kJobs = 256 };

static int32_t number;

/* --- misbehaving --- */

static char silent[32]; /* a function that says that all is well and makes nothing */
TAEDA_PLUGIN_EXPORT void keep_silent(const char* function);
TAEDA_PLUGIN_EXPORT void keep_silent(const char* function) { snprintf(silent, sizeof silent, "%s", function); }
#define UNLESS_SILENT \
  if (strcmp(silent, __func__) == 0) return TAEDA_OK

/* --- a queue of jobs, done when somebody waits --- */

typedef struct Event {
  int recorded, reached;
} Event;
typedef struct Job {
  void* to;
  const void* from;
  size_t nbytes;
  Event* event;
} Job;
static Job jobs[kJobs];
static int job_count;

TAEDA_PLUGIN_EXPORT void run_queue(void);
TAEDA_PLUGIN_EXPORT void run_queue(void) {
  for (int i = 0; i < job_count; ++i) {
    if (jobs[i].event) ++jobs[i].event->reached;
    else memcpy(jobs[i].to, jobs[i].from, jobs[i].nbytes);
  }
  job_count = 0;
}
static int32_t put(Job job, bool wait) {
  if (job_count == kJobs) return api->set_error(TAEDA_E_RUNTIME, "the queue is full");
  jobs[job_count++] = job;
  if (wait) run_queue();
  return TAEDA_OK;
}
static int32_t synchronize(void* context, int32_t index) {
  (void)context, (void)index;
  run_queue();
  return TAEDA_OK;
}
static int32_t copy_from_host(void* context, int32_t index, void* to, const void* from, size_t nbytes,
                              taeda_stream stream, int32_t blocking) {
  (void)context, (void)index, (void)stream;
  return put((Job){.to = to, .from = from, .nbytes = nbytes}, blocking);
}
static int32_t copy_to_host(void* context, int32_t index, void* to, const void* from, size_t nbytes,
                            taeda_stream stream, int32_t blocking) {
  return copy_from_host(context, index, to, from, nbytes, stream, blocking);
}

/* --- memory: files without a name, which others open by way of the process that made them --- */

typedef struct Block {
  void* data;
  int file;
} Block;
static Block blocks[kBlocks];
static int opened;

static void* map(int file, size_t nbytes) {
  void* data = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return data == MAP_FAILED ? NULL : data;
}
static Block* find(const void* data) {
  for (int i = 0; i < kBlocks; ++i)
    if (blocks[i].data == data) return &blocks[i];
  return NULL;
}
static int32_t device_count(void* context, int32_t* count) {
  (void)context;
  *count = kDevices;
  return TAEDA_OK;
}
static int32_t allocate(void* context, int32_t index, size_t nbytes, taeda_stream stream, void** data) {
  (void)context, (void)index, (void)stream;
  UNLESS_SILENT;
  Block* block = find(NULL);
  const int file = block ? memfd_create("taeda-test", MFD_CLOEXEC) : -1;
  if (file < 0 || ftruncate(file, (off_t)nbytes) != 0) return api->set_error(TAEDA_E_MEMORY, "no memory");
  *block = (Block){map(file, nbytes), file};
  *data = block->data;
  return TAEDA_OK;
}
static void release(void* context, int32_t index, void* data, size_t nbytes) {
  (void)context, (void)index;
  Block* block = find(data);
  run_queue();
  munmap(data, nbytes);
  close(block->file);
  *block = (Block){0};
}

static int32_t memory_export(void* context, int32_t index, void* data, size_t nbytes, void* description,
                             size_t* description_size) {
  (void)context, (void)index, (void)nbytes;
  const Block* block = find(data);
  if (!block) return api->set_error(TAEDA_E_VALUE, "this memory is another process's");
  const int size = snprintf(description, *description_size, "/proc/%d/fd/%d", (int)getpid(), block->file);
  *description_size = strcmp(silent, __func__) == 0 ? *description_size + 1 : (size_t)size;
  return TAEDA_OK;
}
static int32_t memory_import(void* context, int32_t index, const void* description, size_t description_size,
                             void** data) {
  (void)context, (void)index;
  UNLESS_SILENT;
  char path[64];
  struct stat facts;
  snprintf(path, sizeof path, "%.*s", (int)description_size, (const char*)description);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0 || fstat(file, &facts) != 0) return api->set_error(TAEDA_E_VALUE, "the memory is gone");
  *data = map(file, (size_t)facts.st_size);
  close(file);
  ++opened;
  return TAEDA_OK;
}
static void memory_close(void* context, int32_t index, void* data, size_t nbytes) {
  (void)context, (void)index;
  munmap(data, nbytes);
  --opened;
}
TAEDA_PLUGIN_EXPORT int imports(void);
TAEDA_PLUGIN_EXPORT int imports(void) { return opened; }

static int pinned;
static int32_t pinned_allocate(void* context, size_t nbytes, void** data) {
  (void)context;
  UNLESS_SILENT;
  *data = malloc(nbytes);
  ++pinned;
  return TAEDA_OK;
}
static void pinned_release(void* context, void* data, size_t nbytes) {
  (void)context;
  memset(data, 0xee, nbytes); /* whoever still reads it notices */
  free(data);
  --pinned;
}
TAEDA_PLUGIN_EXPORT int pinned_blocks(void);
TAEDA_PLUGIN_EXPORT int pinned_blocks(void) { return pinned; }

/* --- streams and events: all in the one queue --- */

static int32_t stream_create(void* context, int32_t index, int32_t priority, taeda_stream* stream) {
  (void)context, (void)index, (void)priority;
  UNLESS_SILENT;
  *stream = malloc(1);
  return TAEDA_OK;
}
static void stream_destroy(void* context, int32_t index, taeda_stream stream) {
  (void)context, (void)index;
  free(stream);
}
static int32_t event_create(void* context, int32_t index, uint32_t flags, taeda_event* event) {
  (void)context, (void)index, (void)flags;
  UNLESS_SILENT;
  *event = calloc(1, sizeof(Event));
  return TAEDA_OK;
}
static void event_destroy(void* context, int32_t index, taeda_event event) {
  (void)context, (void)index;
  run_queue();
  free(event);
}
static int32_t event_record(void* context, int32_t index, taeda_event event, taeda_stream stream) {
  (void)context, (void)index, (void)stream;
  if (strcmp(silent, __func__) == 0) return api->set_error(TAEDA_E_RUNTIME, "no more marks");
  ++((Event*)event)->recorded;
  return put((Job){.event = event}, false);
}
static int32_t event_wait(void* context, int32_t index, taeda_event event, taeda_stream stream) {
  (void)context, (void)index, (void)event, (void)stream;
  return TAEDA_OK;
}
static int32_t event_synchronize(void* context, int32_t index, taeda_event event) {
  (void)event;
  return synchronize(context, index);
}
static int32_t event_query(void* context, int32_t index, taeda_event event, int32_t* done) {
  (void)context, (void)index;
  *done = ((Event*)event)->reached == ((Event*)event)->recorded;
  return TAEDA_OK;
}
static int32_t event_elapsed(void* context, int32_t index, taeda_event from, taeda_event to, double* milliseconds) {
  (void)context, (void)index, (void)from, (void)to;
  *milliseconds = 1.5;
  return TAEDA_OK;
}

/* --- randomness --- */

static uint64_t seeds[kDevices], offsets[kDevices];
static int32_t random_set(void* context, int32_t index, uint64_t seed, uint64_t offset) {
  (void)context;
  uint64_t ours, first;
  if (seed == UINT64_C(0x1313131313)) return api->set_error(TAEDA_E_VALUE, "this seed is unlucky");
  TRY(api->generator_reserve(NULL, (taeda_device){number, index}, 1, &ours, &first));
  seeds[index] = seed;
  offsets[index] = offset;
  return TAEDA_OK;
}
static int32_t random_get(void* context, int32_t index, uint64_t* seed, uint64_t* offset) {
  (void)context;
  *seed = seeds[index];
  *offset = offsets[index];
  return strcmp(silent, __func__) == 0 ? api->set_error(TAEDA_E_RUNTIME, "lost count") : TAEDA_OK;
}
/* Takes a number of the device's own; gives its seed. */
TAEDA_PLUGIN_EXPORT uint64_t draw(int index);
TAEDA_PLUGIN_EXPORT uint64_t draw(int index) { return ++offsets[index], seeds[index]; }

static int32_t start(const taeda_api* given) {
  taeda_backend backend = {.size = sizeof backend,
                           .name = DEVICE_NAME,
                           .distribution = "taeda-test-" DEVICE_NAME,
                           .capabilities = TAEDA_CAN_HOST_READ | TAEDA_CAN_STREAMS};
  /* clang-format off */
#define OFFER(function) backend.function = function;
  OFFER(device_count) OFFER(allocate) OFFER(release) OFFER(copy_from_host) OFFER(copy_to_host) OFFER(synchronize)
  OFFER(pinned_allocate) OFFER(pinned_release) OFFER(stream_create) OFFER(stream_destroy) OFFER(event_create)
  OFFER(event_destroy) OFFER(event_record) OFFER(event_wait) OFFER(event_synchronize) OFFER(event_elapsed)
  OFFER(random_set) OFFER(random_get) OFFER(memory_export) OFFER(memory_import) OFFER(memory_close)
#ifndef PLAIN
  OFFER(event_query)
      /* clang-format on */
      backend.capabilities |= TAEDA_CAN_EVENT_TIMING | TAEDA_CAN_SHARE_MEMORY;
#else
                  (void) event_query;
#endif
  api = given;
  return api->backend_register(&backend, &number);
}
DESCRIBE(DEVICE_NAME)
