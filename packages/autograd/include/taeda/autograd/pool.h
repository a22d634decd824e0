// Free lists for graph nodes and gradient records: a thread takes back what it gave, without locks.
#pragma once
#include <cstddef>
#include <new>
#include <utility>

namespace taeda::autograd {

/// Blocks of up to 1 KiB in classes of 32 bytes; each class keeps a bounded list per thread.
class Pool {
 public:
  static constexpr size_t kStep = 32, kClasses = 32;
  static constexpr unsigned kKept = 2048;

  static void* take(size_t bytes) {
    const size_t k = (bytes - 1) / kStep;
    State* s = state;
    if (k >= kClasses || !s || !s->free[k]) [[unlikely]]
      return ::operator new(k >= kClasses ? bytes : (k + 1) * kStep);
    Block* block = s->free[k];
    s->free[k] = block->next;
    --s->count[k];
    return block;
  }
  static void give(void* memory, size_t bytes) noexcept {
    const size_t k = (bytes - 1) / kStep;
    State* s = state ? state : arm();
    if (k >= kClasses || !s || s->count[k] >= kKept) [[unlikely]]
      return ::operator delete(memory);
    s->free[k] = new (memory) Block{s->free[k]};
    ++s->count[k];
  }

 private:
  struct Block {
    Block* next;
  };
  struct State {
    Block* free[kClasses] = {};
    unsigned count[kClasses] = {};
  };
  /// Creates the thread's lists and their clean-up; null once the thread is ending.
  [[gnu::noinline]] static State* arm() noexcept;
  static void drop() noexcept;
  static inline thread_local constinit State* state __attribute__((tls_model("initial-exec"))) = nullptr;
};

/// Base that sends `new` and `delete` of a class tree with a virtual destructor to the pool.
struct Pooled {
  static void* operator new(size_t bytes) { return Pool::take(bytes); }
  static void operator delete(void* memory, size_t bytes) noexcept { Pool::give(memory, bytes); }
};

}  // namespace taeda::autograd
