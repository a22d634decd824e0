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
  bool composite = false;        // a kernel of an operator that works by what it calls
  bool former_recorded = false;  // and whether the one in its place before was taken for recorded calls
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
[[maybe_unused]] const auto* const made_at_load = &registrations();

uint64_t enter(Registration registration) {
  const uint64_t id = registrations().next++;
  registrations().all.emplace(id, std::move(registration));
  return id;
}

// Note [Layers of one position]
// Any number of layers may stand at a position of an operator. The one that came last is met first, and what it calls
// goes on with those that were there before it: a thread knows the numbers of the layers that it is in, and only layers
// with lower ones are met there. While the last of a position runs, the position is off, so that its calls
// cost what they would without layers.
struct LayerStack {
  struct Member {
    uint64_t number;
    BoxedFn* fn;
  };
  using Members = std::vector<Member>;  // in the order of their numbers
  std::atomic<const Members*> now{nullptr};
  BoxedFn entry;

  /// The layer to meet after that of number `passed`, 0 for none; null where none is left.
  Member below(uint64_t passed) const noexcept;
  /// With the lock.
  void change(int place, Members members);

 private:
  mutable std::atomic<int> readers_{0};
  std::vector<std::unique_ptr<const Members>> former_;  // which other threads may still be reading
};
constinit std::atomic<size_t> owners_at[kLayerSlots] = {};  // how many have layers at a position, by their names

/// With the lock: one layer more or less.
void count_owner(int place, const std::string& who, int change) {
  static auto* all = new std::map<std::string, int>[kLayerSlots];
  if ((all[place][who] += change) == 0) all[place].erase(who);
  owners_at[place] = all[place].size();
}

/// How many operators have more than one layer at a position.
constinit std::atomic<int> crowded_at[kLayerSlots] = {};
void LayerStack::change(int place, Members members) {
  const Members* before = now;
  former_.reserve(former_.size() + 1);
  crowded_at[place] += int(members.size() > 1) - int(before && before->size() > 1);
  now = members.empty() ? nullptr : new Members(std::move(members));
  if (before) former_.emplace_back(before);
  // Whoever begins to read from here on finds the new list.
  if (readers_ == 0) former_.clear();
}
LayerStack::Member LayerStack::below(uint64_t passed) const noexcept {
  ++readers_;
  const Members* members = now;
  Member found{0, nullptr};
  for (size_t i = members ? members->size() : 0; i-- > 0 && !found.fn;)
    if (!passed || (*members)[i].number < passed) found = (*members)[i];
  --readers_;
  return found;
}

/// What a thread is in, the innermost first: one pointer, since thread-local memory of libraries is short.
class Inside {
 public:
  Inside(int slot, uint64_t number) noexcept : slot_(slot), number_(number), outer_(innermost) { innermost = this; }
  ~Inside() { innermost = outer_; }
  Inside(const Inside&) = delete;
  /// The number of the layer of a position that the thread is in; 0 for none.
  static uint64_t passed(int slot) noexcept {
    for (const Inside* each = innermost; each; each = each->outer_)
      if (each->slot_ == slot) return each->number_;
    return 0;
  }

 private:
  static thread_local constinit const Inside* innermost;
  int slot_;
  uint64_t number_;
  const Inside* outer_;
};
thread_local constinit const Inside* Inside::innermost = nullptr;

Values meet(const LayerStack& stack, const OpEntry& op, KeySet keys, Values arguments) {
  const int slot = keys.top_slot();
  if (const auto [number, fn] = stack.below(Inside::passed(slot)); fn) {
    const Inside inside(slot, number);
    return (*fn)(op, keys, std::move(arguments));
  }
  const KeySet rest = keys.without_slot(slot);
  return op.go_on_boxed ? op.go_on_boxed(op, rest, arguments) : go_on(op, rest, std::move(arguments));
}

/// Kept for ever: another thread may be on its way into it.
LayerStack& stack_of(OpEntry* op, int place) {
  static auto* all = new std::map<std::pair<const OpEntry*, int>, LayerStack*>;
  LayerStack*& found = (*all)[{op, place}];
  if (!found) {
    found = new LayerStack;
    found->entry = [found](const OpEntry& called, KeySet keys, Values arguments) {
      return meet(*found, called, keys, std::move(arguments));
    };
  }
  return *found;
}
void restore_layer(uint64_t number, const Registration& r) {
  LayerStack& stack = stack_of(r.op, r.place);
  if (!stack.now) {
    r.op->layers[r.place] = nullptr;
    return;
  }
  count_owner(r.place, r.who, -1);
  LayerStack::Members members = *stack.now;
  std::erase_if(members, [number](const LayerStack::Member& m) { return m.number == number; });
  if (members.empty()) r.op->layers[r.place] = nullptr;
  stack.change(r.place, std::move(members));
}

// Functions that are taken away stay allocated, and in their places where nothing else comes back: another thread may
// be inside one, or on its way.
void restore_composite(const Registration& r) {
  detail::CompositeKernels& kernels = detail::composite_kernels(*r.op);
  kernels.of[r.place].store(r.former_boxed, std::memory_order_release);
  kernels.recorded[r.place] = r.former_recorded;
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

/// One device of a backend: what its storages give their memory back to. Kept for ever, since tensors are.
struct Ground {
  std::shared_ptr<OwnMemory> memory;  // null: the host's
  int index;
  MemoryCount use;
};

struct Host final : Backend {
  HostBackend given;
  std::vector<Ground*> grounds;
  bool present = true;  // a device that was removed has no name by which it could be found
  explicit Host(HostBackend known) { take(std::move(known)); }
  void take(HostBackend known) {
    given = std::move(known);
    grounds.clear();
    for (int i = 0; i < given.device_count; ++i) grounds.push_back(new Ground{.memory = given.memory, .index = i});
    present = true;
  }
  std::string name() const override { return present ? given.name : "(removed " + given.name + ")"; }
  int device_count() const override { return present ? given.device_count : 0; }
  void allocate(Storage& storage, size_t nbytes) override {
    Ground& ground = *grounds[size_t(storage.device.index)];
    if (ground.memory) storage.data = reinterpret_cast<void*>(ground.memory->allocate(ground.index, nbytes));
    else detail::cpu_allocate(storage, nbytes);
    storage.nbytes = nbytes;
    storage.context = &ground;
    storage.release = [](void* data, size_t bytes, void* context) {
      auto& ground = *static_cast<Ground*>(context);
      ground.use.give_back(bytes);
      if (ground.memory) ground.memory->release(ground.index, reinterpret_cast<uintptr_t>(data), bytes);
      else detail::cpu_release(data, bytes);
    };
    ground.use.take(nbytes);
  }
  bool opaque() const override { return given.memory != nullptr; }
  void copy_from_host(Device device, void* to, const void* host, size_t nbytes, bool) override {
    if (given.memory) given.memory->write(device.index, reinterpret_cast<uintptr_t>(to), host, nbytes);
    else std::memcpy(to, host, nbytes);
  }
  void copy_to_host(void* host, Device device, const void* from, size_t nbytes, bool) override {
    if (given.memory) given.memory->read(device.index, host, reinterpret_cast<uintptr_t>(from), nbytes);
    else std::memcpy(host, from, nbytes);
  }
  MemoryCount* memory_use(Device device) override { return &grounds[size_t(device.index)]->use; }
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
uint64_t enter_composite_kernel(OpEntry* op, BackendId id, BoxedFn fn, std::string who, bool replace, bool recorded) {
  check(id < backend_count(), ErrorKind::Value, op->name, ": there is no backend number ", int(id));
  const auto written = [](const SchemaArgument& a) { return a.written; };
  check(std::ranges::none_of(schema_of(*op).arguments, written), ErrorKind::Value, op->name,
        ": operators of kind view and composite that write to an argument have no kernels; they work on every backend "
        "by what they call");
  detail::CompositeKernels& kernels = detail::composite_kernels(*op);
  auto* former = const_cast<BoxedFn*>(kernels.of[id].load());
  check_free(op, id, who, kernels.registered_by[id], former && !replace);
  const uint64_t number = enter(
      {op, id, false, nullptr, former, nullptr, kernels.registered_by[id], std::move(who), true, kernels.recorded[id]});
  kernels.registered_by[id] = registrations().all.at(number).who.c_str();
  kernels.recorded[id] = recorded;
  kernels.of[id].store(new BoxedFn(std::move(fn)), std::memory_order_release);
  detail::count_composite_kernel(id, 1);
  return number;
}

}  // namespace

uint64_t add_kernel(OpEntry* op, BackendId id, BoxedFn fn, std::string who, bool replace) {
  std::lock_guard guard(registrations().lock);
  if (!op->kernels) return enter_composite_kernel(op, id, std::move(fn), std::move(who), replace, false);
  const uint64_t number = enter_kernel(op, id, std::move(who), replace);
  op->kernels->boxed[id] = new BoxedFn(std::move(fn));
  op->kernels->typed[id] = op->boxed_kernel_adapter;
  return number;
}

uint64_t add_composite_kernel(OpEntry* op, BackendId id, BoxedFn fn, std::string who, bool replace, bool recorded) {
  std::lock_guard guard(registrations().lock);
  return enter_composite_kernel(op, id, std::move(fn), std::move(who), replace, recorded);
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
namespace {
[[noreturn]] void refuse_layer(const OpEntry* op, Layer layer, const std::string& who) {
  std::string owner = "a compiled package";
  for (const auto& [id, r] : registrations().all)
    if (r.layer && r.op == op && r.place == slot_of(layer)) owner = r.who;
  fail(ErrorKind::Runtime, op->name, ": ", who, " registers an entry for layer ", int(layer),
       ", which has one already, registered by ", owner);
}
}  // namespace

uint64_t add_sole_layer(OpEntry* op, Layer layer, BoxedFn* fn, std::string who) {
  std::lock_guard guard(registrations().lock);
  const int place = slot_of(layer);
  if (op->layers[place]) refuse_layer(op, layer, who);
  const uint64_t number = enter({op, place, true, nullptr, nullptr, nullptr, nullptr, std::move(who)});
  op->boxed_layers[place] = fn;
  op->layers[place] = op->boxed_layer_adapter;
  return number;
}

uint64_t add_kept_layer(OpEntry* op, Layer layer, BoxedFn* fn, std::string who) {
  if (!may_share(layer)) return add_sole_layer(op, layer, fn, std::move(who));
  std::lock_guard guard(registrations().lock);
  const int place = slot_of(layer);
  LayerStack& stack = stack_of(op, place);
  if (op->layers[place] && !stack.now) refuse_layer(op, layer, who);
  count_owner(place, who, 1);
  const uint64_t number = enter({op, place, true, nullptr, nullptr, nullptr, nullptr, std::move(who)});
  LayerStack::Members members = stack.now ? *stack.now : LayerStack::Members();
  members.push_back({number, fn});
  stack.change(place, std::move(members));
  op->boxed_layers[place] = &stack.entry;
  op->layers[place] = op->boxed_layer_adapter;
  return number;
}

BelowLayer::BelowLayer(Layer layer) noexcept : saved_(thread_state.excluded) {
  const int slot = slot_of(layer);
  if (may_share(layer) && (owners_at[slot] > 1 || crowded_at[slot] > 0)) return;  // others of the position may follow
  thread_state.excluded |= KeySet::of(layer).bits();
}
BelowLayer::~BelowLayer() { restore_excluded(saved_); }

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
    restore_layer(number, gone);
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
    host->take(std::move(given));
    return BackendId(id);
  }
  return register_backend(new Host(std::move(given)));
}

void remove_host_backend(BackendId id) {
  std::lock_guard guard(registrations().lock);
  if (auto* host = dynamic_cast<Host*>(&backend(id))) host->present = false;
}

bool is_host_backend(BackendId id) { return !backend(id).opaque() && dynamic_cast<const Host*>(&backend(id)); }

}  // namespace taeda
