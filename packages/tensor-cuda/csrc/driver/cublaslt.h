// cuBLASLt, from NVIDIA's library, opened when the first product with an epilogue needs it.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "driver/cublas.h"

namespace taeda::cuda {

class CublasLt {
 public:
  CublasLt(const Functions& driver, Cublas& cublas);
  ~CublasLt();

  /// Whether there is a library, and cuBLAS beside it; opens both at the first call.
  bool there();
  /// Its path; where there is none, what was looked for.
  std::string description();
  /// Whether the library has a way to compute such a product, which is kept for the next one of its shape. The device's
  /// context is the thread's.
  bool can_finish(int device, const BlasProduct& product);
  /// One that it can finish; a number of cuBLAS.
  Status multiply(int device, const BlasProduct& product, StreamHandle stream);

 private:
  struct Table;
  struct Plan;
  /// By device and shape.
  using Key = std::pair<int, BlasProduct>;
  const Table& functions();
  int handle_for(int device, void*& found);
  /// Null where there is no way.
  Plan* plan_for(int device, const BlasProduct& product);
  std::unique_ptr<Plan> find(int device, const BlasProduct& product);

  const Functions& driver_;
  Cublas& cublas_;
  LateLibrary library_;
  std::shared_ptr<Table> table_;
  std::mutex lock_, plans_lock_;
  std::map<int, void*> handles_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace taeda::cuda
