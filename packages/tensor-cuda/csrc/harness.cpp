// C functions over machines, for Python: statistics of the backend's own one, and simulated ones for tests.
//
// They give the driver's status; a text of the last failure on the thread stands beside it. Device -1 is pinned memory,
// and a null machine the backend's own.
#include "harness.h"

#include <cstring>
#include <tuple>

#include "backend/waits.h"
#include "driver/cublas.h"
#include "driver/cudnn.h"
#include "driver/images.h"
#include "fusion/kernels.h"
#include "kernels/warp.h"

using namespace taeda::cuda;

namespace {

Allocator& allocator_of(Machine& machine, int device) { return device < 0 ? machine.pinned() : machine.memory(device); }

std::string json_of(const Count& count) {
  return "{\"current\": " + std::to_string(count.current) + ", \"peak\": " + std::to_string(count.peak) +
         ", \"allocated\": " + std::to_string(count.gained) + ", \"freed\": " + std::to_string(count.lost) + "}";
}
std::string json_of(const Statistics& statistics) {
  static constexpr std::pair<const char*, Count Counts::*> kRows[] = {
      {"allocation", &Counts::allocations},
      {"segment", &Counts::segments},
      {"active", &Counts::active},
      {"allocated_bytes", &Counts::allocated_bytes},
      {"reserved_bytes", &Counts::reserved_bytes},
      {"active_bytes", &Counts::active_bytes},
      {"requested_bytes", &Counts::requested_bytes},
  };
  static constexpr const char* kPools[] = {"all", "small_pool", "large_pool"};
  std::string text = "{";
  for (const auto& [name, what] : kRows) {
    text += std::string("\"") + name + "\": {";
    for (size_t i = 0; i < 3; ++i)
      text += std::string(i ? ", \"" : "\"") + kPools[i] + "\": " + json_of(statistics.pools[i].*what);
    text += "}, ";
  }
  return text + "\"num_alloc_retries\": " + std::to_string(statistics.retries) +
         ", \"num_ooms\": " + std::to_string(statistics.out_of_memory) +
         ", \"num_device_alloc\": " + std::to_string(statistics.driver_takes) +
         ", \"num_device_free\": " + std::to_string(statistics.driver_gives) +
         ", \"num_events\": " + std::to_string(statistics.marks) + "}";
}

}  // namespace

namespace taeda::cuda {
thread_local std::string last_text;
}

TAEDA_CUDA_EXPORT const char* taeda_cuda_text() { return last_text.c_str(); }
TAEDA_CUDA_EXPORT void* taeda_cuda_simulate(int devices, uint64_t bytes_each) {
  try {
    return Machine::simulated(devices, bytes_each).release();
  } catch (const std::exception& error) {
    last_text = error.what();
    return nullptr;
  }
}
TAEDA_CUDA_EXPORT void taeda_cuda_end(void* machine) { delete static_cast<Machine*>(machine); }

// --- allocators ---

TAEDA_CUDA_EXPORT int taeda_cuda_allocate(void* m, int device, uint64_t nbytes, void* stream, uint64_t* address) {
  return on(
      m, [&](Machine& machine) { return allocator_of(machine, device).allocate(nbytes, stream, *address, last_text); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_release(void* m, int device, uint64_t address) {
  return on(m, [&](Machine& machine) { return allocator_of(machine, device).release(address), Status::Ok; });
}
TAEDA_CUDA_EXPORT int taeda_cuda_uses(void* m, int device, uint64_t address, void* stream) {
  return on(m, [&](Machine& machine) { return allocator_of(machine, device).uses(address, stream); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_launched(void* m, int device, uint64_t address, void* stream) {
  return on(m, [&](Machine& machine) { return allocator_of(machine, device).launched(address, stream), Status::Ok; });
}
TAEDA_CUDA_EXPORT int taeda_cuda_empty_cache(void* m, int device) {
  return on(m, [&](Machine& machine) { return allocator_of(machine, device).empty_cache(); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_set_fraction(void* m, int device, double fraction) {
  return on(m, [&](Machine& machine) { return allocator_of(machine, device).set_fraction(fraction), Status::Ok; });
}
TAEDA_CUDA_EXPORT int taeda_cuda_get_fraction(void* m, int device, double* fraction) {
  return on(m, [&](Machine& machine) { return *fraction = allocator_of(machine, device).fraction(), Status::Ok; });
}
TAEDA_CUDA_EXPORT int taeda_cuda_set_expandable(void* m, int device, int expandable) {
  return on(
      m, [&](Machine& machine) { return allocator_of(machine, device).set_expandable(expandable != 0), Status::Ok; });
}
/// "peaks" or "totals".
TAEDA_CUDA_EXPORT int taeda_cuda_reset(void* m, int device, const char* what) {
  return on(m, [&](Machine& machine) {
    Allocator& allocator = allocator_of(machine, device);
    if (std::strcmp(what, "peaks") == 0) return allocator.reset_peaks(), Status::Ok;
    if (std::strcmp(what, "totals") == 0) return allocator.reset_totals(), Status::Ok;
    return Status::InvalidValue;
  });
}
/// "statistics", "snapshot", "trace", "inconsistency" or, of the whole machine, "libraries" or "fusion"; what is told
/// is the text then.
TAEDA_CUDA_EXPORT int taeda_cuda_report(void* m, int device, const char* what) {
  return on(m, [&](Machine& machine) {
    const Allocator& allocator = allocator_of(machine, device);
    if (std::strcmp(what, "statistics") == 0) return last_text = json_of(allocator.statistics()), Status::Ok;
    if (std::strcmp(what, "snapshot") == 0) return last_text = allocator.snapshot(), Status::Ok;
    if (std::strcmp(what, "trace") == 0) return last_text = allocator.trace(), Status::Ok;
    if (std::strcmp(what, "inconsistency") == 0) return last_text = allocator.inconsistency(), Status::Ok;
    if (std::strcmp(what, "fusion") == 0) return last_text = fused_kernels().report(machine.driver()), Status::Ok;
    if (std::strcmp(what, "libraries") == 0) return last_text = machine.driver().libraries(), Status::Ok;
    return Status::InvalidValue;
  });
}

/// Plans of transforms: makes their most, where it is not negative, and clears them; stores both numbers.
TAEDA_CUDA_EXPORT int taeda_cuda_transforms(void* m, int device, int64_t most, int clear, int64_t* numbers) {
  return on(m, [&](Machine& machine) {
    PlansKept asked{most, 0, clear != 0};
    machine.driver().settle_transforms(device, asked);
    numbers[0] = asked.most;
    numbers[1] = asked.size;
    return Status::Ok;
  });
}

/// Whether the lines of the program that ask for memory are noted from now on.
TAEDA_CUDA_EXPORT int taeda_cuda_note_sites(void* m, int on_or_off) {
  return on(m, [&](Machine& machine) { return machine.notes_sites() = on_or_off != 0, Status::Ok; });
}
/// How many of the last things that a device's allocator did are kept.
TAEDA_CUDA_EXPORT int taeda_cuda_keep_trace(void* m, int device, uint64_t most) {
  return on(m, [&](Machine& machine) { return allocator_of(machine, device).keep_trace(most), Status::Ok; });
}
/// What was noted, as the text.
TAEDA_CUDA_EXPORT int taeda_cuda_site_text(void* m, uint64_t site) {
  return on(m, [&](Machine&) { return last_text = text_of_site(site), Status::Ok; });
}

// --- the driver ---

namespace {

/// After a wait: what was refused before goes first.
Status waited(Machine& machine, Status status) {
  const Status late = machine.driver().late_failure(last_text);
  return late == Status::Ok ? status : late;
}

}  // namespace

TAEDA_CUDA_EXPORT int taeda_cuda_room(void* m, int device, uint64_t* free, uint64_t* total) {
  return on(m, [&](Machine& machine) {
    Room room;
    const Status status = machine.driver().room(device, room);
    *free = room.free, *total = room.total;
    return status;
  });
}
TAEDA_CUDA_EXPORT int taeda_cuda_device_of(void* m, uint64_t address, int* device) {
  return on(m, [&](Machine& machine) { return machine.driver().device_of(address, *device); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_create_stream(void* m, int device, int priority, void** stream) {
  return on(m, [&](Machine& machine) { return machine.create_stream(device, priority, *stream); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_end_stream(void* m, int device, void* stream) {
  return on(m, [&](Machine& machine) { return machine.end_stream(device, stream), Status::Ok; });
}
TAEDA_CUDA_EXPORT int taeda_cuda_synchronize_stream(void* m, int device, void* stream) {
  return on(m, [&](Machine& machine) { return waited(machine, machine.driver().synchronize_stream(device, stream)); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_query_stream(void* m, int device, void* stream) {
  return on(m, [&](Machine& machine) { return machine.driver().query_stream(device, stream); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_synchronize(void* m, int device) {
  return on(m, [&](Machine& machine) { return waited(machine, machine.driver().synchronize(device)); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_create_event(void* m, int device, int timing, void** event) {
  return on(m, [&](Machine& machine) { return machine.driver().create_event(device, timing != 0, *event); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_destroy_event(void* m, int device, void* event) {
  return on(m, [&](Machine& machine) { return machine.driver().destroy_event(device, event), Status::Ok; });
}
TAEDA_CUDA_EXPORT int taeda_cuda_record_event(void* m, int device, void* event, void* stream) {
  return on(m, [&](Machine& machine) { return machine.driver().record_event(device, event, stream); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_wait_event(void* m, int device, void* stream, void* event) {
  return on(m, [&](Machine& machine) { return machine.driver().wait_event(device, stream, event); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_query_event(void* m, int device, void* event) {
  return on(m, [&](Machine& machine) { return machine.driver().query_event(device, event); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_elapsed(void* m, void* from, void* to, double* milliseconds) {
  return on(m, [&](Machine& machine) { return machine.driver().elapsed(from, to, *milliseconds); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_copy_in(void* m, int device, uint64_t to, const void* from, uint64_t nbytes,
                                         void* stream) {
  return on(m, [&](Machine& machine) { return machine.driver().copy_in(device, to, from, nbytes, stream); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_copy_out(void* m, int device, void* to, uint64_t from, uint64_t nbytes, void* stream) {
  return on(m, [&](Machine& machine) { return machine.driver().copy_out(device, to, from, nbytes, stream); });
}

/// Whether products of float32 may be computed by TF32; a negative number asks alone.
TAEDA_CUDA_EXPORT int taeda_cuda_allow_tf32(int allow) {
  if (allow >= 0) tf32_allowed = allow != 0;
  return tf32_allowed;
}
/// Waits of the host for copies: 0 nothing, 1 `tell` is called, 2 they are refused.
TAEDA_CUDA_EXPORT void taeda_cuda_tell_of_waits(int mode, TellOfWait tell) { tell_of_waits(Waits(mode), tell); }
/// Settings of cuDNN by name; a negative number asks alone. -1 where there is no such setting.
TAEDA_CUDA_EXPORT int taeda_cuda_cudnn_setting(const char* name, int value) {
  static constexpr std::pair<std::string_view, std::atomic<bool>*> kSettings[] = {
      {"enabled", &cudnn_enabled},
      {"allow_tf32", &cudnn_tf32_allowed},
      {"benchmark", &cudnn_benchmark},
      {"deterministic", &cudnn_deterministic}};
  for (const auto& [known, setting] : kSettings)
    if (known == name) {
      if (value >= 0) *setting = value != 0;
      return *setting;
    }
  return -1;
}
TAEDA_CUDA_EXPORT int taeda_cuda_has_device_code() { return image_of("arith") != nullptr; }

// --- what only simulated machines have ---

namespace {

template <class Body>
int simulated(void* given, const Body& body) noexcept {
  return on(given, [&](Machine& machine) {
    return machine.simulation() ? body(*machine.simulation()) : Status::InvalidValue;
  });
}

}  // namespace

TAEDA_CUDA_EXPORT int taeda_cuda_work(void* m, int device, void* stream, int64_t nanoseconds, int64_t* end) {
  return simulated(m, [&](SimulatedDriver& driver) { return driver.work(device, stream, nanoseconds, *end); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_now(void* m, int64_t* now) {
  return simulated(m, [&](SimulatedDriver& driver) { return *now = driver.now(), Status::Ok; });
}
TAEDA_CUDA_EXPORT int taeda_cuda_advance(void* m, int64_t nanoseconds) {
  return simulated(m, [&](SimulatedDriver& driver) { return driver.advance(nanoseconds), Status::Ok; });
}
TAEDA_CUDA_EXPORT int taeda_cuda_fail(void* m, const char* kind, int64_t nth) {
  return simulated(m,
                   [&](SimulatedDriver& driver) { return driver.fail(kind, nth) ? Status::Ok : Status::InvalidValue; });
}
TAEDA_CUDA_EXPORT int taeda_cuda_hold(void* m, int device, uint64_t nbytes) {
  return simulated(m, [&](SimulatedDriver& driver) { return driver.hold(device, nbytes), Status::Ok; });
}
/// Bytes that the driver has given: of a device, or of pinned memory.
TAEDA_CUDA_EXPORT int taeda_cuda_taken(void* m, int device, uint64_t* nbytes) {
  return simulated(m, [&](SimulatedDriver& driver) {
    return *nbytes = device < 0 ? driver.pinned() : driver.taken(device), Status::Ok;
  });
}
TAEDA_CUDA_EXPORT int taeda_cuda_traffic(void* m, int device, uint64_t* allocations, uint64_t* releases) {
  return simulated(m, [&](SimulatedDriver& driver) {
    std::tie(*allocations, *releases) = driver.traffic(device);
    return Status::Ok;
  });
}

// --- what the simulated driver computes for tensor cores ---

/// mma.m16n8k16 on the registers of a warp: 32 threads' 4 of the left factor, 2 of the right one, 4 sums.
TAEDA_CUDA_EXPORT void taeda_cuda_warp_multiply(int bfloat16, const uint32_t* left, const uint32_t* right,
                                                float* sums) {
  WarpRegisters all;
  std::memcpy(all.left, left, sizeof all.left);
  std::memcpy(all.right, right, sizeof all.right);
  std::memcpy(all.sums, sums, sizeof all.sums);
  all.multiply(bfloat16 != 0);
  std::memcpy(sums, all.sums, sizeof all.sums);
}
/// ldmatrix.x4 of 32 rows of eight halves in line.
TAEDA_CUDA_EXPORT void taeda_cuda_warp_read(const uint16_t* rows, int turned, uint32_t* to) {
  const void* places[kLanes];
  for (int i = 0; i < kLanes; ++i) places[i] = rows + 8 * i;
  uint32_t found[kLanes][4];
  WarpRegisters::read(places, turned != 0, found);
  std::memcpy(to, found, sizeof found);
}
