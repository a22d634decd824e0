// cuSOLVER, from NVIDIA's library, opened when the first factors are wanted.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "driver/driver.h"
#include "driver/functions.h"
#include "driver/libraries.h"

namespace taeda::cuda {

/// Status numbers of cuSOLVER lie above cuFFT's.
inline constexpr int kFirstCusolverStatus = 400'000;

class Cusolver {
 public:
  explicit Cusolver(const Functions& driver);
  ~Cusolver();

  /// Whether there is a library; opens it at the first call.
  bool there() { return functions(), library_.is_open(); }
  /// Its path; where there is none, what was looked for.
  std::string description();
  /// 12000 for 12.0.0.
  int version();
  /// What factorings of such a shape need, kept for the next one; null where the library has no way. The device's
  /// context is the thread's.
  const FactoringPlan* plan(int device, const Factoring& factoring, StreamHandle stream);
  Status factor(int device, const FactoringPlan& plan, const Factoring& factoring, Address workspace,
                StreamHandle stream);
  static std::string text_of(Status status);

 private:
  struct Table;
  struct Plan;
  /// A handle serves one stream, since libraries within it keep memory of their own.
  struct Handle {
    std::mutex lock;
    void *handle = nullptr, *parameters = nullptr;
  };
  class Call;
  const Table& functions();
  int handle_for(int device, StreamHandle stream, Handle*& found);

  const Functions& driver_;
  LateLibrary library_;
  std::shared_ptr<Table> table_;
  std::mutex lock_, plans_lock_;
  std::map<std::pair<int, StreamHandle>, Handle> handles_;
  std::map<std::pair<int, Factoring>, std::unique_ptr<Plan>> plans_;
};

}  // namespace taeda::cuda
