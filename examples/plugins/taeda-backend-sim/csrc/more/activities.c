/* What the streams did while a profiler asked for it: when each job ran, and which call it came from. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "more.h"

static atomic_bool noting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static taeda_activity* notes;
static uint64_t most, count, room, dropped, session;
static int64_t waiting; /* announced jobs of this session that have not run yet */

int64_t sim_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A job is noted when a profiler asked before it was submitted; `origin` is then at least 1, 0 means "unknown call". */
void sim_announce(Job* job) {
  job->session = 0;
  if (job->name && !job->site) job->site = sim_site(NULL);
  if (!atomic_load_explicit(&noting, memory_order_relaxed) || !job->name) return;
  job->origin = api->activity_origin();
  LOCKED(job->session = session; ++waiting);
}

static taeda_activity* new_note(void) { /* with the lock; null when there is no room */
  if (count == room && room < most) {
    const uint64_t more = room ? 2 * room : 1024;
    taeda_activity* larger = realloc(notes, (more < most ? more : most) * sizeof *notes);
    if (larger) notes = larger, room = more < most ? more : most;
  }
  if (count == room) return ++dropped, NULL;
  return &notes[count++];
}

int32_t sim_run(Job* job, int32_t index, const void* stream) {
  if (!job->session) return job->run(job);
  const int64_t begin = sim_now();
  const int32_t status = job->run(job);
  const int64_t end = sim_now();
  pthread_mutex_lock(&lock);
  taeda_activity* note = job->session == session ? new_note() : NULL;
  if (note)
    *note = (taeda_activity){
        .size = sizeof *note,
        .name = job->name,
        .kind = job->nbytes ? TAEDA_ACTIVITY_COPY : TAEDA_ACTIVITY_KERNEL,
        .device = {sim_number, index},
        .stream = (uint64_t)(uintptr_t)stream,
        .begin = begin,
        .end = end,
        .origin = job->origin,
        .bytes = (int64_t)job->nbytes,
    };
  if (job->session == session && --waiting == 0) pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return status;
}

static int32_t activities_start(void* context, uint64_t at_most) {
  (void)context;
  LOCKED(most = at_most; count = dropped = 0; waiting = 0; ++session);
  atomic_store(&noting, true);
  return TAEDA_OK;
}

static int32_t activities_stop(void* context, void (*tell)(void* to, const taeda_activity* activity), void* to, uint64_t* lost) {
  (void)context;
  atomic_store(&noting, false);
  pthread_mutex_lock(&lock);
  while (waiting > 0) pthread_cond_wait(&changed, &lock);
  taeda_activity* told = notes;
  const uint64_t number = count;
  *lost = dropped;
  notes = NULL;
  room = count = dropped = 0;
  ++session;
  pthread_mutex_unlock(&lock);
  for (uint64_t i = 0; i < number; ++i) tell(to, told + i);
  free(told);
  return TAEDA_OK;
}

void sim_offer_activities(taeda_backend* backend) {
  backend->activities_start = activities_start;
  backend->activities_stop = activities_stop;
}
