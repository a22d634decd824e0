/* Collectives between devices of this process: members of a group meet in their streams, round by round. */
#define _GNU_SOURCE 1
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "more.h"

enum { kMaxMembers = 8 };
typedef enum What { ALL_REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, PASS } What;

/* What all members of a name share. */
typedef struct Ring {
  struct Ring* next;
  char name[64];
  int32_t count, members; /* how many there are to be, and a bit for each that is there */
} Ring;
typedef struct Member {
  Ring* ring;
  int32_t index, rank;
  uint64_t calls[2 * kMaxMembers + 1]; /* so far: to each member, from each, and of all together */
} Member;

/* A collective that was begun; who asks for it and the stream that does it own it together. */
typedef struct Work {
  int owners;
  bool done;
  int32_t status;
  char error[kErrorText];
} Work;

/* One member's part of a round, as a job of its stream. */
typedef struct Part {
  Call call; /* `call.a[0]` is read, `call.a[1]` written */
  struct Part* next;
  Work* work;
  Ring* ring;
  What what;
  int32_t rank, number, meet, channel; /* root or reduction; how many meet; which pair, 0 for all */
  uint64_t round;
  Array given;
  int32_t left;
} Part;

static Ring* rings;
static Part* parts; /* that wait for others, or that others still read */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static bool same_round(const Part* a, const Part* b) {
  return a->ring == b->ring && a->channel == b->channel && a->round == b->round;
}
/* The parts of a round by rank; gives how many are there. With the lock. */
static int32_t gather(const Part* of, Part** found) {
  int32_t count = 0;
  for (Part* p = parts; p; p = p->next)
    if (same_round(p, of)) found[p->rank] = p, ++count;
  return count;
}

static double reduce_real(double a, double b, int32_t how) {
  if (how == TAEDA_REDUCE_MIN || how == TAEDA_REDUCE_MAX) return isnan(a) || (how == TAEDA_REDUCE_MIN ? a < b : a > b) ? a : b;
  return how == TAEDA_REDUCE_SUM ? a + b : a * b;
}
static int64_t reduce_whole(int64_t a, int64_t b, int32_t how) {
  if (how == TAEDA_REDUCE_MIN || how == TAEDA_REDUCE_MAX) return (how == TAEDA_REDUCE_MIN) == (a < b) ? a : b;
  return how == TAEDA_REDUCE_SUM ? a + b : a * b;
}

/* `n` numbers from place `begin` on of all members, reduced in the order of their ranks. */
static Array reduced(Call* call, Part* const* all, int32_t count, int64_t begin, int64_t n, int32_t how) {
  const Array out = array(call, all[0]->given.real, n);
  memcpy(out.i, all[0]->given.i + begin, (size_t)n * 8);
  for (int32_t r = 1; r < count; ++r)
    for (int64_t j = 0; j < n; ++j) {
      if (out.real) out.f[j] = reduce_real(out.f[j], all[r]->given.f[begin + j], how);
      else out.i[j] = reduce_whole(out.i[j], all[r]->given.i[begin + j], how);
    }
  return out;
}
static void compute(Part* self, Part* const* all) {
  const View* to = self->call.a[1].view;
  const int32_t count = self->ring->count;
  if (self->what == ALL_REDUCE) {
    store(to, reduced(&self->call, all, count, 0, self->given.n, self->number));
  } else if (self->what == REDUCE_SCATTER) {
    store(to, reduced(&self->call, all, count, self->rank * to->n, to->n, self->number));
  } else if (self->what == ALL_GATHER) {
    for (int32_t r = 0; r < count; ++r) {
      const View place = sliced(to, 0, r, 1);
      store(&place, all[r]->given);
    }
  } else if (to) { /* from the root of a broadcast, or the sender */
    store(to, all[self->number]->given);
  }
}

static int32_t run_part(Job* job) {
  Part *self = (Part*)job, *all[kMaxMembers] = {NULL};
  const View* from = self->call.a[0].view;
  if (from) self->given = load(&self->call, from, from->dtype);
  pthread_mutex_lock(&lock);
  self->next = parts;
  parts = self;
  pthread_cond_broadcast(&changed);
  while (gather(self, all) < self->meet) pthread_cond_wait(&changed, &lock);
  int32_t status = TAEDA_OK;
  for (int32_t r = 0; r < kMaxMembers; ++r)
    if (all[r] && (all[r]->what != self->what || (all[r]->given.n && self->given.n && all[r]->given.n != self->given.n)))
      status = fail(job, TAEDA_E_RUNTIME, "the members of group '%s' call different things, or tensors of different sizes",
                    self->ring->name);
  pthread_mutex_unlock(&lock);
  if (status == TAEDA_OK) compute(self, all);
  pthread_mutex_lock(&lock);
  for (int32_t r = 0; r < kMaxMembers; ++r)
    if (all[r]) ++all[r]->left;
  pthread_cond_broadcast(&changed);
  while (self->left < self->meet) pthread_cond_wait(&changed, &lock);
  Part** at = &parts;
  while (*at != self) at = &(*at)->next;
  *at = self->next;
  pthread_mutex_unlock(&lock);
  self->work->status = status;
  memcpy(self->work->error, job->error, kErrorText);
  return TAEDA_OK; /* the error is the work's, not the stream's */
}
static void disown(Work* work) { /* with the lock */
  if (--work->owners == 0) free(work);
}
static void end_part(Job* job) {
  Part* self = (Part*)job;
  LOCKED(self->work->done = true; disown(self->work); pthread_cond_broadcast(&changed));
  give_up(&self->call);
  free(self);
}

/* --- for taeda --- */

static int32_t group_create(void* context, int32_t index, const char* name, int32_t rank, int32_t count, taeda_group* group) {
  if (count > kMaxMembers || strlen(name) >= sizeof rings->name)
    return api->set_error(TAEDA_E_VALUE, "a group has at most 8 members, and its name 63 letters");
  Member* made = calloc(1, sizeof *made);
  const char* wrong = NULL;
  pthread_mutex_lock(&lock);
  Ring* ring = rings;
  while (ring && strcmp(ring->name, name) != 0) ring = ring->next;
  if (!ring) {
    ring = calloc(1, sizeof *ring);
    strcpy(ring->name, name);
    ring->next = rings;
    rings = ring;
  }
  if (!ring->members) ring->count = count;
  if (ring->count != count) wrong = "the other members of the group expect another count";
  else if (ring->members >> rank & 1) wrong = "the rank is taken";
  else ring->members |= 1 << rank;
  pthread_mutex_unlock(&lock);
  if (wrong) return free(made), api->set_error(TAEDA_E_VALUE, wrong);
  *made = (Member){.ring = ring, .index = index, .rank = rank};
  *group = made;
  return TAEDA_OK;
}
static void group_destroy(void* context, taeda_group group) {
  Member* self = group;
  LOCKED(self->ring->members &= ~(1 << self->rank));
  free(self);
}

/* Puts this member's part into its stream; `other` is the other one of two, -1 where all meet. */
static int32_t begin(Member* self, What what, taeda_tensor from, taeda_tensor to, int32_t number, int32_t other,
                     taeda_stream stream, taeda_work* work) {
  Part* part = calloc(1, sizeof *part);
  Work* made = calloc(1, sizeof *made);
  int32_t status = TAEDA_OK;
  part->call.job = (Job){.run = run_part, .end = end_part, .name = "collective"};
  if (from) status = sim_see(&part->call, from, part->call.a[0].view = take(&part->call, sizeof(View)));
  if (to && status == TAEDA_OK) status = sim_see(&part->call, to, part->call.a[1].view = take(&part->call, sizeof(View)));
  if (status != TAEDA_OK) return give_up(&part->call), free(part), free(made), status;
  made->owners = 2;
  part->work = made;
  part->ring = self->ring;
  part->what = what;
  part->rank = self->rank;
  part->number = number;
  part->meet = other < 0 ? self->ring->count : 2;
  const int32_t sender = from ? self->rank : other, receiver = from ? other : self->rank;
  part->channel = other < 0 ? 0 : 1 + sender * kMaxMembers + receiver;
  part->round = ++self->calls[other < 0 ? 2 * kMaxMembers : from ? other : kMaxMembers + other];
  *work = made;
  sim_submit(sim_stream(self->index, stream), &part->call.job);
  return TAEDA_OK;
}
static int32_t all_reduce(void* context, taeda_group group, taeda_tensor from, taeda_tensor to, int32_t reduction,
                          taeda_stream stream, taeda_work* work) {
  return begin(group, ALL_REDUCE, from, to, reduction, -1, stream, work);
}
static int32_t broadcast_from(void* context, taeda_group group, taeda_tensor tensor, int32_t root, taeda_stream stream,
                              taeda_work* work) {
  const bool gives = ((Member*)group)->rank == root;
  return begin(group, BROADCAST, gives ? tensor : NULL, gives ? NULL : tensor, root, -1, stream, work);
}
static int32_t all_gather(void* context, taeda_group group, taeda_tensor from, taeda_tensor to, taeda_stream stream,
                          taeda_work* work) {
  return begin(group, ALL_GATHER, from, to, 0, -1, stream, work);
}
static int32_t reduce_scatter(void* context, taeda_group group, taeda_tensor from, taeda_tensor to, int32_t reduction,
                              taeda_stream stream, taeda_work* work) {
  return begin(group, REDUCE_SCATTER, from, to, reduction, -1, stream, work);
}
static int32_t send(void* context, taeda_group group, taeda_tensor tensor, int32_t to, taeda_stream stream, taeda_work* work) {
  return begin(group, PASS, tensor, NULL, ((Member*)group)->rank, to, stream, work);
}
static int32_t recv(void* context, taeda_group group, taeda_tensor tensor, int32_t from, taeda_stream stream, taeda_work* work) {
  return begin(group, PASS, NULL, tensor, from, from, stream, work);
}

static int32_t work_wait(void* context, taeda_work work) {
  Work* self = work;
  void* token = api->host_release();
  LOCKED(while (!self->done) pthread_cond_wait(&changed, &lock));
  api->host_acquire(token);
  return self->status == TAEDA_OK ? TAEDA_OK : api->set_error(self->status, self->error);
}
static int32_t work_query(void* context, taeda_work work, int32_t* done) {
  LOCKED(*done = ((Work*)work)->done);
  return TAEDA_OK;
}
static void work_destroy(void* context, taeda_work work) { LOCKED(disown(work)); }

void sim_offer_collectives(taeda_backend* backend) {
  static const taeda_collectives table = {
      .size = sizeof table,
      .group_create = group_create,
      .group_destroy = group_destroy,
      .all_reduce = all_reduce,
      .broadcast = broadcast_from,
      .all_gather = all_gather,
      .reduce_scatter = reduce_scatter,
      .send = send,
      .recv = recv,
      .work_wait = work_wait,
      .work_query = work_query,
      .work_destroy = work_destroy,
  };
  backend->collectives = &table;
}
