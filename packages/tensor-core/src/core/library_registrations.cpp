// Kernels and layers with an owner that can be taken away again, and devices over host memory.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <mutex>

#include "core/composite_kernels.h"
#include "core/fork.h"
#include "core/runtime.h"
#include "taeda/backend.h"
#include "taeda/library.h"

namespace taeda {
namespace {

struct Registration {
  OpEntry* op;
  int place;  // backend, or slot of a layer
  bool layer;
  void* former = nullptr;  // what a replaced slot held
  BoxedFn* former_boxed = nullptr;
  const CKernel* former_c = nullptr;
  const char* former_who = nullptr;
  std::string who;
  bool composite = false;  // a kernel of an operator that works by what it calls
};
struct Registrations {
  std::recursive_mutex lock;
  HeldAtFork held{lock};
  uint64_t next = 1;
  std::map<uint64_t, Registration> all;
  std::map<uint64_t, std::vector<uint64_t>> groups;
  std::map<std::string, std::string> device_owners;
};
Registrations& registrations() {
  static auto* instance = new Registrations;
  return *instance;
}

uint64_t enter(Registration registration) {
  const uint64_t id = registrations().next++;
  registrations().all.emplace(id, std::move(registration));
  return id;
}

// Functions that are taken away stay allocated, and in their places where nothing else comes back: another thread may
// be inside one, or on its way.
void restore_composite(const Registration& r) {
  detail::CompositeKernels& kernels = detail::composite_kernels(*r.op);
  kernels.of[r.place].store(r.former_boxed, std::memory_order_release);
  kernels.registered_by[r.place] = r.former_who;
}
void restore_kernel(const Registration& r) {
  if (r.composite) return restore_composite(r);
  Kernels& kernels = *r.op->kernels;
  kernels.typed[r.place] = r.former;
  if (r.former_boxed) kernels.boxed[r.place] = r.former_boxed;
  if (r.former_c) kernels.c[r.place] = r.former_c;
  kernels.registered_by[r.place] = r.former_who;
}
void restore_layer(const Registration& r) { r.op->layers[r.place] = nullptr; }

struct Host final : Backend {
  HostBackend given;
  bool present = true;  // a device that was removed has no name by which it could be found
  explicit Host(HostBackend known) : given(std::move(known)) {}
  std::string name() const override { return present ? given.name : "(removed " + given.name + ")"; }
  int device_count() const override { return present ? given.device_count : 0; }
  void allocate(Storage& storage, size_t nbytes) override { detail::cpu_allocate(storage, nbytes); }
  bool opaque() const override { return false; }
  void copy_from_host(Device, void* to, const void* host, size_t nbytes, bool) override {
    std::memcpy(to, host, nbytes);
  }
  void copy_to_host(void* host, Device, const void* from, size_t nbytes, bool) override {
    std::memcpy(host, from, nbytes);
  }
  std::map<std::string, std::string> lacks() const override { return given.lacks; }
  DeviceProperties properties(Device) const override { return {given.name, 0, 0, 0, 0, given.properties}; }
};

}  // namespace

namespace {

void check_free(const OpEntry* op, BackendId id, const std::string& who, const char* owner, bool taken) {
  check(!taken, ErrorKind::Runtime, op->name, ": ", who, " registers a kernel for backend '", backend(id).name(),
        "', which has one already, registered by ", owner ? owner : "taeda-tensor-core",
        "; replace=True (in C kernel_replace) puts it aside");
}

/// Checks that a kernel may stand there, and notes what it replaces.
uint64_t enter_kernel(OpEntry* op, BackendId id, std::string who, bool replace) {
  check(id < backend_count(), ErrorKind::Value, op->name, ": there is no backend number ", int(id));
  Kernels& kernels = *op->kernels;
  check_free(op, id, who, kernels.registered_by[id], kernels.typed[id] && !replace);
  Registration made{
      op, id, false, kernels.typed[id], kernels.boxed[id], kernels.c[id], kernels.registered_by[id], std::move(who)};
  const uint64_t number = enter(std::move(made));
  kernels.registered_by[id] = registrations().all.at(number).who.c_str();
  return number;
}

/// The same for an operator that works by what it calls.
uint64_t add_composite_kernel(OpEntry* op, BackendId id, BoxedFn fn, std::string who, bool replace) {
  check(id < backend_count(), ErrorKind::Value, op->name, ": there is no backend number ", int(id));
  const auto written = [](const SchemaArgument& a) { return a.written; };
  check(std::ranges::none_of(schema_of(*op).arguments, written), ErrorKind::Value, op->name,
        ": operators of kind view and composite that write to an argument have no kernels; they work on every backend "
        "by what they call");
  detail::CompositeKernels& kernels = detail::composite_kernels(*op);
  auto* former = const_cast<BoxedFn*>(kernels.of[id].load());
  check_free(op, id, who, kernels.registered_by[id], former && !replace);
  const uint64_t number =
      enter({op, id, false, nullptr, former, nullptr, kernels.registered_by[id], std::move(who), true});
  kernels.registered_by[id] = registrations().all.at(number).who.c_str();
  kernels.of[id].store(new BoxedFn(std::move(fn)), std::memory_order_release);
  detail::count_composite_kernel(id, 1);
  return number;
}

}  // namespace

uint64_t add_kernel(OpEntry* op, BackendId id, BoxedFn fn, std::string who, bool replace) {
  std::lock_guard guard(registrations().lock);
  if (!op->kernels) return add_composite_kernel(op, id, std::move(fn), std::move(who), replace);
  const uint64_t number = enter_kernel(op, id, std::move(who), replace);
  op->kernels->boxed[id] = new BoxedFn(std::move(fn));
  op->kernels->typed[id] = op->boxed_kernel_adapter;
  return number;
}

uint64_t add_c_kernel(OpEntry* op, BackendId id, CKernel kernel, std::string who, bool replace) {
  std::lock_guard guard(registrations().lock);
  const uint64_t number = enter_kernel(op, id, std::move(who), replace);
  op->kernels->c[id] = new CKernel(kernel);
  op->kernels->typed[id] = op->c_kernel_adapter;
  return number;
}

uint64_t add_layer(OpEntry* op, Layer layer, BoxedFn fn, std::string who) {
  auto kept = std::make_unique<BoxedFn>(std::move(fn));
  const uint64_t number = add_kept_layer(op, layer, kept.get(), std::move(who));
  kept.release();
  return number;
}
uint64_t add_kept_layer(OpEntry* op, Layer layer, BoxedFn* fn, std::string who) {
  std::lock_guard guard(registrations().lock);
  const int place = slot_of(layer);
  if (op->layers[place]) {
    std::string owner = "a compiled package";
    for (const auto& [id, r] : registrations().all)
      if (r.layer && r.op == op && r.place == place) owner = r.who;
    fail(ErrorKind::Runtime, op->name, ": ", who, " registers an entry for layer ", int(layer),
         ", which has one already, registered by ", owner);
  }
  const uint64_t number = enter({op, place, true, nullptr, nullptr, nullptr, nullptr, std::move(who)});
  op->boxed_layers[place] = fn;
  op->layers[place] = op->boxed_layer_adapter;
  return number;
}

uint64_t add_layers(const std::vector<OpEntry*>& ops, Layer layer, const BoxedFn& fn, const std::string& who) {
  std::lock_guard guard(registrations().lock);
  const uint64_t number = registrations().next++;
  std::vector<uint64_t>& members = registrations().groups[number];
  try {
    for (OpEntry* op : ops) members.push_back(add_layer(op, layer, fn, who));
  } catch (...) {
    remove_registration(number);
    throw;
  }
  return number;
}

void remove_registration(uint64_t number) {
  std::lock_guard guard(registrations().lock);
  if (auto group = registrations().groups.extract(number))
    for (uint64_t member : group.mapped()) remove_registration(member);
  auto found = registrations().all.find(number);
  if (found == registrations().all.end()) return;
  Registration gone = std::move(found->second);
  if (gone.layer) {
    restore_layer(gone);
  } else {
    // A later replacement stands above this one: it inherits what this one had put aside.
    Registration* above = nullptr;
    for (auto& [id, r] : registrations().all)
      if (id > number && !r.layer && r.op == gone.op && r.place == gone.place && (!above)) above = &r;
    if (above) {
      above->former = gone.former;
      above->former_boxed = gone.former_boxed;
      above->former_c = gone.former_c;
      above->former_who = gone.former_who;
    } else {
      restore_kernel(gone);
    }
    if (gone.composite) detail::count_composite_kernel(BackendId(gone.place), -1);
  }
  registrations().all.erase(number);
}

namespace {

void check_host(const HostBackend& given) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  check(!given.name.empty() && std::ranges::all_of(given.name, fits), ErrorKind::Value,
        "Backend: argument 'name' may have letters, digits and underscores only, found '", given.name, "'");
  check(given.device_count >= 1 && given.device_count < 128, ErrorKind::Value,
        "Backend: argument 'device_count' must be from 1 to 127, found ", given.device_count);
}

/// The device of this name that was removed; null when there is none.
Host* removed_host(const std::string& name, int& id) {
  for (id = 0; id < backend_count(); ++id)
    if (auto* host = dynamic_cast<Host*>(&backend(BackendId(id))); host && host->given.name == name) return host;
  return nullptr;
}

}  // namespace

void check_device_free(const std::string& name, const std::string& who) {
  if (find_backend(name) < 0) return;
  std::lock_guard guard(registrations().lock);
  const auto owner = registrations().device_owners.find(name);
  fail(ErrorKind::Runtime, who, " registers device '", name, "', which is there already, registered by ",
       owner == registrations().device_owners.end() ? "taeda-tensor-core" : owner->second);
}
void note_device_owner(const std::string& name, std::string who) {
  std::lock_guard guard(registrations().lock);
  registrations().device_owners[name] = std::move(who);
}

BackendId host_backend(HostBackend given) {
  std::lock_guard guard(registrations().lock);
  check_host(given);
  check_device_free(given.name, given.who);
  note_device_owner(given.name, given.who);
  int id;
  if (Host* host = removed_host(given.name, id)) {
    host->given = std::move(given);
    host->present = true;
    return BackendId(id);
  }
  return register_backend(new Host(std::move(given)));
}

void remove_host_backend(BackendId id) {
  std::lock_guard guard(registrations().lock);
  if (auto* host = dynamic_cast<Host*>(&backend(id))) host->present = false;
}

bool is_host_backend(BackendId id) { return dynamic_cast<const Host*>(&backend(id)) != nullptr; }

}  // namespace taeda
