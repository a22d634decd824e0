// Declarations by hand after NVIDIA's cusolverDn.h, as those of the driver are; tests compile both against each other.
#include "driver/cusolver.h"

#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "driver/cusolver_functions.h"
#include "driver/libraries.h"
#include "taeda/abi.h"

namespace taeda::cuda {

struct Cusolver::Table {
#define TAEDA_CUSOLVER_POINTER(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  TAEDA_CUSOLVER_FUNCTIONS(TAEDA_CUSOLVER_POINTER)
#undef TAEDA_CUSOLVER_POINTER
};

struct Cusolver::Plan : FactoringPlan {
  size_t on_host = 0;  // bytes wanted while the library is called
};

namespace {

/// The place of a dtype among the library's types; -1: none.
int type_of(int dtype) {
  switch (dtype) {
    case TAEDA_FLOAT32: return 0;
    case TAEDA_FLOAT64: return 1;
    case TAEDA_COMPLEX64: return 2;
    case TAEDA_COMPLEX128: return 3;
    default: return -1;
  }
}
constexpr int kItemSizes[] = {4, 8, 8, 16};

/// Whether one call of the library does all of a batch.
bool at_once(const Factoring& t) {
  return t.kind == Factored::Eigenvalues || (t.kind == Factored::Cholesky && t.batch > 1);
}
/// Functions that count in 32 bits.
bool countable(const Factoring& t) {
  constexpr int64_t most = std::numeric_limits<int>::max();
  const bool narrow = t.kind == Factored::Orthogonal || at_once(t);
  return !narrow || (t.a.rows <= most && t.a.columns <= most && t.batch <= most);
}

}  // namespace

/// The calls for one matrix of a factoring, or for all of them where the library takes all at once.
class Cusolver::Call {
 public:
  Call(const Table& functions, const Handle& handle, const Factoring& task)
      : f_(functions),
        h_(handle.handle),
        p_(handle.parameters),
        t_(task),
        place_(type_of(task.dtype)),
        type_(kCusolverTypes[place_]),
        real_(kCusolverReals[place_]) {}

  /// What the library wants on the device, in bytes, and on the host.
  int sizes(size_t& on_device, size_t& on_host) const {
    switch (t_.kind) {
      case Factored::Cholesky:
        if (at_once(t_)) return 0;
        return f_.cusolverDnXpotrf_bufferSize(h_, p_, t_.upper, t_.a.rows, type_, nullptr, t_.a.ld(), type_, &on_device,
                                              &on_host);
      case Factored::Lu:
        return f_.cusolverDnXgetrf_bufferSize(h_, p_, t_.a.rows, t_.a.columns, type_, nullptr, t_.a.ld(), type_,
                                              &on_device, &on_host);
      case Factored::LuSolution: return 0;
      case Factored::Reflectors:
        return f_.cusolverDnXgeqrf_bufferSize(h_, p_, t_.a.rows, t_.a.columns, type_, nullptr, t_.a.ld(), type_,
                                              nullptr, type_, &on_device, &on_host);
      case Factored::Orthogonal: {
        const decltype(f_.cusolverDnSorgqr_bufferSize) of_types[] = {
            f_.cusolverDnSorgqr_bufferSize, f_.cusolverDnDorgqr_bufferSize, f_.cusolverDnCungqr_bufferSize,
            f_.cusolverDnZungqr_bufferSize};
        int elements = 0;
        const int status = of_types[place_](h_, int(t_.a.rows), int(t_.a.columns), int(t_.reflectors), nullptr,
                                            int(t_.a.ld()), nullptr, &elements);
        on_device = size_t(elements) * size_t(kItemSizes[place_]);
        return status;
      }
      case Factored::Eigenvalues:
        if (t_.batch > 1)
          return f_.cusolverDnXsyevBatched_bufferSize(h_, p_, t_.vectors, t_.upper, t_.a.rows, type_, nullptr,
                                                      t_.a.ld(), real_, nullptr, type_, &on_device, &on_host, t_.batch);
        return f_.cusolverDnXsyevd_bufferSize(h_, p_, t_.vectors, t_.upper, t_.a.rows, type_, nullptr, t_.a.ld(), real_,
                                              nullptr, type_, &on_device, &on_host);
      case Factored::SingularValues:
        return f_.cusolverDnXgesvd_bufferSize(h_, p_, job(), job(), t_.a.rows, t_.a.columns, type_, nullptr, t_.a.ld(),
                                              real_, nullptr, type_, nullptr, t_.b.ld(), type_, nullptr, t_.c.ld(),
                                              type_, &on_device, &on_host);
    }
    return 0;
  }
  /// Of matrix `i`.
  int run(int64_t i, Address workspace, size_t on_device, void* host, size_t on_host) const {
    void *const a = at(t_.a, i), *const work = pointer(workspace);
    void* const beside = pointer(t_.beside + uint64_t(i * t_.beside_step * beside_size()));
    int* const info = static_cast<int*>(pointer(t_.infos)) + i;
    switch (t_.kind) {
      case Factored::Cholesky: {
        if (!at_once(t_))
          return f_.cusolverDnXpotrf(h_, p_, t_.upper, t_.a.rows, type_, a, t_.a.ld(), type_, work, on_device, host,
                                     on_host, info);
        const decltype(f_.cusolverDnSpotrfBatched) of_types[] = {f_.cusolverDnSpotrfBatched, f_.cusolverDnDpotrfBatched,
                                                                 f_.cusolverDnCpotrfBatched,
                                                                 f_.cusolverDnZpotrfBatched};
        return of_types[place_](h_, t_.upper, int(t_.a.rows), pointer(t_.pointers), int(t_.a.ld()), info,
                                int(t_.batch));
      }
      case Factored::Lu:
        return f_.cusolverDnXgetrf(h_, p_, t_.a.rows, t_.a.columns, type_, a, t_.a.ld(), static_cast<int64_t*>(beside),
                                   type_, work, on_device, host, on_host, info);
      case Factored::LuSolution:
        return f_.cusolverDnXgetrs(h_, p_, int(t_.taken), t_.a.rows, t_.b.columns, type_, a, t_.a.ld(),
                                   static_cast<int64_t*>(beside), type_, at(t_.b, i), t_.b.ld(), info);
      case Factored::Reflectors:
        return f_.cusolverDnXgeqrf(h_, p_, t_.a.rows, t_.a.columns, type_, a, t_.a.ld(), type_, beside, type_, work,
                                   on_device, host, on_host, info);
      case Factored::Orthogonal: {
        const decltype(f_.cusolverDnSorgqr) of_types[] = {f_.cusolverDnSorgqr, f_.cusolverDnDorgqr, f_.cusolverDnCungqr,
                                                          f_.cusolverDnZungqr};
        return of_types[place_](h_, int(t_.a.rows), int(t_.a.columns), int(t_.reflectors), a, int(t_.a.ld()), beside,
                                work, int(on_device / size_t(kItemSizes[place_])), info);
      }
      case Factored::Eigenvalues:
        if (t_.batch > 1)
          return f_.cusolverDnXsyevBatched(h_, p_, t_.vectors, t_.upper, t_.a.rows, type_, a, t_.a.ld(), real_, beside,
                                           type_, work, on_device, host, on_host, info, t_.batch);
        return f_.cusolverDnXsyevd(h_, p_, t_.vectors, t_.upper, t_.a.rows, type_, a, t_.a.ld(), real_, beside, type_,
                                   work, on_device, host, on_host, info);
      case Factored::SingularValues:
        return f_.cusolverDnXgesvd(h_, p_, job(), job(), t_.a.rows, t_.a.columns, type_, a, t_.a.ld(), real_, beside,
                                   type_, at(t_.b, i), t_.b.ld(), type_, at(t_.c, i), t_.c.ld(), type_, work, on_device,
                                   host, on_host, info);
    }
    return 0;
  }

 private:
  static void* pointer(uint64_t address) { return reinterpret_cast<void*>(uintptr_t(address)); }
  void* at(const Factoring::Matrix& matrix, int64_t i) const {
    return pointer(matrix.data + uint64_t(i * matrix.step * kItemSizes[place_]));
  }
  int64_t beside_size() const {
    switch (t_.kind) {
      case Factored::Lu:
      case Factored::LuSolution: return 8;
      case Factored::Eigenvalues:
      case Factored::SingularValues: return kItemSizes[real_];
      default: return kItemSizes[place_];
    }
  }
  /// How many of the vectors are wanted.
  signed char job() const { return !t_.vectors ? 'N' : t_.b.columns == t_.a.rows ? 'A' : 'S'; }

  const Table& f_;
  void *h_, *p_;
  const Factoring& t_;
  int place_, type_, real_;
};

Cusolver::Cusolver(const Functions& driver) : driver_(driver), table_(std::make_shared<Table>()) {}
Cusolver::~Cusolver() = default;

const Cusolver::Table& Cusolver::functions() {
  library_.open({"libcusolver.so.12", "libcusolver.so.11"}, {"cu13", "cusolver"}, [this](void* library) {
    std::string absent;
    TAEDA_CUSOLVER_FUNCTIONS(TAEDA_LIBRARY_LOOK_UP)
    return absent;
  });
  return *table_;
}
std::string Cusolver::description() {
  functions();
  return library_.description();
}
int Cusolver::version() {
  int number = 0;
  functions().cusolverGetVersion(&number);
  return number;
}
std::string Cusolver::text_of(Status status) {
  switch (int(status) - kFirstCusolverStatus) {
#define TAEDA_CUSOLVER_TEXT(NUMBER, NAME) \
  case NUMBER: return "cuSOLVER: CUSOLVER_STATUS_" #NAME;
    TAEDA_CUSOLVER_STATUSES(TAEDA_CUSOLVER_TEXT)
#undef TAEDA_CUSOLVER_TEXT
    default: return "status " + std::to_string(int(status) - kFirstCusolverStatus) + " of cuSOLVER";
  }
}
int Cusolver::handle_for(int device, StreamHandle stream, Handle*& found) {
  const std::lock_guard held(lock_);
  found = &handles_[{device, stream}];
  if (found->handle) return 0;
  const Relaxed relaxed(driver_);
  void *made = nullptr, *parameters = nullptr;
  int status = functions().cusolverDnCreate(&made);
  if (status == 0) status = functions().cusolverDnSetStream(made, stream);
  if (status == 0) status = functions().cusolverDnCreateParams(&parameters);
  if (status == 0) found->handle = made, found->parameters = parameters;
  else if (made) functions().cusolverDnDestroy(made);
  return status;
}
const FactoringPlan* Cusolver::plan(int device, const Factoring& factoring, StreamHandle stream) {
  if (type_of(factoring.dtype) < 0 || !countable(factoring) || !there()) return nullptr;
  const Factoring shape = factoring.shape();
  {
    const std::lock_guard held(plans_lock_);
    if (const auto found = plans_.find({device, shape}); found != plans_.end()) return found->second.get();
  }
  auto made = std::make_unique<Plan>();
  Handle* handle = nullptr;
  if (handle_for(device, stream, handle) != 0) return nullptr;
  {
    const std::lock_guard held(handle->lock);
    if (Call(functions(), *handle, shape).sizes(made->workspace, made->on_host) != 0) return nullptr;
  }
  const std::lock_guard held(plans_lock_);
  return plans_.try_emplace({device, shape}, std::move(made)).first->second.get();
}
Status Cusolver::factor(int device, const FactoringPlan& given, const Factoring& factoring, Address workspace,
                        StreamHandle stream) {
  const auto& plan = static_cast<const Plan&>(given);
  Handle* handle = nullptr;
  int status = handle_for(device, stream, handle);
  std::vector<char> host(plan.on_host);
  const int64_t calls = at_once(factoring) ? 1 : factoring.batch;
  if (status == 0) {
    const std::lock_guard held(handle->lock);
    const Call call(functions(), *handle, factoring);
    for (int64_t i = 0; i < calls && status == 0; ++i)
      status = call.run(i, workspace, plan.workspace, host.data(), host.size());
  }
  return status == 0 ? Status::Ok : Status(kFirstCusolverStatus + status);
}

}  // namespace taeda::cuda
