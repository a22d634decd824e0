// The table that plug-ins get, the handshake, and loading plug-ins.
#include <dlfcn.h>

#include <map>
#include <mutex>

#include "abi/bridge.h"
#include "core/fork.h"
#include "core/loading.h"
#include "taeda/plugin.h"

namespace taeda {
namespace {

// The order of members is the header's; the compiler checks names and types.
constexpr taeda_api kTable = {
    .size = sizeof(taeda_api),
    .major = TAEDA_ABI_MAJOR,
    .minor = TAEDA_ABI_MINOR,
    .version = TAEDA_CORE_VERSION,
    .set_error = abi::set_error,
    .last_error = abi::last_error,
    .tensor_read = abi::tensor_read,
    .tensor_retain = abi::tensor_retain,
    .tensor_release = abi::tensor_release,
    .tensor_empty = abi::tensor_empty,
    .tensor_view = abi::tensor_view,
    .tensor_wrap = abi::tensor_wrap,
    .tensor_to_host = abi::tensor_to_host,
    .tensor_from_host = abi::tensor_from_host,
    .op_count = abi::op_count,
    .op_at = abi::op_at,
    .op_find = abi::op_find,
    .op_read = abi::op_read,
    .op_call = abi::op_call,
    .op_define = abi::op_define,
    .backend_register = abi::backend_register,
    .backend_find = abi::backend_find,
    .kernel_register = abi::kernel_register,
    .layer_register = abi::layer_register,
    .call_below = abi::call_below,
    .layer_switch = abi::layer_switch,
    .registration_remove = abi::registration_remove,
    .generator_reserve = abi::generator_reserve,
    .stream_current = abi::stream_current,
    .host_release = abi::host_release,
    .host_acquire = abi::host_acquire,
    .kernel_replace = abi::kernel_replace,
    .value_tensors = abi::value_tensors,
    .value_release = abi::value_release,
    .alert_not_deterministic = abi::alert_not_deterministic,
    .deterministic = abi::deterministic,
    .observer_add = abi::observer_add,
    .observer_remove = abi::observer_remove,
    .observed_tensors = abi::observed_tensors,
    .observed_arguments = abi::observed_arguments,
    .span_begin = abi::span_begin,
    .span_end = abi::span_end,
    .activity_origin = abi::activity_origin,
    .activities_start = abi::activities_start,
    .activities_stop = abi::activities_stop,
    .backend_name = abi::backend_name,
    .kernel_add = abi::kernel_add,
    .object_tensor = abi::object_tensor,
    .tensor_object = abi::tensor_object,
    .error_object = abi::error_object,
    .dtype_define = abi::dtype_define,
    .dtype_find = abi::dtype_find,
    .device_current = abi::device_current,
    .call_site = abi::call_site,
    .set_error_at = abi::set_error_at,
};

std::string version_text(uint32_t major, uint32_t minor) { return std::to_string(major) + "." + std::to_string(minor); }

/// What a plug-in has registered since its start began; a start that fails leaves nothing behind.
class Start {
 public:
  Start() : outer_(std::exchange(current, this)) { abi::settle_errors(); }  // older errors are none of its own
  Start(const Start&) = delete;
  ~Start() {
    current = outer_;
    for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) (*undo)();
  }
  void note(std::function<void()> undo) { undo_.push_back(std::move(undo)); }
  /// A device may still be refused when its plug-in started well.
  void succeed() {
    for (auto& undo : undo_) detail::note_loading(std::move(undo));
    undo_.clear();
  }
  static inline thread_local Start* current = nullptr;

 private:
  Start* outer_;
  std::vector<std::function<void()>> undo_;
};

std::string name_of(const taeda_plugin& plugin) { return plugin.name ? plugin.name : "a plug-in"; }

/// Plug-ins start one at a time.
struct Starting {
  std::recursive_mutex lock;
  HeldAtFork held{lock};
};
Starting& starting = *new Starting;

std::unique_lock<std::recursive_mutex> start_turn() {
  std::unique_lock guard(starting.lock, std::try_to_lock);
  if (guard.owns_lock()) return guard;
  void* token = abi::host_release();  // a start that is running may need it to go on
  guard.lock();
  abi::host_acquire(token);
  return guard;
}

}  // namespace

void abi::note_started(std::function<void()> undo) {
  if (Start::current) Start::current->note(std::move(undo));
}

const taeda_api& abi_table() { return kTable; }

std::string abi_refusal(uint32_t major, uint32_t minor, const std::string& distribution) {
  if (major == TAEDA_ABI_MAJOR && minor <= TAEDA_ABI_MINOR) return {};
  const bool ours_is_older = major >= TAEDA_ABI_MAJOR;  // of the same major version only newer minor ones come here
  const std::string who = distribution.empty() ? "the plug-in" : "'" + distribution + "'";
  const std::string upgrade = ours_is_older          ? "taeda-tensor-core"
                              : distribution.empty() ? "<the plug-in>"
                                                     : distribution;
  return who + " was built for version " + version_text(major, minor) + " of taeda's C ABI, taeda-tensor-core " +
         TAEDA_CORE_VERSION + " offers version " + version_text(TAEDA_ABI_MAJOR, TAEDA_ABI_MINOR) +
         "; try: pip install --upgrade " + upgrade;
}

namespace {

/// What is understood of a plug-in's description, when it may be started.
taeda_plugin understood(const taeda_plugin* plugin) {
  check(plugin != nullptr, ErrorKind::Value, "plug-in: its description is null");
  const taeda_plugin known = abi::known_part(plugin, "taeda_plugin");
  check(plugin->size >= offsetof(taeda_plugin, start) + sizeof known.start, ErrorKind::Value,
        "plug-in: the size of its description is ", plugin->size, ", expected at least ", sizeof(taeda_plugin));
  const std::string who = name_of(known);
  const std::string refusal =
      abi_refusal(known.abi_major, known.abi_minor, known.distribution ? known.distribution : who);
  check(refusal.empty(), ErrorKind::Runtime, "plug-in refused: ", refusal);
  check(known.start != nullptr, ErrorKind::Value, "plug-in '", who, "' has no function 'start'");
  return known;
}

}  // namespace

void start_plugin(const taeda_plugin* plugin) {
  static auto* started = new std::map<const taeda_plugin*, bool>;
  const taeda_plugin known = understood(plugin);
  const auto guard = start_turn();
  if ((*started)[plugin]) return;
  Start start;
  abi::check_status(known.start(&kTable), ("plug-in '" + name_of(known) + "'").c_str());
  abi::note_started([plugin] {
    const auto turn = start_turn();
    (*started)[plugin] = false;
  });
  (*started)[plugin] = true;
  start.succeed();
}

void load_plugin(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    fail(ErrorKind::Runtime, "plug-in '", path, "' cannot be loaded: ", reason ? reason : "unknown reason");
  }
  const auto describe = reinterpret_cast<taeda_plugin_describe_fn>(dlsym(library, "taeda_plugin_describe"));
  if (!describe) {
    dlclose(library);
    fail(ErrorKind::Runtime, "plug-in '", path, "' is no plug-in of taeda: it does not export 'taeda_plugin_describe'");
  }
  const taeda_plugin* plugin = describe();
  try {
    understood(plugin);
  } catch (...) {
    dlclose(library);  // another build of it may be loaded from here later
    throw;
  }
  start_plugin(plugin);  // stays loaded also when that fails: it may have started threads
}

}  // namespace taeda

extern "C" int32_t taeda_abi_get(uint32_t major, uint32_t minor, const char* distribution, const taeda_api** api,
                                 const char** message) {
  using namespace taeda;
  if (api) *api = nullptr;
  try {
    const std::string refusal = abi_refusal(major, minor, distribution ? distribution : "");
    if (!refusal.empty()) abi::set_error(TAEDA_E_VERSION, refusal.c_str());
    if (message) *message = refusal.empty() ? "" : abi::last_error();
    if (!refusal.empty()) return TAEDA_E_VERSION;
    if (api) *api = &abi_table();
    return TAEDA_OK;
  } catch (...) {
    return TAEDA_E_MEMORY;
  }
}
