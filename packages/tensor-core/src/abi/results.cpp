// What C functions store as results is checked before it is taken over.
#include <algorithm>

#include "abi/bridge.h"

namespace taeda::abi {
namespace {

[[noreturn]] void wrong(const Stored& stored, size_t i, const char* found) {
  const SchemaResult& wanted = stored.schema.results[i];
  const std::string which = stored.results.size() == 1 ? "its result" : "result '" + wanted.name + "'";
  fail(ErrorKind::Type, stored.op.name, ": the plug-in's function must store ",
       wanted.list                           ? "a list that value_tensors made"
       : wanted.type == ArgumentType::Tensor ? "a tensor"
                                             : "a value",
       " as ", which, ", found ", found, " (", stored.who, ")");
}

int64_t mask_of(const Stored& stored) {
  const auto& arguments = stored.schema.arguments;
  for (size_t i = 0; i < arguments.size() && i < stored.arguments.size(); ++i)
    if (arguments[i].name == "output_mask") return stored.arguments[i].as.integer;
  return 0;
}

size_t times(std::span<const taeda_value> values, taeda_tensor handle) {
  size_t count = 0;
  for (const taeda_value& v : values) {
    count += v.kind == TAEDA_VALUE_TENSOR && v.as.tensor == handle;
    if (v.kind == TAEDA_VALUE_TENSORS) count += size_t(std::count(v.as.tensors, v.as.tensors + v.count, handle));
  }
  return count;
}

constexpr const char* kBorrowed = "an argument without a reference of its own; call tensor_retain before storing it";

/// Not ours to release.
void leave_out(std::span<taeda_value> results, taeda_tensor handle) {
  for (taeda_value& v : results) {
    if (v.kind == TAEDA_VALUE_TENSOR && v.as.tensor == handle) v = none();
    if (v.kind == TAEDA_VALUE_TENSORS && made_here(v))
      std::replace(const_cast<taeda_tensor*>(v.as.tensors), const_cast<taeda_tensor*>(v.as.tensors) + v.count, handle,
                   taeda_tensor(nullptr));
  }
}

/// False where a stored handle certainly has no reference for each of its places beside those of what was lent. Where
/// others' references hide a missing one, it is given: that is one too many at worst, when another thread has just
/// dropped its own.
bool retained(const Lent& lent, std::span<taeda_value> results, taeda_tensor handle) {
  const Lent::Count* known = lent.find(handle);
  if (!known) [[likely]]
    return true;
  const auto* tensor = reinterpret_cast<const TensorImpl*>(handle);
  const size_t wanted = times(results, handle), now = tensor->use_count();
  if (now < known->held + wanted) {
    leave_out(results, handle);
    return false;
  }
  for (size_t have = now > known->before ? now - known->before : 0; have < wanted; ++have) tensor_retain(handle);
  return true;
}
/// The same of all handles of one result.
bool retained(const Lent& lent, std::span<taeda_value> results, size_t i) {
  const taeda_value& v = results[i];
  if (v.kind == TAEDA_VALUE_TENSOR) return retained(lent, results, v.as.tensor);
  if (v.kind != TAEDA_VALUE_TENSORS || !made_here(v)) return true;
  for (int64_t k = 0; k < v.count; ++k)
    if (v.as.tensors[k] && !retained(lent, results, v.as.tensors[k])) return false;
  return true;
}

}  // namespace

void Lent::add(std::span<const taeda_value> values, bool copied) {
  const auto one = [&](taeda_tensor handle) {
    if (!handle) return;
    for (Count& c : counts_)
      if (c.handle == handle) {
        c.held += copied;
        return;
      }
    counts_.push_back({handle, 1, reinterpret_cast<const TensorImpl*>(handle)->use_count()});
  };
  for (const taeda_value& v : values) {
    if (v.kind == TAEDA_VALUE_TENSOR) one(v.as.tensor);
    if (v.kind == TAEDA_VALUE_TENSORS) std::for_each(v.as.tensors, v.as.tensors + v.count, one);
  }
}
const Lent::Count* Lent::find(taeda_tensor handle) const {
  for (const Count& c : counts_)
    if (c.handle == handle) return &c;
  return nullptr;
}

void check_gradients(const OpEntry& op, const Lent& lent, std::span<taeda_value> gradients) {
  for (size_t i = 0; i < gradients.size(); ++i)
    if (!retained(lent, gradients, i))
      fail(ErrorKind::Type, op.name, ": the plug-in's derivative has stored as gradient ", i, " ", kBorrowed);
}

void check_stored(const Stored& stored) {
  for (size_t i = 0; i < stored.results.size(); ++i) {
    taeda_value& v = stored.results[i];
    const SchemaResult& wanted = stored.schema.results[i];
    const bool tensor = wanted.type == ArgumentType::Tensor && !wanted.list;
    if (v.kind == TAEDA_VALUE_NONE) {
      if (!may_be_absent(stored.schema, i, mask_of(stored))) wrong(stored, i, kind_name(v.kind));
    } else if (tensor && v.kind != TAEDA_VALUE_TENSOR) {
      wrong(stored, i, kind_name(v.kind));
    } else if (v.kind == TAEDA_VALUE_TENSOR) {
      if (!v.as.tensor) {
        v = none();
        wrong(stored, i, "a null handle");
      }
    }
    if (!retained(stored.lent, stored.results, i)) wrong(stored, i, kBorrowed);
  }
}

void check_direct(const Stored& stored, Device device) {
  check_stored(stored);
  std::vector<Tensor> arguments(stored.arguments.size()), results(stored.results.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (stored.arguments[i].kind == TAEDA_VALUE_TENSOR) arguments[i] = borrowed(stored.arguments[i].as.tensor);
  for (size_t i = 0; i < results.size(); ++i)
    if (stored.results[i].kind == TAEDA_VALUE_TENSOR) results[i] = borrowed(stored.results[i].as.tensor);
  check_kernel_results({stored.op, stored.schema, stored.who, arguments}, device, results);
}

}  // namespace taeda::abi
