// What happens where a backend lacks a kernel: the operator in terms of others, an error, or, where the user chose so,
// the same operator on the cpu.
#include <atomic>
#include <mutex>

#include "core/contract.h"
#include "core/decompose.h"
#include "core/fork.h"
#include "taeda/backend.h"
#include "taeda/library.h"
#include "taeda/ops/cast.h"
#include "taeda/stub.h"

namespace taeda {
namespace {

struct Fallbacks {
  std::mutex lock;
  HeldAtFork held{lock};
  std::atomic<Fallback> policy[kMaxBackends] = {};
  std::map<std::string, uint64_t> counts[kMaxBackends];
};
Fallbacks& fallbacks() {
  static auto* instance = new Fallbacks;
  return *instance;
}
[[maybe_unused]] const auto* const made_at_load = &fallbacks();

void count(BackendId id, const char* op) {
  std::lock_guard guard(fallbacks().lock);
  ++fallbacks().counts[id][op];
}

/// The bytes from a tensor's lowest to its highest element.
struct Span {
  char* low;
  size_t nbytes;
};
Span span_of(const Tensor& t) {
  int64_t low = 0, high = t.item_bytes();
  for (int64_t d = 0; d < t.dim(); ++d) {
    const int64_t reach = (t.size(d) - 1) * t.stride(d) * t.item_bytes();
    (reach < 0 ? low : high) += reach;
  }
  return {t.bytes() + low, size_t(high - low)};
}

/// A tensor of the cpu with the same strides. Whole spans travel: a copy of single elements would itself need a kernel.
Tensor fetch(const Tensor& there) {
  if (there.numel() == 0) return empty(there.sizes(), there.dtype());
  const Span span = span_of(there);
  const Tensor bytes = empty(Shape{int64_t(span.nbytes)}, DType::UInt8);
  backend(there.device().backend).copy_to_host(bytes.bytes(), there.device(), span.low, span.nbytes);
  return from_storage(bytes.impl()->storage, there.sizes(), there.strides(), there.bytes() - span.low, there.dtype());
}

/// Elements of a tensor of the cpu into one of the device, of the same shape and dtype.
void store(const Tensor& there, const Tensor& here) {
  if (there.numel() == 0) return;
  // What lies between the elements stays as it is now.
  const Tensor whole = there.dense() ? empty_strided(there.sizes(), there.strides(), there.dtype()) : fetch(there);
  ops::copy_(whole, here);
  const Span to = span_of(there), from = span_of(whole);
  backend(there.device().backend).copy_from_host(there.device(), to.low, from.low, to.nbytes);
}

/// One element for each place: dimensions along which the same one is shown again are cut to their first.
Tensor places_of(const Tensor& t) {
  Shape sizes(t.sizes());
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.stride(d) == 0 && sizes[size_t(d)] > 1) sizes[size_t(d)] = 1;
  return alias(t, sizes, t.strides(), 0);
}

/// A tensor of the device and its copy, which is written back when the operator writes to it.
struct Moved {
  Tensor there, here;
  uint32_t version;
  bool written;
};

class Stay {
 public:
  explicit Stay(BackendId id) : id_(id) {}
  Tensor move(const Tensor& t, bool written) {
    if (!t.defined() || t.device().backend != id_) return t;
    for (Moved& m : moved_)
      if (m.there.same(t)) {
        m.written |= written;
        return m.here;
      }
    const Tensor here = fetch(t);
    moved_.push_back({t, here, here.version(), written});
    return here;
  }
  Value move(Value value, bool written) {
    if (auto* t = std::get_if<Tensor>(&value)) return move(*t, written);
    if (auto* list = std::get_if<std::vector<Tensor>>(&value))
      for (Tensor& t : *list) t = move(t, written);
    if (auto* some = std::get_if<std::vector<std::optional<Tensor>>>(&value))
      for (auto& t : *some)
        if (t) t = move(*t, written);
    return value;
  }
  /// What the schema calls written, and what an operator without such marks has counted a write to.
  void write_back() const {
    for (const Moved& m : moved_)
      if (m.written || m.here.version() != m.version) store(places_of(m.there), places_of(m.here));
  }

 private:
  BackendId id_;
  std::vector<Moved> moved_;
};

Device device_of(BackendId id, const Values& arguments) {
  for (const Value& v : arguments) {
    if (auto* t = std::get_if<Tensor>(&v); t && t->defined() && t->device().backend == id) return t->device();
    if (auto* list = std::get_if<std::vector<Tensor>>(&v))
      for (const Tensor& t : *list)
        if (t.defined() && t.device().backend == id) return t.device();
    if (auto* device = std::get_if<Device>(&v); device && device->backend == id) return *device;
  }
  return {id, 0};
}

Value to_device(Value value, Device device) {
  if (auto* t = std::get_if<Tensor>(&value); t && t->defined()) return ops::to_device(*t, device);
  return value;
}

/// Results on the cpu; what the operator wrote into is written back to the device.
Values count_and_call(const OpEntry& op, BackendId id, Values inputs) {
  count(id, op.name);
  Stay stay(id);
  const Schema& schema = schema_of(op);
  std::vector<bool> written;
  for (size_t i = 0; i < inputs.size(); ++i) written.push_back(writes_to(schema, i, inputs));
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = stay.move(std::move(inputs[i]), written[i]);
  Values results = call_operator(op, std::move(inputs));
  stay.write_back();
  return results;
}

/// Boxed kernel that computes on the cpu: outputs first for structured operators, as all boxed kernels.
Values on_cpu(const OpEntry& op, KeySet keys, Values arguments) {
  const BackendId id = BackendId(std::countr_zero(keys.backends().bits()));
  const Device device = device_of(id, arguments);
  const size_t outputs = op.kind == Kind::Structured ? arguments.size() - schema_of(op).arguments.size() : 0;
  Values inputs(std::make_move_iterator(arguments.begin() + std::ptrdiff_t(outputs)),
                std::make_move_iterator(arguments.end()));
  if (outputs == 0) return compute_on_cpu(op, device, std::move(inputs));
  Values results = count_and_call(op, id, std::move(inputs));
  for (size_t i = 0; i < outputs; ++i) store(std::get<Tensor>(arguments[i]), std::get<Tensor>(results[i]));
  return {};
}

}  // namespace

Values compute_on_cpu(const OpEntry& op, Device device, Values inputs) {
  Values results = count_and_call(op, device.backend, std::move(inputs));
  for (Value& r : results) r = to_device(std::move(r), device);
  return results;
}

void set_fallback(BackendId id, Fallback policy) { fallbacks().policy[id] = policy; }
Fallback fallback_of(BackendId id) { return fallbacks().policy[id]; }
std::map<std::string, uint64_t> fallback_counts(BackendId id) {
  std::lock_guard guard(fallbacks().lock);
  return fallbacks().counts[id];
}
void reset_fallback_counts(BackendId id) {
  std::lock_guard guard(fallbacks().lock);
  fallbacks().counts[id].clear();
}

const BoxedFn* stand_in(const OpEntry& op, BackendId id) {
  if (const BoxedFn* kernel = decomposed_kernel(op)) return kernel;
  static const auto* fallback = new BoxedFn(on_cpu);
  return fallback_of(id) == Fallback::Cpu ? fallback : nullptr;
}

void* missing_kernel(const OpEntry& called, OpEntry& owner, BackendId id) {
  if (!backend(id).has_memory()) return nullptr;
  const BoxedFn* kernel = stand_in(owner, id);
  if (!kernel || !owner.boxed_kernel_adapter) no_kernel(called, id);
  // The slot of the kernel stays empty: only the adapter's function is put down, where the adapter looks for it.
  owner.kernels->boxed[id] = const_cast<BoxedFn*>(kernel);
  return owner.boxed_kernel_adapter;
}

}  // namespace taeda
