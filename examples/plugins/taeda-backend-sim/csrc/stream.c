/* Streams: queues of jobs, each served by a thread of its own, and events, which one stream waits for in another. */
#define _GNU_SOURCE 1
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"

struct Stream {
  pthread_t thread;
  Job *first, *last;
  uint64_t submitted, done;
  int32_t status; /* of the first job that failed since the last wait */
  char error[kErrorText];
  int32_t index;
  bool idle_for_reuse; /* destroyed: its thread serves the next stream of the device */
  Stream* next;
};

struct Event {
  uint64_t recorded, reached; /* how often it was put into a stream, and how often a stream has come to it */
  double milliseconds;
  int owners;
};

static Stream* streams; /* all of them; the last made first */
static Stream* defaults[kDevices];
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
  pthread_mutex_lock(&lock);
  for (;;) {
    while (!self->first) pthread_cond_wait(&changed, &lock);
    Job* job = self->first;
    self->first = job->next;
    pthread_mutex_unlock(&lock);
    const int32_t status = job->run(job);
    pthread_mutex_lock(&lock);
    if (status != TAEDA_OK && self->status == TAEDA_OK) {
      self->status = status;
      memcpy(self->error, job->error, sizeof self->error);
    }
    pthread_mutex_unlock(&lock);
    job->end(job); /* before anybody who waits may go on: the job can be his */
    pthread_mutex_lock(&lock);
    ++self->done;
    pthread_cond_broadcast(&changed);
  }
  return NULL;
}

static Stream* start(int32_t index) {
  for (Stream* s = streams; s; s = s->next)
    if (s->idle_for_reuse && s->index == index) return s->idle_for_reuse = false, s;
  Stream* made = calloc(1, sizeof *made);
  made->index = index;
  if (pthread_create(&made->thread, NULL, serve, made) != 0) return free(made), NULL;
  pthread_detach(made->thread);
  made->next = streams;
  return streams = made;
}

Stream* sim_stream(int32_t index, taeda_stream handle) {
  if (handle) return handle;
  pthread_mutex_lock(&lock);
  if (!defaults[index]) defaults[index] = start(index);
  pthread_mutex_unlock(&lock);
  return defaults[index];
}

void sim_submit(Stream* stream, Job* job) {
  job->next = NULL;
  pthread_mutex_lock(&lock);
  if (stream->first)
    stream->last->next = job;
  else
    stream->first = job;
  stream->last = job;
  ++stream->submitted;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

int32_t sim_wait(Stream* stream) {
  void* token = api->host_release();
  pthread_mutex_lock(&lock);
  const uint64_t goal = stream->submitted;
  while (stream->done < goal) pthread_cond_wait(&changed, &lock);
  const int32_t status = stream->status;
  if (status != TAEDA_OK) api->set_error(status, stream->error);
  stream->status = TAEDA_OK;
  pthread_mutex_unlock(&lock);
  api->host_acquire(token);
  return status;
}

/* --- jobs that are not kernels --- */

typedef struct Small {
  Job job;
  void (*run)(void*);
  void* context;
  uint64_t goal;
} Small;

static void end_small(Job* job) { free(job); }
static int32_t run_small(Job* job) {
  const Small* self = (Small*)job;
  self->run(self->context);
  return TAEDA_OK;
}
static Small* new_small(int32_t (*run)(Job*), void* context) {
  Small* made = calloc(1, sizeof *made);
  made->job.run = run;
  made->job.end = end_small;
  made->context = context;
  return made;
}
void sim_submit_call(Stream* stream, void (*run)(void*), void* context) {
  Small* made = new_small(run_small, context);
  made->run = run;
  sim_submit(stream, &made->job);
}

int32_t sim_synchronize(void* context, int32_t index) {
  (void)context;
  if (sim_must_fail(FAIL_SYNCHRONIZE)) return api->set_error(TAEDA_E_RUNTIME, "sim: synchronize failed on request");
  int32_t status = TAEDA_OK;
  pthread_mutex_lock(&lock);
  Stream* s = streams; /* streams are never freed */
  pthread_mutex_unlock(&lock);
  for (; s; s = s->next)
    if (s->index == index) {
      const int32_t found = sim_wait(s);
      if (status == TAEDA_OK) status = found;
    }
  return status;
}

int32_t sim_stream_create(void* context, int32_t index, int32_t priority, taeda_stream* stream) {
  (void)context, (void)priority;
  pthread_mutex_lock(&lock);
  *stream = start(index);
  pthread_mutex_unlock(&lock);
  return *stream ? TAEDA_OK : api->set_error(TAEDA_E_RUNTIME, "sim: cannot start a thread");
}
void sim_stream_destroy(void* context, int32_t index, taeda_stream stream) {
  (void)context, (void)index;
  pthread_mutex_lock(&lock);
  ((Stream*)stream)->idle_for_reuse = true; /* memory may name it as its home, so it stays and serves again */
  pthread_mutex_unlock(&lock);
}
int32_t sim_stream_synchronize(void* context, int32_t index, taeda_stream stream) {
  (void)context;
  return sim_wait(sim_stream(index, stream));
}
int32_t sim_stream_query(void* context, int32_t index, taeda_stream stream, int32_t* done) {
  (void)context;
  Stream* s = sim_stream(index, stream);
  pthread_mutex_lock(&lock);
  *done = s->done == s->submitted;
  pthread_mutex_unlock(&lock);
  return TAEDA_OK;
}

/* --- events --- */

int32_t sim_event_create(void* context, int32_t index, uint32_t flags, taeda_event* event) {
  (void)context, (void)index, (void)flags;
  Event* made = calloc(1, sizeof *made);
  made->owners = 1;
  *event = made;
  return TAEDA_OK;
}
static void disown(Event* event) { /* with the lock */
  if (--event->owners == 0) free(event);
}
void sim_event_destroy(void* context, int32_t index, taeda_event event) {
  (void)context, (void)index;
  pthread_mutex_lock(&lock);
  disown(event);
  pthread_mutex_unlock(&lock);
}

static int32_t run_record(Job* job) {
  Event* event = ((Small*)job)->context;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  pthread_mutex_lock(&lock);
  ++event->reached;
  event->milliseconds = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
  disown(event);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return TAEDA_OK;
}
static int32_t run_wait(Job* job) {
  Event* event = ((Small*)job)->context;
  pthread_mutex_lock(&lock);
  while (event->reached < ((Small*)job)->goal) pthread_cond_wait(&changed, &lock);
  disown(event);
  pthread_mutex_unlock(&lock);
  return TAEDA_OK;
}

int32_t sim_event_record(void* context, int32_t index, taeda_event event, taeda_stream stream) {
  (void)context;
  Event* self = event;
  pthread_mutex_lock(&lock);
  ++self->recorded;
  ++self->owners;
  pthread_mutex_unlock(&lock);
  sim_submit(sim_stream(index, stream), &new_small(run_record, self)->job);
  return TAEDA_OK;
}
int32_t sim_event_wait(void* context, int32_t index, taeda_event event, taeda_stream stream) {
  (void)context;
  Event* self = event;
  Small* made = new_small(run_wait, self);
  pthread_mutex_lock(&lock);
  made->goal = self->recorded;
  ++self->owners;
  pthread_mutex_unlock(&lock);
  sim_submit(sim_stream(index, stream), &made->job);
  return TAEDA_OK;
}
int32_t sim_event_synchronize(void* context, int32_t index, taeda_event event) {
  (void)context, (void)index;
  Event* self = event;
  pthread_mutex_lock(&lock);
  while (self->reached < self->recorded) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  return TAEDA_OK;
}
int32_t sim_event_query(void* context, int32_t index, taeda_event event, int32_t* done) {
  (void)context, (void)index;
  Event* self = event;
  pthread_mutex_lock(&lock);
  *done = self->reached == self->recorded;
  pthread_mutex_unlock(&lock);
  return TAEDA_OK;
}
int32_t sim_event_elapsed(void* context, int32_t index, taeda_event from, taeda_event to, double* milliseconds) {
  (void)context, (void)index;
  pthread_mutex_lock(&lock);
  *milliseconds = ((Event*)to)->milliseconds - ((Event*)from)->milliseconds;
  pthread_mutex_unlock(&lock);
  return TAEDA_OK;
}

int32_t sim_order(Stream* stream, Stream* waiting) {
  if (stream == waiting) return TAEDA_OK;
  taeda_event mark;
  sim_event_create(NULL, 0, 0, &mark);
  sim_event_record(NULL, 0, mark, stream);
  sim_event_wait(NULL, 0, mark, waiting);
  sim_event_destroy(NULL, 0, mark);
  return TAEDA_OK;
}

/* --- for tests: a stream that stands still until it is let go --- */

static uint64_t holds, let_go;
static int32_t run_hold(Job* job) {
  pthread_mutex_lock(&lock);
  while (let_go < ((Small*)job)->goal) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  return TAEDA_OK;
}
/* The calling thread's current stream of the device stops here. */
TAEDA_PLUGIN_EXPORT void sim_hold(int32_t index) {
  Small* made = new_small(run_hold, NULL);
  pthread_mutex_lock(&lock);
  made->goal = ++holds;
  pthread_mutex_unlock(&lock);
  sim_submit(sim_stream(index, api->stream_current((taeda_device){sim_number, index})), &made->job);
}
/* All streams that were held go on. */
TAEDA_PLUGIN_EXPORT void sim_resume(void) {
  pthread_mutex_lock(&lock);
  let_go = holds;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}
