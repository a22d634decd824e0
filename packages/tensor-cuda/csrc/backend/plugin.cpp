// The plug-in: what taeda is told of the devices, and the functions that it calls.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "backend/activities.h"
#include "backend/guard.h"
#include "backend/machine.h"
#include "backend/trouble.h"
#include "backend/waits.h"
#include "driver/cudnn.h"
#include "driver/queued.h"
#include "driver/real.h"
#include "fusion/graph.h"
#include "ops/call.h"
#include "taeda/abi.h"

namespace taeda::cuda {
namespace {

// Lives as long as the process: tensors that end with it give their memory back.
Machine* machine = nullptr;
std::vector<std::string>* more_facts = nullptr;

int32_t failed(const char* what, Status status, const std::string& text = "") {
  const std::string said =
      text.empty() ? "cuda: " + std::string(what) + ": " + machine->driver().text_of(status) : text;
  return api->set_error(status == Status::OutOfMemory ? TAEDA_E_MEMORY : TAEDA_E_RUNTIME, said.c_str());
}
int32_t told(const char* what, Status status) { return status == Status::Ok ? TAEDA_OK : failed(what, status); }
/// After a wait: what the driver refused of earlier work and what kernels found wrong comes out too.
int32_t told_of_work(const char* what, Status status, int32_t index) {
  std::string text;
  if (const Status late = machine->driver().late_failure(text); late != Status::Ok)
    return failed(what, late, "cuda: " + std::string(what) + ": " + text);
  return status == Status::Ok ? trouble_found(index) : failed(what, status);
}
/// The host cannot wait for work that is recorded; to ask the driver would break the recording.
int32_t refused(const char* what) {
  const std::string text = "cuda: " + std::string(what) +
                           ": operation not permitted when a stream is capturing: the work is being recorded for a "
                           "graph, so the host cannot wait for it; do this before or after the recording";
  return api->set_error(TAEDA_E_RUNTIME, text.c_str());
}
bool is_recorded(int32_t index, taeda_stream stream) { return machine->graphs().of(index, stream) != nullptr; }
/// Nothing may be thrown across the border.
template <class Body>
int32_t guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {
    return api->set_error(TAEDA_E_MEMORY, error.what());
  }
}
template <class Body>
void kept(const Body& body) noexcept {
  try {
    body();
  } catch (...) {  // out of host memory while something is given back: it stays taken
  }
}
Address address_of(const void* data) { return Address(reinterpret_cast<uintptr_t>(data)); }
void* pointer_to(Address address) { return reinterpret_cast<void*>(uintptr_t(address)); }

int32_t device_count(void*, int32_t* count) { return *count = machine->driver().device_count(), TAEDA_OK; }

// --- memory ---

/// Whose lines hold the most memory, where that was noted, else how it can be.
std::string told_of_holders(int32_t index) {
  constexpr size_t kMost = 5;
  if (!machine->notes_sites())
    return "; taeda.cuda.memory._record_memory_history() lets this name the lines that hold it";
  const auto holders = machine->memory(index).holders();
  std::string text;
  for (size_t i = 0; i < std::min(kMost, holders.size()); ++i)
    text += (i ? ", " : "; most is held by ") + size_text(holders[i].second) + " at " + text_of_site(holders[i].first);
  return text;
}
int32_t allocate(void*, int32_t index, size_t nbytes, taeda_stream stream, void** data) {
  return guarded([&] {
    Address address = 0;
    std::string text;
    const uint64_t site = machine->notes_sites() && TAEDA_API_HAS(api, call_site) ? api->call_site(nullptr) : 0;
    const Status status = machine->memory(index).allocate(nbytes + kGuard, stream, address, text, site);
    *data = pointer_to(address);
    if (status == Status::OutOfMemory) text += told_of_holders(index);
    if (status == Status::Ok) guard(*machine, index, address, nbytes, stream);
    return status == Status::Ok ? TAEDA_OK : failed("allocate", status, text);
  });
}
void release(void*, int32_t index, void* data, size_t) {
  kept([&] { machine->memory(index).release(address_of(data)); });
}
int32_t stream_uses(void*, int32_t index, void* data, taeda_stream stream) {
  return guarded([&] {
    if (machine->imports().contains(index, address_of(data))) return int32_t(TAEDA_OK);  // its end waits for all work
    const Status status = machine->memory(index).uses(address_of(data), stream);
    // Another library's, which does not ask when it may give it away.
    return status == Status::InvalidValue ? int32_t(TAEDA_OK) : told("stream_uses", status);
  });
}
int32_t pinned_allocate(void*, size_t nbytes, void** data) {
  return guarded([&] {
    Address address = 0;
    std::string text;
    const Status status = machine->pinned().allocate(nbytes, nullptr, address, text);
    *data = pointer_to(address);
    return status == Status::Ok ? TAEDA_OK : failed("pinned_allocate", status, text);
  });
}
void pinned_release(void*, void* data, size_t) {
  kept([&] { machine->pinned().release(address_of(data)); });
}
/// What another process needs to open memory of this one.
struct Description {
  char mark[16];
  SharedHandle handle;
  uint64_t offset;
};
constexpr char kSharedMark[16] = "taeda cuda ipc1";

int32_t memory_export(void*, int32_t index, void* data, size_t, void* description, size_t* size) {
  return guarded([&] {
    Description found{};
    std::memcpy(found.mark, kSharedMark, sizeof found.mark);
    const Status status = machine->driver().share(index, address_of(data), found.handle, found.offset);
    if (status == Status::InvalidValue)
      return api->set_error(TAEDA_E_NOT_IMPLEMENTED,
                            "cuda: memory_export: the driver shares no such memory; that of segments that expand "
                            "(expandable_segments:True) is none that it does");
    if (status != Status::Ok) return failed("memory_export", status);
    std::memcpy(description, &found, sizeof found);
    *size = sizeof found;
    return int32_t(TAEDA_OK);
  });
}
int32_t memory_import(void*, int32_t index, const void* description, size_t size, void** data) {
  return guarded([&] {
    Description found{};
    if (size == sizeof found) std::memcpy(&found, description, sizeof found);
    if (size != sizeof found || std::memcmp(found.mark, kSharedMark, sizeof found.mark) != 0)
      return api->set_error(TAEDA_E_VALUE, "cuda: memory_import: this is no description of the backend's memory");
    Address address = 0;
    const Status status = machine->imports().open(index, found.handle, found.offset, address);
    // Drivers say one or the other of memory that is gone, or that is the process's own.
    if (status == Status::InvalidValue || status == Status::InvalidHandle || status == Status::InvalidContext)
      return api->set_error(
          TAEDA_E_VALUE,
          "cuda: memory_import: the memory cannot be opened; the process that shared it has ended, or "
          "it is this one");
    *data = pointer_to(address);
    return told("memory_import", status);
  });
}
void memory_close(void*, int32_t index, void* data, size_t) {
  kept([&] { machine->imports().close(index, address_of(data)); });
}
int32_t empty_cache(void*, int32_t index) {
  return guarded([&] {
    if (machine->graphs().any()) return refused("empty_cache");
    const Status pinned = machine->pinned().empty_cache();
    const Status status = machine->memory(index).empty_cache();
    return told("empty_cache", status == Status::Ok ? pinned : status);
  });
}
int32_t properties(void*, int32_t index, taeda_device_properties* properties) {
  return guarded([&] {
    DeviceFacts facts;
    Status status = machine->driver().facts(index, facts);
    Room room;
    if (status == Status::Ok) status = machine->driver().room(index, room);
    if (status != Status::Ok) return failed("properties", status);
    std::strncpy(properties->name, facts.name.c_str(), sizeof properties->name - 1);
    properties->total_memory = facts.total_memory;
    properties->free_memory = room.free;
    properties->alignment = uint32_t(kDevicePolicy.granule);
    properties->processors = uint32_t(facts.processors);
    properties->more = (*more_facts)[size_t(index)].c_str();
    return int32_t(TAEDA_OK);
  });
}

/// Convolutions of floating types are fastest over channels that lie beside each other, where the library computes
/// them; what follows them lies as they do.
int32_t image_layout(void*, int32_t index, const taeda_image_result* result, int32_t* layout) {
  *layout = result->input_layout == TAEDA_IMAGE_CHANNELS_LAST ? TAEDA_IMAGE_CHANNELS_LAST : TAEDA_IMAGE_ROW_MAJOR;
  const bool is_convolution = std::string_view(result->op).starts_with("conv");
  if (cudnn_enabled && is_convolution && is_float_type(result->dtype) && result->dtype != TAEDA_FLOAT64 &&
      machine->driver().prefers_channels_last(index))
    *layout = TAEDA_IMAGE_CHANNELS_LAST;
  return TAEDA_OK;
}

// --- copies ---

int32_t waited_for(const char* what, Status status, int32_t index, taeda_stream stream, int32_t blocking) {
  if (status == Status::Ok && blocking) status = machine->driver().synchronize_stream(index, stream);
  return blocking ? told_of_work(what, status, index) : told(what, status);
}
int32_t waits(const char* what) {
  const std::string text = std::string("cuda: ") + what + ": called a synchronizing CUDA operation";
  return api->set_error(TAEDA_E_RUNTIME, text.c_str());
}
int32_t copy_from_host(void*, int32_t index, void* to, const void* from, size_t nbytes, taeda_stream stream,
                       int32_t blocking) {
  return guarded([&] {
    if (blocking && is_recorded(index, stream)) return refused("copy_from_host");
    if (blocking && !may_wait()) return waits("copy_from_host");
    machine->memory(index).launched(address_of(to), stream);
    const Status status = machine->driver().copy_in(index, address_of(to), from, nbytes, stream);
    return waited_for("copy_from_host", status, index, stream, blocking);
  });
}
int32_t copy_to_host(void*, int32_t index, void* to, const void* from, size_t nbytes, taeda_stream stream,
                     int32_t blocking) {
  return guarded([&] {
    if (blocking && is_recorded(index, stream)) return refused("copy_to_host");
    if (blocking && !may_wait()) return waits("copy_to_host");
    machine->memory(index).launched(address_of(from), stream);
    const Status status = machine->driver().copy_out(index, to, address_of(from), nbytes, stream);
    return waited_for("copy_to_host", status, index, stream, blocking);
  });
}
/// What is put into `waiting` from now on comes after what is now in `stream`.
Status put_in_order(int device, StreamHandle stream, int waiting_device, StreamHandle waiting) {
  Driver& driver = machine->driver();
  EventHandle event = nullptr;
  Status status = driver.create_event(device, false, event);
  if (status != Status::Ok) return status;
  status = driver.record_event(device, event, stream);
  if (status == Status::Ok) status = driver.wait_event(waiting_device, waiting, event);
  driver.destroy_event(device, event);
  return status;
}
int32_t copy_peer(void*, int32_t to_index, void* to, int32_t from_index, const void* from, size_t nbytes,
                  taeda_stream stream) {
  return guarded([&] {
    const StreamHandle source = api->stream_current({backend_number, from_index});
    machine->memory(to_index).launched(address_of(to), stream);
    machine->memory(from_index).launched(address_of(from), source);
    Status status = put_in_order(from_index, source, to_index, stream);
    if (status == Status::Ok)
      status = machine->driver().copy_peer(to_index, address_of(to), from_index, address_of(from), nbytes, stream);
    if (status == Status::Ok) status = put_in_order(to_index, stream, from_index, source);
    return told("copy_peer", status);
  });
}

// --- streams and events ---

int32_t synchronize(void*, int32_t index) {
  return guarded([&] {
    if (machine->graphs().any_on(index)) return refused("synchronize");
    return told_of_work("synchronize", machine->driver().synchronize(index), index);
  });
}
int32_t stream_create(void*, int32_t index, int32_t priority, taeda_stream* stream) {
  return guarded([&] { return told("stream_create", machine->create_stream(index, priority, *stream)); });
}
void stream_destroy(void*, int32_t index, taeda_stream stream) {
  kept([&] { machine->end_stream(index, stream); });
}
int32_t stream_synchronize(void*, int32_t index, taeda_stream stream) {
  return guarded([&] {
    if (is_recorded(index, stream)) return refused("stream_synchronize");
    return told_of_work("stream_synchronize", machine->driver().synchronize_stream(index, stream), index);
  });
}
constexpr int64_t kPollNanoseconds = 1000;
/// Stores whether something is done; that it is not is no error.
int32_t answered(const char* what, Status status, int32_t* done) {
  *done = status == Status::Ok;
  // Who asks again and again waits: simulated time goes on.
  if (status == Status::NotReady && machine->simulation()) machine->simulation()->advance(kPollNanoseconds);
  return told(what, status == Status::NotReady ? Status::Ok : status);
}
int32_t stream_query(void*, int32_t index, taeda_stream stream, int32_t* done) {
  return guarded([&] {
    if (is_recorded(index, stream)) return refused("stream_query");
    return answered("stream_query", machine->driver().query_stream(index, stream), done);
  });
}
int32_t event_create(void*, int32_t index, uint32_t flags, taeda_event* event) {
  return guarded(
      [&] { return told("event_create", machine->driver().create_event(index, flags & TAEDA_EVENT_TIMING, *event)); });
}
void event_destroy(void*, int32_t index, taeda_event event) {
  machine->graphs().event_gone(event);
  machine->driver().destroy_event(index, event);
}
int32_t event_record(void*, int32_t index, taeda_event event, taeda_stream stream) {
  return guarded([&] {
    machine->graphs().event_recorded(index, event, stream);
    return told("event_record", machine->driver().record_event(index, event, stream));
  });
}
int32_t event_wait(void*, int32_t index, taeda_event event, taeda_stream stream) {
  return guarded([&] {
    const Status status = machine->driver().wait_event(index, stream, event);
    if (status != Status::CapturedEvent) return told("event_wait", status);
    return failed(
        "event_wait", status,
        "cuda: event_wait: " + machine->driver().text_of(status) +
            ": work outside of a recording cannot wait for work within. In a backward, gradients of a leaf "
            "belong to the stream on which it was used by a graph that still lives: use it on the recording's "
            "stream first, and keep no results of other streams");
  });
}
int32_t event_synchronize(void*, int32_t index, taeda_event event) {
  return guarded([&] {
    const Graphs::Reached reached = machine->graphs().reached(event);
    if (reached != Graphs::Reached::Ask)
      return reached == Graphs::Reached::Yes ? TAEDA_OK : refused("event_synchronize");
    return told_of_work("event_synchronize", machine->driver().synchronize_event(index, event), index);
  });
}
int32_t event_query(void*, int32_t index, taeda_event event, int32_t* done) {
  return guarded([&] {
    const Graphs::Reached reached = machine->graphs().reached(event);
    if (reached != Graphs::Reached::Ask) return *done = reached == Graphs::Reached::Yes, int32_t(TAEDA_OK);
    return answered("event_query", machine->driver().query_event(index, event), done);
  });
}
int32_t event_elapsed(void*, int32_t, taeda_event from, taeda_event to, double* milliseconds) {
  return guarded([&] { return told("event_elapsed", machine->driver().elapsed(from, to, *milliseconds)); });
}

// --- start ---

/// TAEDA_CUDA_DRIVER=simulated, or simulated:DEVICES:MEBIBYTES. Null where the text makes no sense.
std::unique_ptr<Machine> simulated_machine(const char* text) {
  int devices = 1;
  unsigned long long mebibytes = 1024;
  char rest = 0;
  const int read = std::sscanf(text, "simulated:%d:%llu%c", &devices, &mebibytes, &rest);
  const bool sensible = devices > 0 && devices < 128 && mebibytes > 0 && mebibytes < (1ull << 20);
  if ((read != 2 && std::strcmp(text, "simulated") != 0) || !sensible) return nullptr;
  return Machine::simulated(devices, mebibytes * kMebi);
}
int32_t make_machine() {
  const char* const wanted = std::getenv("TAEDA_CUDA_DRIVER");
  if (wanted && *wanted) {
    machine = simulated_machine(wanted).release();
    const std::string text = "TAEDA_CUDA_DRIVER must be 'simulated' or 'simulated:DEVICES:MEBIBYTES', found '" +
                             std::string(wanted) + "'; try: unset it";
    return machine ? TAEDA_OK : api->set_error(TAEDA_E_VALUE, text.c_str());
  }
  std::string why;
  std::unique_ptr<Driver> driver = open_driver(why);
  if (!driver) return api->set_error(TAEDA_E_RUNTIME, why.c_str());
  machine = new Machine(with_launch_thread(std::move(driver)));
  return TAEDA_OK;
}
int32_t describe_devices() {
  more_facts = new std::vector<std::string>;
  for (int i = 0; i < machine->driver().device_count(); ++i) {
    DeviceFacts facts;
    if (const Status status = machine->driver().facts(i, facts); status != Status::Ok)
      return failed("properties", status);
    const auto text = [](int value) { return std::to_string(value); };
    more_facts->push_back(
        "{\"capability\": [" + text(facts.major) + ", " + text(facts.minor) + "], \"warp_size\": " +
        text(facts.warp_size) + ", \"max_threads_per_multi_processor\": " + text(facts.threads_per_processor) +
        ", \"regs_per_multiprocessor\": " + text(facts.registers_per_processor) + ", \"shared_memory_per_block\": " +
        text(facts.shared_per_block) + ", \"shared_memory_per_block_optin\": " + text(facts.shared_most) +
        ", \"shared_memory_per_multiprocessor\": " + text(facts.shared_per_processor) +
        ", \"is_integrated\": " + text(facts.integrated) + ", \"is_multi_gpu_board\": " + text(facts.board_of_several) +
        ", \"pci_domain_id\": " + text(facts.pci_domain) + ", \"pci_bus_id\": " + text(facts.pci_bus) +
        ", \"pci_device_id\": " + text(facts.pci_device) + ", \"L2_cache_size\": " + text(facts.l2_cache) +
        ", \"driver\": \"" + (machine->simulation() ? "simulated" : "cuda") + "\"}");
  }
  return TAEDA_OK;
}
int32_t register_backend() {
  taeda_backend backend{};
  backend.size = sizeof backend;
  backend.name = "cuda";
  backend.distribution = "taeda-tensor-cuda";
  backend.capabilities = TAEDA_CAN_STREAMS | TAEDA_CAN_EVENT_TIMING | TAEDA_CAN_SHARE_MEMORY | TAEDA_CAN_GROUP_HEADS;
  backend.device_count = device_count;
  backend.allocate = allocate;
  backend.release = release;
  backend.copy_from_host = copy_from_host;
  backend.copy_to_host = copy_to_host;
  backend.synchronize = synchronize;
  backend.copy_peer = copy_peer;
  backend.stream_create = stream_create;
  backend.stream_destroy = stream_destroy;
  backend.stream_synchronize = stream_synchronize;
  backend.stream_query = stream_query;
  backend.stream_uses = stream_uses;
  backend.event_create = event_create;
  backend.event_destroy = event_destroy;
  backend.event_record = event_record;
  backend.event_wait = event_wait;
  backend.event_synchronize = event_synchronize;
  backend.event_query = event_query;
  backend.event_elapsed = event_elapsed;
  backend.pinned_allocate = pinned_allocate;
  backend.pinned_release = pinned_release;
  backend.memory_export = memory_export;
  backend.memory_import = memory_import;
  backend.memory_close = memory_close;
  backend.properties = properties;
  backend.empty_cache = empty_cache;
  backend.image_layout = image_layout;
  offer_activities(backend);
  offer_graphs(backend);
  return api->backend_register(&backend, &backend_number);
}
int32_t start(const taeda_api* given) {
  api = given;
  return guarded([] {
    int32_t status = machine ? TAEDA_OK : make_machine();
    if (status == TAEDA_OK && !more_facts) status = describe_devices();
    if (status == TAEDA_OK) status = register_backend();
    return status == TAEDA_OK ? register_operations() : status;
  });
}

constexpr taeda_plugin kPlugin{sizeof kPlugin, TAEDA_ABI_MAJOR, 1, "cuda", "taeda-tensor-cuda", start};

}  // namespace

Machine* own_machine() { return machine; }
std::string text_of_site(uint64_t site) {
  if (!site || !api || !TAEDA_API_HAS(api, set_error_at)) return "";
  api->set_error_at(TAEDA_E_RUNTIME, "", site);
  std::string text = api->last_error();  // " (queued at train.py:31, in step)"
  const size_t begin = text.find(" at "), end = text.rfind(')');
  return begin == text.npos || end == text.npos ? text : text.substr(begin + 4, end - begin - 4);
}

}  // namespace taeda::cuda

extern "C" TAEDA_PLUGIN_EXPORT const taeda_plugin* taeda_plugin_describe(void) { return &taeda::cuda::kPlugin; }
