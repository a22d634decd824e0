// Declarations by hand after NVIDIA's cudnn_graph.h, as those of the driver are; tests compile both against each other.
//
// A convolution is a graph of one operation. The library names configurations that compute it, the best guess first; a
// plan is a configuration that is ready to be run.
#include "driver/cudnn.h"

#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "driver/cudnn_table.h"
#include "driver/libraries.h"
#include "taeda/abi.h"

namespace taeda::cuda {

std::atomic<bool> cudnn_enabled = true, cudnn_tf32_allowed = true, cudnn_benchmark = false, cudnn_deterministic = false;

namespace {

constexpr int64_t kResultId = 'y', kInputId = 'x', kWeightId = 'w';
/// How many configurations are run where the fastest is looked for, and how often each.
constexpr size_t kTried = 10;
constexpr int kRuns = 3;
/// What a configuration may want beside the tensors.
constexpr int64_t kMostWorkspace = int64_t(4) << 30;

}  // namespace

int cudnn_type_of(int dtype) {
  switch (dtype) {
    case TAEDA_FLOAT16: return kCudnnHalf;
    case TAEDA_BFLOAT16: return kCudnnBfloat16;
    case TAEDA_FLOAT32: return kCudnnFloat;
    case TAEDA_FLOAT64: return kCudnnDouble;
    default: return -1;
  }
}

/// What the library is told in, with the first thing that went wrong: later steps do nothing.
class Cudnn::Descriptor {
 public:
  Descriptor(const Table& table, int kind) : table_(&table) {
    status_ = table.cudnnBackendCreateDescriptor(kind, &made_);
  }
  Descriptor(Descriptor&& other) noexcept
      : table_(other.table_), made_(std::exchange(other.made_, nullptr)), status_(other.status_) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (made_) table_->cudnnBackendDestroyDescriptor(made_);
  }
  void* const& get() const { return made_; }
  int status() const { return status_; }
  Descriptor& set(int name, int type, int64_t count, const void* values) {
    if (status_ == 0) status_ = table_->cudnnBackendSetAttribute(made_, name, type, count, values);
    return *this;
  }
  Descriptor& integer(int name, int64_t value) { return set(name, kCudnnTypeInteger, 1, &value); }
  Descriptor& data(int name, int value) { return set(name, kCudnnTypeData, 1, &value); }
  Descriptor& part(int name, const Descriptor& part) {
    if (status_ == 0) status_ = part.status_;
    return set(name, kCudnnTypeDescriptor, 1, &part.made_);
  }
  Descriptor& end() {
    if (status_ == 0) status_ = table_->cudnnBackendFinalize(made_);
    return *this;
  }

 private:
  const Table* table_;
  void* made_ = nullptr;
  int status_ = 0;
};

struct Cudnn::Plan : ConvolutionPlan {
  explicit Plan(Descriptor&& descriptor) : made(std::move(descriptor)) {}
  Descriptor made;
};

Cudnn::Cudnn(const Functions& driver) : driver_(driver), table_(std::make_shared<Table>()) {}
Cudnn::~Cudnn() = default;

const Cudnn::Table& Cudnn::functions() {
  library_.open({"libcudnn.so.9"}, {"cudnn"}, [this](void* library) {
    std::string absent;
    TAEDA_CUDNN_FUNCTIONS(TAEDA_LIBRARY_LOOK_UP)
    TAEDA_CUDNN_RECURRENT_FUNCTIONS(TAEDA_LIBRARY_LOOK_UP)
    return absent;
  });
  return *table_;
}
std::string Cudnn::description() {
  functions();
  return library_.description();
}
size_t Cudnn::version() { return functions().cudnnGetVersion(); }
std::string Cudnn::text_of(Status status) {
  if (!there()) return "status " + std::to_string(int(status) - kFirstCudnnStatus) + " of cuDNN";
  char said[512] = "";
  functions().cudnnGetLastErrorString(said, sizeof said);
  const char* const text = functions().cudnnGetErrorString(int(status) - kFirstCudnnStatus);
  return "cuDNN: " + std::string(text ? text : "unknown error") + (*said ? ": " + std::string(said) : "");
}
int Cudnn::handle_for(int device, StreamHandle stream, Handle*& found) {
  const std::lock_guard held(lock_);
  found = &handles_[{device, stream}];
  if (found->handle) return 0;
  const Relaxed relaxed(driver_);
  const int status = functions().cudnnCreate(&found->handle);
  if (status != 0) found->handle = nullptr;
  return status == 0 ? functions().cudnnSetStream(found->handle, stream) : status;
}

/// Whether what the configuration rounds is allowed.
bool Cudnn::is_allowed(const Convolution& convolution, const Descriptor& configuration) {
  const Table& f = functions();
  const Descriptor engine(f, kCudnnEngine);
  void* place = engine.get();
  int64_t count = 0;
  std::array<int, 16> notes{};
  if (f.cudnnBackendGetAttribute(configuration.get(), kCudnnConfigurationEngine, kCudnnTypeDescriptor, 1, &count,
                                 &place) != 0 ||
      f.cudnnBackendGetAttribute(engine.get(), kCudnnEngineNotes, kCudnnTypeNote, int64_t(notes.size()), &count,
                                 notes.data()) != 0)
    return false;
  for (size_t i = 0; i < std::min(notes.size(), size_t(count)); ++i) {
    if (notes[i] == kCudnnNoteDownConverts || notes[i] == kCudnnNoteReducedReduction) return false;
    if (notes[i] == kCudnnNoteTensorCore && convolution.dtype == TAEDA_FLOAT32 && !convolution.tf32) return false;
    if (notes[i] == kCudnnNoteNondeterministic && convolution.deterministic) return false;
  }
  return true;
}
int Cudnn::run(const Plan& plan, const Convolution& c, Address workspace, void* handle) {
  const auto place = [](uint64_t address) { return reinterpret_cast<void*>(uintptr_t(address)); };
  const int64_t ids[] = {kInputId, kWeightId, kResultId};
  void* const pointers[] = {place(c.x.data), place(c.w.data), place(c.y.data)};
  void* const beside = place(workspace);
  Descriptor pack(functions(), kCudnnPack);
  pack.set(kCudnnPackPointers, kCudnnTypePointer, 3, pointers)
      .set(kCudnnPackIds, kCudnnTypeInteger, 3, ids)
      .set(kCudnnPackWorkspace, kCudnnTypePointer, 1, &beside)
      .end();
  return pack.status() == 0 ? functions().cudnnBackendExecute(handle, plan.made.get(), pack.get()) : pack.status();
}
float Cudnn::time_of(const Plan& plan, const Convolution& c, StreamHandle stream, void* handle) {
  constexpr float none = std::numeric_limits<float>::infinity();
  uint64_t workspace = 0;
  if (plan.workspace && driver_.cuMemAlloc_v2(&workspace, plan.workspace) != 0) return none;
  void* events[2] = {};
  float best = none;
  if (driver_.cuEventCreate(&events[0], 0) == 0 && driver_.cuEventCreate(&events[1], 0) == 0)
    for (int i = 0; i <= kRuns; ++i) {  // the first one loads code
      float took = none;
      if (driver_.cuEventRecord(events[0], stream) != 0 || run(plan, c, workspace, handle) != 0) break;
      driver_.cuEventRecord(events[1], stream);
      if (driver_.cuEventSynchronize(events[1]) != 0) break;
      if (i > 0 && driver_.cuEventElapsedTime(&took, events[0], events[1]) == 0) best = std::min(best, took);
    }
  for (void* event : events)
    if (event) driver_.cuEventDestroy_v2(event);
  if (workspace) driver_.cuStreamSynchronize(stream), driver_.cuMemFree_v2(workspace);
  return best;
}

std::unique_ptr<Cudnn::Plan> Cudnn::find(int device, const Convolution& c, StreamHandle stream, bool trying) {
  const Table& f = functions();
  Handle* own = nullptr;
  if (handle_for(device, stream, own) != 0) return nullptr;
  const std::lock_guard held(own->lock);
  void* const handle = own->handle;
  const int data = cudnn_type_of(c.dtype), compute = c.dtype == TAEDA_FLOAT64 ? kCudnnDouble : kCudnnFloat;
  const auto tensor = [&](const Convolution::Operand& operand, int64_t id) {
    Descriptor made(f, kCudnnTensor);
    made.data(kCudnnTensorData, data)
        .set(kCudnnTensorSizes, kCudnnTypeInteger, c.spatial + 2, operand.sizes.data())
        .set(kCudnnTensorStrides, kCudnnTypeInteger, c.spatial + 2, operand.strides.data())
        .integer(kCudnnTensorId, id)
        .integer(kCudnnTensorAlignment, operand.alignment)
        .end();
    return made;
  };
  const Descriptor x = tensor(c.x, kInputId), w = tensor(c.w, kWeightId), y = tensor(c.y, kResultId);
  Descriptor window(f, kCudnnConvolution);
  window.integer(kCudnnConvolutionSpatial, c.spatial)
      .data(kCudnnConvolutionCompute, compute)
      .set(kCudnnConvolutionMode, kCudnnTypeMode, 1, &kCudnnCrossCorrelation)
      .set(kCudnnConvolutionBefore, kCudnnTypeInteger, c.spatial, c.padding.data())
      .set(kCudnnConvolutionAfter, kCudnnTypeInteger, c.spatial, c.padding.data())
      .set(kCudnnConvolutionStrides, kCudnnTypeInteger, c.spatial, c.stride.data())
      .set(kCudnnConvolutionDilations, kCudnnTypeInteger, c.spatial, c.dilation.data())
      .end();
  const bool forward = c.kind == Convolved::Result, inputs = c.kind == Convolved::InputGradient;
  const int* const parts = forward ? kCudnnForwardParts : inputs ? kCudnnBackwardDataParts : kCudnnBackwardFilterParts;
  Descriptor operation(f, forward ? kCudnnForward : inputs ? kCudnnBackwardData : kCudnnBackwardFilter);
  const double wide[] = {1, 0};
  const float single[] = {1, 0};
  const bool is_wide = compute == kCudnnDouble;
  for (int i = 0; i < 2; ++i)
    operation.set(parts[i], is_wide ? kCudnnTypeDouble : kCudnnTypeFloat, 1,
                  is_wide ? static_cast<const void*>(&wide[i]) : &single[i]);
  operation.part(parts[2], window);
  operation.part(parts[3], w).part(parts[4], x).part(parts[5], y).end();
  Descriptor graph(f, kCudnnGraph);
  graph.part(kCudnnGraphOperations, operation).set(kCudnnGraphHandle, kCudnnTypeHandle, 1, &handle).end();
  if (graph.status() != 0) return nullptr;
  std::unique_ptr<Plan> best;
  float shortest = std::numeric_limits<float>::infinity();
  size_t tried = 0;
  for (const int mode : {kCudnnHeuristicInstant, kCudnnHeuristicFallback}) {
    Descriptor heuristics(f, kCudnnHeuristics);
    heuristics.part(kCudnnHeuristicsGraph, graph).set(kCudnnHeuristicsMode, kCudnnTypeHeuristic, 1, &mode).end();
    int64_t count = 0;
    if (heuristics.status() != 0 || f.cudnnBackendGetAttribute(heuristics.get(), kCudnnHeuristicsResults,
                                                               kCudnnTypeDescriptor, 0, &count, nullptr) != 0)
      continue;
    std::vector<Descriptor> configurations;
    std::vector<void*> places;
    for (int64_t i = 0; i < count; ++i) places.push_back(configurations.emplace_back(f, kCudnnConfiguration).get());
    if (f.cudnnBackendGetAttribute(heuristics.get(), kCudnnHeuristicsResults, kCudnnTypeDescriptor, count, &count,
                                   places.data()) != 0)
      continue;
    places.resize(std::min(places.size(), size_t(count)));
    for (size_t i = 0; i < places.size(); ++i) {
      if (!is_allowed(c, configurations[i])) continue;
      Descriptor made(f, kCudnnPlan);
      made.set(kCudnnPlanHandle, kCudnnTypeHandle, 1, &handle).part(kCudnnPlanConfiguration, configurations[i]).end();
      int64_t workspace = 0;
      if (made.status() != 0 ||
          f.cudnnBackendGetAttribute(made.get(), kCudnnPlanWorkspace, kCudnnTypeInteger, 1, &count, &workspace) != 0)
        continue;
      if (workspace > kMostWorkspace) continue;
      auto plan = std::make_unique<Plan>(std::move(made));
      plan->workspace = size_t(workspace);
      if (!trying) return plan;
      const float took = time_of(*plan, c, stream, handle);
      if (took < shortest) shortest = took, best = std::move(plan);
      if (++tried == kTried) return best;
    }
    if (best) return best;
  }
  return best;
}
const ConvolutionPlan* Cudnn::plan(int device, const Convolution& convolution, StreamHandle stream, bool trying) {
  if (cudnn_type_of(convolution.dtype) < 0 || !there()) return nullptr;
  const std::pair key{device, convolution.shape()};
  const std::lock_guard held(plans_lock_);
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second.get();
  const Relaxed relaxed(driver_);
  return (plans_[key] = find(device, convolution, stream, trying)).get();
}
Status Cudnn::convolve(int device, const ConvolutionPlan& plan, const Convolution& convolution, Address workspace,
                       StreamHandle stream) {
  Handle* own = nullptr;
  int status = handle_for(device, stream, own);
  if (status == 0) {
    const std::lock_guard held(own->lock);
    status = run(static_cast<const Plan&>(plan), convolution, workspace, own->handle);
  }
  return status == 0 ? Status::Ok : Status(kFirstCudnnStatus + status);
}

}  // namespace taeda::cuda
