/* Device memory: a file in memory, mapped once without any right for the host and once for the workers. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim.h"

enum { kHeader = 64, kClasses = 40, kMaxUsers = 4 };
static const size_t kReserved = (size_t)1 << 38, kPerDevice = (size_t)1 << 33;

/* Stands before each block, in the workers' view; 64 bytes, so that blocks are aligned to that. */
typedef struct Block {
  struct Block* next;
  Stream* home; /* its work is in order there: the block is free for others when this stream comes to its release */
  Stream* users[kMaxUsers];
  int32_t index;
  uint32_t size_class;
} Block;

ptrdiff_t sim_shift;
static char* arena; /* the workers' view */
static size_t used_up, in_use[kDevices];
static Block* unused[kClasses];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t bytes_of(uint32_t size_class) { return (size_t)64 << size_class; }
static Block* block_of(const void* data) { return (Block*)(worker_view(data) - kHeader); }

static Block* find_room(int32_t index, uint32_t size_class) {
  const size_t nbytes = bytes_of(size_class);
  Block* found = NULL;
  pthread_mutex_lock(&lock);
  if (in_use[index] + nbytes <= kPerDevice && unused[size_class]) {
    found = unused[size_class];
    unused[size_class] = found->next;
  } else if (in_use[index] + nbytes <= kPerDevice && used_up + nbytes <= kReserved) {
    found = (Block*)(arena + used_up);
    used_up += nbytes;
  }
  if (found) in_use[index] += nbytes;
  pthread_mutex_unlock(&lock);
  return found;
}
static int32_t allocate(void* context, int32_t index, size_t nbytes, taeda_stream stream, void** data) {
  uint32_t size_class = 0;
  while (size_class < kClasses - 1 && bytes_of(size_class) < nbytes + kHeader) ++size_class;
  const bool refused = sim_must_fail(FAIL_ALLOCATE);
  Block* block = refused ? NULL : find_room(index, size_class);
  if (!block && !refused) { /* what was released may still wait in a stream */
    const int32_t status = sim_synchronize(context, index);
    if (status != TAEDA_OK) return status;
    block = find_room(index, size_class);
  }
  if (!block) {
    char text[kErrorText];
    snprintf(text, sizeof text, "out of memory, cannot allocate %zu bytes (%zu of %zu are in use)", nbytes, in_use[index],
             kPerDevice);
    return api->set_error(TAEDA_E_MEMORY, text);
  }
  *block = (Block){.home = sim_stream(index, stream), .index = index, .size_class = size_class};
  *data = (char*)block + kHeader - sim_shift;
  return TAEDA_OK;
}
static void give_back(void* context) {
  Block* block = context;
  Block** list = unused + block->size_class;
  LOCKED(in_use[block->index] -= bytes_of(block->size_class); block->next = *list; *list = block);
}
static void release(void* context, int32_t index, void* data, size_t nbytes) {
  Block* block = block_of(data);
  for (int i = 0; i < kMaxUsers && block->users[i]; ++i) sim_order(block->users[i], block->home);
  sim_submit_call(block->home, give_back, block);
}
static int32_t stream_uses(void* context, int32_t index, void* data, taeda_stream stream) {
  Block* block = block_of(data);
  Stream* user = sim_stream(index, stream);
  for (int i = 0; i < kMaxUsers && user != block->home; ++i) {
    if (!block->users[i]) block->users[i] = user;
    if (block->users[i] == user) return TAEDA_OK;
  }
  return user == block->home ? TAEDA_OK : sim_wait(user); /* more users than there is room for */
}
static int32_t pinned_allocate(void* context, size_t nbytes, void** data) {
  *data = aligned_alloc(64, (nbytes + 63) / 64 * 64);
  return *data ? TAEDA_OK : api->set_error(TAEDA_E_MEMORY, "out of pinned memory");
}
static void pinned_release(void* context, void* data, size_t nbytes) { free(data); }
static int32_t properties(void* context, int32_t index, taeda_device_properties* facts) {
  snprintf(facts->name, sizeof facts->name, "simulated device %d", index);
  facts->total_memory = kPerDevice;
  LOCKED(facts->free_memory = kPerDevice - in_use[index]);
  facts->alignment = kHeader;
  facts->processors = 1;
  facts->more = "{\"library\": \"threads of the host\"}";
  return TAEDA_OK;
}

int32_t sim_offer_memory(taeda_backend* backend) {
  const int file = memfd_create("taeda-sim", MFD_CLOEXEC);
  void* hidden = MAP_FAILED;
  if (file >= 0 && ftruncate(file, (off_t)kReserved) == 0) {
    arena = mmap(NULL, kReserved, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    hidden = mmap(NULL, kReserved, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
  }
  close(file);
  if (hidden == MAP_FAILED || arena == MAP_FAILED) return api->set_error(TAEDA_E_MEMORY, "cannot map the device's memory");
  sim_shift = arena - (char*)hidden;
  /* clang-format off */
#define OFFER(function) backend->function = function;
  OFFER(allocate) OFFER(release) OFFER(stream_uses) OFFER(pinned_allocate) OFFER(pinned_release) OFFER(properties)
      /* clang-format on */
      return TAEDA_OK;
}
