/* Streams: queues of jobs, each served by a thread of its own, and events, which one stream waits for in another. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct Stream {
  Stream* next;
  Job *first, *last;
  uint64_t submitted, done, site;
  int32_t index, status; /* of the first job that failed since the last wait */
  bool unused;           /* destroyed: its thread serves the next stream of the device, as memory may know it as its home */
  char error[kErrorText];
};
typedef struct Event {
  uint64_t recorded, reached; /* how often it was put into a stream, and how often a stream has come to it */
  double milliseconds;
  int owners;
} Event;

static Stream *streams, *defaults[kDevices]; /* all of them, never freed; and each device's own */
/* One lock and one condition for everything: there are few threads and jobs are long. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

int32_t fail(Job* job, int32_t status, const char* format, ...) {
  va_list rest;
  va_start(rest, format);
  vsnprintf(job->error, sizeof job->error, format, rest);
  va_end(rest);
  return status;
}
static void* serve(void* context) {
  Stream* self = context;
  for (;;) {
    pthread_mutex_lock(&lock);
    while (!self->first) pthread_cond_wait(&changed, &lock);
    Job* job = self->first;
    self->first = job->next;
    pthread_mutex_unlock(&lock);
    const int32_t status = sim_run(job, self->index, self == defaults[self->index] ? NULL : self);
    if (status != TAEDA_OK)
      LOCKED(if (!self->status) memcpy(self->error, job->error, kErrorText), self->site = job->site, self->status = status);
    job->end(job); /* before anybody who waits may go on: the job can be his */
    LOCKED(++self->done; pthread_cond_broadcast(&changed));
  }
  return NULL;
}
static Stream* start(int32_t index) { /* with the lock */
  for (Stream* s = streams; s; s = s->next)
    if (s->unused && s->index == index) return s->unused = false, s;
  pthread_t thread;
  Stream* made = calloc(1, sizeof *made);
  made->index = index;
  made->next = streams;
  if (pthread_create(&thread, NULL, serve, made) != 0) return free(made), NULL;
  pthread_detach(thread);
  return streams = made;
}
Stream* sim_stream(int32_t index, taeda_stream handle) {
  if (!handle) LOCKED(if (!defaults[index]) defaults[index] = start(index); handle = defaults[index]);
  return handle;
}
void sim_submit(Stream* stream, Job* job) {
  job->next = NULL;
  sim_announce(job);
  LOCKED(*(stream->first ? &stream->last->next : &stream->first) = job; stream->last = job; ++stream->submitted;
         pthread_cond_broadcast(&changed));
}
int32_t sim_wait(Stream* stream) {
  void* token = api->host_release();
  pthread_mutex_lock(&lock);
  for (const uint64_t goal = stream->submitted; stream->done < goal;) pthread_cond_wait(&changed, &lock);
  const int32_t status = stream->status;
  if (status != TAEDA_OK) sim_complain(status, stream->error, stream->site);
  stream->status = TAEDA_OK;
  pthread_mutex_unlock(&lock);
  api->host_acquire(token);
  return status;
}
int32_t sim_synchronize(void* context, int32_t index) {
  if (sim_must_fail(FAIL_SYNCHRONIZE)) return api->set_error(TAEDA_E_RUNTIME, "failed on request");
  Stream* s;
  int32_t status = TAEDA_OK;
  LOCKED(s = streams);
  for (; s; s = s->next) {
    const int32_t found = s->index == index ? sim_wait(s) : TAEDA_OK;
    if (status == TAEDA_OK) status = found;
  }
  return status;
}

/* --- jobs that are not kernels --- */

typedef struct Small {
  Job job;
  void (*run)(void*);
  void* context;
  uint64_t goal;
} Small;
void sim_free_job(Job* job) { free(job); }
static Small* new_small(int32_t (*run)(Job*), void* context) {
  Small* made = calloc(1, sizeof *made);
  made->job.run = run;
  made->job.end = sim_free_job;
  made->context = context;
  return made;
}
static int32_t run_small(Job* job) { return ((Small*)job)->run(((Small*)job)->context), TAEDA_OK; }
void sim_submit_call(Stream* stream, void (*run)(void*), void* context) {
  Small* made = new_small(run_small, context);
  made->run = run;
  sim_submit(stream, &made->job);
}
static int32_t stream_create(void* context, int32_t index, int32_t priority, taeda_stream* stream) {
  LOCKED(*stream = start(index));
  return *stream ? TAEDA_OK : api->set_error(TAEDA_E_RUNTIME, "cannot start a thread");
}
static void stream_destroy(void* context, int32_t index, taeda_stream stream) { LOCKED(((Stream*)stream)->unused = true); }
static int32_t stream_synchronize(void* context, int32_t index, taeda_stream stream) {
  return sim_wait(sim_stream(index, stream));
}
static int32_t stream_query(void* context, int32_t index, taeda_stream stream, int32_t* done) {
  const Stream* s = sim_stream(index, stream);
  LOCKED(*done = s->done == s->submitted);
  return TAEDA_OK;
}

/* --- events --- */

static int32_t event_create(void* context, int32_t index, uint32_t flags, taeda_event* event) {
  Event* made = *event = calloc(1, sizeof(Event));
  made->owners = 1;
  return TAEDA_OK;
}
static void disown(Event* event) { /* with the lock */
  if (--event->owners == 0) free(event);
}
static void event_destroy(void* context, int32_t index, taeda_event event) { LOCKED(disown(event)); }
static int32_t run_record(Job* job) {
  Event* event = ((Small*)job)->context;
  const double milliseconds = (double)sim_now() * 1e-6;
  LOCKED(++event->reached; event->milliseconds = milliseconds; disown(event); pthread_cond_broadcast(&changed));
  return TAEDA_OK;
}
static int32_t run_wait(Job* job) {
  Event* event = ((Small*)job)->context;
  LOCKED(while (event->reached < ((Small*)job)->goal) pthread_cond_wait(&changed, &lock); disown(event));
  return TAEDA_OK;
}
static int32_t event_record(void* context, int32_t index, taeda_event event, taeda_stream stream) {
  Event* self = event;
  LOCKED(++self->recorded; ++self->owners);
  sim_submit(sim_stream(index, stream), &new_small(run_record, self)->job);
  return TAEDA_OK;
}
static int32_t event_wait(void* context, int32_t index, taeda_event event, taeda_stream stream) {
  Event* self = event;
  Small* made = new_small(run_wait, self);
  LOCKED(made->goal = self->recorded; ++self->owners);
  sim_submit(sim_stream(index, stream), &made->job);
  return TAEDA_OK;
}
static int32_t event_synchronize(void* context, int32_t index, taeda_event event) {
  const Event* self = event;
  LOCKED(while (self->reached < self->recorded) pthread_cond_wait(&changed, &lock));
  return TAEDA_OK;
}
static int32_t event_query(void* context, int32_t index, taeda_event event, int32_t* done) {
  LOCKED(*done = ((Event*)event)->reached == ((Event*)event)->recorded);
  return TAEDA_OK;
}
static int32_t event_elapsed(void* context, int32_t index, taeda_event from, taeda_event to, double* milliseconds) {
  LOCKED(*milliseconds = ((Event*)to)->milliseconds - ((Event*)from)->milliseconds);
  return TAEDA_OK;
}
void sim_order(Stream* stream, Stream* waiting) {
  taeda_event mark;
  if (stream == waiting) return;
  event_create(NULL, 0, 0, &mark);
  event_record(NULL, 0, mark, stream);
  event_wait(NULL, 0, mark, waiting);
  event_destroy(NULL, 0, mark);
}

/* --- for tests: a stream that stands still until it is let go --- */

static uint64_t holds, let_go;
static int32_t run_hold(Job* job) {
  LOCKED(while (let_go < ((Small*)job)->goal) pthread_cond_wait(&changed, &lock));
  return TAEDA_OK;
}
/* The calling thread's current stream of the device stops here. */
TAEDA_PLUGIN_EXPORT void sim_hold(int32_t index) {
  Small* made = new_small(run_hold, NULL);
  LOCKED(made->goal = ++holds);
  sim_submit(sim_stream(index, api->stream_current((taeda_device){sim_number, index})), &made->job);
}
/* All streams that were held go on. */
TAEDA_PLUGIN_EXPORT void sim_resume(void) { LOCKED(let_go = holds; pthread_cond_broadcast(&changed)); }

void sim_offer_streams(taeda_backend* backend) {
  backend->synchronize = sim_synchronize;
  /* clang-format off */
#define OFFER(function) backend->function = function;
  OFFER(stream_create) OFFER(stream_destroy) OFFER(stream_synchronize) OFFER(stream_query) OFFER(event_create)
  OFFER(event_destroy) OFFER(event_record) OFFER(event_wait) OFFER(event_synchronize) OFFER(event_query)
  OFFER(event_elapsed)
  /* clang-format on */
}
