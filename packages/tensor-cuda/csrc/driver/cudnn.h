// cuDNN, from NVIDIA's library, opened when the first convolution or recurrent layer needs it.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "driver/driver.h"
#include "driver/functions.h"
#include "driver/libraries.h"
#include "driver/recent.h"

namespace taeda::cuda {

/// Status numbers of cuDNN lie above cuBLAS's.
inline constexpr int kFirstCudnnStatus = 200'000;

/// Settings of the process: whether the library is used at all, whether convolutions of float32 may round their factors
/// to TF32's 10 bits, and whether the fastest of several ways is found by trying them. Those tried may be ones that
/// give other bits in each run, unless that is forbidden; what is not tried gives the same ones.
extern std::atomic<bool> cudnn_enabled, cudnn_tf32_allowed, cudnn_benchmark, cudnn_deterministic;

class Cudnn {
 public:
  explicit Cudnn(const Functions& driver);
  ~Cudnn();

  /// Whether there is a library; opens it at the first call.
  bool there() { return functions(), library_.is_open(); }
  /// Its path; where there is none, what was looked for.
  std::string description();
  /// 91501 for 9.15.1.
  size_t version();
  /// A way to compute such a convolution, kept for the next one of its shape; null where there is none. The device's
  /// context is the thread's. With `trying` several are run, on the addresses that are given, and the fastest is kept.
  const ConvolutionPlan* plan(int device, const Convolution& convolution, StreamHandle stream, bool trying);
  Status convolve(int device, const ConvolutionPlan& plan, const Convolution& convolution, Address workspace,
                  StreamHandle stream);
  /// What is known of such layers, kept for those that were asked for last; null where there is no way.
  SharedRecurrencePlan plan_recurrence(int device, const Recurrence& layers, StreamHandle stream);
  Status recur(int device, const RecurrencePlan& plan, const RecurrenceRun& run, StreamHandle stream);
  std::string text_of(Status status);

 private:
  struct Table;
  struct Layers;
  class Descriptor;
  struct Plan;
  const Table& functions();
  /// A handle serves one stream, and one thread at a time.
  struct Handle {
    std::mutex lock;
    void* handle = nullptr;
  };
  int handle_for(int device, StreamHandle stream, Handle*& found);
  std::unique_ptr<Plan> find(int device, const Convolution& convolution, StreamHandle stream, bool trying);
  bool is_allowed(const Convolution& convolution, const Descriptor& configuration);
  /// Fills what is not the layers themselves; the library's status.
  int describe(Layers& made, void* handle);
  int run(const Plan& plan, const Convolution& convolution, Address workspace, void* handle);
  /// Milliseconds of a run; none where it fails.
  float time_of(const Plan& plan, const Convolution& convolution, StreamHandle stream, void* handle);

  const Functions& driver_;
  LateLibrary library_;
  std::shared_ptr<Table> table_;
  std::mutex lock_, plans_lock_;
  std::map<std::pair<int, StreamHandle>, Handle> handles_;
  std::map<std::pair<int, Convolution>, std::unique_ptr<Plan>> plans_;
  /// Packed sequences have other lengths in each batch.
  static constexpr int64_t kRecurrencesKept = 256;
  Recent<std::pair<int, Recurrence>, RecurrencePlan> recurrences_;
};

}  // namespace taeda::cuda
