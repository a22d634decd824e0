// The simulated driver. Ends of work are computed when it is queued, so no thread and no queue is needed.
#include "driver/simulated.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "driver/simulated_convolution.h"
#include "driver/simulated_epilogue.h"
#include "driver/simulated_factoring.h"
#include "driver/simulated_parts.h"
#include "driver/simulated_product.h"
#include "driver/simulated_recurrence.h"
#include "driver/simulated_transform.h"
#include "kernels/launch.h"
#include "taeda/abi.h"

namespace taeda::cuda {
namespace {

enum Kind {
  kAllocate,
  kPinned,
  kCopy,
  kEvent,
  kSynchronize,
  kKernel,
  kProduct,
  kConvolution,
  kGraph,
  kTransform,
  kFactor,
  kRecurrence,
  kKinds
};
constexpr std::string_view kNames[kKinds] = {"allocate",    "pinned",    "copy",    "event",
                                             "synchronize", "kernel",    "product", "convolution",
                                             "graph",       "transform", "factor",  "recurrence"};

// Beyond what a process of the host is given, and far apart: an address of one device plus any offset is none of
// another's.
constexpr Address kFirstAddress = Address(1) << 56, kBetweenDevices = Address(1) << 48;
constexpr size_t kGranularity = 512;
constexpr int64_t kCopyStart = 1000, kBytesPerNanosecond = 10;
constexpr int64_t kLaunch = 2000, kItemsPerNanosecond = 64;
constexpr const char* kNoNvrtc = "simulated devices run kernels that the host's compiler makes";
constexpr const char* kNoNccl = "simulated devices work together by nothing";
constexpr size_t kSimulatedWorkspace = 1024;

}  // namespace

constinit thread_local uint64_t simulated_shift = 0;

SimulatedDriver::SimulatedDriver(int devices, uint64_t bytes_each) : countdown_(kKinds) {
  const uint64_t capacity = std::max<uint64_t>(bytes_each / kGranularity, 1) * kGranularity;
  for (int i = 0; i < devices; ++i)
    devices_.push_back(std::make_unique<Device>(capacity, kFirstAddress + kBetweenDevices * Address(i)));
}
SimulatedDriver::~SimulatedDriver() {
  for (const auto& [data, size] : pinned_) std::free(data);
}

Status SimulatedDriver::facts(int device, DeviceFacts& facts) {
  facts = {};
  facts.name = "simulated device " + std::to_string(device);
  facts.total_memory = devices_[size_t(device)]->capacity;
  facts.major = 9, facts.processors = 1, facts.warp_size = 32, facts.threads_per_processor = 2048;
  facts.registers_per_processor = 65536;
  facts.shared_per_block = 49152, facts.shared_most = facts.shared_per_processor = 232448;
  return Status::Ok;
}
std::string SimulatedDriver::text_of(Status status) const {
  switch (status) {
    case Status::Ok: return "no error";
    case Status::InvalidValue: return "invalid argument (simulated)";
    case Status::OutOfMemory: return "out of memory (simulated)";
    case Status::IllegalAddress: return "an illegal memory access was encountered (simulated)";
    case Status::LaunchFailed: return "unspecified failure (simulated)";
    case Status::NotReady: return "device not ready (simulated)";
    case Status::CaptureUnsupported: return "operation not permitted when stream is capturing (simulated)";
    case Status::CaptureInvalidated: return "operation failed due to a previous error during capture (simulated)";
    case Status::CaptureUnmatched: return "the capture was not initiated in this stream (simulated)";
    case Status::CaptureUnjoined: return "capturing stream has unjoined work (simulated)";
    case Status::CaptureIsolation: return "dependency created on uncaptured work in another stream (simulated)";
    case Status::CapturedEvent:
      return "operation not permitted on an event last recorded in a capturing stream (simulated)";
    case Status::CaptureWrongThread:
      return "attempt to terminate a thread-local capture sequence from another thread (simulated)";
    default: return "status " + std::to_string(int(status)) + " (simulated)";
  }
}
bool SimulatedDriver::fails(int kind) {
  int64_t& left = countdown_[size_t(kind)];
  return left > 0 && --left == 0;
}
bool SimulatedDriver::fails_graph() { return fails(kGraph); }
bool SimulatedDriver::fails_allocation() { return fails(kAllocate); }
bool SimulatedDriver::fail(std::string_view kind, int64_t nth) {
  const std::lock_guard held(lock_);
  const auto found = std::find(std::begin(kNames), std::end(kNames), kind);
  if (found == std::end(kNames)) return false;
  countdown_[size_t(found - std::begin(kNames))] = nth;
  return true;
}

// --- memory ---

Status SimulatedDriver::allocate(int device, size_t nbytes, Address& address) {
  const std::lock_guard held(lock_);
  Device& at = *devices_[size_t(device)];
  if (at.failed != Status::Ok) return at.failed;
  if (nbytes == 0) return Status::InvalidValue;
  ++at.allocations;
  if (fails(kAllocate) || nbytes > at.capacity) return Status::OutOfMemory;
  const uint64_t size = (nbytes + kGranularity - 1) / kGranularity * kGranularity;
  if (at.used + at.others + size > at.capacity) return Status::OutOfMemory;
  const auto found = std::ranges::find_if(at.free, [&](const auto& hole) { return hole.second >= size; });
  if (found == at.free.end()) return Status::OutOfMemory;
  const auto [start, length] = *found;
  at.free.erase(found);
  if (length > size) at.free[start + size] = length - size;
  at.blocks[start] = size;
  at.used += size;
  address = start;
  return Status::Ok;
}
Status SimulatedDriver::release(int device, Address address) {
  const std::lock_guard held(lock_);
  Device& at = *devices_[size_t(device)];
  const auto block = at.blocks.find(address);
  if (block == at.blocks.end()) return Status::InvalidValue;
  if (forbidden()) return Status::CaptureUnsupported;
  ++at.releases;
  run_until(at.end());  // as the hardware's driver does
  uint64_t size = block->second;
  at.shared.end(bytes_at(device, address));
  at.used -= size;
  at.blocks.erase(block);
  auto next = at.free.lower_bound(address);
  if (next != at.free.end() && next->first == address + size) {
    size += next->second;
    next = at.free.erase(next);
  }
  if (next != at.free.begin() && std::prev(next)->first + std::prev(next)->second == address)
    std::prev(next)->second += size;
  else at.free[address] = size;
  return at.failed;
}
Status SimulatedDriver::share(int device, Address address, SharedHandle& handle, uint64_t& offset) {
  const std::lock_guard held(lock_);
  Device& at = *devices_[size_t(device)];
  if (at.failed != Status::Ok) return at.failed;
  const auto after = at.blocks.upper_bound(address);
  if (after == at.blocks.begin()) return Status::InvalidValue;
  const auto [start, size] = *std::prev(after);
  if (address - start >= size) return Status::InvalidValue;
  run_until(at.end());
  offset = address - start;
  return at.shared.share(bytes_at(device, start), size, handle) ? Status::Ok : Status::InvalidValue;
}
Status SimulatedDriver::open_shared(int device, const SharedHandle& handle, Address& start) {
  const std::lock_guard held(lock_);
  Device& at = *devices_[size_t(device)];
  if (at.failed != Status::Ok) return at.failed;
  const char* const place = at.shared.open(handle);
  if (!place) return Status::InvalidValue;
  start = at.base + Address(place - at.bytes);
  return Status::Ok;
}
Status SimulatedDriver::close_shared(int device, Address start) {
  const std::lock_guard held(lock_);
  Device& at = *devices_[size_t(device)];
  run_until(at.end());
  return at.shared.close(bytes_at(device, start)) ? at.failed : Status::InvalidValue;
}
Status SimulatedDriver::room(int device, Room& room) {
  const std::lock_guard held(lock_);
  const Device& at = *devices_[size_t(device)];
  const uint64_t taken = at.used + at.others;
  room = {taken > at.capacity ? 0 : at.capacity - taken, at.capacity};
  return at.failed;
}
Status SimulatedDriver::device_of(Address address, int& device) {
  const std::lock_guard held(lock_);
  for (device = 0; device < device_count(); ++device) {
    const Device& at = *devices_[size_t(device)];
    const auto after = at.blocks.upper_bound(address);
    if (after == at.blocks.begin()) continue;
    if (const auto [start, size] = *std::prev(after); address - start < size) return Status::Ok;
  }
  return Status::InvalidValue;
}
void SimulatedDriver::hold(int device, uint64_t nbytes) {
  const std::lock_guard held(lock_);
  devices_[size_t(device)]->others = nbytes;
}
uint64_t SimulatedDriver::taken(int device) const {
  const std::lock_guard held(lock_);
  return devices_[size_t(device)]->used;
}
std::pair<uint64_t, uint64_t> SimulatedDriver::traffic(int device) const {
  const std::lock_guard held(lock_);
  const Device& at = *devices_[size_t(device)];
  return {at.allocations, at.releases};
}
Status SimulatedDriver::allocate_pinned(size_t nbytes, void*& data) {
  const std::lock_guard held(lock_);
  if (fails(kPinned)) return Status::OutOfMemory;
  data = std::aligned_alloc(4096, (nbytes + 4095) / 4096 * 4096);
  if (!data) return Status::OutOfMemory;
  pinned_[data] = nbytes;
  return Status::Ok;
}
Status SimulatedDriver::release_pinned(void* data) {
  const std::lock_guard held(lock_);
  if (pinned_.erase(data) == 0) return Status::InvalidValue;
  std::free(data);
  return Status::Ok;
}
uint64_t SimulatedDriver::pinned() const {
  const std::lock_guard held(lock_);
  uint64_t sum = 0;
  for (const auto& [data, size] : pinned_) sum += size;
  return sum;
}

// --- time ---

int64_t SimulatedDriver::now() const {
  const std::lock_guard held(lock_);
  return now_;
}
void SimulatedDriver::advance(int64_t nanoseconds) {
  const std::lock_guard held(lock_);
  run_until(now_ + nanoseconds);
}
void SimulatedDriver::run_until(int64_t time) {
  while (!pending_.empty() && pending_.begin()->end <= time) {
    const auto effect = pending_.extract(pending_.begin()).value().effect;
    effect();
  }
  now_ = std::max(now_, time);
}
SimulatedDriver::Stream& SimulatedDriver::stream_of(int device, StreamHandle handle) {
  return handle ? *static_cast<Stream*>(handle) : devices_[size_t(device)]->default_stream;
}
Status SimulatedDriver::queue(int device, StreamHandle handle, int64_t nanoseconds, std::function<void()> effect,
                              int64_t* end, const Handed& handed) {
  Device& at = *devices_[size_t(device)];
  if (at.failed != Status::Ok) return at.failed;
  Stream& stream = stream_of(device, handle);
  if (stream.capture) return record(stream, nanoseconds, std::move(effect), end, handed);
  stream.end = std::max(stream.end, now_) + nanoseconds;
  if (effect) pending_.insert({stream.end, queued_++, std::move(effect)});
  if (end) *end = stream.end;
  note(device, handle, nanoseconds, stream.end, handed);
  run_until(now_);  // what takes no time is done
  return at.failed;
}
Status SimulatedDriver::work(int device, StreamHandle stream, int64_t nanoseconds, int64_t& end,
                             std::function<void()> effect, const Handed& handed) {
  const std::lock_guard held(lock_);
  Device& at = *devices_[size_t(device)];
  if (fails(kKernel)) effect = [&at] { at.failed = Status::IllegalAddress; };
  return queue(device, stream, nanoseconds, std::move(effect), &end, handed);
}

// --- activities ---

Handed SimulatedDriver::handed(const char* name, int kind, int64_t bytes) const {
  return {name, kind, bytes, activities_.on() ? work_origin() : 0};
}
void SimulatedDriver::note(int device, StreamHandle stream, int64_t nanoseconds, int64_t end, const Handed& handed) {
  if (!handed.name || !activities_.on()) return;
  behind_host_ = std::max(behind_host_, host_time() - now_);
  activities_.note({.name = handed.name,
                    .kind = handed.kind,
                    .device = device,
                    .stream = uint64_t(reinterpret_cast<uintptr_t>(stream)),
                    .begin = behind_host_ + end - nanoseconds,
                    .end = behind_host_ + end,
                    .origin = handed.origin,
                    .bytes = handed.bytes});
}
void SimulatedDriver::start_activities(uint64_t most) {
  const std::lock_guard held(lock_);
  behind_host_ = 0;
  activities_.start(most);
}
std::string SimulatedDriver::stop_activities(bool may_wait, std::vector<Activity>& noted, uint64_t& dropped) {
  const std::lock_guard held(lock_);
  int64_t last = now_;
  for (const auto& device : devices_) last = std::max(last, device->end());
  if (may_wait) run_until(last);
  noted = activities_.stop(dropped);
  return "";
}

// --- streams and events ---

Status SimulatedDriver::create_stream(int device, int, StreamHandle& stream) {
  const std::lock_guard held(lock_);
  Device& at = *devices_[size_t(device)];
  if (at.failed != Status::Ok) return at.failed;
  streams_.push_back(std::make_unique<Stream>());
  at.streams.push_back(streams_.back().get());
  stream = streams_.back().get();
  return Status::Ok;
}
Status SimulatedDriver::synchronize_stream(int device, StreamHandle stream) {
  const std::lock_guard held(lock_);
  if (fails(kSynchronize)) return Status::LaunchFailed;
  if (breaks(stream_of(device, stream).capture)) return Status::CaptureUnsupported;
  run_until(stream_of(device, stream).end);
  return devices_[size_t(device)]->failed;
}
Status SimulatedDriver::query_stream(int device, StreamHandle stream) {
  const std::lock_guard held(lock_);
  const Device& at = *devices_[size_t(device)];
  if (at.failed != Status::Ok) return at.failed;
  if (breaks(stream_of(device, stream).capture)) return Status::CaptureUnsupported;
  return stream_of(device, stream).end <= now_ ? Status::Ok : Status::NotReady;
}
Status SimulatedDriver::synchronize(int device) {
  const std::lock_guard held(lock_);
  if (fails(kSynchronize)) return Status::LaunchFailed;
  bool broken = false;
  for (const Stream* stream : devices_[size_t(device)]->streams) broken |= breaks(stream->capture);
  if (broken) return Status::CaptureUnsupported;
  run_until(devices_[size_t(device)]->end());
  return devices_[size_t(device)]->failed;
}
Status SimulatedDriver::create_event(int device, bool, EventHandle& event) {
  const std::lock_guard held(lock_);
  if (devices_[size_t(device)]->failed != Status::Ok) return devices_[size_t(device)]->failed;
  if (fails(kEvent)) return Status::LaunchFailed;
  event = new Event;
  return Status::Ok;
}
void SimulatedDriver::destroy_event(int, EventHandle event) { delete static_cast<Event*>(event); }
Status SimulatedDriver::record_event(int device, EventHandle event, StreamHandle stream) {
  const std::lock_guard held(lock_);
  if (devices_[size_t(device)]->failed != Status::Ok) return devices_[size_t(device)]->failed;
  if (fails(kEvent)) return Status::LaunchFailed;
  return mark(*static_cast<Event*>(event), stream_of(device, stream));
}
Status SimulatedDriver::wait_event(int device, StreamHandle stream, EventHandle event) {
  const std::lock_guard held(lock_);
  Stream& waiting = stream_of(device, stream);
  const Event& awaited = *static_cast<Event*>(event);
  if (waiting.capture || awaited.capture) return join(device, waiting, awaited);
  waiting.end = std::max(waiting.end, awaited.time);
  return devices_[size_t(device)]->failed;
}
Status SimulatedDriver::synchronize_event(int device, EventHandle event) {
  const std::lock_guard held(lock_);
  if (fails(kSynchronize)) return Status::LaunchFailed;
  if (breaks(static_cast<Event*>(event)->capture)) return Status::CapturedEvent;
  run_until(static_cast<Event*>(event)->time);
  return devices_[size_t(device)]->failed;
}
Status SimulatedDriver::query_event(int device, EventHandle event) {
  const std::lock_guard held(lock_);
  const Device& at = *devices_[size_t(device)];
  if (at.failed != Status::Ok) return at.failed;
  if (breaks(static_cast<Event*>(event)->capture)) return Status::CapturedEvent;
  return static_cast<Event*>(event)->time <= now_ ? Status::Ok : Status::NotReady;
}
Status SimulatedDriver::elapsed(EventHandle from, EventHandle to, double& milliseconds) {
  const std::lock_guard held(lock_);
  if (static_cast<Event*>(from)->capture || static_cast<Event*>(to)->capture) return Status::CapturedEvent;
  milliseconds = double(static_cast<Event*>(to)->time - static_cast<Event*>(from)->time) * 1e-6;
  return Status::Ok;
}

// --- copies ---

char* SimulatedDriver::bytes_at(int device, Address address) {
  Device& at = *devices_[size_t(device)];
  return at.bytes + (address - at.base);
}
namespace {
// From memory that is not pinned, and from such that is.
const std::string kCopiesIn[] = {copy_name(Side::Pageable, Side::Device), copy_name(Side::Pinned, Side::Device)};
const std::string kCopiesOut[] = {copy_name(Side::Device, Side::Pageable), copy_name(Side::Device, Side::Pinned)};
const std::string kPeerCopy = copy_name(Side::Device, Side::Device, true);

int64_t copy_time(size_t nbytes) { return kCopyStart + int64_t(nbytes) / kBytesPerNanosecond; }
}  // namespace

Status SimulatedDriver::copy_in(int device, Address to, const void* from, size_t nbytes, StreamHandle stream) {
  Handed told = handed("", TAEDA_ACTIVITY_COPY, int64_t(nbytes));
  const std::lock_guard held(lock_);
  if (fails(kCopy)) return Status::InvalidValue;
  const bool pinned = is_pinned(from);
  if (!pinned && breaks(stream_of(device, stream).capture)) return Status::CaptureUnsupported;
  char* const place = bytes_at(device, to);
  told.name = kCopiesIn[pinned].c_str();
  return queue(device, stream, copy_time(nbytes), [=] { std::memcpy(place, from, nbytes); }, nullptr, told);
}
Status SimulatedDriver::copy_out(int device, void* to, Address from, size_t nbytes, StreamHandle stream) {
  Handed told = handed("", TAEDA_ACTIVITY_COPY, int64_t(nbytes));
  const std::lock_guard held(lock_);
  if (fails(kCopy)) return Status::InvalidValue;
  const bool pinned = is_pinned(to);
  if (!pinned && breaks(stream_of(device, stream).capture)) return Status::CaptureUnsupported;
  const char* const place = bytes_at(device, from);
  told.name = kCopiesOut[pinned].c_str();
  return queue(device, stream, copy_time(nbytes), [=] { std::memcpy(to, place, nbytes); }, nullptr, told);
}
Status SimulatedDriver::copy_peer(int to_device, Address to, int from_device, Address from, size_t nbytes,
                                  StreamHandle stream) {
  const Handed told = handed(kPeerCopy.c_str(), TAEDA_ACTIVITY_COPY, int64_t(nbytes));
  const std::lock_guard held(lock_);
  if (fails(kCopy)) return Status::InvalidValue;
  char* const target = bytes_at(to_device, to);
  const char* const source = bytes_at(from_device, from);
  return queue(to_device, stream, copy_time(nbytes), [=] { std::memmove(target, source, nbytes); }, nullptr, told);
}

// --- kernels ---

namespace {

/// Writes the family and name of each kernel to a file when it is launched first, where the environment names one.
void note_launch(const Kernel& kernel) {
  static const char* const path = std::getenv("TAEDA_CUDA_SIMULATED_KERNELS");
  if (!path) return;
  static std::mutex lock;
  static std::set<const Kernel*> noted;
  const std::lock_guard held(lock);
  if (!noted.insert(&kernel).second) return;
  std::FILE* const file = std::fopen(path, "a");
  if (!file) return;
  std::fprintf(file, "%s %s\n", kernel.family, kernel.name);
  std::fclose(file);
}

}  // namespace

Status SimulatedDriver::launch(int device, const Kernel& kernel, const void* body, int64_t items, StreamHandle stream) {
  note_launch(kernel);
  const Device& at = *devices_[size_t(device)];
  const uint64_t shift = uint64_t(reinterpret_cast<uintptr_t>(at.bytes)) - at.base;
  // The body as a text of bytes, since it is copied as often as the effect is.
  const auto run = [&kernel, shift, items, bytes = std::string(static_cast<const char*>(body), kernel.size)] {
    simulated_shift = shift;
    kernel.simulate(bytes.data(), items);
    simulated_shift = 0;
  };
  int64_t end = 0;
  return work(device, stream, kLaunch + items / kItemsPerNanosecond, end, run, handed(kernel.name));
}

// --- libraries ---

namespace {

bool has_libraries() {
  const char* const libraries = std::getenv("TAEDA_CUDA_LIBRARIES");
  return !(libraries && std::string_view(libraries) == "none");
}

}  // namespace

bool SimulatedDriver::can_multiply(const BlasProduct& product) {
  return has_libraries() && multiplies_on_host(product);
}
bool SimulatedDriver::can_finish(int, const BlasProduct& product) {
  return can_multiply(product) && finishes_on_host(product);
}
Status SimulatedDriver::multiply(int device, const BlasProduct& product, StreamHandle stream) {
  const Device& at = *devices_[size_t(device)];
  {
    const std::lock_guard held(lock_);
    if (fails(kProduct)) return Status::LaunchFailed;
  }
  if (!is_valid(product)) return Status::InvalidValue;
  const uint64_t shift = uint64_t(reinterpret_cast<uintptr_t>(at.bytes)) - at.base;
  int64_t end = 0;
  return work(
      device, stream, kLaunch + product.batch * product.m * product.n / kItemsPerNanosecond, end,
      [product, shift] { multiply_on_host(product, shift); }, handed("product"));
}
bool SimulatedDriver::prefers_channels_last(int) { return has_libraries(); }
const ConvolutionPlan* SimulatedDriver::plan(int, const Convolution& convolution, StreamHandle, bool) {
  static const auto plans = [] {
    std::array<ConvolutionPlan, 2> made;
    made[1].workspace = kSimulatedWorkspace;
    return made;
  }();
  if (!has_libraries() || !convolves_on_host(convolution)) return nullptr;
  // Gradients want memory beside their operands, results none.
  return is_valid(convolution) ? &plans[convolution.kind == Convolved::Result ? 0 : 1] : nullptr;
}
Status SimulatedDriver::convolve(int device, const ConvolutionPlan& plan, const Convolution& convolution,
                                 Address workspace, StreamHandle stream) {
  const Device& at = *devices_[size_t(device)];
  {
    const std::lock_guard held(lock_);
    if (fails(kConvolution)) return Status::LaunchFailed;
  }
  if (!is_valid(convolution) || (plan.workspace != 0) != (workspace != 0)) return Status::InvalidValue;
  const uint64_t shift = uint64_t(reinterpret_cast<uintptr_t>(at.bytes)) - at.base;
  int64_t end = 0, results = 1;
  for (int d = 0; d < convolution.spatial + 2; ++d) results *= convolution.y.sizes[size_t(d)];
  return work(
      device, stream, kLaunch + results / kItemsPerNanosecond, end,
      [convolution, shift, beside = workspace ? bytes_at(device, workspace) : nullptr, &plan] {
        if (beside) std::memset(beside, -1, plan.workspace);  // what was there is lost
        convolve_on_host(convolution, shift);
      },
      handed("convolution"));
}
SharedRecurrencePlan SimulatedDriver::plan_recurrence(int, const Recurrence& layers, StreamHandle) {
  if (!has_libraries() || !is_valid(layers)) return nullptr;
  auto made = std::make_shared<RecurrencePlan>(recurrence_plan(layers));
  made->workspace = kSimulatedWorkspace;
  return made;
}
Status SimulatedDriver::recur(int device, const SharedRecurrencePlan& plan, const RecurrenceRun& run,
                              StreamHandle stream) {
  const Device& at = *devices_[size_t(device)];
  {
    const std::lock_guard held(lock_);
    if (fails(kRecurrence)) return Status::LaunchFailed;
  }
  if (!is_valid(*plan, run)) return Status::InvalidValue;
  const uint64_t shift = uint64_t(reinterpret_cast<uintptr_t>(at.bytes)) - at.base;
  int64_t end = 0;
  return work(
      device, stream, kLaunch * plan->layers.steps * plan->layers.layers, end,
      [plan = *plan, run, shift, beside = bytes_at(device, run.workspace)] {
        std::memset(beside, -1, plan.workspace);
        recur_on_host(plan, run, shift);
      },
      handed(run.backward ? "recurrence backward" : "recurrence"));
}
SharedTransformPlan SimulatedDriver::plan_transform(int device, const Transform& transform) {
  if (!has_libraries() || !is_valid(transform)) return nullptr;
  const std::lock_guard held(lock_);
  auto& plans = transforms_[device];
  if (const auto [found, known] = plans.find(transform.shape()); known) return found;
  const auto made = std::make_shared<TransformPlan>();
  if (wants_workspace(transform)) made->workspace = kSimulatedWorkspace;
  plans.put(transform.shape(), made);
  return made;
}
void SimulatedDriver::settle_transforms(int device, PlansKept& asked) {
  const std::lock_guard held(lock_);
  settle(transforms_[device], asked);
}
Status SimulatedDriver::transform(int device, const SharedTransformPlan& plan, const Transform& transform,
                                  Address workspace, StreamHandle stream) {
  const Device& at = *devices_[size_t(device)];
  {
    const std::lock_guard held(lock_);
    if (fails(kTransform)) return Status::LaunchFailed;
  }
  if (!is_valid(transform) || (plan->workspace != 0) != (workspace != 0)) return Status::InvalidValue;
  const uint64_t shift = uint64_t(reinterpret_cast<uintptr_t>(at.bytes)) - at.base;
  int64_t end = 0;
  return work(
      device, stream, kLaunch, end,
      [transform, shift, beside = workspace ? bytes_at(device, workspace) : nullptr, size = plan->workspace] {
        if (beside) std::memset(beside, -1, size);
        transform_on_host(transform, shift);
      },
      handed("transform"));
}
const FactoringPlan* SimulatedDriver::plan_factoring(int, const Factoring& factoring, StreamHandle) {
  static const auto plans = [] {
    std::array<FactoringPlan, 2> made;
    made[1].workspace = kSimulatedWorkspace;
    return made;
  }();
  if (!has_libraries() || !factors_on_host(factoring) || !is_valid(factoring)) return nullptr;
  return &plans[factoring.kind != Factored::LuSolution];
}
Status SimulatedDriver::factor(int device, const FactoringPlan& plan, const Factoring& factoring, Address workspace,
                               StreamHandle stream) {
  const Device& at = *devices_[size_t(device)];
  {
    const std::lock_guard held(lock_);
    if (fails(kFactor)) return Status::LaunchFailed;
  }
  if (!is_valid(factoring) || (plan.workspace != 0) != (workspace != 0)) return Status::InvalidValue;
  const uint64_t shift = uint64_t(reinterpret_cast<uintptr_t>(at.bytes)) - at.base;
  int64_t end = 0;
  return work(
      device, stream, kLaunch * factoring.batch, end,
      [factoring, shift, beside = workspace ? bytes_at(device, workspace) : nullptr, &plan] {
        if (beside) std::memset(beside, -1, plan.workspace);
        factor_on_host(factoring, shift);
      },
      handed("factors"));
}
Nccl* SimulatedDriver::nccl(int, std::string& why) {
  why = kNoNccl;
  return nullptr;
}
std::string SimulatedDriver::libraries() {
  const std::string entry =
      std::string("{\"found\": ") + (has_libraries() ? "true" : "false") + ", \"text\": \"simulated\"}";
  return "{\"cublas\": " + entry + ", \"cublaslt\": " + entry + ", \"cudnn\": " + entry + ", \"cufft\": " + entry +
         ", \"cusolver\": " + entry + ", \"cupti\": " + entry + ", \"nccl\": {\"found\": false, \"text\": \"" +
         kNoNccl + "\"}, \"nvrtc\": {\"found\": false, \"text\": \"" + kNoNvrtc + "\"}}";
}

}  // namespace taeda::cuda
