// The table of backends and the spelling of devices.
#include "taeda/device.h"

#include <array>
#include <atomic>
#include <charconv>
#include <mutex>
#include <thread>
#include <utility>

#include "core/fork.h"
#include "core/loading.h"
#include "core/runtime.h"
#include "taeda/backend.h"
#include "taeda/error.h"
#include "taeda/image_layout.h"

namespace taeda {

void (*discover_backend)(std::string_view name) = nullptr;

namespace {

struct Cpu final : Backend, ImageLayouts {
  std::string name() const override { return "cpu"; }
  void allocate(Storage& storage, size_t nbytes) override { detail::cpu_allocate(storage, nbytes); }
  void copy_from_host(Device, void* to, const void* host, size_t nbytes, bool) override {
    std::memcpy(to, host, nbytes);
  }
  void copy_to_host(void* host, Device, const void* from, size_t nbytes, bool) override {
    std::memcpy(host, from, nbytes);
  }
  bool opaque() const override { return false; }
  bool wants_channels_last(Device, const ImageResult& result) const override {
    return detail::cpu_wants_channels_last(result);
  }
};

/// Shapes and dtypes without bytes; layouts are those that the cpu would give.
struct Meta final : Backend, ImageLayouts {
  std::string name() const override { return "meta"; }
  void allocate(Storage&, size_t) override {}
  void copy_from_host(Device, void*, const void*, size_t, bool) override {}
  void copy_to_host(void*, Device, const void*, size_t, bool) override {
    fail(ErrorKind::NotImplemented, "meta tensors have no data: cannot copy out of device 'meta'");
  }
  bool has_memory() const override { return false; }
  bool wants_channels_last(Device, const ImageResult& result) const override {
    return detail::cpu_wants_channels_last(result);
  }
};

/// Stands where a backend was whose plug-in failed after registering it.
struct Withdrawn final : Backend {
  std::string text;
  explicit Withdrawn(const std::string& name) : text("(withdrawn " + name + ")") {}
  std::string name() const override { return text; }
  int device_count() const override { return 0; }
  [[noreturn]] void gone() const { fail(ErrorKind::Runtime, "device '", text, "': its plug-in failed to start"); }
  void allocate(Storage&, size_t) override { gone(); }
  void copy_from_host(Device, void*, const void*, size_t, bool) override { gone(); }
  void copy_to_host(void*, Device, const void*, size_t, bool) override { gone(); }
};

/// Entries are read without the lock, which keeps writers apart.
struct Table {
  std::mutex lock;
  HeldAtFork held{lock};
  std::array<std::atomic<Backend*>, kMaxBackends> backends{new Cpu, new Meta};
  std::array<std::atomic<std::thread::id>, kMaxBackends> loader{};       // the only thread that sees it yet
  std::array<std::atomic<const ImageLayouts*>, kMaxBackends> layouts{};  // null: has no answers
  std::atomic<int> count{2};

  Table() {
    for (int i = 0; i < count; ++i) note_layouts(i);
  }
  void note_layouts(int i) { layouts[size_t(i)] = dynamic_cast<const ImageLayouts*>(backends[size_t(i)].load()); }

  bool shown(int i) const {
    const std::thread::id only = loader[size_t(i)];
    return only == std::thread::id{} || only == std::this_thread::get_id();
  }
  /// Its number, also of one that another thread loads.
  int find(std::string_view name) const {
    for (int i = 0; i < count; ++i)
      if (backends[size_t(i)].load()->name() == name) return i;
    return -1;
  }
};
Table& table() {
  static auto* instance = new Table;
  return *instance;
}
[[maybe_unused]] const auto* const made_at_load = &table();

bool is_withdrawn(const Backend& b) { return dynamic_cast<const Withdrawn*>(&b) != nullptr; }

std::string known_names() {
  std::string text;
  for (int i = 0; i < backend_count(); ++i)
    if (const Backend& b = backend(BackendId(i)); table().shown(i) && b.name().front() != '(')
      text += (text.empty() ? "" : ", ") + b.name();
  return text;
}

}  // namespace

int find_backend(std::string_view name) {
  const int found = table().find(name);
  return found >= 0 && table().shown(found) ? found : -1;
}

BackendId register_backend(Backend* backend) {
  std::lock_guard guard(table().lock);
  check(table().find(backend->name()) < 0, ErrorKind::Value, "register_backend: a backend named '", backend->name(),
        "' is registered already");
  const int id = table().count;
  check(id < kMaxBackends, ErrorKind::Runtime, "register_backend: at most ", kMaxBackends, " backends");
  if (is_loading()) table().loader[size_t(id)] = std::this_thread::get_id();
  table().backends[size_t(id)] = backend;
  table().note_layouts(id);
  table().count = id + 1;  // only now may others look at the place
  detail::note_loading(BackendId(id));
  return BackendId(id);
}
void detail::show_backend(BackendId id) { table().loader[size_t(id)] = std::thread::id{}; }
void withdraw_backend(BackendId id) {
  if (is_withdrawn(backend(id))) return;
  auto* stand_in = new Withdrawn(backend(id).name());
  std::lock_guard guard(table().lock);
  table().backends[id] = stand_in;  // the former lives on: tensors may refer to it
}
void Backend::missing(const char* function) const {
  fail(ErrorKind::NotImplemented, "device '", name(), "' has no function '", function, "'");
}
void* Backend::stream_create(Device, int) { missing("stream_create"); }
bool Backend::stream_query(Device device, void* stream) {
  stream_synchronize(device, stream);
  return true;
}
void Backend::stream_uses(Device, void*, void*) { missing("stream_uses"); }
void* Backend::event_create(Device, bool) { missing("event_create"); }
void Backend::event_record(Device, void*, void*) { missing("event_record"); }
void Backend::event_wait(Device, void*, void*) { missing("event_wait"); }
void Backend::event_synchronize(Device, void*) { missing("event_synchronize"); }
bool Backend::event_query(Device, void*) { missing("event_query"); }
double Backend::event_elapsed(Device, void*, void*) { missing("event_elapsed"); }
void* Backend::pinned_allocate(size_t) { missing("pinned_allocate"); }
std::string Backend::memory_export(Device, void*, size_t) { missing("memory_export"); }
void Backend::memory_import(Storage&, size_t, std::string_view) { missing("memory_import"); }

bool wants_channels_last(Device device, const ImageResult& result) {
  const ImageLayouts* asked = table().layouts[device.backend].load(std::memory_order_acquire);
  return asked ? asked->wants_channels_last(device, result) : lies_as_input(result);
}

Backend& backend(BackendId id) { return *table().backends[id].load(std::memory_order_acquire); }
int backend_count() { return table().count.load(std::memory_order_acquire); }

std::string to_string(Device device) {
  std::string text = backend(device.backend).name();
  if (device.backend > kMeta) text += ":" + std::to_string(device.index);
  return text;
}

namespace {
/// Made when a thread chooses a device for the first time.
constinit thread_local int8_t* chosen = nullptr;
void forget_chosen() noexcept { delete[] std::exchange(chosen, nullptr); }
}  // namespace

int current_device_index(BackendId id) noexcept { return chosen ? chosen[id] : 0; }
void set_current_device_index(BackendId id, int index) {
  const int count = backend(id).device_count();
  check(index >= 0 && index < count, ErrorKind::Runtime, "set_device: there is no device '", backend(id).name(), ":",
        index, "', of ", count);
  if (!chosen && index && at_thread_end<forget_chosen>()) chosen = new int8_t[kMaxBackends]();
  if (chosen) chosen[id] = int8_t(index);
}

Device parse_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  int index = -1;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    check(status == std::errc() && end == digits.data() + digits.size() && index >= 0 && index < 128,
          ErrorKind::Runtime, "device: expected 'name' or 'name:index', got '", text, "'");
  }
  int id = find_backend(name);
  if (id < 0 && discover_backend) {
    discover_backend(name);
    id = find_backend(name);
  }
  if (id < 0) [[unlikely]]
    fail(ErrorKind::Runtime, "device: unknown device '", text, "'; known devices: ", known_names());
  if (index < 0) index = current_device_index(BackendId(id));
  if (id <= kMeta) index = 0;  // one device, whatever number programs give it
  check(index < backend(BackendId(id)).device_count(), ErrorKind::Runtime, "device: index ", index, " of '", text,
        "' is out of range; '", name, "' has ", backend(BackendId(id)).device_count(), " device(s)");
  return Device{BackendId(id), int8_t(index)};
}

}  // namespace taeda
