// Declarations by hand after NVIDIA's cupti.h, as those of the driver are; tests compile both against each other.
#include "driver/cupti.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>

#include "driver/cupti_functions.h"
#include "taeda/abi.h"

namespace taeda::cuda {
namespace {

constexpr size_t kBuffer = size_t(1) << 20, kAlignment = 8;
constexpr int kKinds[] = {kCuptiOrigin, kCuptiKernel, kCuptiCopy, kCuptiFill, kCuptiPeerCopy};
/// How often both clocks are read for one moment, of which the shortest reading counts.
constexpr int kReadings = 8;
/// CUPTI's functions that are called back know of no object.
std::atomic<Cupti*> listening = nullptr;

}  // namespace

struct Cupti::Table {
#define TAEDA_CUPTI_POINTER(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  TAEDA_CUPTI_FUNCTIONS(TAEDA_CUPTI_POINTER)
#undef TAEDA_CUPTI_POINTER
};

Cupti::Cupti() : table_(std::make_shared<Table>()) {}
Cupti::~Cupti() { listening = nullptr; }

const Cupti::Table& Cupti::functions() {
  library_.open({"libcupti.so.13", "libcupti.so.12"}, {"cu13", "cuda_cupti"}, [this](void* library) {
    std::string absent;
    TAEDA_CUPTI_FUNCTIONS(TAEDA_LIBRARY_LOOK_UP)
    return absent;
  });
  return *table_;
}
bool Cupti::there() {
  functions();
  return library_.is_open();
}
std::string Cupti::description() {
  functions();
  return library_.description();
}
std::string Cupti::text_of(const char* what, int status) {
  const char* name = nullptr;
  functions().cuptiGetResultString(status, &name);
  std::string text = std::string(what) + ": CUPTI: " + (name ? name : "status " + std::to_string(status));
  if (status == kCuptiInsufficientPrivileges)
    text += "; try: let all users read performance counters (NVreg_RestrictProfilingToAdminUsers=0), or be root";
  if (status == kCuptiOtherSubscriber) text += "; try: end the other profiler of this process";
  return text;
}

// --- start and stop ---

Cupti::Moment Cupti::moment() {
  Moment found;
  int64_t shortest = INT64_MAX;
  for (int i = 0; i < kReadings; ++i) {
    uint64_t there = 0;
    const int64_t before = host_time();
    functions().cuptiGetTimestamp(&there);
    const int64_t length = host_time() - before;
    if (length < shortest) shortest = length, found = {before + length / 2, there};
  }
  return found;
}
std::string Cupti::enable() {
  const Table& f = functions();
  listening = this;
  if (const int status = f.cuptiActivityRegisterCallbacks(requested, completed); status != 0)
    return text_of("cuptiActivityRegisterCallbacks", status);
  for (const int kind : kKinds)
    if (const int status = f.cuptiActivityEnable(kind); status != 0) {
      disable();
      return text_of("cuptiActivityEnable", status);
    }
  return "";
}
void Cupti::disable() {
  for (const int kind : kKinds) functions().cuptiActivityDisable(kind);  // of what is not enabled it says so, no more
}
void Cupti::start(uint64_t most) {
  trouble_ = there() ? "" : description() + "; try: pip install nvidia-cuda-cupti";
  if (trouble_.empty()) trouble_ = enable();
  if (!trouble_.empty()) return;
  {
    const std::lock_guard held(lock_);
    origins_.clear();
    most_ = most;
  }
  begin_ = moment();
  noted_.start(most);
}
std::string Cupti::stop(const std::vector<void*>& contexts, std::vector<Activity>& noted, uint64_t& dropped) {
  if (!trouble_.empty()) return trouble_;
  const Table& f = functions();
  disable();
  const int status = f.cuptiActivityFlushAll(kCuptiFlushAll);
  const Moment end = moment();
  noted = noted_.stop(dropped);
  std::vector<uint64_t> defaults(contexts.size(), 0);
  for (size_t i = 0; i < contexts.size(); ++i)
    if (uint32_t number = 0; contexts[i] && f.cuptiGetStreamIdEx(contexts[i], nullptr, 0, &number) == 0)
      defaults[i] = number;
  const double passed = double(end.cupti - begin_.cupti);
  const double rate = passed > 0 ? double(end.host - begin_.host) / passed : 1;
  const auto on_host = [&](int64_t time) { return begin_.host + int64_t(double(time - int64_t(begin_.cupti)) * rate); };
  const std::lock_guard held(lock_);
  for (Activity& activity : noted) {
    const auto found = origins_.find(uint32_t(activity.origin));
    activity.origin = found == origins_.end() ? 0 : found->second;
    activity.begin = on_host(activity.begin);
    activity.end = on_host(activity.end);
    if (size_t(activity.device) < defaults.size() && activity.stream == defaults[size_t(activity.device)])
      activity.stream = 0;
  }
  origins_.clear();
  return status == 0 ? "" : text_of("cuptiActivityFlushAll", status);
}
void Cupti::push(uint64_t origin) { functions().cuptiActivityPushExternalCorrelationId(kCuptiOwnNumbers, origin); }
void Cupti::pop() {
  uint64_t last = 0;
  functions().cuptiActivityPopExternalCorrelationId(kCuptiOwnNumbers, &last);
}

// --- buffers ---

void Cupti::requested(uint8_t** buffer, size_t* size, size_t* most) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, kBuffer));
  *size = *buffer ? kBuffer : 0;
  *most = 0;  // as many records as there is room for
}
void Cupti::completed(void* context, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  Cupti* const cupti = listening;
  if (cupti && buffer && cupti->notes()) try {
      cupti->read(context, buffer, valid);
    } catch (...) {  // no memory for notes
      cupti->noted_.drop(1);
    }
  std::free(buffer);
}
void Cupti::read(void* context, uint8_t* buffer, size_t valid) {
  const Table& f = functions();
  CuptiRecord* record = nullptr;
  while (valid > 0 && f.cuptiActivityGetNextRecord(buffer, valid, &record) == 0) read(*record);
  size_t dropped = 0;
  if (f.cuptiActivityGetNumDroppedRecords(context, 0, &dropped) == 0) noted_.drop(dropped);
}
void Cupti::read(const CuptiRecord& record) {
  switch (record.kind) {
    case kCuptiOrigin: {
      const auto& r = reinterpret_cast<const CuptiOrigin&>(record);
      const std::lock_guard held(lock_);
      if (r.external_kind == kCuptiOwnNumbers && origins_.size() < most_) origins_[r.correlation] = r.external;
      break;
    }
    case kCuptiKernel: {
      const auto& r = reinterpret_cast<const CuptiKernel&>(record);
      const std::string name = plain_name(r.name);
      keep({.name = name.c_str(), .kind = TAEDA_ACTIVITY_KERNEL, .device = int(r.device)}, r.start, r.end, r.stream,
           r.correlation);
      break;
    }
    case kCuptiCopy: {
      const auto& r = reinterpret_cast<const CuptiCopy&>(record);
      const std::string name = copy_name(Side(r.from), Side(r.to));
      keep({.name = name.c_str(), .kind = TAEDA_ACTIVITY_COPY, .device = int(r.device), .bytes = int64_t(r.bytes)},
           r.start, r.end, r.stream, r.correlation);
      break;
    }
    case kCuptiPeerCopy: {
      const auto& r = reinterpret_cast<const CuptiPeerCopy&>(record);
      const std::string name = copy_name(Side(r.from), Side(r.to), true);
      keep({.name = name.c_str(), .kind = TAEDA_ACTIVITY_COPY, .device = int(r.device), .bytes = int64_t(r.bytes)},
           r.start, r.end, r.stream, r.correlation);
      break;
    }
    case kCuptiFill: {
      const auto& r = reinterpret_cast<const CuptiFill&>(record);
      keep({.name = "Memset (Device)", .kind = TAEDA_ACTIVITY_FILL, .device = int(r.device), .bytes = int64_t(r.bytes)},
           r.start, r.end, r.stream, r.correlation);
      break;
    }
    default: break;
  }
}
void Cupti::keep(Activity activity, uint64_t begin, uint64_t end, uint32_t stream, uint32_t correlation) {
  if (end == 0) return noted_.drop(1);  // it was not done, or its times were not found
  activity.begin = int64_t(begin);
  activity.end = int64_t(end);
  activity.stream = stream;
  activity.origin = correlation;
  noted_.note(activity);
}
/// Names of C++'s functions are packed.
std::string Cupti::plain_name(const char* name) {
  if (!name) return "kernel";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

}  // namespace taeda::cuda
