// cuBLAS, from NVIDIA's library, opened when the first product needs it.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "driver/driver.h"
#include "driver/functions.h"
#include "driver/libraries.h"

namespace taeda::cuda {

/// Status numbers of cuBLAS lie above the driver's.
inline constexpr int kFirstCublasStatus = 100'000;

/// Whether products of float32 may round their factors to 10 bits; a setting of the process.
extern std::atomic<bool> tf32_allowed;

class Cublas {
 public:
  explicit Cublas(const Functions& driver);

  /// Whether there is a library; opens it at the first call.
  bool there() { return functions(), library_.is_open(); }
  /// Its path and version; where there is none, what was looked for.
  std::string description();
  bool can_multiply(const BlasProduct& product);
  /// The device's context is the thread's.
  Status multiply(int device, const BlasProduct& product, StreamHandle stream);
  /// Makes what products on a stream need besides it, where products have been made; a number of `text_of`, or 0.
  int prepare(int device, StreamHandle stream);
  /// The memory beside operands of what is queued on a stream, of kCublasWorkspace bytes, or 0 where there was none; a
  /// number of cuBLAS.
  int workspace_of(int device, StreamHandle stream, uint64_t& workspace);
  std::string text_of(Status status);

 private:
  struct Table;
  /// A handle serves one stream: its workspace is written by the work that is queued there.
  struct Handle {
    std::mutex lock;
    void* handle = nullptr;
    uint64_t workspace = 0;
  };
  const Table& functions();
  int handle_for(int device, StreamHandle stream, Handle*& found);

  const Functions& driver_;
  LateLibrary library_;
  std::shared_ptr<Table> table_;
  std::mutex lock_;
  std::map<std::pair<int, StreamHandle>, Handle> handles_;
};

}  // namespace taeda::cuda
