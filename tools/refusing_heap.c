/* A heap that refuses a block when it is told to: what a program does when memory runs out, at any place of it.
 *
 *   cc -O1 -shared -fPIC -o refusing_heap.so tools/refusing_heap.c -ldl
 *   LD_PRELOAD=./refusing_heap.so python PROGRAM
 *
 * The program calls refuse_block(n, least): of the requests from now on that are for `least` bytes or more, number n
 * (from 0) is refused, once. stop_refusing() gives how many such requests there were. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

static volatile int counting;
static volatile long refused, least_size, requests;

void refuse_block(long n, long least) {
  refused = n;
  least_size = least;
  requests = 0;
  counting = 1;
}
long stop_refusing(void) {
  counting = 0;
  return requests;
}

/* OpenBLAS's kernels for small products write to the room that they ask for without a look at what they got. */
static int asked_by_openblas(const void* caller) {
  Dl_info from;
  return dladdr(caller, &from) && from.dli_fname && strstr(from.dli_fname, "openblas");
}

static int refuse(size_t size, const void* caller) {
  if (!counting || (long)size < least_size || asked_by_openblas(caller)) return 0;
  if (__sync_fetch_and_add(&requests, 1) != refused) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) { return refuse(size, __builtin_return_address(0)) ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) {
  return refuse(count * size, __builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}
void* realloc(void* block, size_t size) {
  const int grows = size > (block ? malloc_usable_size(block) : 0);
  return grows && refuse(size, __builtin_return_address(0)) ? NULL : __libc_realloc(block, size);
}
void* memalign(size_t alignment, size_t size) {
  return refuse(size, __builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** block, size_t alignment, size_t size) {
  *block = memalign(alignment, size);
  return *block ? 0 : ENOMEM;
}
void* mmap(void* place, size_t size, int protection, int flags, int file, off_t offset) {
  static void* (*next)(void*, size_t, int, int, int, off_t);
  if (!next) next = dlsym(RTLD_NEXT, "mmap");
  return file == -1 && refuse(size, __builtin_return_address(0)) ? MAP_FAILED
                                                                 : next(place, size, protection, flags, file, offset);
}
