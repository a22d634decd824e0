// Declarations by hand after NVIDIA's cublasLt.h, as those of the driver are; tests compile both against each other.
//
// A product is told by descriptors of its operands and of what is computed. The library names configurations for them,
// the best guess first; the first one is kept, with the descriptors, by all that the guess depends on, so that the same
// product gives the same bits each time.
#include "driver/cublaslt.h"

#include <dlfcn.h>

#include <limits>
#include <utility>

#include "driver/cublas_types.h"
#include "driver/cublaslt_functions.h"
#include "driver/libraries.h"

namespace taeda::cuda {

struct CublasLt::Table {
#define TAEDA_CUBLASLT_POINTER(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  TAEDA_CUBLASLT_FUNCTIONS(TAEDA_CUBLASLT_POINTER)
#undef TAEDA_CUBLASLT_POINTER
};

namespace {

using SetAttribute = int (*)(void*, int, const void*, size_t);

/// What the library is told in, with the first thing that went wrong: later steps do nothing.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(void* made, int status, SetAttribute set, int (*destroy)(void*))
      : made_(status == 0 ? made : nullptr, destroy), set_(set), status_(status) {}
  void* get() const { return made_.get(); }
  int status() const { return status_; }
  template <class T>
  Descriptor& set(int name, T value) {
    if (status_ == 0) status_ = set_(made_.get(), name, &value, sizeof value);
    return *this;
  }

 private:
  std::unique_ptr<void, int (*)(void*)> made_{nullptr, nullptr};
  SetAttribute set_ = nullptr;
  int status_ = 0;
};

uint32_t number_of(const Epilogue& e) {
  using enum Epilogue::Activation;
  using Role = Epilogue::Vector;
  uint32_t number = 0;
  if (e.activation == Relu) number = e.backward ? kCublasLtReluSlope : kCublasLtRelu;
  if (e.activation == Gelu) number = e.backward ? kCublasLtGeluSlope : kCublasLtGelu;
  if (e.kept) number |= kCublasLtKeeps;
  switch (e.role) {
    case Role::Bias: number |= kCublasLtBias; break;
    case Role::Sums: number |= kCublasLtSums; break;
    case Role::SumsOfA: number |= kCublasLtSumsOfA; break;
    case Role::SumsOfB: number |= kCublasLtSumsOfB; break;
    default: break;
  }
  return number ? number : kCublasLtPlain;
}

}  // namespace

struct CublasLt::Plan {
  std::mutex lock;  // of `computed`, which has addresses of the call
  Descriptor computed, a, b, c;
  CublasLtChoice choice{};
};

CublasLt::CublasLt(const Functions& driver, Cublas& cublas)
    : driver_(driver), cublas_(cublas), table_(std::make_shared<Table>()) {}
CublasLt::~CublasLt() = default;

const CublasLt::Table& CublasLt::functions() {
  library_.open({"libcublasLt.so.13", "libcublasLt.so.12"}, {"cu13", "cublas"}, [this](void* library) {
    std::string absent;
    TAEDA_CUBLASLT_FUNCTIONS(TAEDA_LIBRARY_LOOK_UP)
    return absent;
  });
  return *table_;
}
bool CublasLt::there() {
  functions();
  return library_.is_open() && cublas_.there();
}
std::string CublasLt::description() {
  functions();
  return library_.description();
}
int CublasLt::handle_for(int device, void*& found) {
  const std::lock_guard held(lock_);
  void*& handle = handles_[device];
  int status = 0;
  if (!handle) {
    const Relaxed relaxed(driver_);
    if (status = functions().cublasLtCreate(&handle); status != 0) handle = nullptr;
  }
  found = handle;
  return status;
}

std::unique_ptr<CublasLt::Plan> CublasLt::find(int device, const BlasProduct& p) {
  const Table& f = functions();
  const CublasTypes types = cublas_types_of(p.dtype, p.tf32);
  const int result = cublas_types_of(p.result).data;
  void* handle = nullptr;
  if (types.data < 0 || result < 0 || p.batch > std::numeric_limits<int32_t>::max()) return nullptr;
  if (handle_for(device, handle) != 0) return nullptr;
  const auto matrix = [&](const BlasProduct::Matrix& of, int type, int64_t rows, int64_t columns) {
    void* made = nullptr;
    if (of.turned) std::swap(rows, columns);
    const int status = f.cublasLtMatrixLayoutCreate(&made, type, uint64_t(rows), uint64_t(columns), of.ld);
    Descriptor layout(made, status, f.cublasLtMatrixLayoutSetAttribute, f.cublasLtMatrixLayoutDestroy);
    layout.set(kCublasLtBatchCount, int32_t(p.batch)).set(kCublasLtBatchStep, of.step);
    return layout;
  };
  auto plan = std::make_unique<Plan>();
  plan->a = matrix(p.a, types.data, p.m, p.k);
  plan->b = matrix(p.b, types.data, p.k, p.n);
  plan->c = matrix(p.c, result, p.m, p.n);
  void* computed = nullptr;
  // Factors of float32 for halves, else of the elements' own type.
  const bool halves = p.dtype == TAEDA_FLOAT16 || p.dtype == TAEDA_BFLOAT16;
  int status = f.cublasLtMatmulDescCreate(&computed, types.compute, halves ? kCublasFloat : types.data);
  plan->computed = Descriptor(computed, status, f.cublasLtMatmulDescSetAttribute, f.cublasLtMatmulDescDestroy);
  plan->computed.set(kCublasLtTurnedA, int32_t(p.a.turned))
      .set(kCublasLtTurnedB, int32_t(p.b.turned))
      .set(kCublasLtEpilogue, number_of(p.epilogue));
  if (p.epilogue.vector) plan->computed.set(kCublasLtVector, p.epilogue.vector);
  if (p.epilogue.kept) plan->computed.set(kCublasLtKept, p.epilogue.kept).set(kCublasLtKeptLd, p.epilogue.kept_ld);
  void* wanted_made = nullptr;
  status = f.cublasLtMatmulPreferenceCreate(&wanted_made);
  Descriptor wanted(wanted_made, status, f.cublasLtMatmulPreferenceSetAttribute, f.cublasLtMatmulPreferenceDestroy);
  const auto alignment = [](uint64_t address) { return uint32_t(BlasProduct::alignment_of(address)); };
  wanted.set(kCublasLtMostWorkspace, uint64_t(kCublasWorkspace))
      .set(kCublasLtReductions, kCublasLtReduceInOrder)
      .set(kCublasLtAlignmentA, alignment(p.a.data))
      .set(kCublasLtAlignmentB, alignment(p.b.data))
      .set(kCublasLtAlignmentC, alignment(p.c.data))
      .set(kCublasLtAlignmentD, alignment(p.c.data));
  for (const int outcome :
       {plan->a.status(), plan->b.status(), plan->c.status(), plan->computed.status(), wanted.status()})
    if (outcome != 0) return nullptr;
  int count = 0;
  status = f.cublasLtMatmulAlgoGetHeuristic(handle, plan->computed.get(), plan->a.get(), plan->b.get(), plan->c.get(),
                                            plan->c.get(), wanted.get(), 1, &plan->choice, &count);
  const bool found = status == 0 && count == 1 && plan->choice.status == 0;
  return found ? std::move(plan) : nullptr;
}
CublasLt::Plan* CublasLt::plan_for(int device, const BlasProduct& product) {
  const std::lock_guard held(plans_lock_);
  const auto [place, is_new] = plans_.try_emplace(Key{device, product.shape()});
  if (is_new) place->second = find(device, product);
  return place->second.get();
}
bool CublasLt::can_finish(int device, const BlasProduct& product) {
  return there() && plan_for(device, product) != nullptr;
}
Status CublasLt::multiply(int device, const BlasProduct& p, StreamHandle stream) {
  Plan* const plan = plan_for(device, p);
  if (!plan) return Status::InvalidValue;
  const auto place = [](uint64_t address) { return reinterpret_cast<void*>(uintptr_t(address)); };
  const int compute = cublas_types_of(p.dtype, p.tf32).compute;
  const CublasFactor alpha(p.alpha, compute), beta(p.beta, compute);
  void* handle = nullptr;
  uint64_t workspace = 0;
  int status = handle_for(device, handle);
  if (status == 0) status = cublas_.workspace_of(device, stream, workspace);
  if (status != 0) return Status(kFirstCublasStatus + status);
  if (!workspace && plan->choice.workspace > 0) return Status::OutOfMemory;
  const std::lock_guard held(plan->lock);
  if (p.epilogue.vector) plan->computed.set(kCublasLtVector, p.epilogue.vector);
  if (p.epilogue.kept) plan->computed.set(kCublasLtKept, p.epilogue.kept);
  status = plan->computed.status();
  if (status == 0)
    status = functions().cublasLtMatmul(handle, plan->computed.get(), &alpha, place(p.a.data), plan->a.get(),
                                        place(p.b.data), plan->b.get(), &beta, place(p.c.data), plan->c.get(),
                                        place(p.c.data), plan->c.get(), plan->choice.algorithm, place(workspace),
                                        workspace ? kCublasWorkspace : 0, stream);
  return status == 0 ? Status::Ok : Status(kFirstCublasStatus + status);
}

}  // namespace taeda::cuda
