// Backend: a named device family with an allocator and copies; cpu and meta register like everybody else.
#pragma once
#include <algorithm>
#include <atomic>
#include <map>

#include "taeda/device.h"
#include "taeda/generator.h"
#include "taeda/storage.h"
#include "taeda/tensor.h"

struct taeda_backend;  // taeda/abi.h

namespace taeda {

/// Facts about one device, as a backend tells them.
struct DeviceProperties {
  std::string name;
  uint64_t total_memory = 0, free_memory = 0;
  uint32_t alignment = 0, processors = 0;
  std::string more;  // a JSON object, or nothing
};

/// Bytes of one device that tensors hold, and what it was since the program began.
class MemoryCount {
 public:
  struct Counts {
    int64_t now = 0, peak = 0, taken = 0, given_back = 0;  // bytes
    int64_t takings = 0, givings = 0;                      // how often
  };
  void take(size_t nbytes) noexcept {
    const int64_t n = int64_t(nbytes), now = now_.fetch_add(n, std::memory_order_relaxed) + n;
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
    taken_.fetch_add(n, std::memory_order_relaxed);
    takings_.fetch_add(1, std::memory_order_relaxed);
  }
  void give_back(size_t nbytes) noexcept {
    now_.fetch_sub(int64_t(nbytes), std::memory_order_relaxed);
    givings_.fetch_add(1, std::memory_order_relaxed);
  }
  Counts counts() const noexcept {
    const int64_t now = now_, taken = taken_;
    return {now, std::max(peak_.load(), now), taken, taken - now, takings_, givings_};
  }
  void forget_peak() noexcept { peak_ = now_.load(); }

 private:
  std::atomic<int64_t> now_{0}, peak_{0}, taken_{0}, takings_{0}, givings_{0};
};

/// What may be left out raises NotImplementedError that names backend and function.
class TAEDA_API Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  virtual int device_count() const { return 1; }
  /// Returns memory and sets release/context of `storage`.
  virtual void allocate(Storage& storage, size_t nbytes) = 0;
  /// Contiguous bytes between a device and host memory, in the order of the device's current stream. Without `blocking`
  /// the host memory must be pinned and stay until the stream has come to the copy.
  virtual void copy_from_host(Device to_device, void* to, const void* host, size_t nbytes, bool blocking = true) = 0;
  virtual void copy_to_host(void* host, Device from_device, const void* from, size_t nbytes, bool blocking = true) = 0;
  /// Contiguous bytes between two devices of this backend; false: go by way of the host.
  virtual bool copy_peer(Device, void*, Device, const void*, size_t) { return false; }
  virtual void synchronize(Device) {}
  /// False: bytes can be read by the host directly (cpu).
  virtual bool opaque() const { return true; }
  /// False for meta: tensors have no bytes.
  virtual bool has_memory() const { return true; }

  virtual bool has_streams() const { return false; }
  virtual void* stream_create(Device, int priority);
  virtual void stream_destroy(Device, void*) noexcept {}
  virtual void stream_synchronize(Device device, void*) { synchronize(device); }
  virtual bool stream_query(Device, void*);
  virtual void stream_uses(Device, void* data, void* stream);
  virtual bool has_events() const { return false; }
  /// Whether event_elapsed measures.
  virtual bool has_event_timing() const { return false; }
  virtual void* event_create(Device, bool timing);
  virtual void event_destroy(Device, void*) noexcept {}
  virtual void event_record(Device, void* event, void* stream);
  virtual void event_wait(Device, void* event, void* stream);
  virtual void event_synchronize(Device, void* event);
  virtual bool event_query(Device, void* event);
  virtual double event_elapsed(Device, void* from, void* to);

  /// Host memory for copies that do not block.
  virtual bool has_pinned_memory() const { return false; }
  virtual void* pinned_allocate(size_t nbytes);
  virtual void pinned_release(void*, size_t) noexcept {}

  /// Before the user sets the default generator of a device, which is not locked, and before its state is read.
  virtual void random_set(Device, PhiloxRange) {}
  virtual void random_get(Device, PhiloxRange&) {}

  /// Memory that other processes open by a description.
  virtual bool can_share_memory() const { return false; }
  virtual std::string memory_export(Device, void* data, size_t nbytes);
  virtual void memory_import(Storage& storage, size_t nbytes, std::string_view description);

  virtual DeviceProperties properties(Device) const { return {name(), 0, 0, 0, 0, {}}; }
  virtual void empty_cache(Device) {}
  /// What tensors hold of a device's memory; null where nobody counts.
  virtual MemoryCount* memory_use(Device) { return nullptr; }
  /// Tables of a plug-in for what the core itself does not do (src/abi/collectives.cpp, src/abi/graphs.cpp).
  virtual const taeda_backend* plugin() const { return nullptr; }
  /// Whether copies between two of its devices go without the host.
  virtual bool has_peer_copies() const { return false; }
  /// Capabilities that it declares missing, with reasons.
  virtual std::map<std::string, std::string> lacks() const { return {}; }

 protected:
  [[noreturn]] void missing(const char* function) const;
};

TAEDA_API BackendId register_backend(Backend* backend);
/// Takes the name away: its plug-in failed later on. The number is not given again.
TAEDA_API void withdraw_backend(BackendId id);
TAEDA_API Backend& backend(BackendId id);
TAEDA_API int backend_count();
/// Its number, or -1; asks nobody.
TAEDA_API int find_backend(std::string_view name);
/// Asked when a device name is unknown, with the name. It registers that backend, or throws an error that tells why
/// not, or does nothing when it never heard of it.
extern TAEDA_API void (*discover_backend)(std::string_view name);

/// What happens to operators that a backend has no kernel of.
enum class Fallback : uint8_t { Error, Cpu };
TAEDA_API void set_fallback(BackendId id, Fallback policy);
TAEDA_API Fallback fallback_of(BackendId id);
/// How often each operator has been computed on the cpu for lack of a kernel.
TAEDA_API std::map<std::string, uint64_t> fallback_counts(BackendId id);
TAEDA_API void reset_fallback_counts(BackendId id);

/// Bounded cache of large CPU blocks: bytes now cached, the cap, and freeing all of it.
TAEDA_API size_t cpu_cached_bytes();
TAEDA_API size_t cpu_live_bytes();
TAEDA_API void set_cpu_cache_limit(size_t bytes);
TAEDA_API void empty_cpu_cache();

}  // namespace taeda
