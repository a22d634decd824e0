// Memory of a thread for the length of a scope.
#include "cpu/scratch.h"

#include <new>

#include "taeda/thread_end.h"

namespace taeda::cpu {

constexpr int64_t kLine = 64, kAll = 256 * 1024;

struct alignas(kLine) Scratch::Block {
  char bytes[kAll];
  int64_t used = 0;
};

namespace {

constinit thread_local Scratch::Block* own __attribute__((tls_model("initial-exec"))) = nullptr;

void drop() noexcept {
  delete own;
  own = nullptr;
}
/// Out of line: once in a thread. Null where the thread is at its end.
[[gnu::noinline]] Scratch::Block* make_own() {
  if (at_thread_end<drop>()) own = new Scratch::Block;
  return own;
}

}  // namespace

Scratch::Scratch(int64_t bytes) : bytes_((bytes + kLine - 1) / kLine * kLine) {
  Block* const block = own ? own : make_own();
  if (block && bytes_ <= kAll - block->used) [[likely]] {
    block_ = block;
    data_ = block->bytes + block->used;
    block->used += bytes_;
    return;
  }
  data_ = static_cast<char*>(operator new(size_t(bytes_), std::align_val_t(kLine)));
}
Scratch::~Scratch() {
  if (block_) [[likely]]
    block_->used -= bytes_;
  else operator delete(data_, std::align_val_t(kLine));
}

}  // namespace taeda::cpu
