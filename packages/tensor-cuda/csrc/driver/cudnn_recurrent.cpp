// Recurrent layers by cuDNN: its functions of version 8's interface, which version 9 has kept.
#include <array>
#include <limits>
#include <utility>

#include "driver/cudnn_table.h"
#include "taeda/abi.h"

namespace taeda::cuda {
namespace {

/// A descriptor, and what ends it.
class Described {
 public:
  using End = int (*)(void*);
  Described() = default;
  Described(int (*begin)(void**), End end, int& status) : end_(end) {
    if (status == 0) status = begin(&made_);
  }
  Described(Described&& other) noexcept : made_(std::exchange(other.made_, nullptr)), end_(other.end_) {}
  Described& operator=(Described&& other) noexcept {
    std::swap(made_, other.made_);
    std::swap(end_, other.end_);
    return *this;
  }
  ~Described() {
    if (made_) end_(made_);
  }
  void* get() const { return made_; }

 private:
  void* made_ = nullptr;
  End end_ = nullptr;
};

/// Addresses are worked out from this one, at which nothing lies.
constexpr uintptr_t kNowhere = uintptr_t(1) << 32;

void* place(uint64_t address) { return reinterpret_cast<void*>(uintptr_t(address)); }

}  // namespace

struct Cudnn::Layers : RecurrencePlan {
  Described dropout, layer, x, y, h, c;
};

int Cudnn::describe(Layers& made, void* handle) {
  const Table& f = functions();
  const Recurrence& r = made.layers;
  int status = 0;
  const int data = cudnn_type_of(r.dtype), compute = r.dtype == TAEDA_FLOAT64 ? kCudnnDouble : kCudnnFloat;
  const int math = r.dtype == TAEDA_FLOAT16              ? kCudnnTensorMath
                   : r.dtype == TAEDA_FLOAT32 && !r.tf32 ? kCudnnPlainMath
                                                         : kCudnnDefaultMath;
  const auto then = [&](auto&& call) {
    if (status == 0) status = call();
  };
  made.dropout = Described(f.cudnnCreateDropoutDescriptor, f.cudnnDestroyDropoutDescriptor, status);
  then([&] { return f.cudnnSetDropoutDescriptor(made.dropout.get(), handle, 0, nullptr, 0, 0); });
  made.layer = Described(f.cudnnCreateRNNDescriptor, f.cudnnDestroyRNNDescriptor, status);
  then([&] {
    return f.cudnnSetRNNDescriptor_v8(made.layer.get(), kCudnnStandardRecurrence, int(r.cell),
                                      r.biased ? kCudnnTwoBiases : kCudnnNoBias, r.directions == 2, kCudnnLinearInput,
                                      data, compute, math, int32_t(r.inputs), int32_t(r.hidden), int32_t(r.features()),
                                      r.layers, made.dropout.get(), r.lengths.empty() ? kCudnnPaddedData : 0);
  });
  const int layout = !r.lengths.empty() ? kCudnnPackedSteps : r.batch_first ? kCudnnPaddedBatch : kCudnnPaddedSteps;
  std::vector<int> lengths(size_t(r.batch), int(r.steps));
  for (size_t n = 0; n < r.lengths.size(); ++n) lengths[n] = int(r.lengths[n]);
  const auto sequence = [&](int64_t width) {
    Described found(f.cudnnCreateRNNDataDescriptor, f.cudnnDestroyRNNDataDescriptor, status);
    uint64_t nothing = 0;  // zeros of any type
    then([&] {
      return f.cudnnSetRNNDataDescriptor(found.get(), data, layout, int(r.steps), int(r.batch), int(width),
                                         lengths.data(), &nothing);
    });
    return found;
  };
  const auto state = [&](int64_t width) {
    Described found(f.cudnnCreateTensorDescriptor, f.cudnnDestroyTensorDescriptor, status);
    const int sizes[] = {r.layers * r.directions, int(r.batch), int(width)};
    const int strides[] = {sizes[1] * sizes[2], sizes[2], 1};
    then([&] { return f.cudnnSetTensorNdDescriptor(found.get(), data, 3, sizes, strides); });
    return found;
  };
  made.x = sequence(r.inputs);
  made.y = sequence(r.directions * r.features());
  made.h = state(r.features());
  made.c = state(r.hidden);
  then([&] {
    return f.cudnnGetRNNTempSpaceSizes(handle, made.layer.get(), r.keeps, made.x.get(), &made.workspace, &made.kept);
  });
  then([&] { return f.cudnnGetRNNWeightSpaceSize(handle, made.layer.get(), &made.weights); });
  if (!r.keeps) made.kept = 0;
  Described matrix(f.cudnnCreateTensorDescriptor, f.cudnnDestroyTensorDescriptor, status);
  Described bias(f.cudnnCreateTensorDescriptor, f.cudnnDestroyTensorDescriptor, status);
  for (int layer = 0; layer < r.layers * r.directions; ++layer)
    for (size_t i = 0; i < made.places_each(); ++i) {
      void *m = nullptr, *b = nullptr;
      then([&] {
        return f.cudnnGetRNNWeightParams(handle, made.layer.get(), layer, made.weights, place(kNowhere), int(i),
                                         matrix.get(), &m, bias.get(), &b);
      });
      const auto behind = [](void* found) {
        return found ? int64_t(reinterpret_cast<uintptr_t>(found) - kNowhere) : int64_t(-1);
      };
      made.places.push_back({behind(m), behind(b)});
      const bool biased = r.biased && int(i) < 2 * r.gates();
      if (status == 0 && (!m || (biased && !b))) status = kCudnnNotSupported;
    }
  return status;
}

SharedRecurrencePlan Cudnn::plan_recurrence(int device, const Recurrence& layers, StreamHandle stream) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (cudnn_type_of(layers.dtype) < 0 || !there()) return nullptr;
  for (const int64_t size : {layers.inputs, layers.hidden, layers.steps, layers.batch, layers.rows()})
    if (size > most) return nullptr;
  const std::pair key{device, layers};
  const std::lock_guard held(plans_lock_);
  if (const auto [found, known] = recurrences_.find(key); known) return found;
  const Relaxed relaxed(driver_);
  Handle* own = nullptr;
  std::shared_ptr<Layers> made;
  if (handle_for(device, stream, own) == 0) {
    const std::lock_guard alone(own->lock);
    made = std::make_shared<Layers>();
    made->layers = layers;
    if (describe(*made, own->handle) != 0) made = nullptr;
  }
  recurrences_.set_most(kRecurrencesKept);
  recurrences_.put(key, made);
  return made;
}

Status Cudnn::recur(int device, const RecurrencePlan& plan, const RecurrenceRun& run, StreamHandle stream) {
  const Table& f = functions();
  const Layers& made = static_cast<const Layers&>(plan);
  Handle* own = nullptr;
  int status = handle_for(device, stream, own);
  if (status != 0) return Status(kFirstCudnnStatus + status);
  const std::lock_guard held(own->lock);
  // Lengths of sequences are told by the descriptors; a copy on the device has not been asked for since 8.9.1.
  if (!run.backward) {
    status = f.cudnnRNNForward(own->handle, made.layer.get(), plan.layers.keeps, nullptr, made.x.get(), place(run.x),
                               made.y.get(), place(run.y), made.h.get(), place(run.h), place(run.h_out), made.c.get(),
                               place(run.c), place(run.c_out), plan.weights, place(run.weights), plan.workspace,
                               place(run.workspace), plan.kept, place(run.kept));
  } else {
    status = f.cudnnRNNBackwardData_v8(own->handle, made.layer.get(), nullptr, made.y.get(), place(run.y),
                                       place(run.of_y), made.x.get(), place(run.to_x), made.h.get(), place(run.h),
                                       place(run.of_h_out), place(run.to_h), made.c.get(), place(run.c),
                                       place(run.of_c_out), place(run.to_c), plan.weights, place(run.weights),
                                       plan.workspace, place(run.workspace), plan.kept, place(run.kept));
    if (status == 0 && run.to_weights)
      status = f.cudnnRNNBackwardWeights_v8(own->handle, made.layer.get(), kCudnnAddGradients, nullptr, made.x.get(),
                                            place(run.x), made.h.get(), place(run.h), made.y.get(), place(run.y),
                                            plan.weights, place(run.to_weights), plan.workspace, place(run.workspace),
                                            plan.kept, place(run.kept));
  }
  return status == 0 ? Status::Ok : Status(kFirstCudnnStatus + status);
}

}  // namespace taeda::cuda
