// cuFFT, from NVIDIA's library, opened when the first transform needs it.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "driver/driver.h"
#include "driver/functions.h"
#include "driver/libraries.h"

namespace taeda::cuda {

/// Status numbers of cuFFT lie above cuDNN's.
inline constexpr int kFirstCufftStatus = 300'000;

class Cufft {
 public:
  explicit Cufft(const Functions& driver);
  ~Cufft();

  /// Whether there is a library; opens it at the first call.
  bool there() { return functions(), library_.is_open(); }
  /// Its path; where there is none, what was looked for.
  std::string description();
  /// 12000 for 12.0.0.
  int version();
  /// A way to compute such transforms, kept for the next one of its shape; null where there is none. The device's
  /// context is the thread's, here and below.
  SharedTransformPlan plan(int device, const Transform& transform);
  void settle(int device, PlansKept& asked);
  /// A graph of the driver's runs what the plan holds, for nobody knows how long.
  void stays(const TransformPlan& plan);
  Status transform(const TransformPlan& plan, const Transform& transform, Address workspace, StreamHandle stream);
  static std::string text_of(Status status);

 private:
  struct Table;
  struct Plan;
  const Table& functions();
  std::shared_ptr<Plan> make(const Transform& transform);

  const Functions& driver_;
  LateLibrary library_;
  std::shared_ptr<Table> table_;
  std::mutex lock_;
  std::map<int, Recent<Transform, TransformPlan>> plans_;                    // by device
  std::map<const TransformPlan*, std::weak_ptr<const TransformPlan>> made_;  // those that somebody holds
  std::set<SharedTransformPlan> recorded_;
};

}  // namespace taeda::cuda
