// Memory of a thread for the length of a scope.
#pragma once
#include <cstdint>

namespace taeda::cpu {

/// `bytes` bytes, on a line of the cache of their own, until the end of the scope: what a kernel would else have on the
/// stack, of which a thread may have little (64 KiB are the least that Python gives, and other libraries' threads have
/// not much more). It costs about as much as a call; scopes nest.
class Scratch {
 public:
  explicit Scratch(int64_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  char* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

  struct Block;

 private:
  char* data_;
  int64_t bytes_;
  Block* block_ = nullptr;  // the thread's; null: from the heap
};

}  // namespace taeda::cpu
