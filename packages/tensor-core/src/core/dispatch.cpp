// The operator table: registration, look-up, and the checks that all stubs share.
#include "taeda/lent.h"
#include "taeda/dispatch.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "core/fork.h"
#include "taeda/autograd_api.h"
#include "taeda/backend.h"
#include "taeda/exported.h"
#include "taeda/python_api.h"
#include "taeda/stub.h"
#include "taeda/texts.h"

namespace taeda {

AutogradApi autograd_api;
PythonApi python_api;

namespace {

struct Table {
  std::mutex lock;
  HeldAtFork held{lock};
  std::vector<OpEntry*> entries{nullptr};  // id 0 is "none"
  std::map<std::string_view, OpEntry*> by_name;
};
Table& table() {
  static auto* instance = new Table;
  return *instance;
}
[[maybe_unused]] const auto* const made_at_load = &table();

bool& by_hand(OpEntry* op, BackendId backend) {
  static auto* known = new std::map<std::pair<OpEntry*, BackendId>, bool>;
  return (*known)[{op, backend}];
}

void set_kernel(OpEntry* op, BackendId backend, void* kernel, const char* who) {
  check(backend < kMaxBackends, ErrorKind::Value, "register_kernel: backend number ", int(backend), " is out of range");
  bool& taken = by_hand(op, backend);
  check(!taken, ErrorKind::Runtime, "register_kernel: operator '", op->name, "' has a kernel for backend ",
        int(backend), " already, registered by ", op->kernels->registered_by[backend]);
  taken = true;
  op->kernels->typed[backend] = kernel;
  op->kernels->registered_by[backend] = strdup(who);  // lives as long as the process
}

/// Lowest and highest byte that a strided tensor touches.
std::pair<const char*, const char*> byte_range(const Tensor& t) {
  const char* low = t.bytes();
  const char* high = t.bytes() + t.item_bytes();
  for (int64_t d = 0; d < t.dim(); ++d) {
    const int64_t span = (t.size(d) - 1) * t.stride(d) * t.item_bytes();
    (span < 0 ? low : high) += span;
  }
  return {low, high};
}

/// Whether two elements share a place. Steps that each reach beyond all smaller ones cannot meet; others are counted
/// out.
bool folds(const Tensor& t) {
  struct Step {
    int64_t size, stride;
  };
  std::vector<Step> steps;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.size(d) > 1) steps.push_back({t.size(d), std::abs(t.stride(d))});
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.stride < b.stride; });
  int64_t reach = 0;
  bool nested = true;
  for (const Step& step : steps) {
    if (step.stride == 0) return true;
    nested = nested && step.stride > reach;
    reach += (step.size - 1) * step.stride;
  }
  if (nested) return false;
  if (t.numel() > reach + 1) return true;
  std::vector<bool> taken(size_t(reach) + 1);
  std::vector<int64_t> at(steps.size());
  for (int64_t place = 0;;) {
    if (taken[size_t(place)]) return true;
    taken[size_t(place)] = true;
    size_t d = 0;
    for (; d < steps.size(); ++d) {
      place += steps[d].stride;
      if (++at[d] < steps[d].size) break;
      place -= steps[d].stride * steps[d].size;
      at[d] = 0;
    }
    if (d == steps.size()) return false;
  }
}

}  // namespace

namespace {

uint16_t numbered(OpEntry* entry) {
  entry->id = uint16_t(table().entries.size());
  table().entries.push_back(entry);
  return entry->id;
}

}  // namespace

uint16_t register_op(OpEntry* entry) {
  std::lock_guard guard(table().lock);
  const bool fresh = table().by_name.emplace(entry->name, entry).second;
  check(fresh, ErrorKind::Runtime, "register_op: an operator named '", entry->name, "' is registered already");
  return numbered(entry);
}

uint16_t replace_op(OpEntry* entry) {
  std::lock_guard guard(table().lock);
  table().by_name[entry->name] = entry;
  return numbered(entry);
}

OpEntry* find_op(std::string_view name) {
  std::lock_guard guard(table().lock);
  auto found = table().by_name.find(name);
  return found == table().by_name.end() ? nullptr : found->second;
}
OpEntry* op_by_id(uint16_t id) {
  std::lock_guard guard(table().lock);
  return id < table().entries.size() ? table().entries[id] : nullptr;
}
const std::vector<OpEntry*>& all_ops() { return table().entries; }

void register_kernel(OpEntry* op, BackendId backend, void* kernel, const char* who) {
  std::lock_guard guard(table().lock);
  set_kernel(op, backend, kernel, who);
}
void register_layer(OpEntry* op, Layer layer, void* entry) {
  std::lock_guard guard(table().lock);
  check(!op->layers[slot_of(layer)] || !entry, ErrorKind::Runtime, "register_layer: operator '", op->name,
        "' has an entry for layer ", int(layer), " already");
  op->layers[slot_of(layer)] = entry;
}

BackendId resolve_backend(const OpEntry& op, KeySet keys, std::span<const Tensor* const> arguments) {
  const uint64_t bits = keys.backends().bits();
  if (std::has_single_bit(bits)) [[likely]]
    return BackendId(std::countr_zero(bits));
  const Tensor* chosen = nullptr;
  for (const Tensor* t : arguments) {
    if (!t->defined()) continue;
    const bool movable = t->device().backend == kCPU && t->dim() == 0;
    if (movable) continue;
    if (chosen && chosen->device() != t->device()) [[unlikely]]
      fail(ErrorKind::Runtime, op.name, ": expected all tensors to be on the same device, found ",
           chosen ? describe(*chosen) : "", " and ", describe(*t));
    chosen = t;
  }
  check(chosen != nullptr || bits == 0, ErrorKind::Runtime, op.name, ": tensors are on different devices");
  return chosen ? chosen->device().backend : kCPU;
}

void no_kernel(const OpEntry& op, BackendId id) {
  std::string have;
  for (int b = 0; b < backend_count(); ++b)
    if (op.kernels && op.kernels->typed[b])
      have += (have.empty() ? "" : ", ") + backend(BackendId(b)).name() +
              (op.kernels->registered_by[b] ? std::string(" (by ") + op.kernels->registered_by[b] + ")" : "");
  fail(ErrorKind::NotImplemented, op.name, ": backend '", backend(id).name(),
       "' has no kernel for this operator; backends that have one: ", have.empty() ? "none" : have);
}

void check_inplace(const OpEntry& op, const Tensor& self, IntSpan result_sizes, DType result_dtype) {
  if (stub::is_fixed(self)) [[unlikely]]
    stub::check_target(op, self, "self", false);
  if (!(self.sizes().size() == result_sizes.size() &&
        std::equal(result_sizes.begin(), result_sizes.end(), self.sizes().begin()))) [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": the result has shape ", shape_text(result_sizes),
         " and does not fit into argument 'self' of shape ", shape_text(self.sizes()));
  if (!can_cast(result_dtype, self.dtype())) [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": the result has dtype ", name(result_dtype),
         " and cannot be stored into argument 'self' of dtype ", name(self.dtype()), ": ",
         cast_refusal(result_dtype, self.dtype()));
  check_places(op, self, "self");
}

void check_places(const OpEntry& op, const Tensor& target, const char* argument) {
  if (target.dense() || target.numel() == 0 || !folds(target)) [[likely]]
    return;
  fail(ErrorKind::Runtime, op.name, ": argument '", argument, "' is a view of shape ", shape_text(target.sizes()),
       " and strides ", shape_text(target.strides()),
       " in which several elements share one place in memory; clone() it before writing to it");
}

bool overlaps(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined() || a.numel() == 0 || b.numel() == 0) return false;
  const Storage *sa = a.impl()->storage.get(), *sb = b.impl()->storage.get();
  // Two storages can meet only where each stands over foreign memory or was exported.
  if (sa != sb && (!sa || !sb || !may_be_shared(*sa) || !may_be_shared(*sb) || sa->device != sb->device)) return false;
  const auto [al, ah] = byte_range(a);
  const auto [bl, bh] = byte_range(b);
  return al < bh && bl < ah;
}

bool same_place(const Tensor& a, const Tensor& b) {
  if (a.same(b)) return true;
  return a.bytes() == b.bytes() && a.dtype() == b.dtype() &&
         std::equal(a.sizes().begin(), a.sizes().end(), b.sizes().begin(), b.sizes().end()) &&
         std::equal(a.strides().begin(), a.strides().end(), b.strides().begin(), b.strides().end());
}

}  // namespace taeda
