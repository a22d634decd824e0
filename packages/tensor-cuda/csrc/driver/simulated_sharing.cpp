// Memory files: made when a block is shared, opened through /proc by the other process.
#include "driver/simulated_sharing.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace taeda::cuda {
namespace {

constexpr uint64_t kMark = 0x6465726168736174;
constexpr size_t kPage = 4096;
/// What a handle's bytes are.
struct Facts {
  uint64_t mark, inode, size, offset;  // of the file's pages, and where the block begins in them
  int32_t process, descriptor;
};
static_assert(sizeof(Facts) <= sizeof(SharedHandle));

char* page_of(char* place) { return place - reinterpret_cast<uintptr_t>(place) % kPage; }
void make_own(char* pages, size_t size) {
  mmap(pages, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
bool map_file(char* pages, size_t size, int descriptor) {
  return mmap(pages, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0) != MAP_FAILED;
}

#if defined(__SANITIZE_ADDRESS__)
/// Whole pages are moved, with what lies poisoned behind tensors.
void unguard(char* pages, size_t length) { __asan_unpoison_memory_region(pages, length); }
#else
void unguard(char*, size_t) {}
#endif

}  // namespace

SharedPages::~SharedPages() {
  for (const auto& [block, file] : shared_) ::close(file.descriptor);
}

bool SharedPages::share(char* block, size_t size, SharedHandle& handle) {
  auto found = shared_.find(block);
  if (found == shared_.end()) {
    char* const pages = page_of(block);
    const size_t length = size_t(page_of(block + size + kPage - 1) - pages);
    for (const auto& [other, file] : shared_)  // a page that two blocks lie in is in one file only
      if (pages < file.pages + file.size && file.pages < pages + length) return false;
    unguard(pages, length);
    const int descriptor = memfd_create("taeda simulated device", MFD_CLOEXEC);
    if (descriptor < 0) return false;
    if (ftruncate(descriptor, off_t(length)) != 0 || pwrite(descriptor, pages, length, 0) != ssize_t(length) ||
        !map_file(pages, length, descriptor)) {
      ::close(descriptor);
      return false;
    }
    found = shared_.emplace(block, File{descriptor, pages, length}).first;
  }
  const File& file = found->second;
  struct stat facts{};
  fstat(file.descriptor, &facts);
  const Facts told{kMark, facts.st_ino, file.size, uint64_t(block - file.pages), getpid(), file.descriptor};
  handle = {};
  std::memcpy(handle.data(), &told, sizeof told);
  return true;
}
void SharedPages::end(char* block) {
  const auto found = shared_.find(block);
  if (found == shared_.end()) return;
  make_own(found->second.pages, found->second.size);
  ::close(found->second.descriptor);
  shared_.erase(found);
}

char* SharedPages::open(const SharedHandle& handle) {
  Facts told;
  std::memcpy(&told, handle.data(), sizeof told);
  if (told.mark != kMark || told.size == 0 || told.size > room_size_ || told.offset >= told.size) return nullptr;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", told.process, told.descriptor);
  const int descriptor = ::open(path, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  struct stat facts{};
  char* pages = nullptr;
  if (fstat(descriptor, &facts) == 0 && facts.st_ino == told.inode && uint64_t(facts.st_size) == told.size) {
    pages = room_;
    for (const auto& [block, window] : opened_) {  // in order: the first gap that is large enough
      if (size_t(window.pages - pages) >= told.size) break;
      pages = window.pages + window.size;
    }
    if (size_t(room_ + room_size_ - pages) < told.size || !map_file(pages, told.size, descriptor)) pages = nullptr;
  }
  ::close(descriptor);
  if (!pages) return nullptr;
  opened_[pages + told.offset] = {pages, told.size};
  return pages + told.offset;
}
bool SharedPages::close(char* block) {
  const auto found = opened_.find(block);
  if (found == opened_.end()) return false;
  make_own(found->second.pages, found->second.size);
  opened_.erase(found);
  return true;
}

}  // namespace taeda::cuda
