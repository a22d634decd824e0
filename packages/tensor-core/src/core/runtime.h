// Internals that the files of src/core share.
#pragma once
#include "taeda/tensor.h"
#include "taeda/thread_end.h"

namespace taeda {
struct ImageResult;
}
namespace taeda::detail {

/// Fills data/release of a CPU storage.
void cpu_allocate(Storage& storage, size_t nbytes);
/// Frees what cpu_allocate has given, of the same size.
void cpu_release(void* data, size_t nbytes) noexcept;
/// Gives the whole pages behind the first `kept` bytes back to the system, which gives zeros where they are touched
/// again.
void cpu_discard(const Storage& storage, size_t kept) noexcept;
/// Backend::wants_channels_last of the cpu's kernels.
bool cpu_wants_channels_last(const ImageResult& result);
/// Live-byte accounting of storages whose bytes are inline.
void count_inline_bytes(int64_t delta);

/// A per-thread stack of free blocks of one size; beyond `Limit` blocks go back to the heap.
/// Only a pointer is thread-local, in the static TLS block, so that reaching it costs one load.
template <class T, int Limit>
class FreeList {
 public:
  static void* take() {
    State* s = state;
    return s && s->count ? s->blocks[--s->count] : ::operator new(sizeof(T));
  }
  static void give(void* block) noexcept {
    State* s = state;
    if (!s) [[unlikely]]
      s = arm();
    if (s && s->count < Limit) s->blocks[s->count++] = block;
    else ::operator delete(block);
  }

 private:
  struct State {
    int count = 0;
    void* blocks[Limit];
  };
  /// Creates the thread's state and its clean-up; null once the thread is ending.
  [[gnu::noinline]] static State* arm() noexcept {
    if (at_thread_end<drop>()) state = new State;
    return state;
  }
  static void drop() noexcept {
    State* s = std::exchange(state, nullptr);
    if (!s) return;
    while (s->count) ::operator delete(s->blocks[--s->count]);
    delete s;
  }
  static inline thread_local constinit State* state __attribute__((tls_model("initial-exec"))) = nullptr;
};

}  // namespace taeda::detail
