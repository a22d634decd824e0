// A backend whose functions are a plug-in's.
#include "taeda/backend.h"

#include <algorithm>
#include <cctype>

#include "abi/bridge.h"
#include "taeda/generator_state.h"
#include "taeda/image_layout.h"
#include "taeda/parallel.h"
#include "taeda/spans.h"
#include "taeda/stream.h"

namespace taeda::abi {
namespace {

static_assert(int(ImageLayout::RowMajor) == TAEDA_IMAGE_ROW_MAJOR &&
              int(ImageLayout::ChannelsLast) == TAEDA_IMAGE_CHANNELS_LAST &&
              int(ImageLayout::Other) == TAEDA_IMAGE_OTHER);

/// The question as C sees it.
taeda_image_result to_c(const ImageResult& r) {
  taeda_image_result out{.size = sizeof out,
                         .op = r.op,
                         .dtype = int32_t(r.dtype),
                         .input_layout = int32_t(r.input_layout),
                         .input = {},
                         .sizes = {},
                         .kernel = {},
                         .groups = r.groups};
  std::ranges::copy(r.input, out.input);
  std::ranges::copy(r.sizes, out.sizes);
  std::ranges::copy(r.kernel, out.kernel);
  return out;
}

class PluginBackend final : public Backend, public ImageLayouts {
  /// The host waits for a device: other threads may go on, and those who watch this one are told.
  class Waiting {
   public:
    Waiting(const PluginBackend& backend, const char* function, bool waits = true)
        : name_(waits && observed() ? backend.what(function) : ""), unlocked_(waits) {}

   private:
    std::string name_;
    Within span_{{name_.c_str(), SpanKind::Synchronize}, !name_.empty()};
    Unlocked unlocked_;  // the last, so that the span begins and ends under the lock
  };

 public:
  explicit PluginBackend(const taeda_backend& given) : c_(given), name_(given.name) {
    if (given.collectives) {
      collectives_ = known_part(given.collectives, "taeda_collectives");
      c_.collectives = &collectives_;
    }
    for (uint32_t i = 0; given.lacks && i < given.lack_count; ++i)
      lacks_[given.lacks[i].capability] = given.lacks[i].reason ? given.lacks[i].reason : "";
    int32_t count = 0;
    ask("device_count", c_.device_count(c_.context, &count));
    check(count >= 0 && count < 128, ErrorKind::Value, name_, ": device_count gave ", count, ", expected 0 to 127");
    count_ = count;
    for (int i = 0; i < count; ++i) places_.push_back({this, i});
  }

  std::string name() const override { return name_; }
  int device_count() const override { return count_; }
  bool opaque() const override { return !(c_.capabilities & TAEDA_CAN_HOST_READ); }

  void allocate(Storage& storage, size_t nbytes) override {
    if (nbytes == 0) return;
    const Device device = storage.device;
    storage.nbytes = 0;  // in case it fails
    ask("allocate", c_.allocate(c_.context, device.index, nbytes, current_stream_handle(device), &storage.data));
    got(storage.data, "allocate");
    storage.nbytes = nbytes;
    storage.context = &places_[size_t(device.index)];
    storage.release = [](void* data, size_t bytes, void* context) {
      Place& place = *static_cast<Place*>(context);
      place.use->give_back(bytes);
      place.owner->c_.release(place.owner->c_.context, place.index, data, bytes);
    };
    places_[size_t(device.index)].use->take(nbytes);
  }
  MemoryCount* memory_use(Device device) override { return places_[size_t(device.index)].use.get(); }
  const taeda_backend* plugin() const override { return &c_; }
  bool has_peer_copies() const override { return c_.copy_peer != nullptr; }
  void copy_from_host(Device to_device, void* to, const void* host, size_t nbytes, bool blocking) override {
    const Waiting waiting(*this, "copy_from_host", blocking);
    void* const stream = current_stream_handle(to_device);
    ask("copy_from_host", c_.copy_from_host(c_.context, to_device.index, to, host, nbytes, stream, blocking));
  }
  void copy_to_host(void* host, Device from_device, const void* from, size_t nbytes, bool blocking) override {
    const Waiting waiting(*this, "copy_to_host", blocking);
    void* const stream = current_stream_handle(from_device);
    ask("copy_to_host", c_.copy_to_host(c_.context, from_device.index, host, from, nbytes, stream, blocking));
  }
  bool copy_peer(Device to_device, void* to, Device from_device, const void* from, size_t nbytes) override {
    if (!c_.copy_peer) return false;
    void* const stream = current_stream_handle(to_device);
    ask("copy_peer", c_.copy_peer(c_.context, to_device.index, to, from_device.index, from, nbytes, stream));
    return true;
  }
  void synchronize(Device device) override {
    const Waiting waiting(*this, "synchronize");
    ask("synchronize", c_.synchronize(c_.context, device.index));
  }

  bool has_streams() const override { return c_.stream_create && (c_.capabilities & TAEDA_CAN_STREAMS); }
  void* stream_create(Device device, int priority) override {
    taeda_stream made = nullptr;
    ask("stream_create", need(c_.stream_create, "stream_create")(c_.context, device.index, priority, &made));
    return got(made, "stream_create");
  }
  void stream_destroy(Device device, void* stream) noexcept override {
    if (c_.stream_destroy) c_.stream_destroy(c_.context, device.index, stream);
  }
  void stream_synchronize(Device device, void* stream) override {
    if (!c_.stream_synchronize) return synchronize(device);
    const Waiting waiting(*this, "stream_synchronize");
    ask("stream_synchronize", c_.stream_synchronize(c_.context, device.index, stream));
  }
  bool stream_query(Device device, void* stream) override {
    int32_t done = 0;
    ask("stream_query", need(c_.stream_query, "stream_query")(c_.context, device.index, stream, &done));
    return done != 0;
  }
  void stream_uses(Device device, void* data, void* stream) override {
    ask("stream_uses", need(c_.stream_uses, "stream_uses")(c_.context, device.index, data, stream));
  }
  bool has_events() const override {
    return c_.event_create && c_.event_record && c_.event_wait && c_.event_synchronize && c_.event_query;
  }
  bool has_event_timing() const override { return c_.event_elapsed && (c_.capabilities & TAEDA_CAN_EVENT_TIMING); }
  void* event_create(Device device, bool timing) override {
    taeda_event made = nullptr;
    ask("event_create",
        need(c_.event_create, "event_create")(c_.context, device.index, timing ? TAEDA_EVENT_TIMING : 0, &made));
    return got(made, "event_create");
  }
  void event_destroy(Device device, void* event) noexcept override {
    if (c_.event_destroy) c_.event_destroy(c_.context, device.index, event);
  }
  void event_record(Device device, void* event, void* stream) override {
    ask("event_record", need(c_.event_record, "event_record")(c_.context, device.index, event, stream));
  }
  void event_wait(Device device, void* event, void* stream) override {
    ask("event_wait", need(c_.event_wait, "event_wait")(c_.context, device.index, event, stream));
  }
  void event_synchronize(Device device, void* event) override {
    const Waiting waiting(*this, "event_synchronize");
    ask("event_synchronize", need(c_.event_synchronize, "event_synchronize")(c_.context, device.index, event));
  }
  bool event_query(Device device, void* event) override {
    int32_t done = 0;
    ask("event_query", need(c_.event_query, "event_query")(c_.context, device.index, event, &done));
    return done != 0;
  }
  double event_elapsed(Device device, void* from, void* to) override {
    double milliseconds = 0;
    ask("event_elapsed", need(c_.event_elapsed, "event_elapsed")(c_.context, device.index, from, to, &milliseconds));
    return milliseconds;
  }

  bool has_pinned_memory() const override { return c_.pinned_allocate && c_.pinned_release; }
  void* pinned_allocate(size_t nbytes) override {
    void* data = nullptr;
    ask("pinned_allocate", need(c_.pinned_allocate, "pinned_allocate")(c_.context, nbytes, &data));
    return got(data, "pinned_allocate");
  }
  void pinned_release(void* data, size_t nbytes) noexcept override { c_.pinned_release(c_.context, data, nbytes); }

  void random_set(Device device, PhiloxRange place) override {
    if (c_.random_set) ask("random_set", c_.random_set(c_.context, device.index, place.seed, place.offset));
  }
  void random_get(Device device, PhiloxRange& place) override {
    PhiloxRange found = place;
    if (c_.random_get) ask("random_get", c_.random_get(c_.context, device.index, &found.seed, &found.offset));
    place = found;
  }

  bool can_share_memory() const override {
    return c_.memory_export && c_.memory_import && c_.memory_close && (c_.capabilities & TAEDA_CAN_SHARE_MEMORY);
  }
  std::string memory_export(Device device, void* data, size_t nbytes) override {
    char text[1024];
    size_t size = sizeof text;
    ask("memory_export", need(c_.memory_export, "memory_export")(c_.context, device.index, data, nbytes, text, &size));
    check(size <= sizeof text, ErrorKind::Runtime, what("memory_export"), " gave a description of ", size,
          " bytes, there is room for ", sizeof text);
    return {text, size};
  }
  void memory_import(Storage& storage, size_t nbytes, std::string_view description) override {
    const Device device = storage.device;
    const auto open = need(c_.memory_import, "memory_import");
    need(c_.memory_close, "memory_close");
    ask("memory_import", open(c_.context, device.index, description.data(), description.size(), &storage.data));
    got(storage.data, "memory_import");
    storage.nbytes = nbytes;
    storage.growable = false;
    storage.context = &places_[size_t(device.index)];
    storage.release = [](void* data, size_t bytes, void* context) {
      const Place& place = *static_cast<const Place*>(context);
      place.owner->c_.memory_close(place.owner->c_.context, place.index, data, bytes);
    };
  }

  DeviceProperties properties(Device device) const override {
    taeda_device_properties found{};
    found.size = sizeof found;
    if (c_.properties) ask("properties", c_.properties(c_.context, device.index, &found));
    found.name[sizeof found.name - 1] = 0;
    return {
        found.name[0] ? found.name : name_, found.total_memory, found.free_memory, found.alignment, found.processors,
        found.more ? found.more : ""};
  }
  void empty_cache(Device device) override {
    if (c_.empty_cache) ask("empty_cache", c_.empty_cache(c_.context, device.index));
  }
  bool wants_channels_last(Device device, const ImageResult& result) const override {
    if (!c_.image_layout) return lies_as_input(result);
    const taeda_image_result question = to_c(result);
    int32_t layout = TAEDA_IMAGE_OTHER;
    ask("image_layout", c_.image_layout(c_.context, device.index, &question, &layout));
    check(layout == TAEDA_IMAGE_ROW_MAJOR || layout == TAEDA_IMAGE_CHANNELS_LAST, ErrorKind::Runtime,
          what("image_layout"), " gave ", layout, ", expected TAEDA_IMAGE_ROW_MAJOR or TAEDA_IMAGE_CHANNELS_LAST");
    return layout == TAEDA_IMAGE_CHANNELS_LAST;
  }
  std::map<std::string, std::string> lacks() const override { return lacks_; }

 private:
  struct Place {
    PluginBackend* owner;
    int32_t index;
    std::unique_ptr<MemoryCount> use = std::make_unique<MemoryCount>();
  };
  std::string what(const char* function) const { return name_ + ": " + function; }
  void ask(const char* function, int32_t status) const {
    if (status != TAEDA_OK) [[unlikely]]
      throw_error(status, what(function));
    settle_errors();
  }
  /// What a function made; an error when it says that all is well and made nothing.
  void* got(void* made, const char* function) const {
    check(made != nullptr, ErrorKind::Runtime, what(function), " gave TAEDA_OK but null as its result");
    return made;
  }
  template <class Function>
  Function need(Function function, const char* named) const {
    if (!function) missing(named);
    return function;
  }

  taeda_backend c_;
  taeda_collectives collectives_{};
  std::string name_;
  int count_ = 0;
  std::vector<Place> places_;
  std::map<std::string, std::string> lacks_;
};

void check_name(const char* name) {
  check(name && *name, ErrorKind::Value, "backend_register: the name is missing");
  for (const char* c = name; *c; ++c)
    check(std::isalnum(static_cast<unsigned char>(*c)) || *c == '_', ErrorKind::Value, "backend_register: name '", name,
          "' may have letters, digits and underscores only");
}

void check_required(const taeda_backend& b) {
  const std::pair<bool, const char*> required[] = {
      {b.device_count, "device_count"},     {b.allocate, "allocate"},         {b.release, "release"},
      {b.copy_from_host, "copy_from_host"}, {b.copy_to_host, "copy_to_host"}, {b.synchronize, "synchronize"}};
  std::string absent;
  for (const auto& [there, function] : required)
    if (!there) absent += (absent.empty() ? "" : ", ") + std::string(function);
  check(absent.empty(), ErrorKind::Value, "backend_register: backend '", b.name,
        "' lacks what every backend must have: ", absent);
  check(!b.activities_start == !b.activities_stop, ErrorKind::Value, "backend_register: backend '", b.name,
        "' has one of activities_start and activities_stop, expected both or none");
}

/// A backend that cannot take the seed that the user has chosen is none: its numbers would differ from run to run.
void hand_over_seed(BackendId id) {
  try {
    seed_backend(id);
  } catch (...) {
    withdraw_backend(id);
    throw;
  }
}

}  // namespace

int32_t backend_register(const taeda_backend* given, int32_t* number) {
  return guarded([&] {
    const taeda_backend known = known_part(given, "taeda_backend");
    check_name(known.name);
    check_required(known);
    const std::string owner = owner_or(known.distribution);
    check_device_free(known.name, owner);
    auto made = std::make_unique<PluginBackend>(known);
    const BackendId id = register_backend(made.get());
    note_device_owner(known.name, owner);
    made.release();  // lives as long as the process: tensors refer to it
    if (number) *number = id;
    hand_over_seed(id);
    note_started([id] { withdraw_backend(id); });
    note_started([id] { remove_activities(id); });
    add_activities(id, known);
  });
}

int32_t backend_find(const char* name, int32_t* number) {
  return guarded([&] {
    const int found = name ? find_backend(name) : -1;
    check(found >= 0, ErrorKind::Value, "backend_find: there is no backend named '", name ? name : "(null)", "'");
    place(number, "backend_find") = found;
  });
}

}  // namespace taeda::abi
