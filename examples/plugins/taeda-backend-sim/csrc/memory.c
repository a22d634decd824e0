/* Device memory: a file in memory, mapped once without any right for the host and once for the workers. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim.h"

enum { kHeader = 64, kClasses = 48, kMaxUsers = 4 };
static const size_t kReserved = (size_t)1 << 38, kPerDevice = (size_t)1 << 33;

/* Stands before each block, in the workers' view; 64 bytes, so that blocks are aligned to that. */
typedef struct Block {
  struct Block* next;
  Stream* home; /* work on it is in order there, so it is free for others when the stream has come to its release */
  Stream* users[kMaxUsers];
  int32_t index;
  uint32_t size_class;
} Block;
_Static_assert(sizeof(Block) <= kHeader, "the header fits");

ptrdiff_t sim_shift;
static char* arena; /* the workers' view */
static size_t used_up;
static size_t in_use[kDevices];
static Block* unused[kClasses];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int sim_map_memory(void) {
  const int file = memfd_create("taeda-sim", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, (off_t)kReserved) != 0) return -1;
  arena = mmap(NULL, kReserved, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  char* hidden = mmap(NULL, kReserved, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  sim_shift = arena - hidden;
  return arena == MAP_FAILED || hidden == MAP_FAILED ? -1 : 0;
}

static Block* block_of(const void* data) { return (Block*)(worker_view(data) - kHeader); }
static size_t bytes_of(uint32_t size_class) { return (size_t)64 << size_class; }

static Block* find_room(int32_t index, uint32_t size_class) {
  const size_t nbytes = bytes_of(size_class);
  Block* found = NULL;
  pthread_mutex_lock(&lock);
  if (in_use[index] + nbytes <= kPerDevice) {
    found = unused[size_class];
    if (found) {
      unused[size_class] = found->next;
    } else if (used_up + nbytes <= kReserved) {
      found = (Block*)(arena + used_up);
      used_up += nbytes;
    }
    if (found) in_use[index] += nbytes;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

int32_t sim_allocate(void* context, int32_t index, size_t nbytes, taeda_stream stream, void** data) {
  uint32_t size_class = 0;
  while (size_class < kClasses && bytes_of(size_class) < nbytes + kHeader) ++size_class;
  Block* block = NULL;
  if (!sim_must_fail(FAIL_ALLOCATE) && size_class < kClasses) {
    block = find_room(index, size_class);
    if (!block) { /* what was released may still wait in a stream */
      const int32_t status = sim_synchronize(context, index);
      if (status != TAEDA_OK) return status;
      block = find_room(index, size_class);
    }
  }
  if (!block) {
    char text[kErrorText];
    snprintf(text, sizeof text, "sim:%d: out of memory, cannot allocate %zu bytes (%zu of %zu are in use)", index,
             nbytes, in_use[index], kPerDevice);
    return api->set_error(TAEDA_E_MEMORY, text);
  }
  *block = (Block){.home = sim_stream(index, stream), .index = index, .size_class = size_class};
  *data = (char*)block + kHeader - sim_shift;
  return TAEDA_OK;
}

static void give_back(void* context) {
  Block* block = context;
  const size_t nbytes = bytes_of(block->size_class);
  pthread_mutex_lock(&lock);
  in_use[block->index] -= nbytes;
  block->next = unused[block->size_class];
  unused[block->size_class] = block;
  pthread_mutex_unlock(&lock);
}

void sim_release(void* context, int32_t index, void* data, size_t nbytes) {
  (void)context, (void)index, (void)nbytes;
  Block* block = block_of(data);
  for (int i = 0; i < kMaxUsers && block->users[i]; ++i) sim_order(block->users[i], block->home);
  sim_submit_call(block->home, give_back, block);
}

int32_t sim_stream_uses(void* context, int32_t index, void* data, taeda_stream stream) {
  (void)context;
  Block* block = block_of(data);
  Stream* user = sim_stream(index, stream);
  if (user == block->home) return TAEDA_OK;
  for (int i = 0; i < kMaxUsers; ++i) {
    if (block->users[i] == user) return TAEDA_OK;
    if (!block->users[i]) return block->users[i] = user, TAEDA_OK;
  }
  return sim_wait(user); /* more users than there is room for: what is there now ends first */
}

/* Pages of a dead stream's blocks: streams never die for the allocator, see sim_stream_destroy. */

int32_t sim_pinned_allocate(void* context, size_t nbytes, void** data) {
  (void)context;
  *data = aligned_alloc(64, (nbytes + 63) / 64 * 64);
  return *data ? TAEDA_OK : api->set_error(TAEDA_E_MEMORY, "sim: out of pinned memory");
}
void sim_pinned_release(void* context, void* data, size_t nbytes) {
  (void)context, (void)nbytes;
  free(data);
}

int32_t sim_properties(void* context, int32_t index, taeda_device_properties* properties) {
  (void)context;
  snprintf(properties->name, sizeof properties->name, "simulated device %d", index);
  pthread_mutex_lock(&lock);
  properties->total_memory = kPerDevice;
  properties->free_memory = kPerDevice - in_use[index];
  pthread_mutex_unlock(&lock);
  properties->alignment = kHeader;
  properties->processors = 1;
  properties->more = "{\"library\": \"threads of the host\"}";
  return TAEDA_OK;
}
