/* A heap whose blocks end at a page without access, for code that no sanitizer sees: what libraries compile at run
 * time.
 *
 *   cc -O1 -shared -fPIC -o guarded_heap.so tools/guarded_heap.c
 *   LD_PRELOAD=./guarded_heap.so python -X faulthandler PROGRAM
 *
 * A read or write behind a block of 64 bytes or more ends the process at that instruction, as does one of a block that
 * was freed: addresses are not used again. Blocks begin at multiples of their alignment, so up to 15 bytes behind a
 * block (63 behind a tensor) may be touched unseen. Needs a large vm.max_map_count: a block takes two maps. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* block);

enum { kPage = 4096, kGuarded = 64 };
static const size_t kSpan = (size_t)1 << 40;

/* What is known of a block, in the first of its pages, ahead of it. */
struct Head {
  size_t size, pages;
};

static char* span;
static uint32_t* first_page; /* of the block that begins in a page */
static size_t taken;

__attribute__((constructor(101))) static void reserve(void) {
  if (span) return;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  first_page = mmap(NULL, kSpan / kPage * sizeof *first_page, PROT_READ | PROT_WRITE, flags, -1, 0);
  char* found = mmap(NULL, kSpan, PROT_NONE, flags, -1, 0);
  if (first_page == MAP_FAILED || found == MAP_FAILED) __builtin_trap();
  span = found;
}

static int is_guarded(const void* block) {
  return span && (const char*)block >= span && (const char*)block < span + kSpan;
}

static struct Head* head_of(const void* block) {
  return (struct Head*)(span + (size_t)first_page[((const char*)block - span) / kPage] * kPage);
}

static void* take(size_t size, size_t alignment) {
  reserve();
  if (alignment < sizeof(struct Head)) alignment = sizeof(struct Head);
  const size_t pages = (size + alignment + kPage - 1) / kPage;
  const size_t place = __atomic_fetch_add(&taken, (pages + 1) * kPage, __ATOMIC_RELAXED);
  if (size > kSpan || place + (pages + 1) * kPage > kSpan) return NULL;
  char* const begin = span + place;
  if (mprotect(begin, pages * kPage, PROT_READ | PROT_WRITE)) return NULL;
  char* const block = (char*)((uintptr_t)(begin + pages * kPage - size) & ~(uintptr_t)(alignment - 1));
  *(struct Head*)begin = (struct Head){size, pages};
  first_page[(size_t)(block - span) / kPage] = (uint32_t)(place / kPage);
  return block;
}

void* malloc(size_t size) { return size < kGuarded ? __libc_malloc(size) : take(size, 16); }

void* calloc(size_t count, size_t size) {
  size_t total;
  if (__builtin_mul_overflow(count, size, &total)) return NULL;
  return total < kGuarded ? __libc_calloc(count, size) : take(total, 16);
}

void* memalign(size_t alignment, size_t size) {
  return size < kGuarded ? __libc_memalign(alignment, size) : take(size, alignment);
}

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void** block, size_t alignment, size_t size) {
  void* const made = memalign(alignment, size);
  if (!made) return ENOMEM;
  *block = made;
  return 0;
}

void free(void* block) {
  if (!is_guarded(block)) {
    __libc_free(block);
    return;
  }
  struct Head* const head = head_of(block);
  const size_t bytes = head->pages * kPage;
  madvise(head, bytes, MADV_DONTNEED);
  mprotect(head, bytes, PROT_NONE);
}

void* realloc(void* block, size_t size) {
  if (!block) return malloc(size);
  if (!is_guarded(block)) return __libc_realloc(block, size); /* whose size is not known here */
  void* const made = malloc(size);
  if (!made) return NULL;
  const size_t before = head_of(block)->size;
  memcpy(made, block, before < size ? before : size);
  free(block);
  return made;
}

size_t malloc_usable_size(void* block) { return is_guarded(block) ? head_of(block)->size : 0; }
