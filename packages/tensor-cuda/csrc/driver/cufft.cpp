// Declarations by hand after NVIDIA's cufftXt.h, as those of the driver are; tests compile both against each other.
#include "driver/cufft.h"

#include <dlfcn.h>

#include "driver/cufft_functions.h"
#include "driver/libraries.h"

namespace taeda::cuda {

struct Cufft::Table {
#define TAEDA_CUFFT_POINTER(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  TAEDA_CUFFT_FUNCTIONS(TAEDA_CUFFT_POINTER)
#undef TAEDA_CUFFT_POINTER
};

/// The library's plan knows its stream and its workspace, so calls that use it take turns.
struct Cufft::Plan : TransformPlan {
  explicit Plan(const Table& table) : table(table) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() override {
    if (made) table.cufftDestroy(number);
  }
  const Table& table;
  mutable std::mutex lock;
  bool made = false;
  int number = 0;
};

Cufft::Cufft(const Functions& driver) : driver_(driver), table_(std::make_shared<Table>()) {}
Cufft::~Cufft() = default;

const Cufft::Table& Cufft::functions() {
  library_.open({"libcufft.so.12", "libcufft.so.11"}, {"cu13", "cufft"}, [this](void* library) {
    std::string absent;
    TAEDA_CUFFT_FUNCTIONS(TAEDA_LIBRARY_LOOK_UP)
    return absent;
  });
  return *table_;
}
std::string Cufft::description() {
  functions();
  return library_.description();
}
int Cufft::version() {
  int number = 0;
  functions().cufftGetVersion(&number);
  return number;
}
std::string Cufft::text_of(Status status) {
  switch (int(status) - kFirstCufftStatus) {
#define TAEDA_CUFFT_TEXT(NUMBER, NAME) \
  case NUMBER: return "cuFFT: CUFFT_" #NAME;
    TAEDA_CUFFT_STATUSES(TAEDA_CUFFT_TEXT)
#undef TAEDA_CUFFT_TEXT
    default: return "status " + std::to_string(int(status) - kFirstCufftStatus) + " of cuFFT";
  }
}

std::shared_ptr<Cufft::Plan> Cufft::make(const Transform& t) {
  const Table& f = functions();
  auto plan = std::make_shared<Plan>(f);
  if (f.cufftCreate(&plan->number) != 0) return nullptr;
  plan->made = true;
  // The memory that it needs while it works is given at each call.
  if (f.cufftSetAutoAllocation(plan->number, 0) != 0) return nullptr;
  std::array<long long, Transform::kMost> sizes{}, from{}, to{};
  for (size_t d = 0; d < size_t(t.rank); ++d) {
    sizes[d] = t.sizes[d];
    from[d] = t.from.room[d];
    to[d] = t.to.room[d];
  }
  const auto type = [&](bool of_from) { return (t.is_real(of_from) ? kCufftReal : kCufftComplex)[t.wide]; };
  const int status = f.cufftXtMakePlanMany(plan->number, t.rank, sizes.data(), from.data(), t.from.step, t.from.between,
                                           type(true), to.data(), t.to.step, t.to.between, type(false), t.batch,
                                           &plan->workspace, kCufftComplex[t.wide]);
  return status == 0 ? std::move(plan) : nullptr;
}
SharedTransformPlan Cufft::plan(int device, const Transform& transform) {
  if (!there()) return nullptr;
  const std::lock_guard held(lock_);
  auto& plans = plans_[device];
  if (const auto [found, known] = plans.find(transform.shape()); known) return found;
  const Relaxed relaxed(driver_);
  const SharedTransformPlan made = make(transform);
  plans.put(transform.shape(), made);
  std::erase_if(made_, [](const auto& each) { return each.second.expired(); });
  if (made) made_[made.get()] = made;
  return made;
}
void Cufft::settle(int device, PlansKept& asked) {
  const std::lock_guard held(lock_);
  const Relaxed relaxed(driver_);
  cuda::settle(plans_[device], asked);
}
void Cufft::stays(const TransformPlan& plan) {
  const std::lock_guard held(lock_);
  recorded_.insert(made_.at(&plan).lock());
}
Status Cufft::transform(const TransformPlan& given, const Transform& t, Address workspace, StreamHandle stream) {
  const auto place = [](uint64_t address) { return reinterpret_cast<void*>(uintptr_t(address)); };
  const auto& plan = static_cast<const Plan&>(given);
  const Table& f = functions();
  const std::lock_guard held(plan.lock);
  int status = f.cufftSetStream(plan.number, stream);
  if (status == 0 && workspace) status = f.cufftSetWorkArea(plan.number, place(workspace));
  if (status == 0)
    status =
        f.cufftXtExec(plan.number, place(t.from.data), place(t.to.data), t.forward ? kCufftForward : kCufftBackward);
  return status == 0 ? Status::Ok : Status(kFirstCufftStatus + status);
}

}  // namespace taeda::cuda
